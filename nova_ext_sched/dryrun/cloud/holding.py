# SPDX-License-Identifier: Apache-2.0

"""Chooses the hosts to keep free, so that each failure can be replaced.

A failure is survived, however full the other hosts get, if each of its hosts
is replaced by an empty one that is kept for failures (:mod:`.shapes`).
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set
import dataclasses
import functools
import typing

import nova.conf

from nova_ext_sched import grouping
from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import selection
from nova_ext_sched.dryrun.cloud import shapes
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.policy import failover

CONF = nova.conf.CONF

# The most differences between two hosts that are told.
_MOST_LACKING = 3


@dataclasses.dataclass(frozen=True)
class Chosen:
    """Hosts to keep free.

    :ivar hosts: names of those to mark
    :ivar uncovered: by failure, the hosts that nothing replaces then
    """

    hosts: list[str]
    uncovered: dict[str, list[str]]


class Kept(typing.NamedTuple):
    """Hosts that are kept for failures.

    :ivar lacking: names of hosts to keep besides
    :ivar states: how many are ``free``, ``in use`` by servers, and ``closed``:
        not enabled, up and mapped
    """

    lacking: list[str]
    states: dict[str, int]


def list_marked(cloud: snapshot.Snapshot) -> list[typing.Any]:
    """Return the nova Aggregates whose hosts are kept for failures."""
    key = CONF.nova_ext_sched.failover_key
    return [
        one
        for one in cloud.aggs_by_id.values()
        if failover.read_mark(one.metadata, key)
    ]


def find_marked(cloud: snapshot.Snapshot) -> set[str]:
    """Return the names of the hosts that are kept for failures."""
    return {host for one in list_marked(cloud) for host in one.hosts}


class Holding:
    """Hosts of a cloud, and which may replace which.

    :param cloud: it is read as it is
    :param counts: number of servers of each host that has one
    :ivar marked: names of the hosts that are kept for failures
    :ivar free: those of them that take all that another holds: empty, enabled
        and up
    """

    def __init__(
        self, cloud: snapshot.Snapshot, counts: Mapping[str, int]
    ) -> None:
        self._cloud, self._counts = cloud, counts
        self.shapes = shapes.Shapes(cloud)
        known = {*self.shapes.names}
        self.marked: Set[str] = find_marked(cloud) & known
        self.free: Set[str] = {
            host
            for host in self.marked & self.shapes.open
            if not counts.get(host)
        }

    @functools.cached_property
    def _kinds(self) -> dict[str, int]:
        """The kind of each host: those of one replace each other."""
        numbers: dict[object, int] = {}
        kinds = {}
        for host in self.shapes.names:
            one = self.shapes.get(host)
            key = one.same, one.traits, frozenset(one.amounts.items())
            kinds[host] = numbers.setdefault(key, len(numbers))
        return kinds

    @functools.cached_property
    def _replacing(self) -> dict[int, set[int]]:
        """The kinds that replace each kind, itself among them."""
        examples = {kind: host for host, kind in self._kinds.items()}
        by_cell = grouping.by_key(
            (self.shapes.get(host).same, kind)
            for kind, host in examples.items()
        )
        return {
            kind: {
                other
                for other in by_cell[self.shapes.get(host).same]
                if not self.shapes.get(host).find_lacking(
                    self.shapes.get(examples[other])
                )
            }
            for kind, host in examples.items()
        }

    def replaces(self, host: str, other: str) -> bool:
        """Return whether a host, empty, takes all that another can hold."""
        return self._kinds[host] in self._replacing[self._kinds[other]]

    def count_replaced(self, host: str) -> int:
        """Return how many others a host, empty, can replace."""
        return sum(
            other != host and self.replaces(host, other)
            for other in self.shapes.names
        )

    def list_failures(self, by: str = 'host') -> dict[str, Set[str]]:
        """Return the hosts that fail at once, by name.

        :param by: ``host`` or ``domain``
        """
        known = {*self.shapes.names}
        if by == 'host':
            return {host: {host} for host in self.shapes.names}
        domains = selection.group(self._cloud)
        return {
            name: hosts & known
            for name, hosts in sorted(domains.items())
            if hosts & known
        }

    def find_uncovered(
        self, failures: Mapping[str, Set[str]], held: Set[str]
    ) -> dict[str, list[str]]:
        """Return the hosts of each failure that no other replaces then.

        :param held: names of hosts that are free for failures
        """
        by_kind = grouping.by_key(
            (self._kinds[host], host) for host in sorted(held)
        )
        return {
            name: left
            for name, hosts in failures.items()
            if (left := self._match(hosts, held, by_kind))
        }

    def _match(
        self,
        hosts: Set[str],
        held: Set[str],
        by_kind: Mapping[int, list[str]],
    ) -> list[str]:
        """Give each host another that replaces it; return those left."""
        taken: dict[str, str] = {}

        def give(host: str, seen: set[str]) -> bool:
            for kind in self._replacing[self._kinds[host]]:
                for other in by_kind.get(kind, ()):
                    if other in hosts or other in seen:
                        continue
                    seen.add(other)
                    if other not in taken or give(taken[other], seen):
                        taken[other] = host
                        return True
            return False

        return [host for host in sorted(hosts - held) if not give(host, set())]

    def choose(
        self,
        failures: Mapping[str, Set[str]],
        held: Set[str],
        never: Collection[str] = (),
    ) -> Chosen:
        """Choose few hosts after which each failure is replaced.

        In each step the host that replaces the most; of equal ones, the one
        with the fewest servers. Where hosts fail one at a time, no choice is
        smaller: of hosts that replace each other one is enough.

        :param held: names of the hosts that are free for failures already
        :param never: names of hosts that are not chosen
        """
        chosen: list[str] = []
        uncovered = self.find_uncovered(failures, held)
        while uncovered:
            best = max(
                self._rate(uncovered, {*held, *chosen}, never),
                default=None,
                key=lambda rated: rated[:4],
            )
            if best is None:
                break
            chosen.append(best[-1])
            uncovered = self.find_uncovered(failures, {*held, *chosen})
        for host in [*chosen]:
            fewer = {*held, *chosen} - {host}
            if self.find_uncovered(failures, fewer) == uncovered:
                chosen.remove(host)
        return Chosen(chosen, uncovered)

    def _rate(
        self,
        uncovered: Mapping[str, list[str]],
        held: Set[str],
        never: Collection[str],
    ) -> Iterator[tuple[int, int, bool, int, str]]:
        """Yield a rating of one host of each kind, by the hosts it replaces.

        :returns: the number of other failures of which it replaces a host;
            that with its own; whether it is marked; the negative number of
            its servers; its name
        """
        domains = grouping.by_key(
            (host, name) for name, hosts in uncovered.items() for host in hosts
        )
        seen: set[tuple[int, object]] = set()
        for host in self._list_candidates(held, never):
            own = frozenset(domains.get(host, ()))
            # Hosts that fail alone: one of a kind is as good as another.
            alone = all(uncovered[name] == [host] for name in own)
            key = self._kinds[host], bool(own) if alone else own
            if key in seen:
                continue
            seen.add(key)
            others = sum(
                any(self.replaces(host, one) for one in hosts)
                for name, hosts in uncovered.items()
                if host not in hosts
            )
            if others:
                servers = self._counts.get(host, 0)
                is_marked = host in self.marked
                yield others, others + len(own), is_marked, -servers, host

    def _list_candidates(
        self, held: Set[str], never: Collection[str]
    ) -> Iterable[str]:
        """Return the hosts that may be chosen, those with least to move first.

        One that is marked already is kept, but for what is in its way.
        """
        may = self.shapes.open - held - {*never}
        return sorted(
            (host for host in self.shapes.names if host in may),
            key=lambda host: (
                host not in self.marked,
                self._counts.get(host, 0),
            ),
        )

    def list_kinds(self, never: Collection[str]) -> list[str]:
        """Return the host of each kind that is chosen first.

        :param never: names of hosts that are not chosen
        """
        first: dict[int, str] = {}
        for host in self._list_candidates(set(), never):
            first.setdefault(self._kinds[host], host)
        return [*first.values()]

    def say_alone(self, host: str, full: Collection[str] = ()) -> str:
        """Return why no other host replaces one, in words.

        :param full: names of hosts that cannot be emptied
        """
        own = self.shapes.get(host)
        lacking = {
            other: own.find_lacking(self.shapes.get(other))
            for other in self.shapes.names
            if other != host
        }
        if not lacking:
            return 'there is no other host'
        nearest = min(lacking, key=lambda other: len(lacking[other]))
        name = messages.clean(nearest)
        if lacking[nearest]:
            said = ', '.join(lacking[nearest][:_MOST_LACKING])
            return f'the nearest, {name}, has {said}'
        if nearest in full:
            return f'{name} could, but cannot be emptied'
        if nearest not in self.shapes.open:
            return f'{name} could, but is not enabled and up'
        return f'{name} could, but is needed for another'


def find_kept(
    cloud: snapshot.Snapshot,
    counts: Mapping[str, int],
    enabled: Collection[str],
    by: str = 'host',
) -> Kept | None:
    """Return the hosts that are kept for failures, and those that lack.

    :param counts: as of :class:`Holding`
    :param enabled: the names of the policies that are on
    :param by: as of :meth:`Holding.list_failures`
    :returns: None where no policy keeps hosts, or none is marked
    :raises .placement.PlacementFailed: placement does not answer
    """
    is_on = failover.DECLARATION.name in enabled
    if not (is_on and find_marked(cloud)):
        return None
    known = Holding(cloud, counts)
    chosen = known.choose(known.list_failures(by), known.free)
    used = {host for host in known.marked if counts.get(host)}
    states = {
        'free': len(known.free),
        'in use': len(used),
        'closed': len(known.marked - known.free - used),
    }
    return Kept(sorted(chosen.hosts, key=messages.in_order), states)
