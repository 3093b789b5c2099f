# SPDX-License-Identifier: Apache-2.0

"""Stage 3 of preferred aggregates: their numbers order the hosts."""

from collections.abc import Sequence
import typing

import nova.conf

from nova_ext_sched import fields
from nova_ext_sched.policy import preferred_aggregates
from nova_ext_sched.weighers import base

CONF = nova.conf.CONF


class PreferredAggregatesWeigher(base.PolicyWeigher):
    """Prefer hosts by the numbers that their aggregates have for a request.

    :mod:`nova_ext_sched.policy.preferred_aggregates` makes the decision.
    """

    policies = (preferred_aggregates.DECLARATION,)
    # The numbers count as they are, however they differ.
    minval, maxval = 0.0, 1.0

    def prefer(
        self, states: list[typing.Any], spec_obj: typing.Any
    ) -> Sequence[float] | None:
        key = CONF.nova_ext_sched.preference_key
        flavor = fields.get_field(spec_obj, 'flavor')
        names = [
            fields.get_field(flavor, name) for name in ('name', 'flavorid')
        ]
        project = fields.get_field(spec_obj, 'project_id')

        return base.by_metadata(
            states,
            lambda found: sum(found, 0.0),
            lambda metadata: preferred_aggregates.read(
                metadata, key
            ).counts_for(names, project),
            lambda metadata: preferred_aggregates.find_faults(metadata, key),
        )
