# SPDX-License-Identifier: Apache-2.0

"""capacity beside a real nova and placement: it says what nova then does.

Each number is compared with the truth: as many servers become ACTIVE, where
the answer says, and one more finds no host.
"""

from nova.tests import fixtures as nova_fixtures

from tests.functional import capacity
from tests.functional import reservations

TRAIT = 'CUSTOM_LICENSED_WINDOWS'


class SituationsTestCase(capacity.CapacityTestCase):
    """What operators do to clouds."""

    host_filters = (
        'AggregateInstanceTypeFilter',
        'FailureDomainFilter',
        'IsolatedAggregatesFilter',
        'NumInstancesFilter',
        'IoOpsFilter',
    )
    options = {
        'enable_isolated_aggregate_filtering': True,
        'request_filters': [
            'isolate_aggregates',
            'reserved_aggregates',
            'failure_domains',
        ],
        'placement_req_required_member_prefix': ['reservation:'],
        'placement_req_default_forbidden_member_prefix': ['reservation:'],
    }

    def test_whole_servers_of_whole_hosts(self):
        # 30 CPUs by 6 would be 5.
        answer = self.assertCapacity(3, vcpu=6)
        self.assertEqual({'VCPU': 3}, answer.ends)
        self.assertEqual({}, answer.refused)

    def ask(self, *args, **flavor):
        return self.capacity('--flavor', self.large(**flavor), *args)

    def test_what_refuses_hosts(self):
        self.limit('host3', 'VCPU', max_unit=3)
        self.assertEqual({'are too small (VCPU)': 1}, self.ask().refused)
        with nova_fixtures.ConfPatcher(
            max_instances_per_host=1, group='filter_scheduler'
        ):
            self.assertEqual({'NumInstancesFilter': 3}, self.ask(vcpu=1).ends)
        # Concurrent builds end in minutes.
        with nova_fixtures.ConfPatcher(
            max_io_ops_per_host=1, group='filter_scheduler'
        ):
            self.boot(flavor=self.large(vcpu=9), az='nova:host1')
            self.assertEqual(
                {'host1': 1, 'host2': 10, 'host3': 10}, self.ask(vcpu=1).rooms
            )
        self.aggregate('ssd', ['host2'], disk='ssd')
        self.aggregate('hdd', ['host3'], disk='hdd')
        answer = self.ask(
            vcpu=3, specs={'aggregate_instance_extra_specs:disk': 'ssd'}
        )
        self.assertEqual({'host2': 3}, answer.rooms)
        self.assertEqual(2, sum(answer.refused.values()))
        self.set_service('host2', status='disabled')
        self.set_service('host3', forced_down=True)
        self.assertEqual(
            {'are disabled': 1, 'are down': 1}, self.ask(vcpu=1).refused
        )
        # nova runs no filter on a forced host; placement still has its word.
        self.isolate('windows', ['host2'], TRAIT)
        answer = self.ask('--availability-zone', 'nova:host3', vcpu=3)
        self.assertEqual({'host3': 3}, answer.rooms)

    def test_a_licensed_flavor(self):
        self.isolate('windows', ['host1'], TRAIT)
        answer = self.assertCapacity(2, specs={f'trait:{TRAIT}': 'required'})
        self.assertEqual({f'lack the trait {TRAIT}': 2}, answer.refused)

    def test_the_project_counts(self):
        self.aggregate(
            'gpu',
            ['host1'],
            metadata={
                'reservation:gpu': 'true',
                'filter_tenant_id': reservations.OTHER_PROJECT,
            },
        )
        flavor = self.large(specs={'reservation:gpu': 'true'})
        answer = self.capacity('--flavor', flavor, '--project', 'p')
        self.assertEqual({}, answer.rooms)
        self.assertEqual([], answer.document['remarks'])
        answer = self.capacity('--flavor', flavor)
        self.assertEqual({}, answer.rooms)
        [remark] = answer.document['remarks']
        self.assertIn('No project was given (--project)', remark)
        self.assertIn('reserved_aggregates', answer.flavors[0]['end'])
        answer = self.capacity(
            '--flavor', flavor, '--project', reservations.OTHER_PROJECT
        )
        self.assertEqual({'host1': 2}, answer.rooms)
        self.assertEqual(
            {'are in none of the aggregates gpu': 2}, answer.refused
        )

    def test_groups(self):
        self.set_service('host3', status='disabled')
        self.boot(az='nova:host1', flavor=self.large(vcpu=5))
        group = self.group({'max_server_per_host': 2})
        self.assertGroup(
            3, group, 3, {'anti-affinity': 1, 'VCPU': 1}, {'are disabled': 1}
        )
        # There is room for more than the rule allows.
        group = self.group({'max_server_per_host': 1})
        self.boot(az='nova:host1', hints={'group': group})
        self.assertGroup(
            1,
            group,
            1,
            {'anti-affinity': 1},
            {'are full for the server group': 1, 'are disabled': 1},
        )
        self.assertGroup(
            1,
            self.group(policy='affinity'),
            1,
            {'VCPU': 1},
            {
                'are refused by ServerGroupAffinityFilter': 1,
                'are disabled': 1,
            },
        )

    def assertGroup(self, number, group, vcpu, ends, refused):
        answer = self.assertCapacity(
            number, '--server-group', group, vcpu=vcpu, hints={'group': group}
        )
        self.assertEqual(ends, answer.ends)
        self.assertEqual(refused, answer.refused)

    def test_racks(self):
        for rack, hosts in (('a', ['host1', 'host2']), ('b', ['host3'])):
            self.aggregate(rack, hosts, failure_domain=rack)
        group = self.group({'max_server_per_host': 9})
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
