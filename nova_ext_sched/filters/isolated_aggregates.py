# SPDX-License-Identifier: Apache-2.0

"""Stage 2 of isolation and reservation: judge each host's aggregates."""

from collections.abc import Callable
from collections.abc import Mapping
import typing

import nova.conf

from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched.filters import base
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import fields
from nova_ext_sched.request_filters import isolate_aggregates
from nova_ext_sched.request_filters import reserved_aggregates

CONF = nova.conf.CONF

LOG_ONCE = log_once.LogOnce(__name__)

# Judges the name and metadata of each aggregate of a host.
Decision = Callable[[list[tuple[str, Mapping[str, str]]]], verdict.Verdict]


class IsolatedAggregatesFilter(base.AggregatesFilter):
    """Reject hosts whose aggregates the request may not use.

    It makes the same decisions as the request filters, on the aggregates that
    the scheduler holds in memory. A host is rejected if one of its aggregates
    requires traits that the request does not (``isolate_aggregates``,
    :mod:`nova_ext_sched.policy.isolation`), if one is reserved for others, or
    if it is in no aggregate that the request names (``reserved_aggregates``,
    :mod:`nova_ext_sched.policy.reservation`).

    It runs on rebuild, where nova runs no request filter: a server on an
    isolated host cannot be rebuilt with an image that does not require the
    traits. Reservation keys in the properties of the new image are unknown
    then and do not count. It also checks the aggregates that the placement
    query does not name (``max_forbidden_aggregates``, ``forbid_by_trait``).

    Does nothing unless ``enable_isolated_aggregate_filtering`` is on or
    prefixes of reserved aggregates are set.
    """

    # Neither the aggregates nor the request change within a request.
    run_filter_once_per_request = True

    RUN_ON_REBUILD = True

    def judge_aggregates(
        self, spec_obj: typing.Any
    ) -> Callable[[list[typing.Any]], verdict.Verdict] | None:
        decisions: list[Decision] = []
        if CONF.nova_ext_sched.enable_isolated_aggregate_filtering:
            decisions.append(self.compile_isolation(spec_obj))
        if reserved_aggregates.rules().prefixes:
            decisions.append(self.compile_reservation(spec_obj))
        if not decisions:
            return None

        def decide(aggregates: list[typing.Any]) -> verdict.Verdict:
            described = fields.names_and_metadata(aggregates)
            for decision in decisions:
                found = decision(described)
                if not found.passes:
                    return found
            return verdict.PASS

        return decide

    def compile_isolation(self, spec_obj: typing.Any) -> Decision:
        """Return what judges isolated aggregates alone."""
        try:
            required = isolate_aggregates.required_traits(spec_obj)
        except Exception as exc:
            # Flavors and images are operators' and users' data: what nova
            # cannot read in them must not open a host.
            LOG_ONCE.warning(
                f'IsolatedAggregatesFilter rejects every isolated host, '
                f'because it cannot read which traits flavor '
                f'{messages.clean(fields.flavor_name(spec_obj))} and its '
                f'image require: '
                f'{messages.describe(exc)}'
            )
            required = set()
        return lambda aggregates: isolation.judge(aggregates, required)

    def compile_reservation(self, spec_obj: typing.Any) -> Decision:
        """Return what judges reserved aggregates alone."""
        try:
            return reserved_aggregates.compile_request(spec_obj).judge
        except Exception as exc:
            fault = (
                f'IsolatedAggregatesFilter rejects every host, because it '
                f'cannot read which reserved aggregates a request names: '
                f'{messages.describe(exc)}'
            )
            LOG_ONCE.warning(fault)
            # Which hosts the request may use is not known, so none.
            return lambda aggregates: verdict.reject(fault)
