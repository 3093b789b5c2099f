# SPDX-License-Identifier: Apache-2.0

"""Words why a part of the query, or a host filter, refuses a host.

The reason is the policy that the part or the filter belongs to. Our request
filters and host filters declare their policies in an attribute ``policies``;
filters of other packages may, too. nova's own policies are declared here, and
:mod:`.comparison` says what its filters compared.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import copy
import dataclasses
import itertools
import types
import typing

from nova.objects import request_spec
from nova.scheduler.filters import numa_topology_filter
import os_resource_classes

from nova_ext_sched import exception
from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import overlay
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import comparison
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.filters import base
from nova_ext_sched.policy import act
from nova_ext_sched.policy import aggregate_instance_type
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import verdict

AVAILABILITY_ZONE = declaration.Policy(
    name='availability zone',
    refuses='are not in the availability zone',
    request_filter='map_az_to_placement_aggregate',
    acts=(
        act.Act(
            act.REPAIR,
            'ask for no availability zone',
            act.REQUEST,
            ('availability_zone',),
            by_command=False,
        ),
    ),
)
DISABLED = declaration.Policy(
    name=refusals.DISABLED,
    refuses='are disabled',
    request_filter='compute_status_filter',
    host_filter='ComputeFilter',
)
TENANT = declaration.Policy(
    name='tenant isolation',
    refuses='are for other projects',
    request_filter='require_tenant_aggregate',
    host_filter='AggregateMultiTenancyIsolation',
    closes=True,
    acts=(act.take_out('all projects'), act.unset_item('all projects')),
)
# No filter applies it: HostManager compares the names of hosts, and placement
# the query's in_tree.
REQUESTED_HOST = declaration.Policy(
    name='requested host',
    refuses='are not the requested host',
    acts=(
        act.Act(
            act.REPAIR,
            'ask for no host',
            act.REQUEST,
            ('host',),
            by_command=False,
        ),
    ),
)
CELL = declaration.Policy(
    name=refusals.ELSEWHERE, refuses='are not in the requested cell'
)
DOWN = declaration.Policy(
    name='service that is down',
    refuses='are down',
    acts=(
        act.Act(
            act.REPAIR,
            'start nova-compute on {hosts}',
            act.RUNS,
            by_command=False,
        ),
    ),
)
FENCED = dataclasses.replace(
    DOWN,
    acts=(
        act.Act(
            act.POLICY,
            'evacuate {hosts}, or lift the forced state when it is known to '
            'be well',
            act.RUNS,
            by_command=False,
        ),
    ),
)

#: nova's policies that have a request filter, and perhaps a host filter too.
NOVA = (AVAILABILITY_ZONE, DISABLED, TENANT)

#: Why nova-conductor can create no server on a host that nova-scheduler takes.
UNMAPPED = refusals.Refusal(
    'are in no cell mapping',
    'cell mapping',
    detail='run nova-manage cell_v2 discover_hosts',
    acts=(
        act.Act(
            act.REPAIR, 'run nova-manage cell_v2 discover_hosts', act.MAPPED
        ),
    ),
)

#: Why nova-scheduler passes over a compute node.
NO_SERVICE = refusals.Refusal(
    'have no nova-compute service record',
    'service record',
    detail='restart nova-compute there',
    acts=(
        act.Act(
            act.REPAIR, 'restart nova-compute on {hosts}', by_command=False
        ),
    ),
)

# The microversion from which on nova-api takes a server out of its zone.
_UNPINS = '2.104'

#: The act that takes the zone out of an existing server's request.
UNPIN = AVAILABILITY_ZONE.acts[0]._replace(
    words=f'unpin the server from its zone (microversion {_UNPINS})'
)

#: Acts that change the aggregates or traits of hosts, so that these take a
#: request.
PUT_INTO = act.put_into('all requests for it')
TAKE_OUT = act.take_out('requests that it is closed to')
GIVE_TRAIT = act.Act(
    act.POLICY,
    'give {hosts} the trait {names}',
    act.GETS_TRAIT,
    admits='all requests that require it',
)
TAKE_TRAIT = act.Act(
    act.POLICY,
    'take the trait {names} from {hosts}',
    act.LOSES_TRAIT,
    admits='all requests that forbid it',
)
# The prefix of the traits of hosts that take an image's disk format.
_IMAGE_TYPE = 'COMPUTE_IMAGE_TYPE_'
_ANOTHER_FORMAT = act.Act(
    act.REPAIR,
    'ask for an image of another disk format',
    act.IMAGE,
    ('disk_format',),
    by_command=False,
)
_ENABLE = 'enable {hosts}, where nova-compute disabled itself'
_ENABLE_MEANT = 'enable {hosts}, if meant to take servers again'
# nova.compute.manager: when the driver's connection is lost, and after too
# many builds that failed.
_BY_NOVA = 'AUTO: '
# The most aggregates that a host is tried in.
_MOST_TRIED = 100
# The most items of aggregate metadata that are tried for a host.
_MOST_ITEMS = 20
# Acts on aggregates, which are found by asking the policy.
_OF_AGGREGATES = act.LEAVES, act.JOINS, act.SETS, act.UNSETS

_REFUSED = refusals.Refusal('are refused')


class FilterFailed(exception.NovaExtSchedError):
    """A filter raised what nova does not expect.

    :param name: the filter's name
    :param cause: type and text of the exception
    """

    message = (
        '{name}: expected an answer, got {cause}; nova-scheduler would fail '
        'the request with this error'
    )
    name: str
    cause: str


@dataclasses.dataclass
class Reasons:
    """Words for refusals, with the names of nova's aggregates.

    :param spec_obj: the nova RequestSpec as the request filters left it
    """

    cloud: snapshot.Snapshot
    spec_obj: typing.Any

    def __post_init__(self) -> None:
        self._names_by_uuid = {
            aggregate.uuid.lower(): aggregate.name
            for aggregate in self.cloud.aggs_by_id.values()
        }

    def say(self, parts: Iterable[query.Part]) -> str:
        """Word parts of the query for people."""
        return '; '.join(map(self._say, query.merge(parts)))

    def _say(self, part: query.Part) -> str:
        if part.key == 'in_tree' and part.value in self.cloud.nodes:
            return f'in_tree={self.cloud.nodes[part.value].name}'
        if part.key != 'member_of':
            return messages.clean(str(part))
        verb = 'not in' if part.forbids else 'in one of'
        return f'{verb} aggregates {self._names(part)}'

    def refuse_lacking(
        self,
        part: query.Part,
        policy: declaration.Policy | None = None,
        known: bool = True,
    ) -> refusals.Refusal:
        """Return the refusal that hosts get for not satisfying a part.

        :param policy: the policy of the request filter that added the part;
            None if no filter did, or the filter declares none
        :param known: whether placement knows the part's trait
        """
        value = messages.clean(part.value)
        if part.key == 'in_tree':
            return refusal(REQUESTED_HOST)
        if part.forbids and policy is not None:
            return refusal(
                policy,
                detail=f'they have the trait {value[1:]}, which the request '
                f'does not require (forbid_by_trait)',
            )
        if part.key == 'resources':
            resource = value.partition(':')[0]
            return refusal_by_resource(f'lack {resource}', resource)
        zone = fields.get_field(self.spec_obj, 'availability_zone')
        acts: tuple[act.Act, ...] = policy.acts if policy else ()
        if policy is AVAILABILITY_ZONE and not snapshot.is_boot(self.spec_obj):
            acts = (UNPIN,) if _can_unpin() else ()
        if policy is AVAILABILITY_ZONE and zone:
            kind = f'are not in the availability zone {messages.clean(zone)}'
        elif part.key == 'member_of':
            kind = f'are in none of the aggregates {self._names(part)}'
        elif part.key == 'group':
            kind = f'lack a provider for group {messages.clean(str(part))}'
        elif part.forbids:
            kind = f'have the forbidden trait {value[1:]}'
        elif value.startswith(_IMAGE_TYPE):
            disk_format = value.removeprefix(_IMAGE_TYPE).lower()
            kind = f'take no image of disk format {disk_format}'
        else:
            kind = f'lack the trait {value}'
            kind += '' if known else ', which placement does not know'
        acts += self._find_acts(part)
        return refusals.Refusal(kind, policy.name if policy else '', acts=acts)

    def _find_acts(self, part: query.Part) -> tuple[act.Act, ...]:
        """Return acts that make hosts satisfy a part, besides its policy's."""
        if part.key == 'member_of':
            known = self.name_aggregates(part)
            return (PUT_INTO.named(known[0]),) if known else ()
        trait = part.value.removeprefix('!')
        if trait.startswith(_IMAGE_TYPE):
            return (_ANOTHER_FORMAT,)
        # nova-compute sets all other traits, and would undo a change.
        if not trait.startswith('CUSTOM_') or part.key == 'group':
            return ()
        return ((TAKE_TRAIT if part.forbids else GIVE_TRAIT).named(trait),)

    def refuse_forbidden(
        self,
        name: str,
        policy: declaration.Policy | None,
        part: query.Part,
        uuids: Iterable[str],
    ) -> dict[str, refusals.Refusal]:
        """Return the refusals of hosts in forbidden aggregates, by UUID.

        :param name: name of the request filter that forbade the aggregates
        :param policy: that filter's policy; None if it declares none
        :param part: the part that forbids aggregates
        :param uuids: UUIDs of hosts that nova, like placement, has in one of
            the aggregates
        """
        policy = policy or declaration.Policy(
            name='',
            refuses=f'are in an aggregate that {messages.clean(name)} forbids',
            acts=(TAKE_OUT,),
        )
        judge = self._find_judge(policy)
        refused = {}
        for uuid in uuids:
            closing = self.find_aggregates(uuid, part)
            # What the policy says of a host that is in one aggregate only.
            details = [
                judge(
                    types.SimpleNamespace(host=None, aggregates=[one])
                ).reason
                for one in closing
                if judge
            ]
            names = tuple(map(fields.aggregate_name, closing))
            acts = tuple(
                one.named(*names) if one.supposes == act.LEAVES else one
                for one in policy.acts
            )
            refused[uuid] = refusal(
                policy, _join(names), '; '.join(details), acts=acts
            )
        return refused

    def find_aggregates(self, uuid: str, part: query.Part) -> list[typing.Any]:
        """Return nova Aggregates of a host that a part names.

        They are sorted by name.
        """
        named = {one.lower() for one in part.aggregates}
        host = self.cloud.nodes[uuid].host
        mine = self.cloud.aggregates_of(host)
        return sorted(
            (one for one in mine if one.uuid.lower() in named),
            key=fields.aggregate_name,
        )

    def name_aggregates(self, part: query.Part) -> tuple[str, ...]:
        """Return the names of a part's aggregates, without unknown ones."""
        names = self._names_by_uuid
        known = (one.lower() for one in part.aggregates)
        return tuple(sorted(names[one] for one in known if one in names))

    def _find_judge(
        self, policy: declaration.Policy
    ) -> base.ByAggregates | None:
        """Return the policy's decision, if aggregates alone decide it."""
        cls = self.cloud.filter_cls_map.get(policy.host_filter)
        if cls is None or not issubclass(cls, base.PolicyFilter):
            return None
        judge = dict(cls().decisions(self.spec_obj)).get(policy)
        return judge if isinstance(judge, base.ByAggregates) else None

    def _names(self, part: query.Part) -> str:
        names = self._names_by_uuid
        return messages.first_few(
            sorted(names.get(uuid.lower(), uuid) for uuid in part.aggregates)
        )


def _can_unpin() -> bool:
    """Return whether this nova's API takes a server out of its zone."""
    from nova.api.openstack import api_version_request

    unpins = api_version_request.APIVersionRequest(_UNPINS)
    return bool(unpins <= api_version_request.max_api_version())


def policy_of_request_filter(
    request_filter: typing.Any, classes: Iterable[type]
) -> declaration.Policy | None:
    """Return the policy of a request filter, third-party ones included.

    A request filter without ``policies`` has the policy that names it: one of
    :data:`NOVA`, or one that a host filter declares.

    :param classes: the host filters that nova.conf makes available, enabled
        or not
    :returns: None if no policy names it
    """
    for policy in getattr(request_filter, 'policies', ()):
        return policy
    declared = itertools.chain(NOVA, *map(base.policies_of, classes))
    by_name = {policy.request_filter: policy for policy in declared}
    return by_name.get(request_filter.__name__)


def policy_of_host_filter(host_filter: typing.Any) -> declaration.Policy:
    """Return the first policy of a host filter, third-party ones included."""
    name = type(host_filter).__name__
    of_nova = (policy for policy in NOVA if policy.host_filter == name)
    return next(of_nova, base.policies_of(host_filter)[0])


def ask_filter(
    host_filter: typing.Any,
    spec_obj: typing.Any,
    states: Sequence[typing.Any],
    with_reasons: bool = True,
    aggregates: Collection[typing.Any] = (),
) -> dict[str, refusals.Refusal]:
    """Return the refusals of a host filter by UUID, with the reasons it gives.

    :param host_filter: nova's, ours or a third-party one
    :param states: nova HostStates
    :param with_reasons: whether each refusal says why
    :param aggregates: nova Aggregates that a host may be put into
    :raises FilterFailed: the filter raises what nova does not expect
    """
    try:
        passed = _filter(host_filter, spec_obj, states)
        refused = [state for state in states if state.uuid not in passed]
        if not with_reasons or not refused:
            return {state.uuid: _REFUSED for state in refused}
        policy = policy_of_host_filter(host_filter)
        explain = _make_explainer(host_filter, spec_obj, policy, aggregates)
        refusal_of = {}
        for state in refused:
            # Keep every policy that refuses: to lift one does not help if
            # another refuses, too.
            first, *others = explain(state) or [refusal(policy)]
            refusal_of[state.uuid] = first._replace(more=tuple(others))
        return refusal_of
    except Exception as exc:
        raise FilterFailed(
            name=type(host_filter).__name__, cause=messages.say_error(exc)
        ) from exc


def _filter(
    host_filter: typing.Any, spec_obj: typing.Any, states: Sequence[typing.Any]
) -> set[str]:
    if type(host_filter) is numa_topology_filter.NUMATopologyFilter:
        spec_obj = copy.copy(spec_obj)
        spec_obj.__class__ = _CopiedForNuma
    # nova takes None for no hosts at all.
    found = host_filter.filter_all(states, spec_obj) or ()
    return {state.uuid for state in found}


class _CopiedForNuma(request_spec.RequestSpec):
    """A request of which a copy shares all that nova's filter does not change.

    NUMATopologyFilter copies its request for each host, because it changes
    the NUMA topology. With nova's deep copy, that takes most of the time of
    all filters together.
    """

    def obj_clone(self) -> typing.Any:
        """Return a copy whose NUMA topology may be changed."""
        if self.numa_topology is None:
            return self
        found = copy.copy(self)
        found.numa_topology = claims.copy_topology(self.numa_topology)
        return found


def _make_explainer(
    host_filter: typing.Any,
    spec_obj: typing.Any,
    policy: declaration.Policy,
    aggregates: Collection[typing.Any],
) -> Callable[[typing.Any], list[refusals.Refusal]]:
    """Return a function that explains a filter's refusal of a HostState.

    The function returns an empty list if it finds no policy that refuses.

    :param policy: the filter's first policy
    """
    if policy is DISABLED:
        return lambda state: [
            disabled(state.service)
            if state.service['disabled']
            else refusal(FENCED if state.service.get('forced_down') else DOWN)
        ]
    if isinstance(host_filter, base.PolicyFilter):
        decisions = list(host_filter.decisions(spec_obj))
    else:
        decisions = list(comparison.decisions(host_filter, spec_obj, policy))
    known = sorted(aggregates, key=fields.aggregate_name)
    finder = _AggregateFinder(known, spec_obj)
    return lambda state: [
        _refuse(policy, judge, found, state, finder)
        for policy, judge in decisions
        if not (found := judge(state)).passes
    ]


def _refuse(
    policy: declaration.Policy,
    judge: base.Judge,
    judged: verdict.Verdict,
    state: typing.Any,
    finder: '_AggregateFinder',
) -> refusals.Refusal:
    """Return a refusal by a verdict, with all aggregates that cause it.

    :param judged: the verdict of ``judge`` on the HostState
    """
    declared = policy.acts_lacking if judged.lacks else policy.acts
    names = {
        one.supposes: finder.find(one.supposes, policy, judge, state)
        for one in judged.acts or declared
        if one.supposes in _OF_AGGREGATES
    }
    acts = tuple(
        one.named(*names.get(one.supposes, ()))
        for one in judged.acts or declared
        if one.names or one.supposes not in names or names[one.supposes]
    )
    closing = names.get(act.LEAVES) if judged.aggregate else ()
    return refusal(
        policy,
        _join(closing or [judged.aggregate]),
        judged.reason,
        judged.lacks,
        acts,
    )


@dataclasses.dataclass
class _AggregateFinder:
    """Finds aggregates to leave, join or change, so that a host passes.

    It does so once for all hosts in the same aggregates.

    :param known: aggregates that may be joined, sorted by name
    :param spec_obj: the nova RequestSpec
    """

    known: Sequence[typing.Any]
    spec_obj: typing.Any

    def __post_init__(self) -> None:
        self._found: dict[typing.Any, list[str]] = {}
        # Kept alive, because a judge may cache its answers by their id().
        self._changed: list[typing.Any] = []

    def find(
        self,
        kind: str,
        policy: declaration.Policy,
        judge: base.Judge,
        state: typing.Any,
    ) -> list[str]:
        """Return the names of aggregates, or of one and its metadata.

        :param kind: one of the acts on aggregates (:data:`_OF_AGGREGATES`)
        """
        # Hosts share Aggregate objects. The states keep these alive, so that
        # no other object gets the same id().
        key = kind, policy.name, *map(id, state.aggregates)
        if key not in self._found:
            match kind:
                case act.LEAVES:
                    names = _find_closing(judge, state)
                case act.JOINS:
                    names = _find_opening(judge, state, self.known)
                case _:
                    names = self._find_item(kind, judge, state)
            self._found[key] = names
        return self._found[key]

    def _find_item(
        self, kind: str, judge: base.Judge, state: typing.Any
    ) -> list[str]:
        """Return a change of aggregate metadata after which a host passes.

        :param kind: whether to set an item or to unset it
        :returns: the aggregate's name, the key, and the value if it is to be
            set; empty if no change helps
        """
        tried = (
            (aggregate, *item)
            for aggregate in state.aggregates
            for item in self._list_items(kind, aggregate)
        )
        for aggregate, key, value in itertools.islice(tried, _MOST_ITEMS):
            changed = overlay.copy_with_item(aggregate, key, value)
            self._changed.append(changed)
            mine = [changed if o is aggregate else o for o in state.aggregates]
            if _judge_in(judge, state, mine).passes:
                rest = [] if value is None else [value]
                return [fields.aggregate_name(aggregate), key, *rest]
        return []

    def _list_items(
        self, kind: str, aggregate: typing.Any
    ) -> Iterator[tuple[str, str | None]]:
        """Yield keys that may be unset, or the flavor's items to be set."""
        if kind == act.UNSETS:
            for key in aggregate.metadata or ():
                if key != 'availability_zone':
                    yield key, None
            return
        specs = fields.get_field(self.spec_obj.flavor, 'extra_specs') or {}
        for spec, value in specs.items():
            key = spec.removeprefix(f'{aggregate_instance_type.SCOPE}:')
            if ':' not in key:
                yield key, value


def _find_closing(judge: base.Judge, state: typing.Any) -> list[str]:
    """Return the names of aggregates that a host must leave to pass.

    If one aggregate is enough, it is that one. Else the aggregates that the
    policy blames leave one after the other until the host passes. Empty if
    that does not help.
    """
    remaining, names = [*state.aggregates], list[str]()
    while remaining:
        for one in remaining:
            others = [other for other in remaining if other is not one]
            if _judge_in(judge, state, others).passes:
                return [*names, fields.aggregate_name(one)]
        blamed = _judge_in(judge, state, remaining).aggregate
        if blamed not in map(fields.aggregate_name, remaining):
            break
        names.append(blamed)
        remaining = [
            one for one in remaining if fields.aggregate_name(one) != blamed
        ]
    return []


def _find_opening(
    judge: base.Judge, state: typing.Any, known: Sequence[typing.Any]
) -> list[str]:
    """Return the first aggregate that a host can join to pass, or nothing."""
    mine = [aggregate.uuid for aggregate in state.aggregates]
    for aggregate in known[:_MOST_TRIED]:
        if (
            aggregate.uuid not in mine
            and _judge_in(judge, state, [*state.aggregates, aggregate]).passes
        ):
            return [fields.aggregate_name(aggregate)]
    return []


def _judge_in(
    judge: base.Judge, state: typing.Any, aggregates: list[typing.Any]
) -> verdict.Verdict:
    """Judge a host as if it were in these aggregates and no other."""
    other = copy.copy(state)
    other.aggregates = aggregates
    return judge(other)


def _join(names: Sequence[str]) -> str:
    return ' and '.join(map(messages.clean, names))


def refusal(
    policy: declaration.Policy,
    name: str = '',
    detail: str = '',
    lacks: bool = False,
    acts: tuple[act.Act, ...] | None = None,
) -> refusals.Refusal:
    """Return a refusal by a policy; see :class:`.refusals.Refusal`.

    :param name: the aggregate, or another text of the operator, by which
        refusals of one policy are counted
    :param lacks: whether the host is refused because it is in no suitable
        aggregate
    :param acts: acts against it; by default those that the policy declares
    """
    if acts is None:
        acts = policy.acts_lacking if lacks else policy.acts
    rank = refusals.IN_THE_WAY
    if policy in (REQUESTED_HOST, CELL):
        rank = refusals.UNWANTED
    elif policy.closes and not lacks:
        rank = refusals.CLOSED
    return refusals.Refusal(
        policy.lacks if lacks and policy.lacks else policy.refuses,
        policy.name,
        messages.clean(name),
        detail,
        # Nothing lets a server leave its cell, or its group.
        lifts=policy not in (CELL, comparison.KEPT),
        rank=rank,
        acts=acts,
    )


def disabled(service: Mapping[str, typing.Any]) -> refusals.Refusal:
    """Return a refusal by a service that is disabled, with nova's reason.

    :param service: the service of a HostState
    """
    # By an operator, or by nova-compute ("AUTO: ...").
    why = service.get('disabled_reason') or ''
    acts = [act.Act(act.POLICY, _ENABLE_MEANT, act.RUNS, by_command=False)]
    if why.startswith(_BY_NOVA):
        acts = [act.Act(act.REPAIR, _ENABLE, act.RUNS)]
    elif why.startswith(plan_format.DISABLED_FOR):
        # A plan is emptying it: nobody is to enable it.
        acts = []
    return refusal(DISABLED, why, messages.clean(why), acts=tuple(acts))


def refusal_by_resource(
    kind: str,
    resource: str,
    lifts: bool = True,
    acts: tuple[act.Act, ...] = (),
    is_full: bool = False,
) -> refusals.Refusal:
    """Return a refusal by a resource class; see :class:`.refusals.Refusal`."""
    is_known = resource in os_resource_classes.STANDARDS
    label = '' if is_known else 'custom resource'
    return refusals.Refusal(
        kind,
        resource,
        lifts=lifts,
        label=label,
        acts=acts,
        is_full=is_full,
    )


def name_part(part: query.Part) -> tuple[str, str]:
    """Return the cause of refusals by a part, and its label for metrics.

    The cause is empty for parts about no trait: their constraint is it.
    """
    if part.key not in ('required', 'root_required'):
        return '', refusals.OTHER
    value = messages.clean(part.value)
    cause = (
        f'forbidden trait {value[1:]}' if part.forbids else f'trait {value}'
    )
    return cause, 'required traits'
