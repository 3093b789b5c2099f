# SPDX-License-Identifier: Apache-2.0

"""AggregateInstanceTypeFilter on a real nova and a real placement."""

from tests.functional import base


class AggregateInstanceTypeFilterTestCase(base.CloudTestCase):
    """Two hosts; the scheduler prefers "wrong", where the filter must act."""

    host_filters = ('AggregateInstanceTypeFilter',)
    weights = {'wrong': 2, 'right': 1}

    def assertLandsOn(self, host, extra_specs):
        return self.assertBootsOn(host, flavor=self.flavor(specs=extra_specs))

    def test_boots(self):
        """One row of each kind; all are in tests/unit/policy."""
        # An availability zone is no metadata that can be forced.
        self.aggregate('wrong', ['wrong'], zone='zone')
        server = self.assertLandsOn('wrong', {'key': '~'})
        # An update takes effect on the next request; a rebuild keeps its host.
        self.set_metadata('wrong', {'key': '1'})
        self.assertLandsOn('right', {'key': '~'})
        rebuilt = self.rebuild_server(server, self.image())
        self.assertEqual('wrong', rebuilt['OS-EXT-SRV-ATTR:host'])
        self.set_metadata('wrong', {'hw:cpu_policy': 'dedicated'})
        self.assertLandsOn('right', {'hw:cpu_policy': 'shared'})
        self.set_metadata(
            'wrong', {'hw:cpu_policy': None, 'force_metadata_check': 'yes'}
        )
        self.assertLandsOn('wrong', {'key': '1'})
        self.assertLandsOn('right', {})
        self.malformed_flavor_finds_no_host()

    def malformed_flavor_finds_no_host(self):
        server = self.assertNoValidHost(flavor=self.flavor(key='<or>'))
        warning = (
            'AggregateInstanceTypeFilter: flavor '
            f"{server['flavor']['original_name']}: extra spec 'key': "
            "expected '<or> VALUE"
        )
        self.assertEqual(1, self.log.count(warning))
