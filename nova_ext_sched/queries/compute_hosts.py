# SPDX-License-Identifier: Apache-2.0

"""Finds the hosts of compute nodes on which members have allocations.

A member that conductor has to create yet has no cell: its node may be in any
cell where a nova-scheduler places servers. Cells are asked in this order,
each step only while a member has no host:

=====================  ==================================================
cells                  asked about the nodes of
=====================  ==================================================
of members             all members
other enabled ones     members without a host
disabled ones          members without a host, where all cells before
                       answered; for at most five seconds
=====================  ==================================================

A disabled cell is asked because it may have been disabled a moment ago: a
nova-scheduler places servers there until it is told (:mod:`.host_managers`).

What no cell has is no compute node: a device, or what hosts share. A cell is
not asked about it again for a minute.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import threading
import typing

import cachetools
from nova import objects
from oslo_utils import timeutils

from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched.queries import cells
from nova_ext_sched.queries import host_managers
from nova_ext_sched.queries import servers

LOG_ONCE = log_once.LogOnce(__name__)

_SECONDS = 60
# Cells and providers: some megabytes.
_MOST_ABSENT = 10_000

#: Resource providers on which each member has an allocation.
Providers = Mapping[str, frozenset[str]]


class _Absent:
    # What cells do not have, by cell and provider.

    def __init__(self) -> None:
        self._known: cachetools.TTLCache[tuple[str, str], bool] = (
            cachetools.TTLCache(
                _MOST_ABSENT,
                _SECONDS,
                # By its name, for tests that set the time.
                timer=lambda: timeutils.now(),
            )
        )
        self._lock = threading.Lock()

    def leave_out(self, cell: str, nodes: Collection[str]) -> list[str]:
        with self._lock:
            return [node for node in nodes if (cell, node) not in self._known]

    def add(self, found: Iterable[tuple[str, str]]) -> None:
        with self._lock:
            self._known.update(dict.fromkeys(found, True))


_absent = _Absent()


class _Search:
    # For the hosts of members, in one request.

    def __init__(self, ctxt: typing.Any, providers: Providers) -> None:
        self._ctxt = ctxt
        self._providers = providers
        # What cells that answered were asked about.
        self._asked: dict[str, list[str]] = {}
        self.hosts: dict[str, str] = {}

    def find_missing(self) -> frozenset[str]:
        # Providers of members of which no host is known.
        return frozenset().union(
            *(
                held
                for held in self._providers.values()
                if held.isdisjoint(self.hosts)
            )
        )

    def ask(
        self, asked: Iterable[str], cells_: cells.Cells
    ) -> dict[str, Exception]:
        # Returns the faults of cells.
        missing = self.find_missing()
        wanted = {
            cell: nodes
            for cell in asked
            if (nodes := _absent.leave_out(cell, missing))
        }
        answers = cells_.ask(self._ctxt, servers.select_compute_hosts, wanted)
        self.hosts.update(answers.found)
        self._asked |= {
            cell: nodes
            for cell, nodes in wanted.items()
            if cell not in answers.faults
        }
        return answers.faults

    def remember(self) -> None:
        missing = self.find_missing()
        _absent.add(
            (cell, node)
            for cell, nodes in self._asked.items()
            for node in nodes
            if node in missing
        )


def find(
    ctxt: typing.Any, providers: Providers, near: Collection[str]
) -> tuple[dict[str, str], list[Exception]]:
    """Return the hosts of compute nodes, and the fault of a failed search.

    :param providers: the providers of each member
    :param near: the UUIDs of the members' cells
    :returns: hosts by the UUID of the node; the faults of cells that may have
        the node of a member without a host
    :raises Exception: what the API database or its driver raises
    """
    search = _Search(ctxt, providers)
    faults = [*search.ask(near, cells.current).values()]
    if search.find_missing():
        enabled, disabled = _list_others(ctxt, near)
        faults += search.ask(enabled, cells.current).values()
        if not faults and search.find_missing():
            faults += _judge(search.ask(disabled, cells.disabled))
    if not search.find_missing():
        return search.hosts, []
    search.remember()
    return search.hosts, faults


def _list_others(
    ctxt: typing.Any, near: Collection[str]
) -> tuple[list[str], list[str]]:
    # The enabled and the disabled cells, by UUID.
    others: tuple[list[str], list[str]] = [], []
    # Not nova.context.CELLS, which is read once in a process.
    for cell in objects.CellMappingList.get_all(ctxt):
        if cell.uuid not in near and not cell.is_cell0():
            others[cell.disabled].append(cell.uuid)
    return others


def _judge(faults: Mapping[str, Exception]) -> list[Exception]:
    # Of disabled cells. Returns those that count.
    counted = []
    for cell, fault in faults.items():
        if host_managers.place_in(cell):
            counted.append(fault)
            effect = (
                'this nova-scheduler still places servers there: requests of '
                'server groups with servers that may be there are refused. '
                'Send SIGHUP to nova-scheduler, or restart it.'
            )
        else:
            effect = (
                'servers of server groups that nova-compute has not claimed '
                'there do not count.'
            )
        LOG_ONCE.warning(
            f'A disabled cell does not answer, and {effect} '
            f'({messages.say_error(fault)})',
            key=(cell, bool(counted)),
        )
    return counted
