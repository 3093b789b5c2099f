# SPDX-License-Identifier: Apache-2.0

"""Another author's plugins, as their own distribution."""

import nova.conf
from nova.scheduler import filters
from oslo_config import cfg

from nova_ext_sched import fields
from nova_ext_sched.policy import declaration
from nova_ext_sched.weighers import base

OPTS = [cfg.FloatOpt('starred_weight_multiplier', default=1000000.0)]
nova.conf.CONF.register_opts(OPTS, group='third_party')

STARRED = declaration.Policy(
    name='starred',
    summary='Hosts of aggregates with stars come first.',
    weigher='StarredWeigher',
    prefers='hosts with the most stars',
)


class ThirdPartyFilter(filters.BaseHostFilter):
    """Refuses host1."""

    def host_passes(self, host_state, filter_properties):
        return host_state.host != 'host1'


def third_party(ctxt, request_spec):
    """Leaves a mark on the request."""
    request_spec.root_forbidden.add('CUSTOM_THIRD_PARTY')
    return True


class StarredWeigher(base.PolicyWeigher):
    """Prefers hosts in aggregates with the most ``stars``."""

    policies = (STARRED,)
    group = 'third_party'
    minval, maxval = 0.0, 1.0

    def prefer(self, states, spec_obj):
        return [
            sum(
                int(fields.aggregate_metadata(one).get('stars', 0))
                for one in state.aggregates
            )
            for state in states
        ]
