# SPDX-License-Identifier: Apache-2.0

"""The request filters, and placement: why hosts are no candidates."""

from collections.abc import Iterable
import typing

from nova import exception as nova_exception
import nova.conf
from nova.scheduler import request_filter

from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import query
from nova_ext_sched.cmd.explain import reasons
from nova_ext_sched.request_filters import failure_domains

CONF = nova.conf.CONF


class Placement:
    """What placement is asked for one request, and whom that leaves out.

    Placement's answer to nova's whole query decides. A host that is not in it
    is told by the parts of the query that it does not satisfy; a part is the
    request filter's that added it.

    :param found: gets the constraints
    """

    def __init__(
        self,
        scheduler: nova_scheduler.ReadOnlyHostManager,
        found: funnel.Funnel,
    ) -> None:
        self._scheduler = scheduler
        self._funnel = found
        self._reasons = reasons.Reasons(scheduler.aggs_by_id.values())
        self._providers = query.Providers(scheduler.placement)
        # Hosts that are no candidates.
        self._outside: set[str] = set()

    def ask(
        self, ctxt: typing.Any, spec_obj: typing.Any
    ) -> query.Candidates | None:
        """Run the request filters, ask placement, and add the constraints.

        :param spec_obj: a nova RequestSpec, which changes as in the scheduler
        :returns: placement's answer, None where the request ends before
        """
        candidates = None
        # Of each request filter its name, its effect, and what it added.
        added: list[tuple[str, str, list[query.Part]]] = []
        before = query.get_parts(ctxt, spec_obj, self._scheduler)
        try:
            for filter_ in request_filter.ALL_REQUEST_FILTERS:
                stage, name = 'request filter', _name(filter_)
                effect = _run(filter_, ctxt, spec_obj)
                after = query.get_parts(ctxt, spec_obj, self._scheduler)
                new = [part for part in after if part not in before]
                effect = self._describe(new) or effect
                spread = request_state.spreads.get(spec_obj)
                if filter_ is failure_domains.failure_domains and spread:
                    effect += (
                        f'; servers of the group by failure domain: {spread}'
                    )
                added.append((name, effect, new))
                before = after
            stage, name = 'placement', 'query'
            resources = query.forms(ctxt, spec_obj, self._scheduler)
        except (
            nova_exception.RequestFilterFailed,
            nova_exception.NoValidHost,
        ) as exc:
            end = exc.format_message()
        else:
            candidates = query.Candidates(
                ctxt, self._scheduler.placement, resources
            )
            self._outside = (
                self._scheduler.hosts.keys() - candidates.summaries.keys()
            )
        for filter_name, effect, parts in added:
            self._funnel.add(
                'request filter', filter_name, effect, self._refused(parts)
            )
        if candidates is None:
            self._funnel.end(stage, name, end)
            return None
        filtered = {part for _, _, parts in added for part in parts}
        forms = [
            [
                part
                for part in query.split(form.to_querystring())
                if part not in filtered
            ]
            for form in resources
        ]
        self._add_parts(forms[0], forms[-1])
        self._add_query(ctxt, resources, candidates)
        return candidates

    def _add_parts(
        self, first: list[query.Part], last: list[query.Part]
    ) -> None:
        """Add what the request asks for without the request filters.

        :param first: the parts of the first form of the query
        :param last: those of the second one, where there are two
        """
        if self._outside:
            self._funnel.add(
                'placement',
                'resource provider',
                refused=dict.fromkeys(
                    self._outside - self._providers.roots(),
                    'have no resource provider in placement',
                ),
            )
        for part in query.merge(part for part in first if part in last):
            self._funnel.add(
                'placement',
                self._describe([part]),
                refused=self._refused([part]),
            )
        if first == last:
            return
        # Pinned CPUs: placement is asked for either.
        either = [part for part in first if part not in last]
        other = [part for part in last if part not in first]
        refused, too = self._refused(either), self._refused(other)
        self._funnel.add(
            'placement',
            f'{self._describe(either)} or else {self._describe(other)}',
            'pinned CPUs are requested in two forms',
            {
                uuid: f'{reason} and {too[uuid]}'
                for uuid, reason in refused.items()
                if uuid in too
            },
        )

    def _add_query(
        self,
        ctxt: typing.Any,
        resources: list[typing.Any],
        candidates: query.Candidates,
    ) -> None:
        rest = self._outside & self._funnel.left
        why = 'have no set of providers that fits the query as a whole'
        if candidates.refusals:
            refusals = '; '.join(candidates.refusals)
            why = f'get no candidates: placement answered {refusals}'
        refused = dict.fromkeys(self._outside, "are not in placement's answer")
        refused.update(dict.fromkeys(rest, why))
        text = ' and '.join(form.to_querystring() for form in resources)
        if rest and candidates.is_full:
            limit = CONF.scheduler.max_placement_results
            for form in resources:
                # As nova itself lifts the limit.
                form._limit = None
            more = query.Candidates(
                ctxt, self._scheduler.placement, resources
            ).summaries
            why = f'are cut off by max_placement_results ({limit})'
            refused.update(dict.fromkeys(rest & more.keys(), why))
        self._funnel.add(
            'placement',
            'query as a whole',
            messages.clean(text, len(text)),
            refused,
        )

    def _refused(self, parts: Iterable[query.Part]) -> dict[str, str]:
        """Return the reasons of the hosts outside that lack a part."""
        refused: dict[str, str] = {}
        for part in query.merge(parts) if self._outside else ():
            lacking = self._providers.find_lacking(part, self._outside)
            lacking -= refused.keys()
            if part.key == 'member_of' and part.forbids:
                for uuid in lacking:
                    refused[uuid] = self._reasons.forbidding(
                        self._scheduler.hosts[uuid].host, part
                    )
            else:
                reason = self._reasons.lack(part)
                refused.update(dict.fromkeys(lacking, reason))
        return refused

    def _describe(self, parts: Iterable[query.Part]) -> str:
        return '; '.join(map(self._reasons.describe, query.merge(parts)))


def _name(filter_: typing.Any) -> str:
    # Two packages may have a filter of one name, as we and nova do.
    package = filter_.__module__.partition('.')[0]
    name = messages.clean(filter_.__name__)
    return name if package == 'nova' else f'{name} of {package}'


def _run(filter_: typing.Any, ctxt: typing.Any, spec_obj: typing.Any) -> str:
    """Run a request filter, and return which fields it changed.

    :raises nova.exception.RequestFilterFailed: it ends the request
    :raises nova_scheduler.FilterFailed: it raises anything else
    """
    before = _fields(spec_obj)
    try:
        applied = filter_(ctxt, spec_obj)
    except nova_exception.RequestFilterFailed:
        raise
    except Exception as exc:
        raise nova_scheduler.FilterFailed(
            name=f'request filter {_name(filter_)}',
            cause=messages.describe(exc),
        ) from exc
    changed = sorted(
        field
        for field, value in _fields(spec_obj).items()
        # Reading a field of a nova object may set it.
        if field in before and before[field] != value
    )
    if changed:
        return f'changes {", ".join(changed)}'
    return 'changes nothing' if applied else 'does not apply'


def _fields(spec_obj: typing.Any) -> dict[str, typing.Any]:
    return dict(spec_obj.obj_to_primitive()['nova_object.data'])
