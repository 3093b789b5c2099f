# SPDX-License-Identifier: Apache-2.0

"""Stage 2 of Blazar: judge each host's pools."""

from collections.abc import Iterator
from collections.abc import Sequence
import functools
import typing

from nova_ext_sched import fields
from nova_ext_sched import log_once
from nova_ext_sched.filters import base
from nova_ext_sched.policy import blazar
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import blazar as blazar_request

LOG_ONCE = log_once.LogOnce(__name__)


class BlazarFilter(base.PolicyFilter):
    """Reject hosts of Blazar that the request has not reserved.

    This filter replaces blazar-nova's filter of the same name, with the same
    answers. :mod:`nova_ext_sched.policy.blazar` makes the decision, from the
    aggregates that the scheduler holds in memory. Where blazar-nova's raises,
    because a field of an aggregate or of the request is not there, this one
    rejects the host.

    It does not run on rebuild, because the server stays where it is: when a
    lease ends, Blazar deletes its servers.
    """

    policies = (blazar.DECLARATION,)

    # Neither the aggregates nor the request change within a request.
    run_filter_once_per_request = True

    RUN_ON_REBUILD = False

    def decisions(self, spec_obj: typing.Any) -> Iterator[base.Decision]:
        request = base.compile_request(
            blazar_request.compile_request,
            spec_obj,
            'BlazarFilter rejects every host, because it cannot read which '
            'reservations a request names',
            LOG_ONCE,
        )
        if request is not None:
            judge = functools.partial(_judge, request)
            yield (
                blazar.DECLARATION,
                base.ByAggregates(
                    judge, base.left_out(spec_obj, blazar.DECLARATION)
                ),
            )


def _judge(
    request: typing.Any, aggregates: Sequence[typing.Any]
) -> verdict.Verdict:
    if any(fields.get_field(one, 'name') is None for one in aggregates):
        return verdict.reject(
            'the host is in an aggregate without a name, which may be a pool '
            'of Blazar'
        )
    return request.judge(fields.names_and_metadata(aggregates))
