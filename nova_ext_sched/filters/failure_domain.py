# SPDX-License-Identifier: Apache-2.0

"""Stage 2 of failure domains: judge each host's domains."""

from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import typing

import nova.conf

from nova_ext_sched import exception
from nova_ext_sched import log_once
from nova_ext_sched import request_state
from nova_ext_sched.filters import base
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import failure_domain
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import fields
from nova_ext_sched.request_filters import (
    failure_domain as failure_domain_request,
)

CONF = nova.conf.CONF

LOG_ONCE = log_once.LogOnce(__name__)


class FailureDomainFilter(base.AggregatesFilter):
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
        spread = request_state.spreads.get(spec_obj)
        if spread is not None:
            _count(spread, hosts, spec_obj.instance_group)
        return super().filter_all(hosts, spec_obj)

    def prepare(self, ctxt: typing.Any, spec_obj: typing.Any) -> None:
        request_state.forget(spec_obj)
        # decisions() rejects what is malformed.
        with contextlib.suppress(exception.InvalidValue):
            limit = failure_domain_request.read_limit(spec_obj)
            if limit is not None:
                failure_domain_request.count_members(ctxt, spec_obj, limit)

    def decisions(
        self, spec_obj: typing.Any
    ) -> Iterator[tuple[declaration.Policy, base.Decision]]:
        spread = request_state.spreads.get(spec_obj)
        fault = (
            'the members of the server group were not counted: the request '
            'filter failure_domains did not run'
        )
        try:
            if failure_domain_request.read_limit(spec_obj) is None:
                return
            if spread is None:
                LOG_ONCE.warning(
                    'FailureDomainFilter rejects every host for requests that '
                    'ask to be spread over failure domains, because the '
                    'request filter failure_domains did not run. Add '
                    'failure_domains to [nova_ext_sched] request_filters.'
                )
        except exception.InvalidValue as exc:
            spread, fault = None, str(exc)

        def decide(aggregates: base.Described) -> verdict.Verdict:
            if spread is None:
                return verdict.reject(fault)
            return spread.judge(
                failure_domain.read_domains(
                    (metadata for _, metadata in aggregates), spread.key
                )
            )

        yield failure_domain.DECLARATION, decide


def _count(
    spread: failure_domain.Spread, hosts: list[typing.Any], group: typing.Any
) -> None:
    # nova appends the host of each server that it picks for the request.
    picked = fields.get_field(group, 'hosts') or []
    candidates, counted = request_state.picks.get(spread, (hosts, len(picked)))
    for host in picked[counted:]:
        spread.add(
            failure_domain.read_domains(
                (
                    fields.aggregate_metadata(agg)
                    for state in candidates
                    if state.host == host
                    for agg in state.aggregates
                ),
                spread.key,
            )
        )
    request_state.picks[spread] = candidates, len(picked)
