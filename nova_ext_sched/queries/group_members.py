# SPDX-License-Identifier: Apache-2.0

"""Where the members of a server group stand, including those under way.

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

# Members under way that placement is asked about, one by one.
MOST_UNDER_WAY = 50

# Databases limit the parameters of one statement; all take this many.
_CHUNK = 1000

# Members of all groups that are remembered as gone: some 25 MB.
_MOST_GONE = 200_000

# The statuses of a migration that nova counts as ended
# (nova.db.main.api.migration_get_in_progress_by_host_and_node).
_ENDED = (
    'confirmed',
    'reverted',
    'error',
    'failed',
    'completed',
    'cancelled',
    'done',
)

#: Names of hosts, and None for one that nova has not written down yet.
Places = frozenset[str | None]

_UNDER_WAY: Places = frozenset((None,))

Found = typing.TypeVar('Found')


class Members(typing.NamedTuple):
    """Where members of a group stand, by UUID.

    :ivar places: what nova's databases say
    :ivar allocated: the hosts of members under way in placement, as far as
        they have any
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


class _Gone:
    # nova keeps deleted members in the list of their group: one that shrinks
    # and grows may have thousands.

    def __init__(self) -> None:
        self._members: cachetools.LRUCache[str | None, frozenset[str]] = (
            cachetools.LRUCache(_MOST_GONE, lambda gone: len(gone) + 1)
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


_gone = _Gone()


def get_living(group: typing.Any, server: str | None) -> list[str]:
    """Return the other members of a group that may live, in their order.

    Without a query: those that :func:`get_places` once did not find are left
    out.

    :param group: a nova InstanceGroup
    :param server: the UUID of the member whose request it is
    """
    out = _gone.get(group) | {server}
    return [member for member in group.members if member not in out]


def use(context: typing.Any, hosts: Mapping[str, str]) -> None:
    """Let the functions here find some servers on other hosts.

    For tools that ask what moves would change.

    :param context: the nova RequestContext that they will be given
    :param hosts: names of hosts, by the UUIDs of servers
    """
    context.nova_ext_sched_moved = hosts


def get_places(
    ctxt: typing.Any, group: typing.Any, uuids: Collection[str]
) -> dict[str, Places]:
    """Return where members stand, of all projects, by UUID.

    =====================================  ==================================
    member                                 places
    =====================================  ==================================
    claimed by nova-compute                its host
    moves, or its resize is unconfirmed    source and destination
    moves to where nobody knows yet        source and None
    is booted or unshelved, not claimed    None
    shelved                                nothing
    deleted, or in ERROR without a host    it is not in the result
    =====================================  ==================================

    Two selects in the API database and two in each cell. Members that are not
    in the result never come back. They are remembered.

    :raises Exception: what the database or its driver raises, or
        nova.exception.CellTimeout, where a cell does not answer that may hold
        a member
    """
    if not uuids:
        return {}
    # conductor creates the instance before it deletes the build request, so
    # in this order no member is missed.
    places = dict.fromkeys(_select_build_requests(ctxt, uuids), _UNDER_WAY)
    places |= _gather(ctxt, _select_places, uuids)
    moved = getattr(ctxt, 'nova_ext_sched_moved', {})
    places |= {
        uuid: frozenset((moved[uuid],)) for uuid in places if uuid in moved
    }
    if gone := frozenset(uuids).difference(places):
        _gone.add(group, gone)
    return places


def get_members(
    ctxt: typing.Any, group: typing.Any, uuids: Collection[str]
) -> Members:
    """Return where members stand, those that placement alone knows too.

    As :func:`get_places`. While members wait to be claimed, a request to
    placement for each, up to :data:`MOST_UNDER_WAY` in the order of
    ``uuids``, and a select in each cell.

    :raises Exception: as :func:`get_places`; what nova's report client raises
        where placement does not answer
    """
    places = get_places(ctxt, group, uuids)
    under_way = [uuid for uuid in uuids if None in places.get(uuid, ())]
    client = report.report_client_singleton()
    providers = {
        uuid: client.get_allocs_for_consumer(ctxt, uuid)['allocations']
        for uuid in under_way[:MOST_UNDER_WAY]
    }
    hosts = _gather(
        ctxt, _select_compute_hosts, set().union(*providers.values())
    )
    return Members(
        places,
        {
            # Other providers of the tree (of devices) are no compute nodes.
            uuid: frozenset(hosts[rp] for rp in held if rp in hosts)
            for uuid, held in providers.items()
        },
    )


def _gather(
    ctxt: typing.Any,
    select: Callable[[typing.Any, list[str]], Mapping[str, Found]],
    uuids: Collection[str],
) -> dict[str, Found]:
    found: dict[str, Found] = {}
    if not uuids:
        return found
    fault: Exception | None = None
    # nova.context.CELLS is read once in a process. A member in a cell that is
    # added later would count as gone.
    cells = [
        cell
        for cell in objects.CellMappingList.get_all(ctxt)
        if not cell.is_cell0()
    ]
    for chunk in _split(uuids):
        answers = nova_context.scatter_gather_cells(
            ctxt, cells, nova_context.CELL_TIMEOUT, select, chunk
        )
        for answer in answers.values():
            if isinstance(answer, Exception):
                fault = answer
            elif nova_context.is_cell_failure_sentinel(answer):
                fault = nova_exception.CellTimeout()
            else:
                found.update(answer)
    if fault is not None and len(found) < len(uuids):
        raise fault
    return found


def _split(uuids: Collection[str]) -> Iterator[list[str]]:
    wanted = sorted(uuids)
    for start in range(0, len(wanted), _CHUNK):
        yield wanted[start : start + _CHUNK]


@api_db.context_manager.reader
def _select_build_requests(
    context: typing.Any, uuids: Collection[str]
) -> list[str]:
    column = api_models.BuildRequest.instance_uuid
    return [
        uuid
        for chunk in _split(uuids)
        for uuid in context.session.execute(
            sa.select(column).where(column.in_(chunk))
        ).scalars()
    ]


@main_db.pick_context_manager_reader
def _select_places(context: typing.Any, uuids: list[str]) -> dict[str, Places]:
    instance, migration = models.Instance, models.Migration
    places: dict[str, Places] = {}
    failed = set()
    for uuid, host, vm_state, task_state in context.session.execute(
        sa.select(
            instance.uuid,
            instance.host,
            instance.vm_state,
            instance.task_state,
        ).where(
            instance.uuid.in_(uuids),
            instance.deleted == 0,
            # The other half of a move between cells.
            instance.hidden.is_not(True),
        )
    ):
        if host:
            places[uuid] = frozenset((host,))
        elif (
            vm_state == vm_states.BUILDING
            or task_state == task_states.UNSHELVING
        ):
            places[uuid] = _UNDER_WAY
        else:
            places[uuid] = frozenset()
            if vm_state == vm_states.ERROR:
                failed.add(uuid)
    for uuid, *ends in context.session.execute(
        sa.select(
            migration.instance_uuid,
            migration.source_compute,
            migration.dest_compute,
        ).where(
            migration.instance_uuid.in_(uuids),
            migration.deleted == 0,
            migration.status.not_in(_ENDED),
        )
    ):
        if uuid in places:
            places[uuid] = places[uuid].union(ends)
    return {
        uuid: on for uuid, on in places.items() if on or uuid not in failed
    }


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
