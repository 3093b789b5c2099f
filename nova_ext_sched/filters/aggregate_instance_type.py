# SPDX-License-Identifier: Apache-2.0

"""Stage 2 of flavor matching: judge each host's aggregates."""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import itertools
import typing

import nova.conf

from nova_ext_sched import fields
from nova_ext_sched import log_once
from nova_ext_sched.filters import base
from nova_ext_sched.policy import aggregate_instance_type
from nova_ext_sched.policy import memo
from nova_ext_sched.policy import reservation

CONF = nova.conf.CONF

LOG_ONCE = log_once.LogOnce(__name__, advice=log_once.CHECKED)


class AggregateInstanceTypeFilter(base.PolicyFilter):
    """Match the flavor's extra specs with the metadata of the aggregates.

    This filter replaces nova's AggregateInstanceExtraSpecsFilter and gives
    the same answers in the part of the language that they share.
    :mod:`nova_ext_sched.policy.aggregate_instance_type` makes the decision.

    Like nova's, it does not run on rebuild: a rebuild keeps flavor and host,
    and the image does not matter to the decision. Only a later edit of an
    aggregate could make a difference. Refusing the rebuild for that would
    put the server into ERROR and move nothing.
    """

    policies = (aggregate_instance_type.DECLARATION,)

    # Neither the aggregates nor the flavor change within a request.
    run_filter_once_per_request = True

    RUN_ON_REBUILD = False

    def decisions(self, spec_obj: typing.Any) -> Iterator[base.Decision]:
        ours = CONF.nova_ext_sched
        decision = aggregate_instance_type.Decision(
            fields.flavor_name(spec_obj),
            fields.flavor_extra_specs(spec_obj),
            ours.force_metadata_check_ignored_keys,
            reservation.Rules.from_options(ours).prefixes,
        )
        yield aggregate_instance_type.DECLARATION, _FlavorJudge(decision)

    def count_reasons(
        self, rejected: list[typing.Any], judges: Sequence[typing.Any]
    ) -> collections.Counter[str]:
        # One reason for all hosts that fail in one way, with the names and
        # values of all their aggregates: a sentence for each set of
        # aggregates would cost more than the filter itself.
        (judge,) = judges
        hosts_by_cause: dict[typing.Any, list[typing.Any]] = {}
        reasons: collections.Counter[str] = collections.Counter()
        for host_state in rejected:
            bits = judge.bits(host_state)
            if bits is None:
                reasons[judge(host_state).reason] += 1
                continue
            hosts_by_cause.setdefault(judge.causes[bits], []).append(
                host_state
            )
        for cause, hosts in hosts_by_cause.items():
            aggregates = dict.fromkeys(
                itertools.chain.from_iterable(h.aggregates for h in hosts)
            )
            reason = judge.decision.reason(
                cause, fields.names_and_metadata(aggregates)
            )
            reasons[reason] += len(hosts)
        return reasons


class _FlavorJudge(base.ByEachAggregate):
    def __init__(self, decision: aggregate_instance_type.Decision) -> None:
        super().__init__(
            self._read_for_flavor,
            decision.passes,
            lambda aggregates: decision.judge(
                fields.names_and_metadata(aggregates)
            ),
        )
        self.decision = decision
        self.causes = memo.Memo(decision.cause)
        _warn(decision.request_faults)

    def _read_for_flavor(
        self, aggregate: typing.Any, metadata: Mapping[str, str]
    ) -> int:
        bits = self.decision.read(metadata)
        if bits & 1:
            name = fields.aggregate_name(aggregate)
            _warn(self.decision.faults(name, metadata))
        return bits


def _warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        LOG_ONCE.warning(f'AggregateInstanceTypeFilter: {sentence}')
