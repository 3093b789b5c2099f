# SPDX-License-Identifier: Apache-2.0

"""The request filters, and placement: why hosts are no candidates."""

from collections.abc import Iterable
import dataclasses
import typing

from nova import exception as nova_exception
import nova.conf
from nova.scheduler import request_filter

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import policies
from nova_ext_sched.cmd.explain import query
from nova_ext_sched.cmd.explain import reasons
from nova_ext_sched.cmd.explain import shortage
from nova_ext_sched.policy import declaration
from nova_ext_sched.request_filters import failure_domain

CONF = nova.conf.CONF


class Row(typing.NamedTuple):
    """A constraint, and the parts of the query that it consists of."""

    stage: str
    name: str
    asks: str
    parts: list[query.Part]
    policy: declaration.Policy | None = None


@dataclasses.dataclass
class Placement:
    """What placement is asked for one request, and whom that leaves out.

    Placement's answer to nova's whole query decides. Of a host that is not in
    the answer, the parts of the query say why: it does not satisfy some of
    them. A part that a request filter added counts for that filter.

    :param found: gets the constraints
    :param providers: what placement said of them; one that several requests
        share is asked each part once
    :param is_limited: whether placement's answer ends at
        ``max_placement_results``, as the scheduler's does
    """

    scheduler: nova_scheduler.ReadOnlyHostManager
    found: funnel.Funnel
    providers: query.Providers | None = None
    is_limited: bool = True

    def __post_init__(self) -> None:
        self._providers = self.providers or query.Providers(
            self.scheduler.placement
        )
        self._reasons: reasons.Reasons
        # Hosts that are no candidates, and of these those that placement
        # knows: the parts are asked about them.
        self._outside: set[str] = set()
        self._asked: set[str] = set()
        # Whom the parts judge. Of a host that placement does not know nothing
        # can be said.
        self._judged: set[str] = set()
        # The resource classes of the request.
        self._classes: set[str] = set()

    def ask(
        self, ctxt: typing.Any, spec_obj: typing.Any
    ) -> query.Candidates | None:
        """Run the request filters, ask placement, and add the constraints.

        :param spec_obj: a nova RequestSpec, which changes as in the scheduler
        :returns: placement's answer, None where the request ends before
        """
        self._reasons = reasons.Reasons(self.scheduler, spec_obj)
        rows: list[Row] = []
        request_filters = request_filter.ALL_REQUEST_FILTERS
        if not self.found.whole:
            # All at once: nobody asks which one added what.
            request_filters = [request_filter.process_reqspec]
        before = query.get_parts(ctxt, spec_obj, self.scheduler)
        end, name, policy = None, '', None
        try:
            for filter_ in request_filters:
                name = get_name(filter_)
                policy = policies.of_request_filter(
                    filter_, self.scheduler.filter_cls_map.values()
                )
                asks = _run(filter_, ctxt, spec_obj)
                after = query.get_parts(ctxt, spec_obj, self.scheduler)
                new = [part for part in after if part not in before]
                asks = self._describe(new) or asks
                spread = request_state.spreads.get(spec_obj)
                if filter_ is failure_domain.failure_domains and spread:
                    asks += (
                        f'; servers of the group by failure domain: {spread}'
                    )
                rows.append(Row('request filter', name, asks, new, policy))
                before = after
            resources = query.forms(ctxt, spec_obj, self.scheduler)
            if not self.is_limited:
                query.lift_limit(resources)
            candidates = self._providers.get_candidates(ctxt, resources)
        except (
            nova_exception.RequestFilterFailed,
            nova_exception.NoValidHost,
            nova_scheduler.QueryRefused,
        ) as exc:
            end = exc
        else:
            hosts = self.scheduler.hosts.keys()
            self._outside = hosts - candidates.summaries.keys()
            if self._outside and self.found.whole:
                self._asked = self._outside & self._providers.roots()
            self._judged = hosts - (self._outside - self._asked)
        for row in rows:
            self._add(row)
        if end is not None:
            self._stop(end, name, policy)
            return None
        if self._outside and self.found.whole:
            self.found.add(
                'placement',
                'resource provider',
                refused=dict.fromkeys(
                    self._outside - self._asked,
                    funnel.Refusal('have no resource provider in placement'),
                ),
            )
        # What the request asks for without the request filters, in the first
        # form of the query and in the last.
        filtered = {part for row in rows for part in row.parts}
        first, last = (
            [
                part
                for part in query.split(form.to_querystring())
                if part not in filtered
            ]
            for form in (resources[0], resources[-1])
        )
        self._classes = {
            part.value.partition(':')[0]
            for part in (*first, *last)
            if part.key == 'resources'
        }
        for part in query.merge(part for part in first if part in last):
            self._add(Row('placement', self._describe([part]), '', [part]))
        if first != last:
            self._add_pinned(
                [part for part in first if part not in last],
                [part for part in last if part not in first],
            )
        self._add_query(ctxt, resources, candidates)
        return candidates

    def _add(self, row: Row) -> None:
        refused, capacity = self._refused(row), None
        if refused and [part.key for part in row.parts] == ['resources']:
            refused, capacity = shortage.explain(
                self._providers,
                row.parts[0],
                self._classes,
                refused.keys(),
                len(self.found.hosts),
            )
        self.found.add(
            row.stage, row.name, row.asks, refused, self._judged, capacity
        )

    def _stop(
        self, exc: Exception, name: str, policy: declaration.Policy | None
    ) -> None:
        """Add what ended the request.

        :param name: of the request filter that ran last; ``policy`` too
        """
        stage, detail, cause = 'placement', '', ''
        if isinstance(exc, nova_scheduler.QueryRefused):
            name, detail = 'query length', exc.cause
        elif isinstance(exc, nova_exception.NoValidHost):
            name = 'query'
        else:
            stage, cause = 'request filter', policy.name if policy else ''
            self.found.failure = exc.__cause__
            if isinstance(exc.__cause__, exception.RequestRefused):
                detail = exc.__cause__.detail
                self.found.failure = exc.__cause__.__cause__
        self.found.stop(stage, name, get_reason(exc), detail, cause)

    def _add_pinned(
        self, either: list[query.Part], other: list[query.Part]
    ) -> None:
        """Add what placement is asked for in one of two forms."""
        row = Row(
            'placement',
            f'{self._describe(either)} or else {self._describe(other)}',
            'pinned CPUs are requested in two forms',
            either,
        )
        refused = self._refused(row)
        too = self._refused(row._replace(parts=other))
        self.found.add(
            *row[:3],
            {
                uuid: funnel.Refusal(
                    f'{refusal.kind} and {too[uuid].kind}', 'pinned CPUs'
                )
                for uuid, refusal in refused.items()
                if uuid in too
            },
            self._judged,
        )

    def _add_query(
        self,
        ctxt: typing.Any,
        resources: list[typing.Any],
        candidates: query.Candidates,
    ) -> None:
        # Hosts that satisfy each part, and not the whole.
        rest = self._outside.difference(
            *(one.refused for one in self.found.constraints)
        )
        kind = 'have no set of providers that fits the query as a whole'
        if candidates.refusals:
            refusals = '; '.join(candidates.refusals)
            kind = f'get no candidates: placement answered {refusals}'
        refused = dict.fromkeys(rest, funnel.Refusal(kind))
        if rest and candidates.is_full and self.found.whole:
            limit = CONF.scheduler.max_placement_results
            query.lift_limit(resources)
            more = self._providers.get_candidates(ctxt, resources).summaries
            cut = funnel.Refusal(
                f'are cut off by max_placement_results ({limit})',
                'max_placement_results',
            )
            refused.update(dict.fromkeys(rest & more.keys(), cut))
        self.found.query = [form.to_querystring() for form in resources]
        self.found.add(
            'placement',
            'query as a whole',
            'all of the above at once',
            refused,
            judged=(self.scheduler.hosts.keys() - self._outside) | rest,
        )

    def _refused(self, row: Row) -> dict[str, funnel.Refusal]:
        """Return the reasons of the hosts outside that lack a part."""
        refused: dict[str, funnel.Refusal] = {}
        for part in query.merge(row.parts) if self._asked else ():
            lacking = self._providers.find_lacking(part, self._asked)
            lacking -= refused.keys()
            if part.key == 'member_of' and part.forbids:
                refused |= self._reasons.forbidding(
                    row.name, row.policy, part, lacking
                )
            else:
                known = lacking < self._asked or self._providers.knows(part)
                refusal = self._reasons.lacking(part, row.policy, known)
                refused.update(dict.fromkeys(lacking, refusal))
        return refused

    def _describe(self, parts: Iterable[query.Part]) -> str:
        return '; '.join(map(self._reasons.describe, query.merge(parts)))


def get_reason(exc: typing.Any) -> str:
    """Return the reason of an exception, without nova's words around it.

    :param exc: ``RequestFilterFailed``, ``NoValidHost`` or the like
    """
    if isinstance(exc, nova_scheduler.QueryRefused):
        return exc.reason
    return str(exc.kwargs.get('reason') or exc.format_message())


def get_name(filter_: typing.Any) -> str:
    # Two packages may have a filter of one name, as we and nova do.
    package = filter_.__module__.partition('.')[0]
    name = messages.clean(filter_.__name__)
    return name if package == 'nova' else f'{name} of {package}'


def _run(filter_: typing.Any, ctxt: typing.Any, spec_obj: typing.Any) -> str:
    """Run a request filter, and return which fields it changed.

    :raises nova.exception.RequestFilterFailed: it ends the request
    :raises nova_scheduler.FilterFailed: it raises anything else
    """
    before = spec_obj.obj_to_primitive()['nova_object.data']
    try:
        applied = filter_(ctxt, spec_obj)
    except nova_exception.RequestFilterFailed:
        raise
    except Exception as exc:
        raise nova_scheduler.FilterFailed(
            name=f'request filter {get_name(filter_)}',
            cause=messages.describe(exc),
        ) from exc
    after = spec_obj.obj_to_primitive()['nova_object.data']
    changed = sorted(
        field
        for field, value in after.items()
        # Reading a field of a nova object may set it.
        if field in before and before[field] != value
    )
    if changed:
        return f'changes {", ".join(changed)}'
    return 'changes nothing' if applied else 'does not apply'
