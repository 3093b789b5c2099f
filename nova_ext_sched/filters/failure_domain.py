# SPDX-License-Identifier: Apache-2.0

"""Stage 2 of failure domains: judge each host's domains."""

from collections.abc import Callable
from collections.abc import Iterable
import typing

import nova.conf

from nova_ext_sched import exception
from nova_ext_sched import log_once
from nova_ext_sched import request_state
from nova_ext_sched.filters import base
from nova_ext_sched.policy import failure_domains as policy
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import fields
from nova_ext_sched.request_filters import failure_domains

CONF = nova.conf.CONF

LOG_ONCE = log_once.LogOnce(__name__)


class FailureDomainFilter(base.AggregatesFilter):
    """Reject hosts in failure domains that are full for the server group.

    This filter replaces vexxhost's filter of the same name, with the same
    hint (``different_failure_domain``).
    :mod:`nova_ext_sched.policy.failure_domains` makes the decision. The
    request filter ``failure_domains`` counts the members on all hosts. If it
    did not run, every host is rejected for a request that asks to be spread.
    Hosts that the scheduler picks for the same request are counted here.

    It does not run on a host that an administrator forced at boot, because
    nova runs no host filter there, nor on rebuild, because the server stays
    where it is.
    """

    # Every server of a request, because each pick counts for the next.
    RUN_ON_REBUILD = False

    refuses_for_group = True

    def filter_all(
        self, filter_obj_list: Iterable[typing.Any], spec_obj: typing.Any
    ) -> list[typing.Any]:
        hosts = list(filter_obj_list)
        spread = request_state.spreads.get(spec_obj)
        if spread is not None:
            _count(spread, hosts, spec_obj.instance_group)
        return super().filter_all(hosts, spec_obj)

    def judge_aggregates(
        self, spec_obj: typing.Any
    ) -> Callable[[list[typing.Any]], verdict.Verdict] | None:
        try:
            if failure_domains.read_limit(spec_obj) is None:
                return None
        except exception.InvalidValue as exc:
            malformed = verdict.reject(str(exc))
            return lambda aggregates: malformed
        spread = request_state.spreads.get(spec_obj)
        if spread is None:
            uncounted = verdict.reject(
                'the members of the server group were not counted: the '
                'request filter failure_domains did not run'
            )
            LOG_ONCE.warning(
                'FailureDomainFilter rejects every host for requests that ask '
                'to be spread over failure domains, because the request '
                'filter failure_domains did not run. Add failure_domains to '
                '[nova_ext_sched] request_filters.'
            )
            return lambda aggregates: uncounted
        return lambda aggregates: spread.judge(
            _read_domains(aggregates, spread.key)
        )


def _count(
    spread: policy.Spread, hosts: list[typing.Any], group: typing.Any
) -> None:
    # nova appends the host of each server that it picks for the request.
    picked = fields.get_field(group, 'hosts') or []
    candidates, counted = request_state.picks.get(spread, (hosts, len(picked)))
    for host in picked[counted:]:
        aggregates = [
            agg
            for state in candidates
            if state.host == host
            for agg in state.aggregates
        ]
        spread.add(_read_domains(aggregates, spread.key))
    request_state.picks[spread] = candidates, len(picked)


def _read_domains(
    aggregates: Iterable[typing.Any], key: str
) -> frozenset[str]:
    return policy.read_domains(
        (fields.aggregate_metadata(agg) for agg in aggregates), key
    )
