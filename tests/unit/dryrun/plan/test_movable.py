# SPDX-License-Identifier: Apache-2.0

"""nova-api's own checks decide; none of its writes is made."""

import datetime
import types
from unittest import mock

import ddt
from nova import context
from nova import objects
from nova.compute import task_states
from nova.compute import vm_states
from oslo_utils import timeutils
import testtools

from nova_ext_sched.dryrun.plan import movable
from tests.unit.dryrun.cloud import clouds

LIVE = {vm_states.ACTIVE, vm_states.PAUSED}
COLD = {vm_states.STOPPED}


def make_instance(vm_state, task_state=None, pci=False, locked=False, hours=0):
    """Return a nova Instance that fails where something is saved."""
    fields = {
        'uuid': 'uuid',
        'host': 'host1',
        'vm_state': vm_state,
        'task_state': task_state,
        'launched_at': 'yesterday',
        'created_at': timeutils.utcnow() - datetime.timedelta(hours=hours),
        'updated_at': None,
        'locked': locked,
        'flavor': objects.Flavor(extra_specs={}),
        'image_meta': objects.ImageMeta(properties=objects.ImageMetaProps()),
        'pci_requests': types.SimpleNamespace(requests=['nic'] * pci),
        'services': [mock.Mock(binary='nova-compute')],
        'get_network_info': list,
        'system_metadata': {},
    }
    return mock.Mock(spec_set=[*fields], **fields)


@ddt.ddt
class MethodTestCase(testtools.TestCase):
    def find_method(self, *args, up=True, **kwargs):
        instance = make_instance(*args, **kwargs)
        with (
            mock.patch.object(movable.servicegroup, 'API') as api,
            mock.patch.object(objects.Service, 'get_by_compute_host'),
            mock.patch.object(objects.RequestSpec, 'get_by_instance_uuid'),
            mock.patch.object(
                movable.compute_api,
                'instance_has_share',
                create=True,
                return_value=False,
            ),
            mock.patch.object(
                objects.service,
                'get_minimum_version_all_cells',
                return_value=99,
            ),
        ):
            api.return_value.service_is_up.return_value = up
            try:
                return movable._find_method(
                    context.get_admin_context(), instance
                )
            except movable.NotMovable as exc:
                self.first = exc.first
                return str(exc)

    @ddt.data(
        *sorted(
            value
            for name, value in vars(vm_states).items()
            if name.isupper() and isinstance(value, str)
        )
    )
    def test_states(self, vm_state):
        found = self.find_method(vm_state)
        if vm_state in LIVE | COLD:
            self.assertEqual('live' if vm_state in LIVE else 'cold', found)
        else:
            self.assertIn(f'its vm_state is {vm_state}', found)
            self.assertTrue(self.first)

    @ddt.data(
        ((vm_states.RESIZED,), 'resized', 'confirm or revert its resize'),
        (
            (vm_states.ERROR,),
            'error',
            'mend its fault and set its state (openstack server set --state '
            'active; newer clients ask first unless --auto-approve)',
        ),
        (
            (vm_states.BUILDING, None, False, False, 2),
            'building',
            'delete it, unless the log',
        ),
        (
            (vm_states.ACTIVE, task_states.REBOOTING, False, False, 2),
            'its task_state is rebooting',
            'if it does not, set its state (openstack server set --state ',
        ),
        ((vm_states.BUILDING, task_states.SPAWNING), 'building', 'wait until'),
        ((vm_states.SOFT_DELETED,), 'soft-delete', 'delete --force'),
        (
            (vm_states.ACTIVE, task_states.REBOOTING),
            'its task_state is rebooting',
            'wait until that has ended',
        ),
        ((vm_states.DELETED,), 'deleted', 'bring it to another status'),
        # With a device.
        ((vm_states.PAUSED, None, True), 'its vm_state is paused', 'status'),
    )
    @ddt.unpack
    def test_what_has_to_be_done_first(self, state, said, first):
        self.assertIn(said, self.find_method(*state))
        self.assertIn(first, self.first)

    def test_live_or_cold(self):
        """An administrator moves a locked one all the same."""
        self.assertEqual(
            'live', self.find_method(vm_states.ACTIVE, locked=True)
        )
        # With a device.
        self.assertEqual('cold', self.find_method(vm_states.ACTIVE, pci=True))

    @ddt.data(
        ((vm_states.ACTIVE,), 'start it, or evacuate the server'),
        ((vm_states.STOPPED,), 'start it, or evacuate the server'),
        ((vm_states.BUILDING, task_states.SPAWNING), 'delete the server'),
        # nova-api evacuates none of them as they are.
        (
            (vm_states.ACTIVE, task_states.REBOOTING),
            'start it; or of the server set its state (openstack server set ',
        ),
        ((vm_states.PAUSED,), 'and evacuate it'),
    )
    @ddt.unpack
    def test_the_host_is_down(self, state, first):
        self.assertEqual(
            'nova-compute of host1 is down', self.find_method(*state, up=False)
        )
        self.assertIn(first, self.first)

    @mock.patch.object(
        movable.compute_api,
        'instance_has_share',
        create=True,
        return_value=False,
    )
    def test_what_nova_does_not_evacuate(self, _):
        """Where it is down, only the state in the database can change."""
        refused = self.assertRaises(
            movable.NotMovable,
            movable.check_evacuation,
            context.get_admin_context(),
            make_instance(vm_states.PAUSED),
        )
        self.assertEqual('its vm_state is paused', str(refused))
        self.assertEqual(
            'set its state to active or error before (openstack server set '
            '--state; newer clients ask first unless --auto-approve)',
            refused.first,
        )


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
        self.spec = clouds.make_spec(ignore_hosts=['old'])
        for state in self.cloud.states.values():
            state.hypervisor_type, state.hypervisor_version = 'qemu', 5

    def make(self, method, barred=()):
        """Return it, with the method of explain that prepared it."""

        def start(mine, cloud, ctxt, uuid, known=None):
            mine.spec_obj, mine.uuid = self.spec, uuid
            mine._cloud = cloud
            mine._cell = types.SimpleNamespace(uuid=self.cell)

        server = movable.explain_server.Server
        with (
            mock.patch.object(server, '__init__', start),
            mock.patch.object(server, 'read') as target,
            mock.patch.object(server, 'live_migrate') as live,
            mock.patch.object(server, 'migrate') as cold,
            mock.patch.object(movable, '_find_method', return_value=method),
        ):
            target.return_value.__enter__.return_value = None, self.instance
            found, self.key = movable.migrate(self.cloud, 'one', barred)
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
        error = self.assertRaises(movable.NotMovable, self.make, method)
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
