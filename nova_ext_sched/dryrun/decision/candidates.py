# SPDX-License-Identifier: Apache-2.0

"""Runs request filters, asks placement, and says why hosts are no candidates.

Placement's answer to nova's whole query decides. Of a host that is not in the
answer, the parts of the query say why: it does not satisfy some of them. A
part that a request filter added counts for that filter.
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
class Row:
    """A constraint, and the parts of the query that it consists of."""

    stage: str
    name: str
    asks: str = ''
    parts: list[query.Part] = dataclasses.field(default_factory=list)
    policy: declaration.Policy | None = None


def ask(
    asked: asking.Asking,
    is_limited: bool = True,
    is_bounded: bool = True,
) -> placement.Candidates | None:
    """Run the request filters, ask placement, and add the constraints.

    :param is_limited: whether placement's answer ends at
        ``max_placement_results``, as the scheduler's does
    :param is_bounded: whether it lacks the hosts that placement's own
        ``max_allocation_candidates`` leaves out, as the scheduler's does
    :returns: placement's answer, without hosts that a fork has filled; None
        where the request ends before
    """
    cloud, ctxt, spec_obj = asked.cloud, asked.ctxt, asked.spec_obj
    judged, supposed = asked.matrix, cloud.supposed
    if supposed:
        supposed.correct_group(fields.get_field(spec_obj, 'instance_group'))
    words = reasons.Reasons(cloud, spec_obj)
    rows: list[Row] = []
    try:
        _run_request_filters(asked, words, rows)
        resources = query.forms(ctxt, spec_obj, cloud)
        if not is_limited:
            query.lift_limit(resources)
        answer = (supposed or cloud.providers).get_candidates(ctxt, resources)
        if not is_bounded:
            answer = _lift_bound(asked, resources, answer)
    except (
        nova_exception.RequestFilterFailed,
        nova_exception.NoValidHost,
        placement.QueryRefused,
    ) as exc:
        _stop(asked, rows, exc)
        return None
    attribution = _Attribution(asked, words, resources, answer)
    if judged.whole:
        attribution.add_parts(rows)
    attribution.add_whole()
    if supposed and supposed.ledger.is_changed:
        judged.unknown = supposed.find_unknown(resources)
        return _leave_out_full(supposed, answer, judged)
    return answer


def _lift_bound(
    asked: asking.Asking,
    resources: list[typing.Any],
    answer: placement.Candidates,
) -> placement.Candidates:
    """Add candidates beyond placement's own bound.

    Only placement knows that bound. So a host that satisfies each part
    of the query and is no candidate is asked about alone (``in_tree``).
    """
    cloud, lifted = asked.cloud, copy.copy(answer)
    providers = cloud.providers
    for form in resources:
        group = form.get_request_group(None)
        if group.in_tree:
            continue
        missing = cloud.hosts.keys() - lifted.summaries.keys()
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


def _leave_out_full(
    supposed: fork.Fork, answer: placement.Candidates, judged: matrix.Matrix
) -> placement.Candidates:
    """Add the hosts that a fork has filled; return the other candidates."""
    fitting, full = supposed.leave_out_full(answer)
    # Hosts in the answer are known to fit.
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
    asked: asking.Asking, words: reasons.Reasons, rows: list[Row]
) -> None:
    """Run each request filter, and note the parts that it adds to the query.

    :param rows: gets one for each; the last is the one that raised
    :raises nova.exception.RequestFilterFailed: it ends the request
    :raises reasons.FilterFailed: it raises anything else
    """
    cloud, ctxt, spec_obj = asked.cloud, asked.ctxt, asked.spec_obj
    if not asked.matrix.whole:
        # All at once: the part of each filter is not wanted.
        every = request_filter.process_reqspec
        rows.append(Row('request filter', get_name(every)))
        _run(every, ctxt, spec_obj)
        return
    before = query.get_parts(ctxt, spec_obj, cloud)
    stored = _store(spec_obj)
    for fn in request_filter.ALL_REQUEST_FILTERS:
        policy = reasons.policy_of_request_filter(
            fn, cloud.filter_cls_map.values()
        )
        row = Row('request filter', get_name(fn), policy=policy)
        rows.append(row)
        was, applied = stored, _run(fn, ctxt, spec_obj)
        stored = _store(spec_obj)
        # Most filters change nothing in most requests.
        if stored != was:
            after = query.get_parts(ctxt, spec_obj, cloud)
            row.parts = _find_new(before, after)
            before = after
        row.asks = words.say(row.parts) or say_change(was, stored, applied)
        spread = request_state.of(spec_obj).group.spread
        if fn is failure_domain.failure_domains and spread:
            row.asks += f'; servers of the group by failure domain: {spread}'


def _find_new(
    before: Sequence[query.Part], after: Sequence[query.Part]
) -> list[query.Part]:
    """Return the parts that a request filter added.

    A group to which it adds was there before: it is no part of the filter.
    """
    new = [part for part in after if part not in before]
    groups = [
        sum(part.key == 'group' for part in parts) for parts in (before, after)
    ]
    if groups[0] == groups[1]:
        new = [part for part in new if part.key != 'group']
    return new


def _stop(asked: asking.Asking, rows: list[Row], exc: typing.Any) -> None:
    """Add the request filters, and the constraint that ended the request."""
    judged, ended = asked.matrix, None
    if isinstance(exc, nova_exception.RequestFilterFailed):
        ended = rows.pop()
    for row in rows:
        judged.add(row.stage, row.name, row.asks, judged=())
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

    nova wants a key that begins with its own, and the project's ID as the
    whole value.
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
    """Attributes hosts that are no candidates to the parts that they lack.

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
        # Hosts that placement knows. Nothing is known of others.
        self._known: set[str] = set()
        if self._outside and self._matrix.whole:
            self._known = self._outside & self._providers.roots()
        self._judged = (hosts - self._outside) | self._known
        self._first, self._last = (
            query.split(form.to_querystring())
            for form in (self.resources[0], self.resources[-1])
        )

    def add_parts(self, rows: list[Row]) -> None:
        """Add the constraints that are parts of the query.

        :param rows: those of the request filters
        """
        for row in rows:
            self._add(row)
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
        # The request without the request filters. Where CPUs are
        # pinned, nova sends two forms of the query and a host may pass with
        # either: parts that only one form has count for the whole.
        filtered = {part for row in rows for part in row.parts}
        for part in query.merge(
            part
            for part in self._first
            if part in self._last and part not in filtered
        ):
            name = self.words.say([part])
            self._add(Row('placement', name, parts=[part]))
        self._add_alternatives(filtered)

    def _add_alternatives(self, filtered: Collection[query.Part]) -> None:
        """Add the parts that only one of two forms of the query has.

        A host that lacks some of each is refused by its own form: that with
        dedicated CPUs where it has any, else the other.

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
        # Hosts without a resource class of the form.
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
        other = without[0] - without[1]
        chosen = refused - other, other
        for form, found, hosts in zip(forms, lacking, chosen, strict=True):
            for part in form:
                name = self.words.say([part])
                self._add(
                    Row('placement', name, parts=[part]), hosts & found[part]
                )

    def _list_classes(self) -> set[str]:
        """Return the resource classes of the request, of both forms."""
        return {
            part.value.partition(':')[0]
            for part in (*self._first, *self._last)
            if part.key == 'resources'
        }

    def _add(self, row: Row, hosts: set[str] | None = None) -> None:
        """Add a constraint.

        :param hosts: UUIDs of the only hosts that it may refuse
        """
        refused = self._refuse(row, self._known if hosts is None else hosts)
        capacity, free = None, dict[str, int]()
        if refused and [part.key for part in row.parts] == ['resources']:
            refused, capacity, free = shortage.explain(
                self._providers,
                row.parts[0],
                self._list_classes(),
                refused.keys(),
                len(self._matrix.names),
            )
        self._matrix.add(
            row.stage,
            row.name,
            row.asks,
            refused,
            self._judged,
            capacity,
            free,
        )

    def _refuse(
        self, row: Row, hosts: set[str]
    ) -> dict[str, refusals.Refusal]:
        """Return the refusals of hosts that lack a part, by UUID."""
        refused: dict[str, refusals.Refusal] = {}
        for part in query.merge(row.parts) if hosts else ():
            lacking = self._providers.find_lacking(part, hosts)
            lacking -= refused.keys()
            differing = record.compare(self.words, part, row.policy, lacking)
            refused |= differing
            lacking -= differing.keys()
            if part.key == 'group':
                devices = numbered.explain(
                    self._providers, part, lacking, self._find_alias(part)
                )
                refused |= devices
                lacking -= devices.keys()
            if part.key == 'member_of' and part.forbids:
                refused |= self.words.forbidding(
                    row.name, row.policy, part, lacking
                )
            else:
                known = lacking < hosts or self._providers.knows(part)
                refusal = self.words.lacking(part, row.policy, known)
                if row.stage == 'placement' and not refusal.cause:
                    # A label has no word that a member has written.
                    refusal = refusal._replace(
                        cause=reasons.cause_of(part),
                        label=reasons.label_of(part),
                    )
                refused |= dict.fromkeys(lacking, refusal)
        return refused

    def _find_alias(self, part: query.Part) -> str:
        """Return the PCI alias that a group is of; empty for none."""
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

        It refuses hosts that satisfy each part and are no candidates.
        """
        rest = self._outside & self._matrix.remaining
        kind = 'have no set of providers that fits the whole query'
        if self.answer.refusals:
            refused_it = '; '.join(self.answer.refusals)
            kind = f'get no candidates: placement answered {refused_it}'
        refused = dict.fromkeys(rest, refusals.Refusal(kind))
        # Before the limit is lifted, which changes the forms.
        self._matrix.query = [form.to_querystring() for form in self.resources]
        if rest and self.answer.is_full and self._matrix.whole:
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


def _store(spec_obj: typing.Any) -> dict[str, typing.Any]:
    """Return the fields of a request that are set, as nova stores them."""
    found: dict[str, typing.Any] = spec_obj.obj_to_primitive()[
        'nova_object.data'
    ]
    return found


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
