# SPDX-License-Identifier: Apache-2.0

"""capacity beside a real nova and placement: it says what nova then does.

Each number is compared with the truth: as many servers become ACTIVE, where
the answer says, and one more finds no host.
"""

from nova.tests import fixtures as nova_fixtures

from tests.functional import capacity
from tests.functional import explain
from tests.functional import keystone
from tests.functional import nodes
from tests.functional import reservations

TRAIT = 'CUSTOM_LICENSED_WINDOWS'


class SituationsTestCase(capacity.CapacityTestCase):
    """What operators do to clouds."""

    host_filters = (
        'AggregateInstanceTypeFilter',
        'IsolatedAggregatesFilter',
        'NumInstancesFilter',
        'IoOpsFilter',
    )
    options = explain.OPTIONS

    def test_whole_servers_of_plain_and_of_licensed_hosts(self):
        self.isolate('windows', ['host1'], TRAIT)
        # 20 CPUs by 6 would be 3.
        answer = self.assertCapacity(2, vcpu=6)
        self.assertEqual({'VCPU': 2}, answer.ends)
        self.assertEqual({'are isolated': 1}, answer.refused)
        answer = self.assertCapacity(
            1, vcpu=6, specs={f'trait:{TRAIT}': 'required'}
        )
        self.assertEqual({f'lack the trait {TRAIT}': 2}, answer.refused)

    def ask(self, *args, **flavor):
        return self.capacity('--flavor', self.large(**flavor), *args)

    def test_what_refuses_hosts(self):
        self.the_project_counts()
        self.what_nova_refuses()

    def the_project_counts(self):
        self.aggregate(
            'gpu',
            ['host1'],
            metadata={
                'reservation:gpu': 'true',
                'filter_tenant_id': reservations.OTHER_PROJECT,
            },
        )
        flavor = self.large(specs={'reservation:gpu': 'true'})
        self.useFixture(keystone.Projects('p', reservations.OTHER_PROJECT))
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
        self.set_metadata('gpu', {'reservation:gpu': None})

    def what_nova_refuses(self):
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

    def test_groups(self):
        self.set_service('host3', status='disabled')
        self.boot(az='nova:host1', flavor=self.large(vcpu=5))
        group = self.create_group(2)
        of_group = ('--server-group', group)
        answer = self.assertCapacity(
            3, *of_group, vcpu=3, hints={'group': group}
        )
        self.assertEqual({'anti-affinity': 1, 'VCPU': 1}, answer.ends)
        self.assertEqual({'are disabled': 1}, answer.refused)
        # host1 has room for more than the rule allows.
        answer = self.ask(*of_group, vcpu=1)
        self.assertEqual({'host1': 1}, answer.rooms)
        self.assertEqual({'anti-affinity': 1}, answer.ends)
        self.assertEqual(
            {'are full for the server group': 1, 'are disabled': 1},
            answer.refused,
        )
        affinity = self.create_group(policy='affinity')
        answer = self.ask('--server-group', affinity, vcpu=2)
        self.assertEqual({'VCPU': 1}, answer.ends)
        self.assertEqual(
            {'are not where the server group is': 1, 'are disabled': 1},
            answer.refused,
        )


class NodesTestCase(nodes.NodesMixin, capacity.CapacityTestCase):
    weights = {'host1': 100}

    def test_a_group_has_the_nodes_of_a_host_together(self):
        self.add_nodes('host1', 2)
        group = self.create_group(2)
        of_group = ('--server-group', group)
        flavor = self.large()
        # By itself each node takes two.
        self.assertEqual(6, self.count('--flavor', flavor))
        for number in (2, 1):
            self.assertEqual(number, self.count('--flavor', flavor, *of_group))
            self.boot(flavor=flavor, hints={'group': group})
        self.assertEqual(0, self.count('--flavor', flavor, *of_group))
        self.assertNoValidHost(flavor=flavor, hints={'group': group})

    def count(self, *args):
        """Return how many servers fit; of nodes no test says where."""
        [one] = self.capacity(*args).flavors
        return one['servers']
