# SPDX-License-Identifier: Apache-2.0

"""The weighers of preferences in a real scheduler.

Another weigher prefers the hosts in the order of their names, and all may take
every server: where one goes elsewhere, a preference decided.
"""

from tests.functional import base
from tests.functional import explain
from tests.functional import test_round_robin

WEIGHERS = [
    'ServerGroupRoundRobinWeigher',
    'RelativeRoomWeigher',
    'PreferredAggregatesWeigher',
    'OwnHostsWeigher',
    'SpecialHostsWeigher',
]
LAST = 'host3'


class OneTestCase(base.CloudTestCase):
    """One weigher of ours is on; it is the last of each name."""

    weights = {'host1': 100, 'host2': 50, LAST: 1}
    weigher_classes = ('nova_ext_sched.weighers.all_weighers',)

    def setUp(self):
        super().setUp()
        self.small = self.flavor(memory_mb=1024)
        self.assertBootsOn('host1', flavor=self.small)

    def deciders(self, *arguments):
        answer = explain.read('--flavor', *arguments).document['answer']
        return [one['weigher'] for one in answer['deciders']], answer


class RelativeRoomTest(OneTestCase):
    options = {'weighers': ['RelativeRoomWeigher']}

    def test_boots_and_moves(self):
        self.assertBootsOn('host2', flavor=self.small)
        third = self.assertBootsOn(LAST, flavor=self.small)
        self.assertBootsOn('host1', flavor=self.small)
        # 8 GB each: 2, 1 and 1 are used.
        self.assertBootsOn('host2', flavor=self.flavor(memory_mb=4096))
        self.assertBootsOn(LAST, flavor=self.small)
        # As much is free on host1, which the other weigher prefers.
        self.assertBootsOn('host1', flavor=self.small)
        deciders, answer = self.deciders(self.small)
        self.assertIn('RelativeRoomWeigher', deciders)
        self.assertIn('largest free share', answer['sentence'])
        self._migrate_server(third)
        self.assertEqual('host1', self.host_of(third))


class PreferredAggregatesTest(OneTestCase):
    options = {'weighers': ['PreferredAggregatesWeigher']}

    def test_boots_and_moves(self):
        self.aggregate('leaves', ['host1'], preference='-1')
        self.assertBootsOn('host2', flavor=self.small)
        self.aggregate(
            'new', [LAST], preference='1', preference_flavors=' x,large'
        )
        self.assertBootsOn('host2', flavor=self.small)
        large = self.flavor(name='large')
        server = self.assertBootsOn(LAST, flavor=large)
        deciders, _ = self.deciders(large)
        self.assertEqual(['PreferredAggregatesWeigher'], deciders)
        # It does not come back to host1.
        self._migrate_server(server)
        self.assertEqual('host2', self.host_of(server))
        self.set_metadata('new', {'preference': 'much'})
        self.assertBootsOn('host2', flavor=large)
        self.assertIn('new: preference: expected a number', self.log)


class OwnHostsTest(OneTestCase):
    host_filters = ('IsolatedAggregatesFilter',)
    options = {
        'weighers': ['OwnHostsWeigher'],
        'enable_isolated_aggregate_filtering': True,
    }

    def test_boots(self):
        self.isolate('windows', [LAST], 'CUSTOM_WINDOWS')
        # It may run a licensed guest, too.
        self.add_traits('host1', 'CUSTOM_WINDOWS')
        windows = self.flavor(specs={'trait:CUSTOM_WINDOWS': 'required'})
        self.assertBootsOn(LAST, flavor=windows)
        self.assertBootsOn('host1', flavor=self.small)
        deciders, _ = self.deciders(windows)
        self.assertEqual(['OwnHostsWeigher'], deciders)


class SpecialHostsTest(OneTestCase):
    options = {'weighers': ['SpecialHostsWeigher']}

    def test_boots(self):
        self.aggregate('gpu', ['host1', 'host2'], special='CUSTOM_GPU')
        self._create_resource_class('CUSTOM_GPU')
        for host in ('host1', 'host2'):
            self.limit(host, 'CUSTOM_GPU', total=1)
        gpu = self.flavor(specs={'resources:CUSTOM_GPU': '1'})
        fills = self.flavor(memory_mb=6000)
        self.assertBootsOn(LAST, flavor=fills)
        # No other has room.
        self.assertBootsOn('host1', flavor=fills)
        self.assertBootsOn('host1', flavor=gpu)


class AllTest(test_round_robin.RoundRobinTestCase):
    """All are on, and prefer other hosts than the turns of a group do."""

    options = {'weighers': WEIGHERS}

    def test_the_turns_of_a_group(self):
        self.aggregate('new', ['a2'], preference='1000')
        self.aggregate('gpu', ['b1'], special='VGPU')
        group = self.create_group(1)
        circle = self.circle(group)
        # Every place is filled in turn.
        self.assertEqual(circle, self.boot_at_once(group, 5))
        self.assertBootsOn('a2', flavor=self.small)
