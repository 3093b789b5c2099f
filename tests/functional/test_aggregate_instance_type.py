# SPDX-License-Identifier: Apache-2.0

"""AggregateInstanceTypeFilter on a real nova and a real placement."""

from tests.functional import base

FORCED = {'force_metadata_check': 'True'}


class AggregateInstanceTypeFilterTestCase(base.CloudTestCase):
    """Two hosts; the scheduler prefers "wrong", where the filter must act."""

    host_filters = ('AggregateInstanceTypeFilter',)
    weights = {'wrong': 2, 'right': 1}

    def setUp(self):
        super().setUp()
        self.aggregates = {}
        for host in self.weights:
            if host not in self.computes:
                self._start_compute(host)
            created = self.admin_api.post_aggregate(
                {'aggregate': {'name': f'{host}-aggregate'}}
            )
            self.aggregates[host] = created['id']
            self.admin_api.add_host_to_aggregate(created['id'], host)

    def describe(self, host, metadata):
        self.admin_api.post_aggregate_action(
            self.aggregates[host], {'set_metadata': {'metadata': metadata}}
        )

    def boot_with(self, extra_specs, **kwargs):
        flavor_id = self._create_flavor(
            memory_mb=64, vcpu=1, disk=0, ephemeral=0, extra_spec=extra_specs
        )
        return self._create_server(
            flavor_id=flavor_id, networks='none', **kwargs
        )

    def assertLandsOn(self, host, extra_specs):
        server = self.boot_with(extra_specs)
        self.assertEqual(host, server['OS-EXT-SRV-ATTR:host'])
        return server

    def test_boots(self):
        """One row of each kind; all are in tests/unit/policy."""
        self.assertLandsOn('wrong', {})
        for extra_specs, wrong, right in (
            ({'key': '<or> 1 <or> ~'}, {'key': '2'}, {'key': None}),
            ({'key': '>= 4'}, {'key': 'many'}, {'key': '5'}),
            ({'hw:cpu_policy': 'shared'}, {'hw:cpu_policy': 'dedicated'}, {}),
            (
                {'key': '2'},
                {'key': '1', 'hw:cpu_policy': None, **FORCED},
                {'key': '2', **FORCED},
            ),
            ({}, {'key': '1'}, {'key': '~'}),
            ({}, {'key': '<or>'}, {'key': '~'}),
        ):
            self.describe('wrong', wrong)
            self.describe('right', right)
            self.assertLandsOn('right', extra_specs)

    def test_zones_updates_and_malformed_flavors(self):
        self.availability_zone_is_not_forced()
        self.describe('wrong', dict.fromkeys(('key', 'force_metadata_check')))
        self.an_update_takes_effect_on_the_next_request()
        self.malformed_flavor_finds_no_host()

    def availability_zone_is_not_forced(self):
        self.describe('wrong', {'key': '1', 'force_metadata_check': 'yes'})
        self.admin_api.put_aggregate(
            self.aggregates['wrong'],
            {'aggregate': {'availability_zone': 'zone'}},
        )
        self.assertLandsOn('wrong', {'key': '1'})
        self.assertLandsOn('right', {})

    def an_update_takes_effect_on_the_next_request(self):
        server = self.assertLandsOn('wrong', {'key': '~'})
        self.describe('wrong', {'key': '1'})
        self.assertLandsOn('right', {'key': '~'})
        # A rebuild keeps its host.
        rebuilt = self._rebuild_server(
            server, 'a2459075-d96c-40d5-893e-577ff92e721c'
        )
        self.assertEqual('wrong', rebuilt['OS-EXT-SRV-ATTR:host'])

    def malformed_flavor_finds_no_host(self):
        server = self.boot_with({'key': '<or>'}, expected_state='ERROR')
        self.assertIn('No valid host', server['fault']['message'])
        warning = (
            'AggregateInstanceTypeFilter: flavor '
            f"{server['flavor']['original_name']}: extra spec 'key': "
            "expected '<or> VALUE"
        )
        self.assertEqual(1, self.stdlog.logger.output.count(warning))
