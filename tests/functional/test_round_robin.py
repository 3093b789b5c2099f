# SPDX-License-Identifier: Apache-2.0

"""ServerGroupRoundRobinWeigher in a real scheduler.

Another weigher prefers one host for every server: where the servers of a
group go elsewhere although the filters would accept it, the turns decided.
"""

import fixtures
from nova.scheduler import weights
import nova.conf

from nova_ext_sched import conf
from nova_ext_sched import weighers
from nova_ext_sched.policy import round_robin
from tests.functional import base

CONF = nova.conf.CONF
RULE = {'max_server_per_host': 9}


class Weighers(fixtures.Fixture):
    """The weigher as nova.conf loads it, beside those of the test."""

    def _setUp(self):
        conf.register_opts(CONF)
        self.addCleanup(
            CONF.clear_override, 'weight_classes', 'filter_scheduler'
        )
        CONF.set_override(
            'weight_classes',
            [*CONF.filter_scheduler.weight_classes, conf.round_robin.ALL_WEIGHERS],
            'filter_scheduler',
        )


class RoundRobinTestCase(base.CloudTestCase):
    host_filters = ('FailureDomainFilter',)
    weights = {'a1': 900, 'a2': 800, 'a3': 700, 'b1': 600, 'b2': 500}
    deals = True

    def setUp(self):
        super().setUp()
        self.small = self.flavor()

    def _setup_scheduler_service(self):
        if self.deals:
            self.useFixture(Weighers())
        super()._setup_scheduler_service()
