# SPDX-License-Identifier: Apache-2.0

"""Finds which moves need others, and which can be made at once."""

from collections.abc import Iterable
import dataclasses
import itertools
import typing

from nova_ext_sched import fields
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans

# Hints that name no other server. The group does; it is looked at by itself.
_HINTS = {'group', fields.CHECK_TYPE}


@dataclasses.dataclass
class Batch:
    """Consecutive moves that do not need each other.

    All that a filter reads of servers is which are on the host that it is
    asked about, the server group and hints that name servers. So a move goes
    to the host of its turn whether or not those of its batch have been made:

    ====================================  =================================
    a move                                begins a batch
    ====================================  =================================
    to a host that one of the batch left  yes: it may need that room
    to a host to which one of the batch   yes: the one that comes first may
    goes; both have a NUMA topology or    take the cell, or the device, that
    PCI devices                           the other needs
    of a server group of the batch        yes: its rules count the others
    with hints of its owner               yes, and the next one does: they
                                          may name a server
    for which nova chooses the host       yes, and the next one does: it may
                                          go elsewhere
    any other                             no
    ====================================  =================================

    :ivar vacated: names of hosts that its servers left
    :ivar fitted: names of hosts that give of their cells or devices
    :ivar groups: UUIDs
    :ivar is_full: whether no other move may be of it
    """

    number: int = 1
    vacated: set[str] = dataclasses.field(default_factory=set)
    fitted: set[str] = dataclasses.field(default_factory=set)
    groups: set[str] = dataclasses.field(default_factory=set)
    is_full: bool = False

    def add(
        self, spec_obj: typing.Any, host: str, target: str, is_named: bool
    ) -> 'Batch':
        """Add a move to the batch, or to a new one; return that.

        :param spec_obj: the nova RequestSpec
        :param host: where the server is
        :param is_named: whether nova is told where it goes
        """
        groups, is_alone = _read(spec_obj, is_named)
        fitted = {target} if _is_fitted(spec_obj) else set()
        batch = self
        if self.vacated and (
            self.is_full
            or is_alone
            or target in self.vacated
            or not self.fitted.isdisjoint(fitted)
            or not self.groups.isdisjoint(groups)
        ):
            batch = Batch(self.number + 1)
        batch.vacated.add(host)
        batch.fitted |= fitted
        batch.groups |= groups
        batch.is_full = is_alone
        return batch


def _is_fitted(spec_obj: typing.Any) -> bool:
    """Return whether NUMA cells or devices decide if a host takes a server."""
    devices = fields.get_field(spec_obj, 'pci_requests')
    return bool(
        fields.get_field(spec_obj, 'numa_topology')
        or (devices and devices.requests)
    )


def _read(spec_obj: typing.Any, is_named: bool) -> tuple[set[str], bool]:
    """Return a request's group, and whether it may depend on other moves."""
    group = fields.get_field(spec_obj, 'instance_group')
    hints = fields.get_field(spec_obj, 'scheduler_hints') or {}
    is_alone = not is_named or bool(hints.keys() - _HINTS)
    return {group.uuid} if group else set(), is_alone


def number(
    moves: Iterable[plans.Move], movables: movable.Movables
) -> list[plans.Move]:
    """Give each move of an order the number of its batch.

    :param movables: every server that moves is a Movable there
    """
    batch, numbered = Batch(), []
    for move in moves:
        prepared = typing.cast(movable.Movable, movables[move.server])
        batch = batch.add(
            prepared.spec_obj, move.host, move.expected, move.to is not None
        )
        numbered.append(dataclasses.replace(move, batch=batch.number))
    return numbered


def link(
    moves: Iterable[plans.Move], movables: movable.Movables
) -> list[plans.Move]:
    """Give each move of an order the moves that it needs.

    Of the moves before it:

    =======================================  ==============================
    a move                                   needs
    =======================================  ==============================
    to a host                                those that left it: it may
                                             need that room
    of a server group                        those of the group
    with hints of its owner                  all: they may name a server
    for which nova chooses the host          all
    any, after one for which nova chooses    that one: it may go elsewhere
    =======================================  ==============================

    :param movables: every server that moves is a Movable there
    """
    linked: list[plans.Move] = []
    chosen: list[str] = []
    # Servers that moved, by the host that they left, and by their group.
    vacated: dict[str, list[str]] = {}
    for move in moves:
        prepared = typing.cast(movable.Movable, movables[move.server])
        groups, is_alone = _read(prepared.spec_obj, move.to is not None)
        needs = (
            [other.server for other in linked]
            if is_alone
            else itertools.chain(
                chosen,
                *(vacated.get(key, ()) for key in (move.expected, *groups)),
            )
        )
        needed = [*dict.fromkeys(needs)]
        linked.append(dataclasses.replace(move, needs=needed))
        for key in (move.host, *groups):
            vacated.setdefault(key, []).append(move.server)
        if move.to is None:
            chosen.append(move.server)
    return linked
