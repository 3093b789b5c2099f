# SPDX-License-Identifier: Apache-2.0

"""Why a part of the query, or a host filter, refuses a host."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import functools
import typing

from nova_ext_sched import messages
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import policies
from nova_ext_sched.cmd.explain import query
from nova_ext_sched.filters import base
from nova_ext_sched.policy import declaration
from nova_ext_sched.queries import fields

_DISABLED = 'COMPUTE_STATUS_DISABLED'


class Reasons:
    """Words for refusals, with the names of nova's aggregates.

    :param spec_obj: the nova RequestSpec as the request filters left it
    """

    def __init__(
        self,
        scheduler: nova_scheduler.ReadOnlyHostManager,
        spec_obj: typing.Any,
    ) -> None:
        self._scheduler = scheduler
        self._spec_obj = spec_obj
        self._aggregates = {
            aggregate.uuid.lower(): aggregate
            for aggregate in scheduler.aggs_by_id.values()
        }

    def describe(self, part: query.Part) -> str:
        """Return a part of the query as people read it."""
        if part.key == 'in_tree' and part.value in self._scheduler.hosts:
            return f'in_tree={self._scheduler.hosts[part.value].name}'
        if part.key != 'member_of':
            return messages.clean(str(part))
        verb = 'not in' if part.forbids else 'in one of'
        return f'{verb} aggregates {self._names(part)}'

    def lacking(
        self,
        part: query.Part,
        policy: declaration.Policy | None = None,
        known: bool = True,
    ) -> funnel.Refusal:
        """Return why hosts are refused that do not satisfy a part.

        :param policy: of the request filter that added it
        :param known: whether placement knows the part's trait
        """
        cause = policy.name if policy else ''
        value = messages.clean(part.value)
        if part.key == 'resources':
            resource = value.partition(':')[0]
            return funnel.Refusal(f'lack {resource}', resource)
        if part.key == 'member_of':
            return funnel.Refusal(
                f'are in none of the aggregates {self._names(part)}', cause
            )
        if part.key == 'in_tree':
            return _refusal(policies.REQUESTED_HOST)
        if part.key == 'group':
            return funnel.Refusal(
                f'lack a provider for group {messages.clean(str(part))}', cause
            )
        if part.value == f'!{_DISABLED}':
            return _refusal(policies.DISABLED)
        if not part.forbids:
            kind = f'lack the trait {value}'
            if not known:
                kind += ', which placement does not know'
            return funnel.Refusal(kind, cause)
        if policy is not None:
            return _refusal(
                policy,
                detail=f'they have the trait {value[1:]}, which the request '
                f'does not require (forbid_by_trait)',
            )
        return funnel.Refusal(f'have the forbidden trait {value[1:]}', cause)

    def forbidding(
        self, name: str, policy: declaration.Policy | None, part: query.Part
    ) -> Callable[[str], funnel.Refusal]:
        """Return what says why forbidden aggregates keep a host out.

        :param name: of the request filter that forbade the aggregates
        :param policy: of it; None where it declares none
        :param part: forbids aggregates
        :returns: takes the host's name
        """
        forbidden = {uuid.lower() for uuid in part.aggregates}
        refusal = funnel.Refusal(
            f'are in an aggregate that {messages.clean(name)} forbids'
        )
        decide = None
        if policy is not None:
            refusal = _refusal(policy)
            decide = self._find_decision(policy)

        @functools.cache
        def refuse(uuids: tuple[str, ...]) -> funnel.Refusal:
            found = [self._aggregates[uuid] for uuid in uuids]
            if not found:
                return refusal._replace(
                    detail='by an aggregate only placement knows'
                )
            described = fields.names_and_metadata(found)
            return refusal._replace(
                name=messages.clean(described[0][0]),
                # The policy's own words about the first one.
                detail=decide(described[:1]).reason if decide else '',
            )

        def explain(host: str) -> funnel.Refusal:
            mine = sorted(
                self._scheduler.aggregates_of(host), key=lambda one: one.name
            )
            return refuse(
                tuple(
                    uuid
                    for uuid in (one.uuid.lower() for one in mine)
                    if uuid in forbidden
                )
            )

        return explain

    def _find_decision(
        self, policy: declaration.Policy
    ) -> base.Decision | None:
        """Return what the policy's host filter would say of aggregates."""
        cls = self._scheduler.filter_cls_map.get(policy.host_filter)
        if cls is None or not issubclass(cls, base.AggregatesFilter):
            return None
        return dict(cls().decisions(self._spec_obj)).get(policy)

    def _names(self, part: query.Part) -> str:
        known = self._aggregates
        return messages.first_few(
            sorted(
                known[uuid.lower()].name if uuid.lower() in known else uuid
                for uuid in part.aggregates
            )
        )


def explain_filter(
    host_filter: typing.Any,
    spec_obj: typing.Any,
    refused: Iterable[typing.Any],
) -> dict[str, funnel.Refusal]:
    """Return why a host filter refused hosts, by UUID, as far as it says.

    :param host_filter: whoever wrote it
    :param refused: nova HostStates
    """
    refused = list(refused)
    if not refused:
        return {}
    mine = policies.of_host_filter(host_filter)
    if mine == (policies.DISABLED,):
        disabled, down = _refusal(policies.DISABLED), _refusal(policies.DOWN)
        return {
            state.uuid: disabled if state.service['disabled'] else down
            for state in refused
        }
    if isinstance(host_filter, base.AggregatesFilter):
        return _explain_aggregates(host_filter, spec_obj, refused)
    judges = []
    if isinstance(host_filter, base.PolicyFilter):
        judges = list(host_filter.judges(spec_obj))
    return {
        state.uuid: _combine(
            [
                _refusal(policy, detail=found.reason)
                for policy, judge in judges
                if not (found := judge(state)).passes
            ],
            mine[0],
        )
        for state in refused
    }


def _explain_aggregates(
    host_filter: base.AggregatesFilter,
    spec_obj: typing.Any,
    refused: Sequence[typing.Any],
) -> dict[str, funnel.Refusal]:
    decisions = list(host_filter.decisions(spec_obj))
    # Many hosts share their aggregates.
    judged: dict[tuple[int, ...], funnel.Refusal] = {}
    for state in refused:
        key = tuple(map(id, state.aggregates))
        if key not in judged:
            described = host_filter.describe(
                sorted(state.aggregates, key=fields.aggregate_name)
            )
            judged[key] = _combine(
                [
                    _explain_decision(policy, decide, described)
                    for policy, decide in decisions
                    if not decide(described).passes
                ],
                policies.of_host_filter(host_filter)[0],
            )
    return {
        state.uuid: judged[tuple(map(id, state.aggregates))]
        for state in refused
    }


def _explain_decision(
    policy: declaration.Policy,
    decide: base.Decision,
    described: base.Described,
) -> funnel.Refusal:
    """Return why a policy refuses a host in these aggregates."""
    reason = decide(described).reason
    if decide([]).reason == reason:
        # Whatever its aggregates are: it lacks one.
        return funnel.Refusal(
            policy.lacks or policy.refuses, policy.name, detail=reason
        )
    name = next((one[0] for one in described if not decide([one]).passes), '')
    return _refusal(policy, messages.clean(name or ''), reason)


def _combine(
    found: Sequence[funnel.Refusal], policy: declaration.Policy
) -> funnel.Refusal:
    """Return one refusal for all policies by which a filter refuses a host.

    To lift one of them alone would not free a host that several refuse.

    :param policy: where the filter does not say by which
    """
    if not found:
        return _refusal(policy)
    first, *others = found
    return first._replace(more=tuple(others))


def _refusal(
    policy: declaration.Policy, name: str = '', detail: str = ''
) -> funnel.Refusal:
    return funnel.Refusal(policy.refuses, policy.name, name, detail)
