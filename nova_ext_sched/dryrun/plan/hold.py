# SPDX-License-Identifier: Apache-2.0

"""Plans which hosts to keep free, so that any host can fail tomorrow, too.

=========  ==================================================================
asked for  a host is kept so that
=========  ==================================================================
``full``   another that fails is replaced whatever it holds then: the one
           that is kept has all that the other has (:mod:`..cloud.shapes`)
``now``    the servers of another that are there now find a place on hosts
           that are kept, by nova-scheduler's own code
=========  ==================================================================

In both cases others may be as full as they get. The servers of the hosts to
keep move to others first (:mod:`.drain`); where one cannot leave, another host
is chosen. On the cloud after these moves each host fails, and what finds no
place on the hosts that are kept is named.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
from collections.abc import Set
import dataclasses
import itertools
import shlex
import typing

import nova.conf

from nova_ext_sched import messages
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import holding
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import command
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import drain
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import newcomers
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import stuck
from nova_ext_sched.dryrun.plan import survive
from nova_ext_sched.policy import failover

CONF = nova.conf.CONF

FULL, NOW = 'full', 'now'

# How often other hosts are chosen in place of those that cannot be emptied, or
# more because of what was moved.
_MOST_TRIES = 12
# The most hosts of which it is told why nothing replaces them.
_MOST_ALONE = 20
# The aggregate that is proposed where none is marked.
_AGGREGATE = 'failover'


class Planner:
    """Finds the hosts to keep free, and plans to empty them.

    :param cloud: it is read as it is
    :param by: what fails as a whole: ``host`` or ``domain``
    :param flavors: nova's, for the price
    :param project: the ID of the one that asks for servers of these
    :param advance: called after each server
    """

    def __init__(
        self,
        cloud: snapshot.Snapshot,
        by: str = 'host',
        flavors: Sequence[typing.Any] = (),
        project: str | None = None,
        advance: progress.Advance = progress.silent,
    ) -> None:
        self.cloud, self._advance = cloud, advance
        self.places = places = destinations.Destinations(cloud)
        survival = survive.Survival(places)
        self.holding = holding.Holding(cloud, survival.counts)
        self.counts = survival.counts
        self.failures = self.holding.list_failures(by)
        self.policies = policies.Policies(cloud).on
        # Of a server of two domains, what is prepared is the same.
        self.homes: dict[str, plans.Leaving] = {}
        self.movables: dict[str, movable.Movable | Exception] = {}
        hosts = sorted({*itertools.chain(*self.failures.values())})
        for host in survival.in_cells({host: {host} for host in hosts}):
            try:
                leaving, _, movables = survival.prepare({host})
            except cells.CellFailed:
                continue
            self.homes |= {one.server: one for one in leaving}
            self.movables |= movables
        # Before anything is supposed.
        self.coming = [
            (one, newcomers.make(places, one, project)) for one in flavors
        ]

    def bar_all_but(self, hosts: Set[str]) -> Set[str]:
        """Return the compute nodes of all other hosts."""
        every = {node.host for node in self.cloud.nodes.values()}
        return self.places.nodes_of(every - hosts)

    def plan(self, hold: str) -> plans.Hold:
        """Return the hosts to mark, with the moves that empty them.

        :param hold: :data:`FULL` or :data:`NOW`
        :raises placement.PlacementFailed: placement does not answer
        """
        never: set[str] = set()
        not_emptied: list[plans.NotEmptied] = []
        more: list[str] = []
        for number in itertools.count(1):
            chosen = holding.Chosen(more, {})
            if hold == FULL:
                chosen = self.holding.choose(
                    self.failures, self.holding.free, never
                )
            trial = _Trial(self, chosen, hold, never)
            made = drain.make(
                self.cloud,
                {*chosen.hosts},
                self._advance,
                self.holding.marked,
                trial.judge,
            )
            kept = {one.host for one in made.without_place} - never
            if number == _MOST_TRIES or not (kept or trial.more):
                break
            never |= kept
            not_emptied += [
                plans.NotEmptied(
                    messages.clean(host),
                    [one for one in made.without_place if one.host == host],
                )
                for host in sorted(kept, key=messages.in_order)
            ]
            more = [one for one in (*more, *trial.more) if one not in never]
        return self._make(made, trial, not_emptied)

    def _make(
        self,
        made: plans.Plan,
        trial: '_Trial',
        not_emptied: list[plans.NotEmptied],
    ) -> plans.Hold:
        """Return the plan's whole document."""
        held, chosen = self.holding, trial.chosen
        alone = [
            plans.Alone(
                messages.clean(host),
                messages.clean(name),
                held.say_alone(host, {one.host for one in not_emptied})
                if number < _MOST_ALONE
                else '',
            )
            for number, (name, host) in enumerate(
                (name, host)
                for name, hosts in chosen.uncovered.items()
                for host in hosts
            )
        ]
        to_mark = [host for host in chosen.hosts if host not in held.marked]
        fields = {
            one.name: getattr(made, one.name)
            for one in dataclasses.fields(plans.Plan)
        }
        fields['remarks'] = [*made.remarks, *self._say_remarks(trial.hold)]
        return plans.Hold(
            **fields,
            hold=trial.hold,
            mark=[
                plans.Held(
                    host=host,
                    servers=self.counts.get(host, 0),
                    replaces=held.count_replaced(host),
                    is_marked=host in held.marked,
                )
                for host in sorted(chosen.hosts, key=messages.in_order)
            ],
            held=sorted(held.free, key=messages.in_order),
            alone=alone,
            not_emptied=not_emptied,
            kinds=[*self._name_kinds()],
            not_saved=trial.not_saved,
            price=trial.price,
            commands=[*self._make_commands(to_mark)],
        )

    def _say_remarks(self, hold: str) -> Iterator[str]:
        if failover.DECLARATION.name not in self.policies:
            yield (
                'No mark has an effect yet: [nova_ext_sched] '
                'enable_failover_hosts is not on.'
            )
        if hold == NOW:
            yield (
                'This holds for the servers that are there now; larger or '
                'more servers on a host may need more (--hold without =now).'
            )
        useless = self.holding.marked - self.holding.free
        if useless:
            names = messages.first_few(sorted(useless, key=messages.in_order))
            verb = messages.agree(len(useless), 'is', 'are')
            yield (
                f'{names} {verb} kept for failures, and not empty, enabled '
                'and up.'
            )

    def _make_commands(self, hosts: Collection[str]) -> Iterator[str]:
        """Yield the commands that mark hosts; none if one is not safe."""
        if not hosts or not all(map(command.is_safe, hosts)):
            return
        name = min(self._list_own_aggregates(), default='')
        if not name:
            name = self._make_name()
            item = f'{CONF.nova_ext_sched.failover_key}=true'
            yield shlex.join(
                ['openstack', 'aggregate', 'create', '--property', item, name]
            )
        for host in sorted(hosts, key=messages.in_order):
            yield shlex.join(
                ['openstack', 'aggregate', 'add', 'host', name, host]
            )

    def _list_own_aggregates(self) -> Iterator[str]:
        """Yield the aggregates that a command can name, with a mark alone."""
        key = CONF.nova_ext_sched.failover_key
        for aggregate in holding.list_marked(self.cloud):
            name = aggregate.name
            # The client would take a number for the ID of another.
            can_name = command.is_safe(name) and not name.isdigit()
            # Other metadata would change more than the mark.
            if can_name and aggregate.metadata.keys() == {key}:
                yield name

    def _make_name(self) -> str:
        """Return a name for a new aggregate, which no other has."""
        known = {one.name for one in self.cloud.aggs_by_id.values()}
        numbered = (f'{_AGGREGATE}-{n}' for n in itertools.count(2))
        names = itertools.chain([_AGGREGATE], numbered)
        return next(name for name in names if name not in known)

    def _name_kinds(self) -> Iterator[plans.NotSaved]:
        """Yield the kinds of servers that no host kept free saves."""
        yield plans.NotSaved(
            'state',
            'servers that nova does not evacuate as they are, or never: '
            'paused, suspended, being resized, with a vTPM or a share',
        )
        yield plans.NotSaved(
            'affinity',
            'servers of a group with affinity, or with the hint same_host: '
            'nova keeps them with the others on the host that failed',
        )
        yield plans.NotSaved(
            'violation',
            'servers that a policy or a filter refuses where they are '
            '(nova-ext-sched audit), as forced ones, and those whose flavor, '
            'image or aggregate has changed since',
        )
        states = self.cloud.states.values()
        if any(one.numa_topology is not None for one in states):
            yield plans.NotSaved(
                'NUMA',
                'servers with NUMA cells, pinned CPUs or huge pages, where '
                'nova cuts an equal host differently for another order',
            )
        domains = CONF.nova_ext_sched.failure_domain_key
        if any(
            domains in one.metadata for one in self.cloud.aggs_by_id.values()
        ):
            yield plans.NotSaved(
                'failure domain',
                'servers of a group with rules for failure domains, where '
                'the host that is kept is in a domain that is full for it',
            )
        if self.cloud.providers.served:
            yield plans.NotSaved(
                'shared',
                'servers on a resource that hosts share: they need as much of '
                'it again until the failed host is back',
            )


@dataclasses.dataclass
class _Trial:
    """Judges a choice of hosts once they are empty.

    :param never: names of hosts that are not chosen besides
    :ivar more: names of hosts to choose besides
    :ivar not_saved: servers that find no place on the hosts that are kept
    :ivar price: servers that fit on the hosts that are chosen
    """

    planner: Planner
    chosen: holding.Chosen
    hold: str
    never: Set[str]
    more: list[str] = dataclasses.field(default_factory=list)
    not_saved: list[plans.Stuck] = dataclasses.field(default_factory=list)
    price: list[plans.Price] = dataclasses.field(default_factory=list)

    def judge(self, future: fork.Fork) -> None:
        """Evacuate each failure on the cloud after the moves.

        :param future: the fork that is open, with the moves
        """
        planner_ = self.planner
        held = {*planner_.holding.free, *self.chosen.hosts}
        unsaved: dict[str, plans.Stuck] = {}
        for name, hosts in planner_.failures.items():
            if name in self.chosen.uncovered:
                continue
            leaving = [
                server
                for uuid, server in planner_.homes.items()
                if future.moved.get(uuid, server.host) in hosts - held
            ]
            remaining = self._evacuate(leaving, hosts, held)
            while self._may_choose and (
                other := self._find_other(remaining, leaving, hosts, held)
            ):
                self.more.append(other)
                held.add(other)
                remaining = self._evacuate(leaving, hosts, held)
            unsaved |= {server.server: server for server in remaining}
        self.not_saved = [*unsaved.values()]
        if self.chosen.hosts and not self.more:
            self.price = [*self._count_price()]

    @property
    def _may_choose(self) -> bool:
        # What one takes that is not empty yet is known after its moves.
        used = any(self.planner.counts.get(host) for host in self.more)
        return self.hold == NOW and not used

    def _count_price(self) -> Iterator[plans.Price]:
        one = self.planner
        barred = one.bar_all_but({*self.chosen.hosts})
        for flavor, coming in one.coming:
            with one.cloud.fork() as trial:
                fits = coming.fill(trial, barred)
                number = sum(1 for _ in itertools.islice(fits, survive.MOST))
            name = messages.clean(flavor.name)
            yield plans.Price(flavor.flavorid, name, number)

    def _evacuate(
        self, leaving: Sequence[plans.Leaving], hosts: Set[str], to: Set[str]
    ) -> list[plans.Stuck]:
        """Return the servers that find no place on hosts that are kept."""
        places, movables = self.planner.places, self.planner.movables
        barred = self.planner.bar_all_but(to - hosts)
        for server in leaving:
            prepared: movable.Movable | Exception | None
            prepared = movables[server.server]
            if isinstance(prepared, admission.NotMovable):
                prepared = prepared.then
            if prepared and not isinstance(prepared, Exception):
                movable.stand_on(prepared, *sorted(hosts))
        with places.cloud.fork():
            ordered = planner.put_hardest_first(
                leaving,
                movables,
                lambda one: places.estimate(one, barred),
            )
            _, remaining = planner.try_(places, ordered, movables, barred)
            return stuck.StuckExplainer(
                places, movables, self.planner.policies, barred
            ).explain(remaining)

    def _find_other(
        self,
        remaining: Sequence[plans.Stuck],
        leaving: Sequence[plans.Leaving],
        hosts: Set[str],
        held: Set[str],
    ) -> str | None:
        """Return a host besides that takes some of the servers, or None."""
        able = sum(server.has_no_room for server in remaining)
        if not able:
            return None
        planner_ = self.planner
        best: tuple[int, str] | None = None
        for host in planner_.holding.list_kinds(held | hosts | self.never):
            if planner_.counts.get(host):
                # With its servers on it nobody could say what it takes.
                if not any(
                    planner_.holding.replaces(host, on) for on in hosts
                ):
                    continue
                number = able - 1
            else:
                left = self._evacuate(leaving, hosts, held | {host})
                number = sum(server.has_no_room for server in left)
            if number < able and (best is None or number < best[0]):
                best = number, host
        return best and best[1]


def make(
    cloud: snapshot.Snapshot,
    hold: str,
    flavors: Sequence[str] = (),
    by: str = 'host',
    advance: progress.Advance = progress.silent,
    project: str | None = None,
) -> plans.Hold:
    """Return the hosts to keep free, with the moves that empty them.

    :param hold: :data:`FULL` or :data:`NOW`
    :param flavors: names or IDs of those of the price; by default that of the
        most servers
    :param by: what fails as a whole: ``host`` or ``domain``
    :param advance: called after each server
    :param project: the ID of the one that asks for servers of the flavors
    :raises exception.InvalidValue: what is named does not exist
    :raises placement.PlacementFailed: placement does not answer
    """
    ctxt = process.context()
    found = [request.get_flavor(ctxt, name) for name in flavors]
    if not found:
        found = servers.find_common_flavor(cloud)
    return Planner(cloud, by, found, project, advance).plan(hold)
