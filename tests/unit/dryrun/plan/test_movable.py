# SPDX-License-Identifier: Apache-2.0

"""nova-api's own checks decide; none of its writes is made."""

import types
from unittest import mock

import ddt
from nova import context
from nova import objects
from nova.compute import task_states
from nova.compute import vm_states
import testtools

from nova_ext_sched.dryrun.plan import movable

LIVE = {vm_states.ACTIVE, vm_states.PAUSED}
COLD = {vm_states.STOPPED}


def make_instance(vm_state, task_state=None, pci=False, locked=False):
    """Return a nova Instance that fails where something is saved."""
    fields = {
        'uuid': 'uuid',
        'host': 'host1',
        'vm_state': vm_state,
        'task_state': task_state,
        'launched_at': 'yesterday',
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
class KindTestCase(testtools.TestCase):
    def find_kind(self, *args, up=True, **kwargs):
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
                return movable._find_kind(
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
        found = self.find_kind(vm_state)
        if vm_state in LIVE | COLD:
            self.assertEqual('live' if vm_state in LIVE else 'cold', found)
        else:
            self.assertIn(f'its vm_state is {vm_state}', found)
            self.assertTrue(self.first)

    @ddt.data(
        ((vm_states.RESIZED,), 'resized', 'confirm or revert its resize'),
        ((vm_states.ERROR,), 'error', 'set --state active'),
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
        self.assertIn(said, self.find_kind(*state))
        self.assertIn(first, self.first)

    def test_live_or_cold(self):
        """An administrator moves a locked one all the same."""
        self.assertEqual('live', self.find_kind(vm_states.ACTIVE, locked=True))
        # With a device.
        self.assertEqual('cold', self.find_kind(vm_states.ACTIVE, pci=True))

    @ddt.data(vm_states.ACTIVE, vm_states.STOPPED)
    def test_the_host_is_down(self, vm_state):
        self.assertEqual(
            'nova-compute of host1 is down',
            self.find_kind(vm_state, up=False),
        )
        self.assertEqual('start it, or evacuate the server', self.first)


@ddt.ddt
class HypervisorsTestCase(testtools.TestCase):
    @ddt.data(
        ('live', ('qemu', 5), True),
        ('live', ('qemu', 6), True),
        ('live', ('qemu', 4), False),
        ('live', ('ironic', 5), False),
        ('cold', ('qemu', 4), True),
    )
    @ddt.unpack
    def test_versions(self, kind, target, expected):
        source, target = (
            types.SimpleNamespace(hypervisor_type=one, hypervisor_version=two)
            for one, two in (('qemu', 5), target)
        )
        mine = object.__new__(movable.Movable)
        mine.kind = kind
        self.assertEqual(expected, mine.may_move_to(source, target))
        self.assertTrue(mine.may_move_to(None, target))


@ddt.ddt
class MovableTestCase(testtools.TestCase):
    @ddt.data(
        (vm_states.ACTIVE, 'live_migrate'), (vm_states.STOPPED, 'migrate')
    )
    @ddt.unpack
    def test_it_goes_neither_where_it_is_nor_to_barred_hosts(
        self, vm_state, prepare
    ):
        spec = types.SimpleNamespace(ignore_hosts=['old'])

        def start(mine, scheduler, ctxt, uuid):
            mine.spec_obj = spec

        server = movable.explain_server.Server
        kind = movable.LIVE if vm_state == vm_states.ACTIVE else movable.COLD
        with (
            mock.patch.object(server, '__init__', start),
            mock.patch.object(server, '_instance') as target,
            mock.patch.object(server, prepare) as prepared,
            mock.patch.object(movable, '_find_kind', return_value=kind),
        ):
            target.return_value.__enter__.return_value = (
                None,
                mock.Mock(host='host1'),
            )
            movable.Movable(mock.Mock(), 'uuid', ['host2', 'host3'])
        prepared.assert_called_once_with()
        self.assertEqual(['host1', 'host2', 'host3'], spec.ignore_hosts)
