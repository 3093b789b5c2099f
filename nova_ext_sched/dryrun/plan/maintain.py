# SPDX-License-Identifier: Apache-2.0

"""Plans rounds of maintenance that empty each host once.

In a round some hosts are empty together. Their servers go to hosts that have
had their turn, as long as one takes them; else to hosts whose turn is still to
come. Each move is asked as drain's are, in one fork that goes on from round to
round, so that it is valid when its turn comes.

==================================  =======================================
a host                              is
==================================  =======================================
that is empty, or whose servers     in a round: those with the fewest
all have a place then               servers to move come first
of which a server has none now      tried again after all others
of which one has none then either,  in no round
or one that nova does not move, or
that a migration holds
while which is empty another could  the same, where that is to be kept
not fail that can today             (:mod:`.failover`)
==================================  =======================================

No paused server moves twice, which may end its guest: it goes to hosts that
have had their turn alone.

A server that is being built or deleted keeps no host out of a round, unless
nova has done nothing of that for an hour. One that is being built is like
those that users create after the plan: once the host is disabled, drain moves
it.
"""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import dataclasses
import itertools
import typing

from nova_ext_sched import messages
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import selection
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.plan import departures
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import drain
from nova_ext_sched.dryrun.plan import ending
from nova_ext_sched.dryrun.plan import failover
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import stuck

# Of the hosts of a wanted round so many are prepared at first: some cannot be
# emptied, and others get servers.
_TRIED = 4


class _NotReady(Exception):
    """A host is to be tried whose servers are not prepared."""


class Maintenance:
    """Empties hosts, round after round.

    :param hosts: names of those that are to be empty once
    :param at_once: how many may be empty together; None for as many as can
    :param together: the domains or zones of each host, by name: hosts of one
        round share one; None where they need nothing
    :param keeps_failover: whether each other host may fail in a round that
        may fail as the cloud is
    :param advance: called after each server that is prepared, and each host
    :param not_to: names of hosts that get no server
    :raises placement.PlacementFailed: placement does not answer
    """

    def __init__(
        self,
        cloud: snapshot.Snapshot,
        hosts: Set[str],
        at_once: int | None = 1,
        together: Mapping[str, Set[str]] | None = None,
        keeps_failover: bool = False,
        advance: progress.Advance = progress.silent,
        not_to: Set[str] = frozenset(),
    ) -> None:
        self.cloud = cloud
        self._not_to = not_to
        self._at_once = len(hosts) if at_once is None else at_once
        self._together = together
        self._advance = advance
        self._places = destinations.Destinations(cloud)
        self._failover = (
            failover.Failover(cloud, advance) if keeps_failover else None
        )
        self._policies = policies.Policies(cloud).on
        # Why hosts that have no server without a place are not emptied.
        self._lost: dict[str, str] = {}
        self._hosts = hosts
        # Where each stands in people's order: a queue is made each round.
        self._places_in_order = {
            host: place
            for place, host in enumerate(sorted(hosts, key=_in_order))
        }
        self._pending: set[str] = set()
        # The servers of each host, as they are after the rounds so far.
        self._on: dict[str, dict[str, plans.Leaving]] = {}
        # The hosts whose servers are prepared.
        self._ready: Set[str] = frozenset()
        self._passing: list[plans.Leaving] = []
        self._migrating: dict[str, list[plans.Stuck]] = {}
        self._movables: dict[str, movable.Movable | Exception] = {}

    def _prepare(self, number: int) -> None:
        """Read the servers of all hosts, and prepare those of some.

        :param number: how many hosts can be tried, those with the fewest
            servers
        """
        self._pending, self._on, self._lost = {*self._hosts}, {}, {}
        self._movables, self._migrating = {}, {}
        standing = drain.read_standing(self.cloud, self._pending)
        # A host whose servers are unknown is in no round.
        self._pending -= drain.find_unread(self.cloud, self._pending)
        changing = gone.find_changing(self.cloud, self._hosts)
        self._make_ready(one for one in standing if one.server in changing)
        passing = self._find_passing()
        for server in standing:
            if server.server not in passing:
                self._on.setdefault(server.host, {})[server.server] = server
        self._ready = {*self._queue(self._pending)[:number]}
        going = [
            one
            for host in self._ready
            for one in self._on.get(host, {}).values()
        ]
        total = len(going) + len(self._pending)
        self._advance(label='Planning rounds', total=total)
        self._make_ready(going)
        passing |= self._find_passing()
        for held in drain.read(self.cloud, self._ready).migrating:
            self._migrating.setdefault(held.host, []).append(held)
        # Nor is one in a cell that has not answered since.
        unread = drain.find_unread(self.cloud, self._pending)
        self._pending -= unread
        self._passing = [
            one
            for one in standing
            if one.server in passing and one.host not in unread
        ]
        for server in self._passing:
            self._on.get(server.host, {}).pop(server.server, None)

    def _make_ready(self, leaving: Iterable[plans.Leaving]) -> None:
        """Prepare servers for their moves, if they are not."""
        going = [one for one in leaving if one.server not in self._movables]
        self._movables |= departures.prepare(
            self._places, going, advance=self._advance
        )

    def _queue(self, hosts: Iterable[str]) -> list[str]:
        """Return hosts in the order in which they are tried."""
        return sorted(
            hosts,
            key=lambda host: (
                len(self._on.get(host, ())),
                self._places_in_order[host],
            ),
        )

    def _find_passing(self) -> Set[str]:
        """Return the servers that are being built, or being deleted."""
        refused = {
            uuid: prepared
            for uuid, prepared in self._movables.items()
            if isinstance(prepared, Exception)
        }
        changed = gone.look(self.cloud, refused, softly=False)
        passing = {
            uuid for uuid, is_stuck in changed.deleting.items() if not is_stuck
        }
        return (
            changed.gone
            | passing
            | {
                uuid
                for uuid, prepared in refused.items()
                if isinstance(prepared, admission.NotMovable)
                and prepared.is_being_built
            }
        )

    def plan(self, most: int | None = None) -> plans.Rounds:
        """Plan the rounds; return them and the hosts that cannot be emptied.

        :param most: how many rounds are wanted; where there are as many, it
            is not known what becomes of other hosts. None for all
        :raises placement.PlacementFailed: placement does not answer
        """
        number = len(self._hosts)
        if most is not None:
            number = min(number, _TRIED * most * self._at_once)
        while True:
            self._prepare(number)
            try:
                return self._plan(most)
            except _NotReady:
                # Those that were tried in vain cost little.
                number *= _TRIED

    def _plan(self, most: int | None) -> plans.Rounds:
        """Plan the rounds, of hosts that are ready.

        :raises _NotReady: another one is to be tried
        """
        with self.cloud.fork() as future:
            future.count_under_way()
            rounds: list[plans.Round] = []
            for one in self._make_rounds():
                rounds.append(one)
                number = messages.count('round', len(rounds))
                self._advance(len(one.hosts), f'{number} planned')
                if len(rounds) == most:
                    return self._finish(rounds, [])
            kept = [
                plans.NotEmptied(
                    host, self._explain(host), self._lost.get(host, '')
                )
                for host in sorted(
                    self._pending, key=self._places_in_order.__getitem__
                )
            ]
        return self._finish(rounds, kept)

    def _finish(
        self, rounds: list[plans.Round], kept: list[plans.NotEmptied]
    ) -> plans.Rounds:
        plan = plans.Rounds(
            rounds,
            kept,
            [],
            {},
            self._passing,
            remarks=self._places.priorities.remarks,
        )
        return ending.finish_rounds(self.cloud, plan)

    def _make_rounds(self) -> Iterator[plans.Round]:
        fixed = {host for host in self._pending if self._cannot_move(host)}
        is_moving = True
        while is_moving:
            # The room that one round leaves, another may take.
            todo, is_moving = self._pending - fixed, False
            while todo:
                made, in_vain = self._make_round(todo, self._at_once)
                todo -= in_vain
                if made is None and self._at_once > 1:
                    # Perhaps because others were to be empty with each: so one
                    # host alone is tried.
                    made, in_vain = self._make_round(todo, 1)
                    todo -= in_vain
                if made is None:
                    break
                is_moving = True
                todo -= {*made.hosts}
                yield made

    def _cannot_move(self, host: str) -> bool:
        return host in self._ready and (
            host in self._migrating
            or any(
                isinstance(self._movables[uuid], Exception)
                for uuid in self._on.get(host, ())
            )
        )

    def _is_free(self, host: str, taken: Set[str]) -> bool:
        """Return whether a host may be tried.

        :param taken: names of hosts that get servers in the round
        :raises _NotReady: its servers are not prepared
        """
        if host not in self._ready:
            raise _NotReady
        return host not in taken

    def _make_round(
        self, todo: Set[str], most: int
    ) -> tuple[plans.Round | None, set[str]]:
        """Plan a round: hosts that are empty together.

        :param todo: names of hosts that may be emptied
        :param most: largest number at once
        :returns: None where none can be; and the hosts that cannot be emptied
            even alone
        """
        before = dict(self.cloud.states)
        empty: list[str] = []
        moves: list[plans.Move] = []
        in_vain: set[str] = set()
        queue = self._queue(todo)
        for number, host in enumerate(queue, 1):
            if len(empty) == most:
                break
            taken = {move.expected for move in moves}
            if not self._is_free(host, taken):
                continue
            if not self._go_together(host, empty):
                continue
            # These are tried next in this round, so they get no server yet.
            untaken = (
                one for one in queue[number:] if self._is_free(one, taken)
            )
            mates = self._find_mates([*empty, host], untaken, most)
            made = self._empty(host, {host, *empty}, mates)
            if made is not None:
                empty.append(host)
                moves += _go_on(moves, made)
            elif not empty and not mates:
                in_vain.add(host)
        if not empty:
            return None, in_vain
        self._pending.difference_update(empty)
        settled = ending.settle(self.cloud, before, moves, self._movables)
        return plans.Round(empty, *settled), in_vain

    def _find_mates(
        self, empty: Sequence[str], queue: Iterable[str], most: int
    ) -> list[str]:
        """Return the first hosts of a queue that can share a round.

        :param empty: names of the hosts that are in the round
        :param most: largest number of hosts of the round
        """
        mates = (host for host in queue if self._go_together(host, empty))
        return [*itertools.islice(mates, most - len(empty))]

    def _go_together(self, host: str, others: Sequence[str]) -> bool:
        """Return whether a host can share a round with others."""
        common = self._together
        return common is None or all(
            common.get(host, frozenset()) & common.get(one, frozenset())
            for one in others
        )

    def _empty(
        self, host: str, empty: Set[str], mates: Sequence[str]
    ) -> list[plans.Move] | None:
        """Empty a host; return the moves, or None where that cannot be.

        :param empty: names of the hosts that are empty then
        :param mates: those of hosts that are no destinations either
        """
        with self.cloud.fork() as trial:
            moves, remaining = self._move(host, {*empty, *mates})
            if remaining:
                return None
            if self._failover:
                lost = self._failover.find_lost(trial, empty)
                if lost is not None:
                    self._lost[host] = lost
                    return None
            trial.keep()
        for move in moves:
            one = self._on[host].pop(move.server)
            to = dataclasses.replace(one, host=move.expected)
            self._on.setdefault(to.host, {})[to.server] = to
            prepared = typing.cast(
                movable.Migration, self._movables[to.server]
            )
            node, _ = trial.placed[to.server]
            prepared.arrive(node)
        return moves

    def _move(
        self, host: str, barred: Set[str]
    ) -> tuple[list[plans.Move], list[plans.Leaving]]:
        """Move a host's servers in the open fork.

        :returns: the moves, and those that remain
        """
        places = self._places
        remaining = [*self._on.get(host, {}).values()]
        moves: list[plans.Move] = []
        for hosts, is_last in (
            (self._pending | barred, True),
            (barred, False),
        ):
            nodes = places.nodes_of(hosts | self._not_to)
            staying = [
                one
                for one in remaining
                if not (is_last or self._moves_twice(one))
            ]
            going = [one for one in remaining if one not in staying]
            if going and len(nodes) < len(self.cloud.states):
                made, going = planner.try_(
                    places,
                    self._order(going, nodes),
                    self._movables,
                    nodes,
                    counts_last=False,
                )
                moves += _go_on(moves, ending.number(made, self._movables))
            remaining = [*going, *staying]
        return moves, remaining

    def _moves_twice(self, server: plans.Leaving) -> bool:
        """Return whether a server can move twice; a paused one cannot.

        A guest that is paused may end with that.
        """
        prepared = self._movables[server.server]
        return isinstance(prepared, Exception) or not prepared.is_paused

    def _order(
        self, leaving: Sequence[plans.Leaving], barred: Set[str]
    ) -> list[plans.Leaving]:
        estimate = self._places.estimate
        return planner.put_hardest_first(
            leaving, self._movables, lambda one: estimate(one, barred)
        )

    def _explain(self, host: str) -> list[plans.Stuck]:
        """Return why a host cannot be emptied, after all rounds."""
        barred = self._places.nodes_of({host} | self._not_to)
        with self.cloud.fork():
            _, remaining = self._move(host, {host})
            explainer = stuck.StuckExplainer(
                self._places, self._movables, self._policies, barred
            )
            without_place = explainer.explain(
                filter(self._moves_twice, remaining)
            )
        without_place += [
            plans.Stuck(
                **vars(server),
                reason='it is paused, and no host whose turn is over takes it',
                cause=plans.STATE,
                would_help='resume it (openstack server unpause '
                f'{server.server})',
            )
            for server in remaining
            if not self._moves_twice(server)
        ]
        return [*without_place, *self._migrating.get(host, ())]


def _go_on(
    before: Sequence[plans.Move], moves: Sequence[plans.Move]
) -> list[plans.Move]:
    """Renumber the batches of moves after those before them."""
    last = before[-1].batch if before else 0
    return [dataclasses.replace(one, batch=last + one.batch) for one in moves]


def make(
    cloud: snapshot.Snapshot,
    hosts: Set[str],
    at_once: int | None = 1,
    by: str | None = None,
    keeps_failover: bool = False,
    advance: progress.Advance = progress.silent,
    not_to: Set[str] = frozenset(),
    most: int | None = None,
) -> plans.Rounds:
    """Return the rounds of some hosts; see :class:`Maintenance`.

    :param by: ``domain`` or ``zone``, which hosts of one round have in common
    :param most: as of :meth:`Maintenance.plan`
    :raises placement.PlacementFailed: placement does not answer
    """
    find = {'domain': selection.domains_of, 'zone': selection.zones_of}
    together = by and {
        host: find[by](cloud.aggregates_of(host)) for host in hosts
    }
    return Maintenance(
        cloud,
        hosts,
        at_once,
        together or None,
        keeps_failover,
        advance,
        not_to,
    ).plan(most)


def say_rounds(
    cloud: snapshot.Snapshot,
    hosts: Set[str],
    plan: plans.Rounds,
    is_whole: bool = True,
) -> Iterator[str]:
    """Yield sentences on rounds.

    :param hosts: names of those that are to be empty once
    :param plan: the result of :func:`make`
    :param is_whole: whether it has every round
    """
    times = collections.Counter(
        move.server for one in plan.rounds for move in one.moves
    )
    moves = messages.count('move', times.total())
    twice = sum(number > 1 for number in times.values())
    if times and is_whole:
        again = 'no server moves twice'
        if twice:
            verb = messages.agree(twice, 'moves', 'move')
            again = f'{messages.count("server", twice)} {verb} twice'
        yield f'{moves}; {again}.'
    if builds := len(plan.being_built):
        verb = messages.agree(builds, 'is', 'are')
        yield (
            f'{messages.count("server", builds)} {verb} still being built: '
            'run drain once the hosts of a round are disabled.'
        )
    disabled = {
        messages.clean(state.host)
        for state in cloud.states.values()
        if state.host in hosts and state.service.get('disabled')
    }
    if disabled:
        names = messages.first_few(sorted(disabled, key=messages.in_order))
        verb = messages.agree(len(disabled), 'is', 'are')
        takes = messages.agree(len(disabled), 'takes', 'take')
        yield (
            f'{names} {verb} disabled and not done, and {takes} no server '
            f'until enabled.'
        )


def _in_order(host: str) -> tuple[tuple[tuple[int, str], ...], str]:
    """Return a sort key for names in people's order."""
    return messages.in_order(host), host
