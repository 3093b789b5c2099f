# SPDX-License-Identifier: Apache-2.0

"""Tries every order of moves in a small cloud, each asked of nova's code.

A fork makes the moves and creates the servers, as nova claims them; each
question is nova-scheduler's whole one. Of make-room nothing is used but the
request that it is told.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib

from oslo_utils import uuidutils

from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import make_room
from nova_ext_sched.dryrun.plan import movable


class Orders:
    """The moves of a cloud's servers, and new servers after them.

    No server moves twice.

    :param cloud: a Snapshot of few hosts and servers
    :param wanted: the Question of a new server
    :param count: how many are to come
    :ivar best: the fewest moves, the host of each server that moves, by how
        many new servers there may be then; see :meth:`search`
    """

    def __init__(self, cloud, wanted, count):
        self._cloud, self._count = cloud, count
        self._places = destinations.Destinations(cloud)
        self._new = make_room._make_request(cloud, wanted)
        self._uuids = [uuidutils.generate_uuid() for _ in range(count)]
        self._home, self._servers = {}, {}
        for sizes in cloud.ask_cells(servers.select_sizes).values():
            for size in sizes:
                self._home[size.uuid] = size.host
                prepared, _ = movable.migrate(self._places.reader, size.uuid)
                self._servers[size.uuid] = prepared
        self.best = {}
        self._seen = set()

    def _ask(self, spec_obj):
        """Return the HostStates that take a server now, by host."""
        _, states = self._places.judge(spec_obj)
        return {state.host: state for state in states}

    def _find_moves(self, uuid):
        prepared = self._servers[uuid]
        return {
            host: state
            for host, state in self._ask(prepared.spec_obj).items()
            if prepared.may_move_to(state)
        }

    @contextlib.contextmanager
    def moved(self, moves: Iterable[tuple[str, str]]) -> Iterator[None]:
        """Make moves in a fork.

        :param moves: of each the UUID of its server, and its host
        :raises KeyError: nova refuses one
        """
        with self._cloud.fork() as future:
            for uuid, host in moves:
                target = self._find_moves(uuid)[host]
                if not self._servers[uuid].go(future, target):
                    raise KeyError(host)
            yield

    @contextlib.contextmanager
    def _created(self, hosts: Sequence[str]) -> Iterator[bool]:
        """Create new servers; say whether nova takes all, in this order."""
        with self._cloud.fork() as future:
            taken = []
            for uuid, host in zip(self._uuids, hosts, strict=False):
                target = self._offer(len(taken)).get(host)
                if target is None or not future.come(uuid, self._new, target):
                    break
                taken.append(host)
            yield len(taken) == len(hosts)

    def takes(self, hosts: Sequence[str]) -> bool:
        """Return whether nova takes new servers in this order."""
        with self._created(hosts) as is_whole:
            return is_whole

    def _offer(self, number):
        """Return the HostStates that take a new server after so many."""
        spec_obj = self._new.obj_clone()
        spec_obj.instance_uuid = self._uuids[number]
        if group := spec_obj.instance_group:
            # nova-api makes a server a member before it is placed.
            group.members = [*group.members, *self._uuids[: number + 1]]
        return self._ask(spec_obj)

    def count_new(self, first: Sequence[str], most: int = 0) -> int:
        """Return the largest number of new servers now.

        :param first: hosts of the first of them; 0 if nova refuses one
        """
        with self._created(first) as is_whole:
            return self._extend(len(first), '') if is_whole else 0

    def _extend(self, number, least):
        """Go on from so many new servers, on hosts from ``least`` on."""
        best = number
        offered = self._offer(number) if number < self._count else {}
        for host in sorted(host for host in offered if host >= least):
            with self._cloud.fork() as future:
                if future.come(self._uuids[number], self._new, offered[host]):
                    best = max(best, self._extend(number + 1, host))
            if best == self._count:
                break
        return best

    def search(self, now: Sequence[str]) -> int:
        """Return the most new servers that moves without chains make fit.

        A server moves only off a host that takes a new one then.

        :param now: hosts of those that fit without a move; they stay
        """
        self.best[len(now)] = {}
        self._go({}, now)
        return max(self.best)

    def _go(self, moved, now):
        left = {self._home[uuid] for uuid in moved}
        number = self.count_new([*now, *sorted(left)])
        if len(moved) < len(self.best.get(number, self._servers)):
            self.best[number] = moved
        for uuid in self._servers.keys() - moved.keys():
            if len(left | {self._home[uuid]}) + len(now) > self._count:
                continue
            for host, target in self._find_moves(uuid).items():
                after = {**moved, uuid: host}
                with self._cloud.fork() as future:
                    if self._servers[uuid].go(future, target):
                        key = self._describe(after)
                        if key not in self._seen:
                            self._seen.add(key)
                            self._go(after, now)

    def _describe(self, moved):
        """Return a key that differs where nova may answer otherwise."""
        inside = tuple(
            (
                state.host,
                f'{state.numa_topology}',
                f'{getattr(state.pci_stats, "pools", "")}',
            )
            for _, state in sorted(self._cloud.states.items())
        )
        return frozenset(moved.items()), inside
