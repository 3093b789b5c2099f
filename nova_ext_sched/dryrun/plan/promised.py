# SPDX-License-Identifier: Apache-2.0

"""Keeps the new servers that a plan promises a host.

nova creates them after all moves, on the host that each was promised, in an
order that nobody knows. So a promise holds only if nova takes the server with
none of the others there, with all of them, and in the order of the promises:
what refuses it beside some of the others refuses it in one of the three.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Set
import contextlib
import itertools
import typing

from oslo_utils import uuidutils

from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import newcomers


class Promised:
    """The new servers that were promised a host.

    :param coming: the new servers
    :ivar nodes: UUIDs of their compute nodes, in the order of the promises
    :ivar room_on: as of :class:`.plans.Room`
    """

    def __init__(
        self, places: destinations.Destinations, coming: newcomers.Newcomers
    ) -> None:
        self._places, self._cloud = places, places.cloud
        self._coming = coming
        self.nodes: list[str] = []
        self.room_on: list[str | None] = []
        self._uuids: list[str] = []
        # The UUID of the one that is asked about.
        self._next = uuidutils.generate_uuid()

    def __len__(self) -> int:
        return len(self.nodes)

    def fill(self, future: fork.Fork, barred: Set[str], most: int) -> None:
        """Promise hosts to further new servers until none fits.

        :param future: the fork that is open, where all that were promised are
        :param barred: UUIDs of hosts that get none
        :param most: largest number of promises in all
        """
        coming = self._coming.fill(future, barred)
        for uuid, target in itertools.islice(coming, most - len(self)):
            self._promise(uuid, target)

    def promise(self, node: str) -> None:
        """Promise the next one a host that is known to take it.

        :param node: UUID of its compute node
        """
        with self.crowded({}):
            self._promise(self._next, self.find_on(node))
        self._next = uuidutils.generate_uuid()

    def _promise(self, uuid: str, target: typing.Any) -> None:
        is_named = destinations.is_named(target, self._cloud)
        self._uuids.append(uuid)
        self.nodes.append(target.uuid)
        self.room_on.append(target.host if is_named else None)

    def cut(self, number: int) -> None:
        """Take back all promises but the first few."""
        for made in (self._uuids, self.nodes, self.room_on):
            del made[number:]

    def copy(self) -> 'Promised':
        """Copy the promises."""
        copied = Promised(self._places, self._coming)
        copied.nodes, copied.room_on = [*self.nodes], [*self.room_on]
        copied._uuids = [*self._uuids]
        return copied

    def find_on(self, node: str, uuid: str = '') -> typing.Any:
        """Return the HostState of a host if it takes one now, or None.

        :param uuid: of that one; empty for the next
        """
        prepared = self._coming.prepare(uuid or self._next)
        return self._places.find_on(prepared, node)

    def come(self, future: fork.Fork) -> bool:
        """Add all new servers; False if a host refuses one."""
        return self._come(future, zip(self._uuids, self.nodes, strict=True))

    def _come(
        self, future: fork.Fork, promises: Iterable[tuple[str, str]]
    ) -> bool:
        for uuid, node in promises:
            target = self.find_on(node, uuid)
            if target is None or not future.come(
                uuid, self._coming.spec_obj, target
            ):
                return False
        return True

    @contextlib.contextmanager
    def crowded(self, movables: movable.Movables) -> Iterator[fork.Fork]:
        """Add all in a fork, and to the server group of those that move.

        :param movables: the servers that may move
        """
        wanted = self._coming.spec_obj.instance_group
        mates = []
        for prepared in movables.values() if wanted else ():
            if not isinstance(prepared, Exception):
                group = prepared.spec_obj.instance_group
                if group and group.uuid == wanted.uuid:
                    mates.append((group, group.members))
        with self._cloud.fork() as future:
            if not future.before:
                future.count_under_way()
            self.come(future)
            for group, members in mates:
                group.members = [*members, *self._uuids]
            try:
                yield future
            finally:
                for group, members in mates:
                    group.members = members

    def hold(self, changed: Collection[str], added: str = '') -> bool:
        """Return whether nova keeps all promises in the fork that is open.

        :param changed: UUIDs of the hosts that servers came to since they held
        :param added: UUID of a host that is to be promised to the next one,
            too
        """
        promises = [*zip(self._uuids, self.nodes, strict=True)]
        promises += [(self._next, added)] if added else []
        if self._coming.is_whole:
            # All that decides is on the host itself, and they are all alike.
            promises = [
                (uuid, node)
                for uuid, node in promises
                if node in changed or node == added
            ]
            with self._cloud.fork() as trial:
                return self._come(trial, promises)
        one_of = {node: uuid for uuid, node in promises}
        with self._cloud.fork() as trial:
            return (
                all(itertools.starmap(self.find_on, one_of.items()))
                and self._come(trial, promises)
                and all(
                    self._comes_last(uuid, node)
                    for node, uuid in one_of.items()
                )
            )

    def _comes_last(self, uuid: str, node: str) -> bool:
        """Return whether a new server would also fit after all others."""
        with self._cloud.fork() as trial:
            spec_obj = self._coming.spec_obj
            trial.leave(uuid, spec_obj, *trial.placed[uuid])
            return self.find_on(node, uuid) is not None
