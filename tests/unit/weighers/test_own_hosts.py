# SPDX-License-Identifier: Apache-2.0

from nova_ext_sched.weighers import own_hosts
from tests import releases
from tests.unit.weighers import preferences


class OwnHostsWeigherTestCase(preferences.PreferenceTestCase):
    weigher = own_hosts.OwnHostsWeigher

    def setUp(self):
        super().setUp()
        self.states = [
            self.host('open'),
            self.host('isolated', **{'trait:CUSTOM_A': 'required'}),
            self.host('reserved', **{'reservation:a': ''}),
            self.host('tenant', filter_tenant_id='p'),
        ]

    def test_nothing_closes(self):
        self.assertEqual([0, 0, 0, 0], self.weigh(self.states))

    def test_what_is_on_closes(self):
        self.set(enable_isolated_aggregate_filtering=True)
        self.assertEqual([0, 1000, 0, 0], self.weigh(self.states))
        self.set(
            enable_isolated_aggregate_filtering=False,
            placement_req_default_forbidden_member_prefix=['reservation:'],
        )
        self.assertEqual([0, 0, 1000, 0], self.weigh(self.states))
        # Its filters are not named.
        self.set(request_filters=[], own_hosts_weight_multiplier=5.0)
        self.enable('AggregateMultiTenancyIsolation')
        self.assertEqual([0, 0, 0, 5], self.weigh(self.states))

    def test_key_of_a_tenant_with_an_ending(self):
        """A host that this nova's filter opens to all is nobody's own."""
        self.enable('AggregateMultiTenancyIsolation')
        states = [self.host('open'), self.host('two', filter_tenant_id2='p')]
        self.assertEqual(
            [0, 1000 if releases.READS_TENANT_PREFIX else 0],
            self.weigh(states),
        )

    def test_one_aggregate_is_enough(self):
        self.set(enable_isolated_aggregate_filtering=True)
        self.states[0].aggregates += self.states[1].aggregates
        self.assertEqual([1000, 1000, 0, 0], self.weigh(self.states))

    def test_isolation_of_nova(self):
        self.config(
            enable_isolated_aggregate_filtering=True, group='scheduler'
        )
        self.assertEqual([0, 1000, 0, 0], self.weigh(self.states))
