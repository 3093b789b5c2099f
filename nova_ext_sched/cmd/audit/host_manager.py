# SPDX-License-Identifier: Apache-2.0

"""The hosts, as the moves of a plan leave them."""

from collections.abc import Iterable
from collections.abc import Iterator
import typing

from nova import objects

from nova_ext_sched.cmd import claims
from nova_ext_sched.cmd import kept_hosts
from nova_ext_sched.cmd.explain import hosts


class HostManager(kept_hosts.HostManager):
    """What nova-scheduler has in memory, read once, and then the moves.

    :ivar claims: what the moves take and give back in placement
    :ivar moved: the hosts of the servers that moved, by their UUIDs
    :ivar left: UUIDs of the hosts that servers left
    """

    def __init__(self) -> None:
        super().__init__()
        self.claims = claims.Claims({})
        self.moved: dict[str, str] = {}
        self.left: set[str] = set()

    def _read_states(self) -> Iterator[typing.Any]:
        """Yield the host states of all cells, disabled ones too.

        A move changes none of them: it puts others in their place.
        """
        for cell in self.cells.values():
            destination = objects.Destination(cell=cell)
            yield from map(
                claims.copy_state,
                self._read(
                    objects.RequestSpec(requested_destination=destination)
                ),
            )

    def _choose(
        self, uuids: Iterable[str], spec_obj: typing.Any
    ) -> list[typing.Any]:
        """Return host states of the cells that nova would ask."""
        cell = hosts.get_cell(spec_obj) if spec_obj else None
        cells = {cell} if cell else {one.uuid for one in self.enabled_cells}
        found = map(self.states.get, uuids)
        return [one for one in found if one and one.cell_uuid in cells]

    def find_state(self, host: str, node: str) -> typing.Any:
        """Return the state of a compute node; None where there is none."""
        for state in self.states.values():
            if (state.host, state.nodename) == (host, node):
                return state
        return None

    def move(
        self,
        spec_obj: typing.Any,
        instance: typing.Any,
        held: claims.Request,
        target: typing.Any,
    ) -> None:
        """Move a server, as nova does: it takes first, and leaves then.

        :param spec_obj: its nova RequestSpec
        :param instance: its nova Instance, with its NUMA topology
        :param held: an allocation request of what it holds
        :param target: the HostState, with an allocation request that fits
        """
        request = target.allocation_candidates[0]
        uuid = instance.uuid
        taken = self._replace(target)
        claims.consume(taken, spec_obj, request, uuid)
        taken.instances[uuid] = objects.Instance(uuid=uuid)
        self.claims.take(request)
        source = self.find_state(instance.host, instance.node)
        if source is not None:
            claims.leave(self._replace(source), spec_obj, instance)
            self.left.add(source.uuid)
        self.claims.give_back(held)
        self.moved[uuid] = target.host

    def save(self) -> tuple[typing.Any, ...]:
        """Return what :meth:`restore` goes back to."""
        return (
            dict(self.states),
            self.claims.copy(),
            dict(self.moved),
            set(self.left),
        )

    def restore(self, saved: tuple[typing.Any, ...]) -> None:
        """Undo all moves since."""
        states, self.claims, moved, left = saved
        self.states, self.moved, self.left = dict(states), dict(moved), {*left}
        self.claims = self.claims.copy()

    def _replace(self, state: typing.Any) -> typing.Any:
        self.states[state.uuid] = claims.copy_state(state)
        return self.states[state.uuid]
