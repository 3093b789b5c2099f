# SPDX-License-Identifier: Apache-2.0

"""The weighers of preferences in a real scheduler.

Another weigher prefers the hosts in the order of their names, and all may take
every server: where one goes elsewhere, a preference decided.
"""

from unittest import mock

from nova.tests import fixtures as nova_fixtures
from oslo_upgradecheck import upgradecheck

from nova_ext_sched.cmd import drain
from nova_ext_sched.cmd import maintain
from nova_ext_sched.cmd import make_room
from nova_ext_sched.cmd import mend
from nova_ext_sched.cmd import survive
from nova_ext_sched.cmd.status import hosts
from nova_ext_sched.policy import licences as policy
from nova_ext_sched.queries import licences
from tests.functional import base
from tests.functional import explain
from tests.functional import plans
from tests.functional import test_round_robin
from tests.functional import test_status

WEIGHERS = [
    'ServerGroupRoundRobinWeigher',
    'RelativeRoomWeigher',
    'PreferredAggregatesWeigher',
    'OwnHostsWeigher',
    'SpecialHostsWeigher',
    'LicencesWeigher',
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

    def test_room_that_placement_alone_knows(self):
        found = test_status.ask_placement(self.placement, 'Room of hosts')
        self.assertEqual((upgradecheck.Code.SUCCESS, None), found)
        self.limit('host2', 'MEMORY_MB', allocation_ratio=9.0)
        self.limit(LAST, 'DISK_GB', reserved=900)
        code, details = test_status.ask_placement(
            self.placement, 'Room of hosts'
        )
        self.assertEqual(upgradecheck.Code.WARNING, code)
        for said in (
            '1 of 3 hosts has other room for MEMORY_MB in placement than '
            'nova-compute recorded, such as host2: ',
            '1 of 3 hosts has other room for DISK_GB in placement than '
            'nova-compute recorded, such as host3: ',
        ):
            self.assertIn(said, ' '.join(details.split()))
        self.assertNotIn('VCPU', details)


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
        self.marks_are_proposed()
        fills = self.flavor(memory_mb=6000)
        self.assertBootsOn(LAST, flavor=fills)
        # No other has room.
        self.assertBootsOn('host1', flavor=fills)
        self.assertBootsOn('host1', flavor=gpu)

    def marks_are_proposed(self):
        success = upgradecheck.Code.SUCCESS
        code, details = test_status.ask_placement(
            self.placement, 'Special hosts'
        )
        self.assertEqual((success, None), (code, details))
        # Two of three hosts are not few.
        self.limit(LAST, 'VGPU', total=1)
        self.add_traits(LAST, 'CUSTOM_FPGA')
        with mock.patch.object(hosts, 'FEW', 0.4):
            code, details = test_status.ask_placement(
                self.placement, 'Special hosts'
            )
        self.assertEqual(success, code)
        for name in ('VGPU', 'CUSTOM_FPGA'):
            self.assertIn(f'set special={name} in', ' '.join(details.split()))
        self.assertNotIn('CUSTOM_GPU', details)


class LicencesTest(OneTestCase):
    options = {
        'weighers': ['LicencesWeigher'],
        'licence_traits': ['CUSTOM_WINDOWS'],
        'licence_os_types': ['windows'],
    }
    #: Whether nova-compute reports its servers to the scheduler.
    tracked = True

    def setUp(self):
        self.useFixture(
            nova_fixtures.ConfPatcher(
                group='filter_scheduler', track_instance_changes=self.tracked
            )
        )
        super().setUp()

    def test_boots(self):
        for host in self.weights:
            self.add_traits(host, 'CUSTOM_WINDOWS')
        image = self.image(os_type='windows')
        order = sorted(
            self.weights,
            key=lambda host: policy.weigh(
                [*self.weights], {'os_type=windows'}, {}
            )[[*self.weights].index(host)],
        )
        # The last one by the licence's own order is where it runs.
        self.boot(flavor=self.small, image=image, az=f'nova:{order[0]}')
        licences.current = licences.Licences()
        windows = self.boot(flavor=self.small, image=image)
        self.assertEqual(order[0], self.host_of(windows))
        flavor = self.flavor(specs={'trait:CUSTOM_WINDOWS': 'required'})
        first = self.host_of(self.boot(flavor=flavor))
        for _ in range(2):
            self.assertBootsOn(first, flavor=flavor)
        self.assertBootsOn('host1', flavor=self.small)


class UntrackedLicencesTest(LicencesTest):
    tracked = False


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


class PlansTest(plans.PlanTestCase):
    """Commands that plan moves obey: nova's weighers order their hosts."""

    weights = {f'host{n}': 700 - n for n in range(1, 5)}
    weigher_classes = ('nova_ext_sched.weighers.all_weighers',)
    options = {'weighers': ['PreferredAggregatesWeigher']}

    def setUp(self):
        super().setUp()
        self.aggregate('new', ['host4'], preference='1')

    def ask(self, command, *argv):
        return explain.ask(command, *argv).plan

    def test_drain_survive_maintain_and_mend(self):
        self.boot(flavor=self.flavor(), az='nova:host1')
        drained = self.ask(drain.Drain, 'drain', 'host1')
        self.assertEqual(['host4'], [m['expected'] for m in drained['moves']])
        survived = self.ask(survive.Survive, 'survive', '--host', 'host1')
        [failure] = survived['failures']
        self.assertEqual(['host4'], [m['to'] for m in failure['moves']])
        maintained = self.ask(maintain.Maintain, 'maintain')
        moves = [m for one in maintained['rounds'] for m in one['moves']]
        self.assertEqual('host4', moves[0]['expected'], moves)
        # Where three are empty, no server of the fourth could be restarted.
        self.boot(flavor=self.flavor(), az='nova:host4')
        for most, options in ((3, ()), (2, ('--keep-failover',))):
            size = '--round-size', 'max'
            kept = self.ask(maintain.Maintain, 'maintain', *size, *options)
            sizes = [len(one['hosts']) for one in kept['rounds']]
            self.assertEqual((most, 4), (max(sizes), sum(sizes)), sizes)
        self.isolate('windows', ['host1'], 'CUSTOM_WINDOWS')
        self.turn_on()
        mended = self.ask(mend.Mend, 'mend')
        self.assertEqual(['host4'], [m['expected'] for m in mended['moves']])

    def test_make_room(self):
        small = self.flavor(vcpu=3)
        for host in (*self.weights, *self.weights):
            self.boot(flavor=small, az=f'nova:{host}')
        found = self.ask(
            make_room.MakeRoom,
            'make-room',
            '--flavor',
            self.flavor(vcpu=7),
            '--count',
            '1',
        )
        self.assertEqual(['host4'], [m['expected'] for m in found['moves']])
