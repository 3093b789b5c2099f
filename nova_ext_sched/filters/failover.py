# SPDX-License-Identifier: Apache-2.0

"""Stage 2 of failover hosts: judge each host's aggregates."""

from collections.abc import Iterator
from collections.abc import Mapping
import functools
import operator
import typing

import nova.conf

from nova_ext_sched import fields
from nova_ext_sched import request_state
from nova_ext_sched.filters import base
from nova_ext_sched.policy import failover
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import failover as asked

CONF = nova.conf.CONF


class FailoverHostsFilter(base.PolicyFilter):
    """Reject hosts that are kept for failures, but for evacuations.

    :mod:`nova_ext_sched.policy.failover` makes the decision, from the
    aggregates that the scheduler holds in memory. The request filter
    ``failover_hosts`` says whether the request is an evacuation; where it did
    not run, no request is one.

    It does not run on rebuild, because the server stays where it is. Does
    nothing unless ``enable_failover_hosts`` is on.
    """

    policies = (failover.DECLARATION,)

    # Neither the aggregates nor the request change within a request.
    run_filter_once_per_request = True

    RUN_ON_REBUILD = False

    def prepare(self, ctxt: typing.Any, spec_obj: typing.Any) -> None:
        request_state.of(spec_obj).judge_standing = functools.partial(
            asked.judge_standing, ctxt, spec_obj
        )

    def decisions(self, spec_obj: typing.Any) -> Iterator[base.Decision]:
        ours = CONF.nova_ext_sched
        move = asked.known_move(spec_obj)
        if not ours.enable_failover_hosts or failover.is_taken(
            move, ours.failover_takes
        ):
            return
        key = ours.failover_key

        def read(_: typing.Any, metadata: Mapping[str, str]) -> int:
            return failover.read_mark(metadata, key)

        judge = base.ByEachAggregate(
            read,
            operator.not_,
            lambda aggregates: failover.judge(
                fields.names_and_metadata(aggregates), key
            ),
            base.left_out(spec_obj, failover.DECLARATION),
        )
        ask = request_state.of(spec_obj).judge_standing
        if ask is None:
            yield failover.DECLARATION, judge
            return

        def judge_standing(host_state: typing.Any) -> verdict.Verdict:
            # Of servers on held hosts alone a database is asked.
            answer = judge(host_state)
            return answer if answer.passes else ask(host_state.host, answer)

        yield failover.DECLARATION, judge_standing
