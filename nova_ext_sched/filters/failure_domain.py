# SPDX-License-Identifier: Apache-2.0

"""Stage 2 of failure domains: judge each host's domains."""

from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import typing

import nova.conf

from nova_ext_sched import exception
from nova_ext_sched import fields
from nova_ext_sched import log_once
from nova_ext_sched import request_state
from nova_ext_sched.filters import base
from nova_ext_sched.policy import failure_domain
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import failure_domain as failure_domain_request

CONF = nova.conf.CONF

LOG_ONCE = log_once.LogOnce(__name__)


class FailureDomainFilter(base.PolicyFilter):
    """Reject hosts in failure domains that are full for the server group.

    This filter replaces vexxhost's filter of the same name, with the same
    hint (``different_failure_domain``).
    :mod:`nova_ext_sched.policy.failure_domain` makes the decision. The
    request filter ``failure_domains`` counts the members on all hosts. If it
    did not run, every host is rejected for a request that asks to be spread.
    Hosts that the scheduler picks for the same request are counted here.

    It does not run on a host that an administrator forced at boot, because
    nova runs no host filter there, nor on rebuild, because the server stays
    where it is.
    """

    policies = (failure_domain.DECLARATION,)

    # Every server of a request, because each pick counts for the next.
    RUN_ON_REBUILD = False

    def filter_all(
        self, filter_obj_list: Iterable[typing.Any], spec_obj: typing.Any
    ) -> list[typing.Any]:
        hosts = list(filter_obj_list)
        _count_picks(spec_obj, hosts)
        return super().filter_all(hosts, spec_obj)

    def prepare(self, ctxt: typing.Any, spec_obj: typing.Any) -> None:
        request_state.forget_group(spec_obj)
        # decisions() rejects what is malformed.
        with contextlib.suppress(exception.InvalidValue):
            limit = failure_domain_request.read_limit(spec_obj)
            if limit is not None:
                failure_domain_request.count_members(ctxt, spec_obj, limit)

    def decisions(self, spec_obj: typing.Any) -> Iterator[base.Decision]:
        spread = request_state.of(spec_obj).group.spread
        fault = (
            'the members of the server group were not counted: the request '
            'filter failure_domains did not run'
        )
        pretends = fields.pretends_rebuild(spec_obj)
        if pretends:
            fault += (
                f', because the server has the scheduler hint '
                f'{fields.CHECK_TYPE}=rebuild'
            )
        try:
            if failure_domain_request.read_limit(spec_obj) is None:
                return
            by_hint = False
            if spread is None and not pretends:
                LOG_ONCE.warning(
                    'FailureDomainFilter rejects every host for requests that '
                    'ask to be spread over failure domains, because the '
                    'request filter failure_domains did not run. Add '
                    'failure_domains to [nova_ext_sched] request_filters.'
                )
        except exception.InvalidValue as exc:
            spread, fault, by_hint = None, str(exc), True

        def decide(aggregates: Iterable[typing.Any]) -> verdict.Verdict:
            if spread is None:
                return verdict.reject(fault, lacks=True, by_hint=by_hint)
            return spread.judge(fields.names_and_metadata(aggregates))

        yield (
            failure_domain.DECLARATION,
            base.ByAggregates(
                decide, base.left_out(spec_obj, failure_domain.DECLARATION)
            ),
        )


def _count_picks(spec_obj: typing.Any, hosts: list[typing.Any]) -> None:
    known = request_state.of(spec_obj).group
    spread = known.spread
    if spread is None:
        return
    picks = request_state.picks(spec_obj)
    if known.candidates is None:
        known.candidates = hosts
    for host in picks[known.counted :]:
        spread.add(
            failure_domain.read_domains(
                (
                    fields.aggregate_metadata(agg)
                    for candidate in known.candidates
                    if candidate.host == host
                    for agg in candidate.aggregates
                ),
                spread.key,
            )
        )
    known.counted = len(picks)
