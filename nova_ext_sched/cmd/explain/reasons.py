# SPDX-License-Identifier: Apache-2.0

"""Why a host is not among those that satisfy a part of the query."""

from collections.abc import Callable
from collections.abc import Mapping
import functools
import typing

from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import causes
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import query
from nova_ext_sched.filters import isolated_aggregates
from nova_ext_sched.policy import failure_domains
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import fields
from nova_ext_sched.request_filters import blazar_reservations

_DISABLED = 'COMPUTE_STATUS_DISABLED'

# Judges the name and metadata of each aggregate of a host.
Decision = Callable[[list[tuple[str, Mapping[str, str]]]], verdict.Verdict]


class Reasons:
    """Words for parts of the query, with the names of nova's aggregates.

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

    def lacking(self, part: query.Part, cause: str = '') -> funnel.Refusal:
        """Return why hosts are refused that do not satisfy a part.

        :param cause: of the request filter that added it
        """
        value = messages.clean(part.value)
        if part.key == 'resources':
            resource = value.partition(':')[0]
            return funnel.Refusal(f'lack {resource}', resource)
        if part.key == 'member_of':
            return funnel.Refusal(
                f'are in none of the aggregates {self._names(part)}', cause
            )
        if part.key == 'in_tree':
            return funnel.Refusal(
                'are not the requested host', causes.REQUESTED_HOST
            )
        if part.key == 'group':
            return funnel.Refusal(
                f'lack a provider for group {messages.clean(str(part))}', cause
            )
        if part.value == f'!{_DISABLED}':
            return funnel.Refusal('are disabled', causes.DISABLED)
        if not part.forbids:
            return funnel.Refusal(f'lack the trait {value}', cause)
        if cause == causes.ISOLATION:
            return funnel.Refusal(
                causes.KINDS[cause],
                cause,
                detail=f'they have the trait {value[1:]}, which the request '
                f'does not require (forbid_by_trait)',
            )
        return funnel.Refusal(f'have the forbidden trait {value[1:]}', cause)

    def forbidding(
        self, name: str, cause: str, part: query.Part
    ) -> Callable[[str], funnel.Refusal]:
        """Return what says why forbidden aggregates keep a host out.

        :param name: of the request filter that forbade the aggregates
        :param cause: of it; empty for its name
        :param part: forbids aggregates
        :returns: takes the host's name
        """
        forbidden = {uuid.lower() for uuid in part.aggregates}
        kind = causes.KINDS.get(
            cause, f'are in an aggregate that {messages.clean(name)} forbids'
        )
        decide = self._compile(cause)

        @functools.cache
        def refuse(uuids: tuple[str, ...]) -> funnel.Refusal:
            found = [self._aggregates[uuid] for uuid in uuids]
            if not found:
                return funnel.Refusal(
                    kind, cause, detail='by an aggregate only placement knows'
                )
            described = fields.names_and_metadata(found)
            detail = ''
            if decide is not None:
                # The policy's own words about the first one.
                detail = decide(described[:1]).reason
            return funnel.Refusal(
                kind, cause, messages.clean(described[0][0]), detail
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

    def _compile(self, cause: str) -> Decision | None:
        judge = isolated_aggregates.IsolatedAggregatesFilter()
        if cause == causes.ISOLATION:
            return judge.compile_isolation(self._spec_obj)
        if cause == causes.RESERVATION:
            return judge.compile_reservation(self._spec_obj)
        if cause == causes.BLAZAR:
            request = blazar_reservations.compile_request(self._spec_obj)
            return None if request is None else request.judge
        spread = request_state.spreads.get(self._spec_obj)
        if cause == causes.FAILURE_DOMAINS and spread is not None:
            return lambda aggregates: spread.judge(
                failure_domains.read_domains(
                    (metadata for _, metadata in aggregates), spread.key
                )
            )
        return None

    def _names(self, part: query.Part) -> str:
        known = self._aggregates
        return messages.first_few(
            sorted(
                known[uuid.lower()].name if uuid.lower() in known else uuid
                for uuid in part.aggregates
            )
        )
