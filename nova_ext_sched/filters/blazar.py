# SPDX-License-Identifier: Apache-2.0

"""Stage 2 of Blazar: judge each host's pools."""

from collections.abc import Iterable
from collections.abc import Iterator
import typing

from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched.filters import base
from nova_ext_sched.policy import blazar
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import fields
from nova_ext_sched.request_filters import blazar as blazar_request

LOG_ONCE = log_once.LogOnce(__name__)


class BlazarFilter(base.AggregatesFilter):
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

    def decisions(
        self, spec_obj: typing.Any
    ) -> Iterator[tuple[declaration.Policy, base.Decision]]:
        try:
            request = blazar_request.compile_request(spec_obj)
        except Exception as exc:
            LOG_ONCE.warning(
                f'BlazarFilter rejects every host, because it cannot read '
                f'which reservations a request names: '
                f'{messages.describe(exc)}'
            )
            # Which hosts the request may use is not known, so none.
            unread = 'the reservations of the request cannot be read'
            yield blazar.DECLARATION, lambda _: verdict.reject(unread)
            return
        if request is None:
            return

        def decide(aggregates: base.Described) -> verdict.Verdict:
            if any(None in one for one in aggregates):
                return verdict.reject(
                    'the host is in an aggregate without a name or metadata, '
                    'which may be a pool of Blazar'
                )
            return request.judge(aggregates)

        yield blazar.DECLARATION, decide

    def describe(self, aggregates: Iterable[typing.Any]) -> base.Described:
        return [
            (fields.get_field(one, 'name'), fields.get_field(one, 'metadata'))
            for one in aggregates
        ]
