# SPDX-License-Identifier: Apache-2.0

"""Why a part of the query, or a host filter, refuses a host."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import copy
import dataclasses
import functools
import typing

from nova.scheduler.filters import numa_topology_filter

from nova_ext_sched import messages
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import policies
from nova_ext_sched.cmd.explain import query
from nova_ext_sched.filters import base
from nova_ext_sched.policy import declaration
from nova_ext_sched.queries import fields

_DISABLED = 'COMPUTE_STATUS_DISABLED'
_REFUSED = funnel.Refusal('are refused')


@dataclasses.dataclass
class Reasons:
    """Words for refusals, with the names of nova's aggregates.

    :param spec_obj: the nova RequestSpec as the request filters left it
    """

    scheduler: nova_scheduler.ReadOnlyHostManager
    spec_obj: typing.Any

    def __post_init__(self) -> None:
        self._names_by_uuid = {
            aggregate.uuid.lower(): aggregate.name
            for aggregate in self.scheduler.aggs_by_id.values()
        }

    def describe(self, part: query.Part) -> str:
        """Return a part of the query as people read it."""
        if part.key == 'in_tree' and part.value in self.scheduler.hosts:
            return f'in_tree={self.scheduler.hosts[part.value].name}'
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
        value = messages.clean(part.value)
        if part.key == 'in_tree':
            return refusal(policies.REQUESTED_HOST)
        if part.value == f'!{_DISABLED}':
            return refusal(policies.DISABLED)
        if part.forbids and policy is not None:
            return refusal(
                policy,
                detail=f'they have the trait {value[1:]}, which the request '
                f'does not require (forbid_by_trait)',
            )
        cause = policy.name if policy else ''
        if part.key == 'resources':
            cause = value.partition(':')[0]
            kind = f'lack {cause}'
        elif part.key == 'member_of':
            kind = f'are in none of the aggregates {self._names(part)}'
        elif part.key == 'group':
            kind = f'lack a provider for group {messages.clean(str(part))}'
        elif part.forbids:
            kind = f'have the forbidden trait {value[1:]}'
        else:
            kind = f'lack the trait {value}'
            kind += '' if known else ', which placement does not know'
        return funnel.Refusal(kind, cause)

    def forbidding(
        self,
        name: str,
        policy: declaration.Policy | None,
        part: query.Part,
        uuids: Iterable[str],
    ) -> dict[str, funnel.Refusal]:
        """Return why forbidden aggregates keep hosts out.

        :param name: of the request filter that forbade the aggregates
        :param policy: of it; None where it declares none
        :param part: forbids aggregates
        :param uuids: of the hosts
        """
        forbidden = {uuid.lower() for uuid in part.aggregates}
        policy = policy or declaration.Policy(
            name='',
            refuses=f'are in an aggregate that {messages.clean(name)} forbids',
        )
        decide = self._find_decision(policy)
        found = {}
        for uuid in uuids:
            mine = [
                aggregate
                for aggregate in self.scheduler.aggregates_of(
                    self.scheduler.hosts[uuid].host
                )
                if aggregate.uuid.lower() in forbidden
            ]
            shown, detail = '', 'by an aggregate only placement knows'
            if mine:
                first = fields.names_and_metadata(
                    [min(mine, key=fields.aggregate_name)]
                )
                shown = messages.clean(first[0][0])
                # The policy's own words about it.
                detail = decide(first).reason if decide else ''
            found[uuid] = refusal(policy, shown, detail)
        return found

    def _find_decision(
        self, policy: declaration.Policy
    ) -> base.Decision | None:
        """Return what the policy's host filter would say of aggregates."""
        cls = self.scheduler.filter_cls_map.get(policy.host_filter)
        if cls is None or not issubclass(cls, base.AggregatesFilter):
            return None
        return dict(cls().decisions(self.spec_obj)).get(policy)

    def _names(self, part: query.Part) -> str:
        names = self._names_by_uuid
        return messages.first_few(
            sorted(names.get(uuid.lower(), uuid) for uuid in part.aggregates)
        )


def ask_filter(
    host_filter: typing.Any,
    spec_obj: typing.Any,
    states: Sequence[typing.Any],
    whole: bool = True,
) -> dict[str, funnel.Refusal]:
    """Return why a host filter refuses hosts, by UUID, as far as it says.

    :param host_filter: whoever wrote it
    :param states: nova HostStates
    :param whole: whether to say why
    :raises nova_scheduler.FilterFailed: it raises what nova does not expect
    """
    try:
        passed = _filter(host_filter, spec_obj, states)
        refused = [state for state in states if state.uuid not in passed]
        if not whole or not refused:
            return {state.uuid: _REFUSED for state in refused}
        policy = policies.of_host_filter(host_filter)
        explain = _make_explainer(host_filter, spec_obj, policy)
        found = {}
        for state in refused:
            # To lift one alone would not free a host that several refuse.
            first, *others = explain(state) or [refusal(policy)]
            found[state.uuid] = first._replace(more=tuple(others))
        return found
    except Exception as exc:
        raise nova_scheduler.FilterFailed(
            name=type(host_filter).__name__, cause=messages.describe(exc)
        ) from exc


def _filter(
    host_filter: typing.Any, spec_obj: typing.Any, states: Sequence[typing.Any]
) -> set[str]:
    # nova's filter copies the whole request for each host, to keep its NUMA
    # topology: most of the time that all filters take. Without a topology
    # there is nothing to keep.
    if (
        type(host_filter) is numa_topology_filter.NUMATopologyFilter
        and spec_obj.numa_topology is None
    ):
        spec_obj.obj_clone = functools.partial(copy.copy, spec_obj)
    try:
        # nova.filters: None stops the filtering, with no host.
        found = host_filter.filter_all(states, spec_obj) or ()
        return {state.uuid for state in found}
    finally:
        vars(spec_obj).pop('obj_clone', None)


def _make_explainer(
    host_filter: typing.Any, spec_obj: typing.Any, policy: declaration.Policy
) -> Callable[[typing.Any], list[funnel.Refusal]]:
    """Return what says by which policies a filter refuses a HostState.

    It says nothing where the filter does not.

    :param policy: the first of the filter
    """
    if policy is policies.DISABLED:
        return lambda state: [
            refusal(policy if state.service['disabled'] else policies.DOWN)
        ]
    if isinstance(host_filter, base.AggregatesFilter):
        decisions = list(host_filter.decisions(spec_obj))

        # Many hosts share their aggregates.
        @functools.cache
        def explain(*aggregates: typing.Any) -> list[funnel.Refusal]:
            described = host_filter.describe(
                sorted(aggregates, key=fields.aggregate_name)
            )
            return [
                _explain_decision(policy, decide, described)
                for policy, decide in decisions
                if not decide(described).passes
            ]

        return lambda state: explain(*state.aggregates)
    judges = []
    if isinstance(host_filter, base.PolicyFilter):
        judges = list(host_filter.judges(spec_obj))
    return lambda state: [
        refusal(policy, detail=found.reason)
        for policy, judge in judges
        if not (found := judge(state)).passes
    ]


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
    return refusal(policy, messages.clean(name or ''), reason)


def refusal(
    policy: declaration.Policy, name: str = '', detail: str = ''
) -> funnel.Refusal:
    """Return a refusal by a policy; see :class:`.funnel.Refusal`."""
    return funnel.Refusal(policy.refuses, policy.name, name, detail)
