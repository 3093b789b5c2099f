# SPDX-License-Identifier: Apache-2.0

"""nova-api's own checks decide; none of its writes is made."""

import types
from unittest import mock

import ddt
from nova.compute import power_state
from nova.compute import vm_states
import testtools

from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.plan import movable
from tests.unit.dryrun.cloud import clouds


@ddt.ddt
class MethodTestCase(testtools.TestCase):
    @ddt.data(
        # What nova refuses, whether the guest may run, and the method.
        ((), False, 'live'),
        (('live-migrate',), False, 'cold'),
        (('live-migrate',), True, 'live-migrate is refused'),
        (('migrate',), False, 'live'),
        (('live-migrate', 'migrate'), False, 'migrate is refused'),
    )
    @ddt.unpack
    def test_live_or_cold(self, refused, may_run, expected):
        def ask(operation, *_):
            if operation in refused:
                raise admission.NotMovable(
                    f'{operation} is refused', may_run=may_run
                )

        with mock.patch.object(admission, 'ask', ask):
            try:
                found = movable._find_method(None, None)
            except admission.NotMovable as exc:
                found = str(exc)
        self.assertEqual(expected, found)

    @ddt.data(
        ('', 'live', vm_states.ACTIVE, 'RUNNING', True),
        ('', 'evacuate', vm_states.STOPPED, 'SHUTDOWN', True),
        ('stopped', 'cold', vm_states.STOPPED, 'SHUTDOWN', True),
        ('stopped', 'cold', vm_states.ACTIVE, 'SHUTDOWN', False),
        ('stopped', 'cold', vm_states.ACTIVE, 'CRASHED', False),
        ('device', 'cold', vm_states.ACTIVE, 'RUNNING', True),
        # It may be running.
        ('refused', 'cold', vm_states.ACTIVE, 'NOSTATE', False),
    )
    @ddt.unpack
    def test_why_it_is_cold(self, why, method, vm_state, power, pci):
        instance = types.SimpleNamespace(
            vm_state=vm_state,
            power_state=getattr(power_state, power),
            pci_requests=types.SimpleNamespace(requests=['nic'] * pci),
        )
        self.assertEqual(why, movable._find_why_cold(instance, method))


@ddt.ddt
class MigrationTestCase(testtools.TestCase):
    """A server on host a, of a hypervisor qemu of version 5."""

    cell = 'cell1'

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud()
        self.instance = self.cloud.stand('one', 'a')
        self.instance.image_ref = 'image'
        self.instance.get_network_info = list
        self.instance.system_metadata = {}
        self.instance.vm_state = vm_states.STOPPED
        self.spec = clouds.make_spec(ignore_hosts=['old'])
        for state in self.cloud.states.values():
            state.hypervisor_type, state.hypervisor_version = 'qemu', 5

    def make(self, method, barred=()):
        """Return it, with the method of explain that prepared it."""

        def start(mine, reader, uuid, stored=None):
            mine.spec_obj, mine.uuid = self.spec, uuid
            mine.cell = self.cell

        server = movable.explain_server.Server
        with (
            mock.patch.object(server, '__init__', start),
            mock.patch.object(server, 'read') as target,
            mock.patch.object(server, 'live_migrate') as live,
            mock.patch.object(server, 'migrate') as cold,
            mock.patch.object(movable, '_find_method', return_value=method),
        ):
            target.return_value.__enter__.return_value = None, self.instance
            found, self.key = movable.migrate(
                servers.Reader(self.cloud), 'one', barred
            )
        self.prepared = live.call_count, cold.call_count
        return found

    def make_key(self, *args):
        self.make(*args)
        return self.key

    @ddt.data((movable.LIVE, (1, 0)), (movable.COLD, (0, 1)))
    @ddt.unpack
    def test_it_goes_neither_where_it_is_nor_to_barred_hosts(
        self, method, prepared
    ):
        found = self.make(method, ['hostb', 'hostc'])
        self.assertEqual(prepared, self.prepared)
        self.assertEqual(['hosta', 'hostb', 'hostc'], self.spec.ignore_hosts)
        self.assertEqual((method, None), (found.method, found.like))
        why = {movable.LIVE: '', movable.COLD: 'stopped'}[method]
        self.assertEqual(why, found.why_cold)
        self.assertEqual(why, found.for_like(self.instance).why_cold)

    @ddt.data(
        ('live', ('qemu', 5), True),
        ('live', ('qemu', 6), True),
        ('live', ('qemu', 4), False),
        ('live', ('ironic', 5), False),
        ('cold', ('qemu', 4), True),
    )
    @ddt.unpack
    def test_hypervisors(self, method, target, expected):
        mine, state = self.make(method), self.cloud.states['b']
        state.hypervisor_type, state.hypervisor_version = target
        self.assertEqual(expected, mine.may_move_to(state))
        self.assertEqual(expected, not mine.tell_refused('b'))
        # Like servers are on other hosts.
        self.assertFalse(mine.may_move_to(self.cloud.states['a']))
        mine.arrive('b')
        self.assertFalse(mine.may_move_to(state))

    def test_what_is_said_of_hypervisors(self):
        mine, states = self.make('live'), self.cloud.states
        for uuid, kind, version in (('b', 'xen', 9), ('c', 'qemu', 4)):
            state = states[uuid]
            state.hypervisor_type, state.hypervisor_version = kind, version
        older = 'older than 5 (hostc: 4)'
        other = 'of another type than qemu (hostb: xen)'
        for uuids, said in (
            ('b', other),
            ('c', older),
            ('bc', f'{other} or {older}'),
        ):
            self.assertEqual(
                f'the hypervisors of all hosts left are {said}',
                mine.tell_refused(uuids),
            )
        # It may go to itself.
        self.assertEqual('', mine.tell_refused('ab'))

    @ddt.data(movable.LIVE, movable.COLD)
    def test_a_compute_node_that_is_gone(self, method):
        self.instance.node = 'gone'
        error = self.assertRaises(admission.NotMovable, self.make, method)
        self.assertEqual('nova has no compute node of hosta', str(error))
        self.assertIn('start nova-compute there', error.first)

    def test_what_it_has_in_common_with_others(self):
        cold, live = map(self.make_key, (movable.COLD, movable.LIVE))
        self.assertNotEqual(live.text, cold.text)
        self.spec.instance_uuid = 'other'
        self.assertEqual(live, self.make_key(movable.LIVE, ['x']))
        # nova evacuates and migrates within a cell.
        self.cell = 'cell2'
        self.assertNotEqual(live.text, self.make_key(movable.LIVE).text)

    def test_go(self):
        """It leaves its host, which an evacuated one still counts on."""
        mine, target = self.make(movable.LIVE), self.cloud.find_target('b')
        node, other = self.cloud.find_node('hosta', 'nodea'), None
        for one, left in (
            (mine, ()),
            (movable.Evacuation('one', self.spec, None, node), ['one']),
            (movable.Evacuation('one', self.spec, None, other), ['one']),
        ):
            self.assertTrue(one.may_move_to(target))
            with self.cloud.fork() as future:
                self.assertIs(True, one.go(future, target))
                self.assertEqual({'one': 'hostb'}, future.moved)
                self.assertEqual([*left], [*self.cloud.states['a'].instances])
                # Another took the room.
                full = self.cloud.find_target('c', c={'VCPU': 5})
                self.assertIs(False, one.go(future, full))
        self.assertEqual('evacuate', one.method)
        # What the servers of a node have is read at once.
        self.assertIn(
            f'/resource_providers?in_tree={node}', self.cloud.server.asked
        )
