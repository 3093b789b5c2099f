# SPDX-License-Identifier: Apache-2.0

"""Stage 2 of flavor matching: judge each host's aggregates."""

import typing

import nova.conf
from oslo_log import log as logging

from nova_ext_sched import faults
from nova_ext_sched.filters import base
from nova_ext_sched.policy import aggregate_instance_type

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


class AggregateInstanceTypeFilter(base.PooledAggregatesFilter):
    """Match the flavor's extra specs with the metadata of the aggregates.

    A replacement for nova's AggregateInstanceExtraSpecsFilter, with the same
    answers in the part of the language that they share. The decision is
    :mod:`nova_ext_sched.policy.aggregate_instance_type`'s.

    It does not run on rebuild, as nova's does not: a rebuild keeps flavor and
    host, and the image, which may change, has no part in the decision. Only
    an operator's later edit of an aggregate could make a difference, and to
    refuse the rebuild for it would put the server into ERROR and move
    nothing.
    """

    # Neither the aggregates nor the flavor change within a request.
    run_filter_once_per_request = True

    RUN_ON_REBUILD = False

    fault_log = faults.FaultLog(LOG)

    def decide(self, spec_obj: typing.Any) -> aggregate_instance_type.Decision:
        """See :meth:`base.PooledAggregatesFilter.decide`."""
        flavor = spec_obj.flavor
        ours = CONF.nova_ext_sched
        return aggregate_instance_type.Decision(
            flavor.name if 'name' in flavor else 'without a name',
            flavor.extra_specs if 'extra_specs' in flavor else {},
            ours.force_metadata_check_ignored_keys,
            (
                *ours.placement_req_required_member_prefix,
                *ours.placement_req_default_forbidden_member_prefix,
            ),
        )
