# SPDX-License-Identifier: Apache-2.0

"""Failure domains, cells, and providers that share or are nested."""

from tests.functional import capacity
from tests.functional import sharing


class DomainsTestCase(capacity.CapacityTestCase):
    host_filters = ('FailureDomainFilter',)
    options = {'request_filters': ['failure_domains']}

    def test_racks(self):
        for rack, hosts in (('a', ['host1', 'host2']), ('b', ['host3'])):
            self.aggregate(rack, hosts, failure_domain=rack)
        group = self.create_group(9)
        self.boot(flavor=self.large(vcpu=5), az='nova:host3')
        answer = self.assertCapacity(
            4,
            '--server-group',
            group,
            '--hint',
            'max_server_per_failure_domain=3',
            hints={'group': group, 'max_server_per_failure_domain': 3},
        )
        self.assertIsNone(answer.flavors[0]['hosts'])
        self.assertEqual({'failure-domain': 1, 'VCPU': 2}, answer.ends)


class ProvidersTestCase(sharing.StorageMixin, capacity.CapacityTestCase):
    """A provider that two hosts share, and one in the tree of each host."""

    def test_a_sharing_and_a_nested_provider(self):
        self.share(35, 'host1', 'host2')
        # Each host by itself has CPUs for two.
        answer = self.assertCapacity(3, disk=10)
        self.assertEqual({None}, {*answer.rooms.values()})
        self.assertEqual({'DISK_GB and VCPU': 1, 'DISK_GB': 1}, answer.ends)
        # Of ten; the CPUs are enough for two.
        answer = self.assertCapacity(
            3, vcpu=1, specs={'resources:CUSTOM_MAGIC': '6'}
        )
        self.assertEqual({'CUSTOM_MAGIC': 3}, answer.ends)
        # No host gives one server more than max_unit, or parts of a step.
        for amount, why in (
            ('9', 'are too small (CUSTOM_MAGIC)'),
            ('4', 'cannot give one server such an amount (CUSTOM_MAGIC)'),
        ):
            flavor = self.large(specs={'resources:CUSTOM_MAGIC': amount})
            answer = self.capacity('--flavor', flavor)
            self.assertEqual({}, answer.rooms)
            self.assertIn(why, answer.refused)
            self.assertEqual(3, answer.status)
