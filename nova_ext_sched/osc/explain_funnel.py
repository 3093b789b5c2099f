# SPDX-License-Identifier: Apache-2.0

"""Puts the funnel of ``openstack scheduler explain`` together."""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import typing

from nova_ext_sched import exception
from nova_ext_sched import placement
from nova_ext_sched.osc import explain_facts
from nova_ext_sched.osc import explain_request
from nova_ext_sched.policy import explanation
from nova_ext_sched.policy import filter_constraints
from nova_ext_sched.policy import placement_demands
from nova_ext_sched.policy import placement_query
from nova_ext_sched.policy import scheduling

_OWNER = 'OWNER_NOVA'

# What neither API tells, and no release of nova asks alike.
_OUTSIDE = 'networks and ports, and which hosts are mapped to cells'


@dataclasses.dataclass(frozen=True)
class Explained:
    """A funnel and what it does not know.

    :ivar notes: a sentence each, for the operator
    """

    funnel: explanation.Funnel
    notes: Sequence[str]


class Explainer:
    """Asks nova and placement about a request, and judges their hosts.

    :param compute: the compute proxy of openstacksdk
    :param client: the placement client
    :param resolver: for the members of server groups
    :param options: the scheduler's, as far as they are known
    """

    def __init__(
        self,
        compute: typing.Any,
        client: placement.PlacementClient,
        resolver: explain_request.Resolver,
        options: scheduling.Options,
    ) -> None:
        self._compute = compute
        self._client = client
        self._resolver = resolver
        self._options = options
        self._asker = explain_facts.Asker(client)

    def explain(
        self,
        request: scheduling.Request,
        advance: Callable[..., None],
        host: str | None = None,
    ) -> Explained:
        """Return the funnel of a request.

        :param advance: called after each step; for a progress bar
        :param host: name of a host whose free resources are to be told
        """
        aggregates = explain_facts.aggregates(self._compute)
        hosts = explain_facts.hosts(self._compute, aggregates, advance)
        _check_zone(request, self._options, aggregates)
        query = placement_query.plan(
            request, self._options, aggregates, self._client.traits()
        )
        constraints = [
            self._known_to_placement(),
            *self._asked(query, advance),
        ]
        constraints.append(self._whole(request, query, hosts, constraints))
        advance()
        if host is not None:
            constraints = self._with_free(constraints, hosts, host)
        judged, unjudged = filter_constraints.constraints(
            request,
            self._options,
            query,
            aggregates,
            self._resolver.hosts_of_members(request.group),
        )
        before = len(explanation.Funnel(hosts, constraints).left)
        funnel = explanation.Funnel(hosts, [*constraints, *judged])
        notes = self._notes(request, query, unjudged, before, hosts)
        return Explained(funnel, notes)

    def _known_to_placement(self) -> explanation.Constraint:
        refusal = explanation.Refusal(
            'have no resource provider',
            'placement has no resource provider of its compute node',
        )
        known = {p.uuid for p in self._client.resource_providers()}
        return explanation.Constraint(
            'placement',
            'a resource provider in placement',
            lambda host: None if host.provider in known else refusal,
        )

    def _asked(
        self, query: placement_query.Query, advance: Callable[..., None]
    ) -> list[explanation.Constraint]:
        found = []
        for demand in query.demands:
            answer = self._asker.answer(demand)
            found.append(demand.constraint(answer.providers, answer.problem))
            advance()
        return found

    def _whole(
        self,
        request: scheduling.Request,
        query: placement_query.Query,
        hosts: Sequence[explanation.Host],
        constraints: Sequence[explanation.Constraint],
    ) -> explanation.Constraint:
        """Ask for everything together.

        The parts are satisfied by any providers of a tree; the whole takes
        one combination of them. With nothing left there is nothing to ask.
        """
        words = 'all of the above together'
        stage = 'placement'
        left = explanation.Funnel(hosts, constraints).left
        named = [
            host for host in hosts if placement_demands.is_named(request, host)
        ]
        # Where a host has several nodes, nova names none to placement.
        in_tree = None
        if (request.host or request.node) and len(named) == 1:
            in_tree = named[0].provider
        answer = explain_facts.Answer()
        if left:
            answer = self._asker.whole(query, in_tree)
        whole = placement_demands.Demand(
            stage,
            words,
            lambda host: explanation.Refusal(
                'do not satisfy the query as a whole',
                'its providers satisfy each part, but no combination of them '
                'satisfies all of it',
            ),
        ).constraint(answer.providers, answer.problem)
        parts = tuple(constraints)
        in_part = explanation.Refusal(
            'do not satisfy the query in part', 'a part of it is refused'
        )

        def judge(host: explanation.Host) -> explanation.Refusal | None:
            if any(part.judge(host) for part in parts):
                return in_part
            return whole.judge(host)

        return explanation.Constraint(stage, words, judge)

    def _with_free(
        self,
        constraints: Sequence[explanation.Constraint],
        hosts: Sequence[explanation.Host],
        name: str,
    ) -> list[explanation.Constraint]:
        free = {
            host.provider: explain_facts.free(self._client, host.provider)
            for host in hosts
            if name in (host.name, host.node)
        }

        def detailed(
            constraint: explanation.Constraint,
        ) -> explanation.Constraint:
            def judge(host: explanation.Host) -> explanation.Refusal | None:
                refusal = constraint.judge(host)
                if refusal is None or host.provider not in free:
                    return refusal
                # 'VCPU: 4' or 'PCPU: 4 or VCPU: 4'
                detail = '; '.join(
                    f'{part.partition(":")[0]}: '
                    + free[host.provider].get(
                        part.partition(':')[0], 'no inventory of it'
                    )
                    for part in constraint.words.split(' or ')
                )
                return explanation.Refusal(
                    refusal.phrase, f'{refusal.reason}; {detail}'
                )

            return dataclasses.replace(constraint, judge=judge)

        return [
            detailed(constraint)
            if constraint.stage == 'resources'
            and ': ' in constraint.words
            and not constraint.words.startswith('request group')
            else constraint
            for constraint in constraints
        ]

    def _notes(
        self,
        request: scheduling.Request,
        query: placement_query.Query,
        unjudged: Sequence[str],
        before: int,
        hosts: Sequence[explanation.Host],
    ) -> list[str]:
        notes = []
        if unjudged:
            notes.append('not judged here: ' + ', '.join(unjudged))
        if request.forced:
            notes.append(
                'nova runs no host filter where an administrator forces a '
                'host; nova-compute itself checks the policy of a server group'
            )
        group = request.group
        if (
            group
            and 'affinity' in group.policy
            and (group.policy != 'anti-affinity')
        ):
            notes.append(
                f'not judged here: policy {group.policy} of server group '
                f'{group.name}'
            )
        if (
            before > self._options.max_placement_results
            and placement_query.is_limited(request)
        ):
            notes.append(
                f'placement returns {self._options.max_placement_results} of '
                f'these {before} hosts (max_placement_results), and the host '
                'filters see no others'
            )
        notes += [f'not known: {sentence}' for sentence in query.unknown]
        notes += self._owner(hosts)
        notes.append(f'not known: {_OUTSIDE}')
        return notes

    def _owner(self, hosts: Sequence[explanation.Host]) -> list[str]:
        # From nova 34 on, once every nova-compute reports it. Their releases
        # are not in the API.
        demand = placement_demands.of_root_traits({_OWNER: 'nova'}, {})[0]
        answer = self._asker.answer(demand)
        if answer.problem is not None:
            return []
        lacking = [h for h in hosts if h.provider not in answer.providers]
        if not lacking or len(lacking) == len(hosts):
            return []
        return [
            f'not counted: {len(lacking)} hosts lack trait {_OWNER}, which '
            'nova 34 requires once every nova-compute is of nova 34 '
            f'({", ".join(sorted(host.name for host in lacking)[:5])})'
        ]


def _check_zone(
    request: scheduling.Request,
    options: scheduling.Options,
    aggregates: Sequence[explanation.Aggregate],
) -> None:
    zone = request.availability_zone
    zones = {
        aggregate.metadata[placement_query.AZ_KEY]
        for aggregate in aggregates
        if placement_query.AZ_KEY in aggregate.metadata
    } | {options.default_availability_zone}
    if zone is not None and zone not in zones:
        raise exception.InvalidValue(
            where='availability zone',
            expected=f'one of {", ".join(sorted(zones))}',
            got=zone,
        )
