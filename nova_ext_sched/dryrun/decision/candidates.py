# SPDX-License-Identifier: Apache-2.0

"""Runs request filters, asks placement, and says why hosts are no candidates.

Placement's answer to nova's whole query decides. A host outside the answer is
refused by the parts of the query that it does not satisfy. A part that a
request filter added is reported as that filter.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import copy
import dataclasses
import typing

from nova import exception as nova_exception
import nova.conf
from nova.scheduler import request_filter

from nova_ext_sched import exception
from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.decision import asking
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import numbered
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import record
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.decision import shortage
from nova_ext_sched.policy import act
from nova_ext_sched.policy import declaration
from nova_ext_sched.request_filters import failure_domain

CONF = nova.conf.CONF


@dataclasses.dataclass
class ConstraintParts:
    """A constraint, and the parts of the query that it consists of."""

    stage: str
    name: str
    asks: str = ''
    parts: list[query.Part] = dataclasses.field(default_factory=list)
    policy: declaration.Policy | None = None


def ask(
    asked: asking.Asking,
    with_scheduler_limit: bool = True,
    with_placement_limit: bool = True,
) -> placement.Candidates | None:
    """Run the request filters, ask placement, and add the constraints.

    :param with_scheduler_limit: whether to ask for at most
        ``max_placement_results`` candidates, as the scheduler does
    :param with_placement_limit: whether to lack, as the scheduler does, the
        hosts that placement's own ``max_allocation_candidates`` leaves out
    :returns: placement's answer, without hosts that a fork has filled; None
        if the request ends before
    """
    cloud, ctxt, spec_obj = asked.cloud, asked.ctxt, asked.spec_obj
    judged, open_fork = asked.matrix, cloud.open_fork
    if open_fork:
        open_fork.correct_group(fields.get_field(spec_obj, 'instance_group'))
    words = reasons.Reasons(cloud, spec_obj)
    constraints: list[ConstraintParts] = []
    try:
        _run_request_filters(asked, words, constraints)
        resources = query.forms(ctxt, spec_obj, cloud)
        if not with_scheduler_limit:
            query.lift_limit(resources)
        answer = (open_fork or cloud.providers).get_candidates(ctxt, resources)
        if not with_placement_limit:
            answer = _lift_bound(asked, resources, answer)
    except (
        nova_exception.RequestFilterFailed,
        nova_exception.NoValidHost,
        placement.QueryRefused,
    ) as exc:
        _stop(asked, constraints, exc)
        return None
    attribution = _Attribution(asked, words, resources, answer)
    if judged.with_reasons:
        attribution.add_parts(constraints)
    attribution.add_whole()
    if open_fork and open_fork.ledger.is_changed:
        judged.unknown = open_fork.find_unknown(resources)
        return _refuse_full(open_fork, answer, judged)
    return answer


def _lift_bound(
    asked: asking.Asking,
    resources: list[typing.Any],
    answer: placement.Candidates,
) -> placement.Candidates:
    """Add candidates beyond placement's own limit.

    Only placement knows that limit. So it is asked alone (``in_tree``) about
    each host that satisfies every part of the query and is no candidate.
    """
    cloud, lifted = asked.cloud, copy.copy(answer)
    providers = cloud.providers
    for form in resources:
        group = form.get_request_group(None)
        if group.in_tree:
            continue
        missing = cloud.nodes.keys() - lifted.summaries.keys()
        missing = missing and missing & providers.roots()
        for part in query.merge(query.split(form.to_querystring())):
            if missing:
                missing -= providers.find_lacking(part, missing)
        for uuid in sorted(missing):
            group.in_tree = uuid
            more = providers.get_candidates(asked.ctxt, [form])
            lifted.requests = [*lifted.requests, *more.requests]
            lifted.summaries = lifted.summaries | more.summaries
            lifted.is_lifted |= bool(more.requests)
        group.in_tree = None
    return lifted


def _refuse_full(
    open_fork: fork.Fork, answer: placement.Candidates, judged: matrix.Matrix
) -> placement.Candidates:
    """Refuse the hosts that a fork has filled.

    :returns: the candidates that still fit
    """
    fitting, full = open_fork.leave_out_full(answer)
    # Hosts with a fitting candidate are known to have room.
    judged.unknown -= query.by_provider(fitting.requests).keys()
    judged.add(
        'placement',
        'moves before this one',
        refused={
            uuid: refusals.NOT_KNOWN
            if uuid in judged.unknown
            else refusals.full(names)
            for uuid, names in full.items()
        },
    )
    if names := sorted(judged.names[one] for one in judged.unknown):
        judged.remarks.append(
            f'Whether {messages.first_few(names)} '
            f'{messages.agree(len(names), "has", "have")} room is not known, '
            'because servers left and the request has numbered resource '
            'groups.'
        )
    return fitting


def _run_request_filters(
    asked: asking.Asking,
    words: reasons.Reasons,
    constraints: list[ConstraintParts],
) -> None:
    """Run each request filter, and note the parts that it adds to the query.

    :param constraints: gets one for each request filter; the last is the one
        that raised
    :raises nova.exception.RequestFilterFailed: a filter ended the request
    :raises reasons.FilterFailed: a filter raised anything else
    """
    cloud, ctxt, spec_obj = asked.cloud, asked.ctxt, asked.spec_obj
    if not asked.matrix.with_reasons:
        # All at once, because nobody asks what each filter does.
        every = request_filter.process_reqspec
        constraints.append(ConstraintParts('request filter', get_name(every)))
        _run(every, ctxt, spec_obj)
        return
    before = query.get_parts(ctxt, spec_obj, cloud)
    stored = _to_primitive(spec_obj)
    for fn in request_filter.ALL_REQUEST_FILTERS:
        policy = reasons.policy_of_request_filter(
            fn, cloud.filter_cls_map.values()
        )
        constraint = ConstraintParts(
            'request filter', get_name(fn), policy=policy
        )
        constraints.append(constraint)
        was, applied = stored, _run(fn, ctxt, spec_obj)
        stored = _to_primitive(spec_obj)
        # Most filters change nothing in most requests.
        if stored != was:
            after = query.get_parts(ctxt, spec_obj, cloud)
            constraint.parts = _find_new(before, after)
            before = after
        constraint.asks = words.say(constraint.parts) or say_change(
            was, stored, applied
        )
        spread = request_state.of(spec_obj).group.spread
        if fn is failure_domain.failure_domains and spread:
            constraint.asks += (
                f'; servers of the group by failure domain: {spread}'
            )


def _find_new(
    before: Sequence[query.Part], after: Sequence[query.Part]
) -> list[query.Part]:
    """Return the parts that a request filter added.

    A resource group that the filter only extended counts as there before.
    """
    new = [part for part in after if part not in before]
    groups = [
        sum(part.key == 'group' for part in parts) for parts in (before, after)
    ]
    if groups[0] == groups[1]:
        new = [part for part in new if part.key != 'group']
    return new


def _stop(
    asked: asking.Asking, constraints: list[ConstraintParts], exc: typing.Any
) -> None:
    """Add the request filters, and the constraint that ended the request."""
    judged, ended = asked.matrix, None
    if isinstance(exc, nova_exception.RequestFilterFailed):
        ended = constraints.pop()
    for constraint in constraints:
        judged.add(
            constraint.stage, constraint.name, constraint.asks, judged=()
        )
    if isinstance(exc, placement.QueryRefused):
        judged.stop('placement', exc.kind, exc.reason, exc.detail)
    elif ended is None:
        judged.stop('placement', 'query', get_reason(exc))
    else:
        judged.failure, detail = exc.__cause__, ''
        if isinstance(judged.failure, exception.RequestRefused):
            detail = judged.failure.detail
            judged.failure = judged.failure.__cause__
        elif ended.policy is reasons.TENANT:
            detail = _say_confined(asked)
        cause = ended.policy.name if ended.policy else ''
        judged.stop(ended.stage, ended.name, get_reason(exc), detail, cause)


def _say_confined(asked: asking.Asking) -> str:
    """Describe why no aggregate is the project's, and near misses.

    nova matches keys that begin with ``filter_tenant_id``, and values that
    equal the project's ID.
    """
    key = request_filter.TENANT_METADATA_KEY
    project = asked.spec_obj.project_id
    said = f'no aggregate has {key} of project {messages.clean(project)}'
    near = sorted(
        f'aggregate {messages.clean(aggregate.name)} has '
        f'{messages.quoted(name)} {messages.quoted(value)}'
        for aggregate in asked.cloud.aggs_by_id.values()
        for name, value in aggregate.metadata.items()
        if project and project in value
    )
    return f'{said}; {messages.first_few(near, show=str)}' if near else said


@dataclasses.dataclass
class _Attribution:
    """Finds the parts of the query that refuse hosts outside the answer.

    :param resources: the queries to placement (:func:`.query.forms`)
    :param answer: placement's answer
    """

    asked: asking.Asking
    words: reasons.Reasons
    resources: list[typing.Any]
    answer: placement.Candidates

    def __post_init__(self) -> None:
        self._matrix = self.asked.matrix
        self._providers = self.asked.cloud.providers
        hosts = self._matrix.names.keys()
        self._outside = hosts - self.answer.summaries.keys()
        # Hosts outside the answer that placement knows; it has no provider
        # of the others. Empty if nobody asks for reasons.
        self._known: set[str] = set()
        if self._outside and self._matrix.with_reasons:
            self._known = self._outside & self._providers.roots()
        # The hosts that a part can be asked about.
        self._judged = (hosts - self._outside) | self._known
        # The parts of the form with PCPU and of that with VCPU; equal if the
        # query has one form.
        self._first, self._last = (
            query.split(form.to_querystring())
            for form in (self.resources[0], self.resources[-1])
        )

    def add_parts(self, constraints: list[ConstraintParts]) -> None:
        """Add the constraints that are parts of the query.

        :param constraints: the request filters, with the parts they added
        """
        for constraint in constraints:
            self._add(constraint)
        if self._outside:
            unknown = refusals.Refusal(
                'have no resource provider in placement',
                acts=reasons.NO_SERVICE.acts,
            )
            self._matrix.add(
                'placement',
                'resource provider',
                refused=dict.fromkeys(self._outside - self._known, unknown),
            )
        # Now the parts that no request filter added. Where CPUs are pinned,
        # nova sends two forms of the query and a host may pass with either:
        # parts of only one form follow in _add_alternatives.
        filtered = {
            part for constraint in constraints for part in constraint.parts
        }
        for part in query.merge(
            part
            for part in self._first
            if part in self._last and part not in filtered
        ):
            name = self.words.say([part])
            self._add(ConstraintParts('placement', name, parts=[part]))
        self._add_alternatives(filtered)

    def _add_alternatives(self, filtered: Collection[query.Part]) -> None:
        """Add the parts that only one of two forms of the query has.

        A host that fails both forms is refused by only one of them: by the
        form with VCPU if it has VCPUs and no PCPUs, else by that with PCPU.

        :param filtered: the parts of request filters
        """
        forms = [
            [part for part in parts if part not in (*others, *filtered)]
            for parts, others in (
                (self._first, self._last),
                (self._last, self._first),
            )
        ]
        lacking = [
            {
                part: self._providers.find_lacking(part, self._known)
                for part in form
            }
            for form in forms
        ]
        refused = set.intersection(
            *(set[str]().union(*one.values()) for one in lacking)
        )
        if not refused:
            return
        # Hosts that have no inventory of a resource class, for each form.
        without = [
            set[str]().union(
                *(
                    shortage.find_without(
                        self._providers, part, self._list_classes(), refused
                    )
                    for part in form
                    if part.key == 'resources'
                )
            )
            for form in forms
        ]
        without_pcpu = without[0] - without[1]
        # The hosts that each form refuses, in the order of the forms.
        hosts_of_form = refused - without_pcpu, without_pcpu
        for form, without_part, hosts in zip(
            forms, lacking, hosts_of_form, strict=True
        ):
            for part in form:
                name = self.words.say([part])
                self._add(
                    ConstraintParts('placement', name, parts=[part]),
                    hosts & without_part[part],
                )

    def _list_classes(self) -> set[str]:
        """Return the resource classes of the request, of both forms."""
        return {
            part.value.partition(':')[0]
            for part in (*self._first, *self._last)
            if part.key == 'resources'
        }

    def _add(
        self, constraint: ConstraintParts, hosts: set[str] | None = None
    ) -> None:
        """Add a constraint.

        :param hosts: UUIDs of the only hosts that it may refuse
        """
        refused = self._refuse(
            constraint, self._known if hosts is None else hosts
        )
        capacity, free = None, dict[str, int]()
        if refused and [part.key for part in constraint.parts] == [
            'resources'
        ]:
            refused, capacity, free = shortage.explain(
                self._providers,
                constraint.parts[0],
                self._list_classes(),
                refused.keys(),
                len(self._matrix.names),
            )
        self._matrix.add(
            constraint.stage,
            constraint.name,
            constraint.asks,
            refused,
            self._judged,
            capacity,
            free,
        )

    def _refuse(
        self, constraint: ConstraintParts, hosts: set[str]
    ) -> dict[str, refusals.Refusal]:
        """Return the refusals of hosts that lack a part, by UUID."""
        refused: dict[str, refusals.Refusal] = {}
        for part in query.merge(constraint.parts) if hosts else ():
            lacking = self._providers.find_lacking(part, hosts)
            is_satisfied = lacking < hosts
            lacking -= refused.keys()
            # Hosts that nova knows otherwise than placement.
            outdated = record.compare(
                self.words, part, constraint.policy, lacking
            )
            refused |= outdated
            lacking -= outdated.keys()
            if part.key == 'group':
                devices = numbered.explain(
                    self._providers, part, lacking, self._find_alias(part)
                )
                refused |= devices
                lacking -= devices.keys()
            if part.key == 'member_of' and part.forbids:
                refused |= self.words.refuse_forbidden(
                    constraint.name, constraint.policy, part, lacking
                )
            else:
                # If any host satisfies the part, placement knows its trait.
                known = is_satisfied or self._providers.knows(part)
                refusal = self.words.refuse_lacking(
                    part, constraint.policy, known
                )
                if constraint.stage == 'placement' and not refusal.cause:
                    # Metric labels contain no text that users have written.
                    cause, label = reasons.name_part(part)
                    refusal = refusal._replace(cause=cause, label=label)
                refused |= dict.fromkeys(lacking, refusal)
        return refused

    def _find_alias(self, part: query.Part) -> str:
        """Return the PCI alias that a group stands for; empty for none."""
        spec_obj = self.asked.spec_obj
        requests = fields.get_field(spec_obj, 'pci_requests')
        aliases = {
            one.request_id: one.alias_name
            for one in (requests.requests if requests else ())
        }
        wanted = dict(part.group).get('resources')
        for group in spec_obj.requested_resources or ():
            asked = [f'{name}:{n}' for name, n in group.resources.items()]
            request_id = (group.requester_id or '').rpartition('-')[0]
            if [wanted] == asked and aliases.get(request_id):
                return str(aliases[request_id])
        return ''

    def add_whole(self) -> None:
        """Add the query as a whole.

        It refuses the hosts that satisfy each part and are no candidates.
        """
        rest = self._outside & self._matrix.remaining
        kind = 'have no set of providers that fits the whole query'
        if self.answer.refusals:
            refused_it = '; '.join(self.answer.refusals)
            kind = f'get no candidates: placement answered {refused_it}'
        refused = dict.fromkeys(rest, refusals.Refusal(kind))
        # Before the limit is lifted, which changes the forms.
        self._matrix.query = [form.to_querystring() for form in self.resources]
        if rest and self.answer.is_full and self._matrix.with_reasons:
            limit = CONF.scheduler.max_placement_results
            query.lift_limit(self.resources)
            more = self._providers.get_candidates(
                self.asked.ctxt, self.resources
            )
            cut = refusals.Refusal(
                f'are cut off by max_placement_results ({limit})',
                'max_placement_results',
                acts=(
                    act.raise_option(
                        'scheduler',
                        'max_placement_results',
                        len(more.requests),
                    ),
                ),
            )
            refused |= dict.fromkeys(rest & more.summaries.keys(), cut)
        self._matrix.add(
            'placement',
            'query as a whole',
            'all of the above at once',
            refused,
            judged=(self._matrix.names.keys() - self._outside) | rest,
        )


def get_reason(exc: typing.Any) -> str:
    """Return the reason of an exception, without nova's words around it.

    :param exc: ``RequestFilterFailed``, ``NoValidHost`` or the like
    """
    return str(exc.kwargs.get('reason') or exc.format_message())


def get_name(filter_: typing.Any) -> str:
    # Two packages may have a filter of one name, as we and nova do.
    package = filter_.__module__.partition('.')[0]
    name = messages.clean(filter_.__name__)
    return name if package == 'nova' else f'{name} of {package}'


def _run(filter_: typing.Any, ctxt: typing.Any, spec_obj: typing.Any) -> bool:
    """Run a request filter, and return whether it applies."""
    try:
        return bool(filter_(ctxt, spec_obj))
    except nova_exception.RequestFilterFailed:
        raise
    except Exception as exc:
        raise reasons.FilterFailed(
            name=f'request filter {get_name(filter_)}',
            cause=messages.say_error(exc),
        ) from exc


def _to_primitive(spec_obj: typing.Any) -> dict[str, typing.Any]:
    """Return the fields of a request that are set, as nova stores them."""
    return dict(spec_obj.obj_to_primitive()['nova_object.data'])


def say_change(
    before: Mapping[str, typing.Any],
    after: Mapping[str, typing.Any],
    applied: bool,
) -> str:
    """Return which fields of a request a filter changed.

    :param before: as nova stores them; ``after`` too
    :param applied: whether the filter says that it applies
    """
    changed = sorted(
        field
        for field, value in after.items()
        # Reading a field of a nova object may set it.
        if field in before and before[field] != value
    )
    if changed:
        return f'changes {", ".join(changed)}'
    return 'changes nothing' if applied else 'does not apply'
