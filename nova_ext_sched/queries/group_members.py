# SPDX-License-Identifier: Apache-2.0

"""Finds the hosts of a server group's members.

Of those that nova-compute has not claimed yet, only the allocation in
placement tells the host. nova keeps members in the group's list that were
deleted, or that failed and have no host: here they are *former* members.

A cell is asked only where nova has members in it.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import sys
import threading
import typing

import cachetools

from nova_ext_sched import fields
from nova_ext_sched import grouping
from nova_ext_sched.policy import memo
from nova_ext_sched.queries import cells
from nova_ext_sched.queries import compute_hosts
from nova_ext_sched.queries import placement
from nova_ext_sched.queries import servers
from nova_ext_sched.queries import sources

#: Members that nova-compute has not claimed yet, that placement is asked
#: about: the newest ones.
MOST_UNCLAIMED = 50

# Members of all groups that are remembered: some 20 MB.
_MOST_KNOWN = 100_000

Places = sources.Places

#: Is told of what does not answer.
OnFault = Callable[[Exception], None]


class Members(typing.NamedTuple):
    """The hosts of members of a group, by UUID.

    :ivar places: the hosts by nova's databases
    :ivar allocated: the hosts in placement of members that are not claimed
        yet, as far as they have any
    """

    places: Mapping[str, Places]
    allocated: Mapping[str, frozenset[str]]

    @property
    def hosts(self) -> dict[str, frozenset[str]]:
        """The hosts of the members that have any."""
        hosts: dict[str, frozenset[str | None]] = {
            uuid: on
            if None not in on and uuid not in self.allocated
            else (on - {None}) | self.allocated.get(uuid, frozenset())
            for uuid, on in self.places.items()
        }
        # None is left in none of them.
        return {
            uuid: typing.cast('frozenset[str]', on)
            for uuid, on in hosts.items()
            if on
        }

    def find_claimed(self) -> Iterator[str]:
        """Yield the members whose hosts nova's databases all know."""
        # Most of many stand on the same few hosts.
        known = memo.Memo(lambda on: bool(on) and None not in on)
        return (uuid for uuid, on in self.places.items() if known[on])


class _Known:
    # The cells of members that nova has mapped to one, and None for former
    # ones. nova keeps deleted members in the list of their group: one that
    # shrinks and grows may have thousands.

    def __init__(self) -> None:
        self._groups: cachetools.LRUCache[
            str | None, Mapping[str, str | None]
        ] = cachetools.LRUCache(_MOST_KNOWN, lambda known: len(known) + 1)
        # nova-scheduler works in threads, or in greenlets.
        self._lock = threading.Lock()

    def get(self, group: typing.Any) -> Mapping[str, str | None]:
        with self._lock:
            return self._groups.get(_uuid(group), {})

    def add(
        self, group: typing.Any, members: Mapping[str, str | None]
    ) -> None:
        # More members than there is memory for are a ValueError.
        with self._lock, contextlib.suppress(ValueError):
            known = {**self._groups.get(_uuid(group), {}), **members}
            # nova drops members from the list when it archives them.
            self._groups[_uuid(group)] = {
                uuid: known[uuid] for uuid in group.members if uuid in known
            }


def _uuid(group: typing.Any) -> str | None:
    return fields.get_field(group, 'uuid')


_known = _Known()


def get_living(group: typing.Any, server: str | None) -> list[str]:
    """Return the other members of a group that are not known to be deleted.

    Without a query: those that :func:`get_places` once did not find are left
    out.

    :param group: a nova InstanceGroup
    :param server: the UUID of the member whose request it is
    """
    known = _known.get(group)
    return [
        member
        for member in group.members
        if member != server and known.get(member, '') is not None
    ]


def get_places(
    ctxt: typing.Any,
    group: typing.Any,
    uuids: Collection[str],
    on_fault: OnFault | None = None,
) -> dict[str, Places]:
    """Return the hosts of members, of all projects, by UUID.

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
    in a cell that does not answer         it is not in the result
    =====================================  ==================================

    :func:`.servers.select_places` has each state of nova.

    A select in each cell that has members, and one in the API database for
    those whose cell is not known yet. It is remembered, and so are former
    members, which never come back.

    :param on_fault: called for each cell that does not answer; without it,
        its fault is raised
    :raises Exception: what the API database or its driver raises. Where a
        cell does not answer or takes no connection,
        nova.exception.CellTimeout; else what its database or driver raises
    """
    places, _ = _look_up(ctxt, group, uuids, on_fault)
    return places


def get_members(
    ctxt: typing.Any,
    group: typing.Any,
    uuids: Collection[str],
    on_fault: OnFault | None = None,
) -> Members:
    """Return the hosts of members, including those that only placement knows.

    As :func:`get_places`. While members wait to be claimed, placement is
    asked about the last :data:`MOST_UNCLAIMED` of ``uuids``
    (:mod:`.allocations`), and then cells for the hosts of the nodes
    (:mod:`.compute_hosts`). A cell that does not answer is a fault where a
    member that has an allocation is left without a host.

    :raises Exception: as :func:`get_places`, and :func:`.placement.get`
    """
    places, cell_of = _look_up(ctxt, group, uuids, on_fault)
    unclaimed = [uuid for uuid in uuids if None in places.get(uuid, ())]
    providers = placement.get_providers(ctxt, unclaimed[-MOST_UNCLAIMED:])
    near = {cell for uuid in providers if (cell := cell_of.get(uuid))}
    hosts, faults = compute_hosts.find(ctxt, providers, near)
    _tell(faults, on_fault)
    return Members(
        places,
        {
            uuid: frozenset(hosts[rp] for rp in held if rp in hosts)
            for uuid, held in providers.items()
        },
    )


def _look_up(
    ctxt: typing.Any,
    group: typing.Any,
    uuids: Collection[str],
    on_fault: OnFault | None,
) -> tuple[dict[str, Places], dict[str, str]]:
    # Places, and the UUIDs of the cells, of the members that have them.
    known = _known.get(group)
    cell_of = {uuid: cell for uuid in uuids if (cell := known.get(uuid))}
    places: dict[str, Places] = {}
    # In a cell that does not answer.
    unseen: set[str] = set()

    def look_up(wanted: Collection[str]) -> list[str]:
        # Those that nova mapped to a cell, or to another one than before.
        mapped = []
        for uuid, cell, is_building in servers.select_cells(ctxt, wanted):
            if is_building:
                places[uuid] = servers.UNCLAIMED
            if cell and cell_of.get(uuid) != cell:
                # One string for all.
                cell_of[uuid] = sys.intern(cell)
                mapped.append(uuid)
        return mapped

    def ask(wanted: Collection[str]) -> None:
        by_cell = grouping.by_key((cell_of[uuid], uuid) for uuid in wanted)
        answers = cells.current.ask(ctxt, servers.select_places, by_cell)
        _tell(answers.faults.values(), on_fault)
        for cell in answers.faults:
            unseen.update(by_cell[cell])
        places.update(answers.found)

    look_up([uuid for uuid in uuids if uuid not in cell_of])
    ask(cell_of)
    # Who is not where nova said, or said before, is looked up once more: a
    # resize to another cell maps the server to it before it deletes the first
    # copy.
    ask(look_up(cell_of.keys() - places.keys()))

    placed = dict(sources.current.place(places, uuids))
    former = set(uuids).difference(placed, unseen)
    learned = {**cell_of, **dict.fromkeys(former)}
    if not learned.items() <= known.items():
        _known.add(group, learned)
    return placed, cell_of


def _tell(faults: Iterable[Exception], on_fault: OnFault | None) -> None:
    for fault in faults:
        if on_fault is None:
            raise fault
        on_fault(fault)
