# SPDX-License-Identifier: Apache-2.0

"""Stage 3 of failover hosts: evacuations take them first."""

from collections.abc import Sequence
import typing

import nova.conf

from nova_ext_sched.policy import failover
from nova_ext_sched.queries import failover as asked
from nova_ext_sched.weighers import base

CONF = nova.conf.CONF


class FailoverHostsWeigher(base.PolicyWeigher):
    """Prefer hosts that are kept for failures, for evacuations alone.

    It runs whenever the policy is on, whatever ``weighers`` has.
    """

    policies = (failover.DECLARATION,)
    minval, maxval = 0.0, 1.0

    def prefer(
        self, states: list[typing.Any], spec_obj: typing.Any
    ) -> Sequence[float] | None:
        if asked.known_move(spec_obj) != failover.EVACUATION:
            return None
        key = CONF.nova_ext_sched.failover_key
        return base.by_metadata(
            states,
            lambda found: float(any(found)),
            lambda metadata: failover.read_mark(metadata, key),
        )
