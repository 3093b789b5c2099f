# SPDX-License-Identifier: Apache-2.0

"""Stage 3 of own hosts: those that are closed to others first."""

from collections.abc import Sequence
import typing

import nova.conf

from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import own_hosts
from nova_ext_sched.policy import reservation
from nova_ext_sched.queries import tenants
from nova_ext_sched.weighers import base

CONF = nova.conf.CONF


class OwnHostsWeigher(base.PolicyWeigher):
    """Prefer hosts that are closed to others, for whoever may use them.

    :mod:`nova_ext_sched.policy.own_hosts` makes the decision; the filters have
    refused the hosts of others.
    """

    policies = (own_hosts.DECLARATION,)
    minval, maxval = 0.0, 1.0

    def prefer(
        self, states: list[typing.Any], spec_obj: typing.Any
    ) -> Sequence[float] | None:
        closing = _read_closing()
        return base.by_metadata(
            states,
            lambda found: float(any(found)),
            closing.closes,
        )


def _read_closing() -> own_hosts.Closing:
    rules = reservation.Rules()
    if reservation.DECLARATION.is_on(CONF):
        rules = reservation.Rules.from_options(CONF.nova_ext_sched)
    return own_hosts.Closing(
        isolation=isolation.DECLARATION.is_on(CONF)
        # nova's own.
        or CONF.scheduler.enable_isolated_aggregate_filtering,
        tenants=tenants.reads if tenants.is_on() else lambda _key: False,
        rules=rules,
    )
