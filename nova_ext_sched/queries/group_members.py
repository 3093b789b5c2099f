# SPDX-License-Identifier: Apache-2.0

"""Where the members of a server group stand.

Of those that nova-compute has not claimed yet, only the allocation in
placement tells the host. nova keeps members in the group's list that were
deleted, or that failed and have no host: here they are *former* members.

The one place that reads nova's instances from the cells. nova's own instance
objects have about eighty columns; the policies need only the host.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import threading
import typing

import cachetools
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.compute import task_states
from nova.compute import vm_states
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from nova.scheduler.client import report
import sqlalchemy as sa

from nova_ext_sched.queries import fields
from nova_ext_sched.queries import sources

# Members that nova-compute has not claimed yet, that placement is asked about
# one by one.
MOST_UNCLAIMED = 50

# How long a cell may take where the answer only orders hosts. One that is
# well answers in milliseconds, and nova asks it before and after.
_QUICK_SECONDS = 2

# Databases limit the parameters of one statement; all take this many.
_CHUNK = 1000

# Deleted or failed members of all groups that are remembered: some 25 MB.
_MOST_FORMER = 200_000

#: The statuses of a migration that nova counts as ended
#: (nova.db.main.api.migration_get_in_progress_by_host_and_node), besides that
#: of a reverted one.
ENDED = (
    'confirmed',
    'error',
    'failed',
    'completed',
    'cancelled',
    'done',
)
_REVERTED = 'reverted'

# What a server without a host has to do where it does not get one.
_LEAVING = (None, task_states.DELETING, task_states.SOFT_DELETING)

Places = sources.Places

_UNCLAIMED: Places = frozenset((None,))

Found = typing.TypeVar('Found')


class Members(typing.NamedTuple):
    """Where members of a group stand, by UUID.

    :ivar places: what nova's databases say
    :ivar allocated: the hosts in placement of members that are not claimed
        yet, as far as they have any
    """

    places: Mapping[str, Places]
    allocated: Mapping[str, frozenset[str]]

    @property
    def hosts(self) -> dict[str, frozenset[str]]:
        """The hosts of the members that have any."""
        hosts = {
            uuid: frozenset(name for name in on if name is not None)
            | self.allocated.get(uuid, frozenset())
            for uuid, on in self.places.items()
        }
        return {uuid: on for uuid, on in hosts.items() if on}


class _FormerMembers:
    # nova keeps deleted members in the list of their group: one that shrinks
    # and grows may have thousands.

    def __init__(self) -> None:
        self._members: cachetools.LRUCache[str | None, frozenset[str]] = (
            cachetools.LRUCache(_MOST_FORMER, lambda uuids: len(uuids) + 1)
        )
        # nova-scheduler works in threads, or in greenlets.
        self._lock = threading.Lock()

    def get(self, group: typing.Any) -> frozenset[str]:
        with self._lock:
            return self._members.get(_uuid(group), frozenset())

    def add(self, group: typing.Any, uuids: frozenset[str]) -> None:
        # More members than there is memory for are a ValueError.
        with self._lock, contextlib.suppress(ValueError):
            known = self._members.get(_uuid(group), frozenset())
            # nova drops members from the list when it archives them.
            self._members[_uuid(group)] = (known | uuids).intersection(
                group.members
            )


def _uuid(group: typing.Any) -> str | None:
    uuid: str | None = fields.get_field(group, 'uuid')
    return uuid


_former = _FormerMembers()


def get_living(group: typing.Any, server: str | None) -> list[str]:
    """Return the other members of a group that may live, in their order.

    Without a query: those that :func:`get_places` once did not find are left
    out.

    :param group: a nova InstanceGroup
    :param server: the UUID of the member whose request it is
    """
    out = _former.get(group) | {server}
    return [member for member in group.members if member not in out]


def get_places(
    ctxt: typing.Any,
    group: typing.Any,
    uuids: Collection[str],
    quickly: bool = False,
) -> dict[str, Places]:
    """Return where members stand, of all projects, by UUID.

    =====================================  ==================================
    member                                 places
    =====================================  ==================================
    claimed by nova-compute                its host
    moves, or its resize is unconfirmed    source and destination
    moves to where nobody knows yet        source and None
    is booted or unshelved, not claimed    None
    goes back, as its resize is reverted   source and destination
    shelved, without a host                nothing
    deleted, or in ERROR without a host    it is not in the result
    =====================================  ==================================

    :func:`_select_places` has each state of nova.

    Two selects in the API database and two in each cell. Members that no cell
    has never come back. They are remembered.

    :param quickly: ask enabled cells only, and wait two seconds for one that
        does not answer. A member in a disabled cell is then not in the result
        either; nobody is remembered while there is such a cell
    :raises Exception: what the database or its driver raises, or
        nova.exception.CellTimeout, where a cell does not answer that may hold
        a member
    """
    if not uuids:
        return {}
    # conductor creates the instance before it deletes the build request, so
    # in this order no member is missed.
    places = dict.fromkeys(select_build_requests(ctxt, uuids), _UNCLAIMED)
    cells, are_all = _find_cells(ctxt, quickly)
    places |= _gather(ctxt, cells, _select_places, uuids, quickly)
    places = dict(sources.current.place(places))
    former = frozenset(uuids).difference(places)
    if former and are_all:
        _former.add(group, former)
    return places


def get_members(
    ctxt: typing.Any,
    group: typing.Any,
    uuids: Collection[str],
    quickly: bool = False,
) -> Members:
    """Return where members stand, those that placement alone knows too.

    As :func:`get_places`. While members wait to be claimed, a request to
    placement for each, up to :data:`MOST_UNCLAIMED` in the order of
    ``uuids``, and a select in each cell. Placement has no request for the
    allocations of several servers.

    :param quickly: as :func:`get_places`
    :raises Exception: as :func:`get_places`; what nova's report client raises
        where placement does not answer
    """
    places = get_places(ctxt, group, uuids, quickly)
    unclaimed = [uuid for uuid in uuids if None in places.get(uuid, ())]
    client = report.report_client_singleton()
    providers = {
        uuid: client.get_allocs_for_consumer(ctxt, uuid)['allocations']
        for uuid in unclaimed[:MOST_UNCLAIMED]
    }
    nodes: set[str] = set().union(*providers.values())
    hosts: dict[str, str] = {}
    if nodes:
        cells, _ = _find_cells(ctxt, quickly)
        hosts = _gather(ctxt, cells, _select_compute_hosts, nodes, quickly)
    return Members(
        places,
        {
            # Other providers of the tree (of devices) are no compute nodes.
            uuid: frozenset(hosts[rp] for rp in held if rp in hosts)
            for uuid, held in providers.items()
        },
    )


def _find_cells(
    ctxt: typing.Any, quickly: bool
) -> tuple[list[typing.Any], bool]:
    # The cells to ask, and whether these are all that may hold a server.
    # nova.context.CELLS is read once in a process. A member in a cell that is
    # added later would count as a former one.
    cells = [
        cell
        for cell in objects.CellMappingList.get_all(ctxt)
        if not cell.is_cell0()
    ]
    asked = [cell for cell in cells if not (quickly and cell.disabled)]
    return asked, len(asked) == len(cells)


def _gather(
    ctxt: typing.Any,
    cells: list[typing.Any],
    select: Callable[[typing.Any, list[str]], Mapping[str, Found]],
    uuids: Collection[str],
    quickly: bool,
) -> dict[str, Found]:
    found: dict[str, Found] = {}
    fault: Exception | None = None
    seconds = _QUICK_SECONDS if quickly else nova_context.CELL_TIMEOUT
    for chunk in in_chunks(uuids):
        answers = nova_context.scatter_gather_cells(
            ctxt, cells, seconds, select, chunk
        )
        for uuid, answer in answers.items():
            if isinstance(answer, Exception):
                fault = answer
            elif nova_context.is_cell_failure_sentinel(answer):
                fault = nova_exception.CellTimeout()
            else:
                found.update(answer)
                continue
            # One wait for it is enough.
            cells = [cell for cell in cells if cell.uuid != uuid]
    if fault is not None and len(found) < len(uuids):
        raise fault
    return found


def in_chunks(uuids: Collection[str]) -> Iterator[list[str]]:
    """Yield as many as one statement takes, in their order, till all are."""
    wanted = sorted(uuids)
    for start in range(0, len(wanted), _CHUNK):
        yield wanted[start : start + _CHUNK]


@api_db.context_manager.reader
def select_build_requests(
    context: typing.Any, uuids: Collection[str]
) -> list[str]:
    """Return which of the servers with these UUIDs are yet to be built."""
    column = api_models.BuildRequest.instance_uuid
    return [
        uuid
        for chunk in in_chunks(uuids)
        for uuid in context.session.execute(
            sa.select(column).where(column.in_(chunk))
        ).scalars()
    ]


@main_db.pick_context_manager_reader
def _select_places(context: typing.Any, uuids: list[str]) -> dict[str, Places]:
    """Return where members of one cell stand, by UUID.

    What nova 31 to 34 write while a server has no host, or is about to change
    it:

    ==================================  =====================================
    instance and its migrations         places
    ==================================  =====================================
    a host                              it
    no host: ``building``               None: conductor or nova-compute works
                                        on it, or tries the next host
    no host, a task (``unshelving``;    None. nova-compute says ``spawning``
    ``spawning``)                       long before it claims an unshelved
                                        server, while it attaches volumes
    no host, a task that deletes        nothing
    no host, no task, not in error      nothing: it is shelved
    no host, no task, in error          not in the result
    a migration that has not ended      its ends too: a move, a resize, an
                                        evacuation; None where conductor has
                                        no destination yet
    ``resize_reverting``, and the       its ends too: the destination ends
    newest migration is reverted        the migration before the source has
                                        the server back
    hidden (the other copy of a resize  the ends of such migrations. With
    to another cell)                    none, not in the result
    deleted                             not in the result
    ==================================  =====================================
    """
    instance, migration = models.Instance, models.Migration
    # Before the instances: nova writes the new host of a server and then ends
    # its migration. In the other order a move that ends meanwhile would leave
    # the old host alone. The newest migration is last.
    moves: dict[str, Places] = {}
    reverted: dict[str, Places] = {}
    for uuid, status, *ends in context.session.execute(
        sa.select(
            migration.instance_uuid,
            migration.status,
            migration.source_compute,
            migration.dest_compute,
        )
        .where(
            migration.instance_uuid.in_(uuids),
            migration.deleted == 0,
            migration.status.not_in(ENDED),
        )
        .order_by(migration.id)
    ):
        if status == _REVERTED:
            reverted[uuid] = frozenset(ends)
        else:
            moves[uuid] = moves.get(uuid, frozenset()).union(ends)
    places: dict[str, Places] = {}
    for uuid, host, vm_state, task_state, hidden in context.session.execute(
        sa.select(
            instance.uuid,
            instance.host,
            instance.vm_state,
            instance.task_state,
            instance.hidden,
        ).where(instance.uuid.in_(uuids), instance.deleted == 0)
    ):
        on = moves.get(uuid, frozenset())
        may_be_nowhere = False
        if task_state == task_states.RESIZE_REVERTING:
            on |= reverted.get(uuid, frozenset())
        if not hidden:
            if host:
                on |= {host}
            elif vm_state == vm_states.BUILDING or task_state not in _LEAVING:
                on |= _UNCLAIMED
            may_be_nowhere = vm_state != vm_states.ERROR
        if on or may_be_nowhere:
            places[uuid] = on
    return places


@main_db.pick_context_manager_reader
def _select_compute_hosts(
    context: typing.Any, uuids: list[str]
) -> dict[str, str]:
    node = models.ComputeNode
    rows = context.session.execute(
        sa.select(node.uuid, node.host).where(
            node.uuid.in_(uuids), node.deleted == 0
        )
    )
    return {uuid: host for uuid, host in rows if host}
