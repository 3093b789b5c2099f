# SPDX-License-Identifier: Apache-2.0

"""nova-api's own checks decide; none of its writes is made."""

import datetime
from unittest import mock

from nova import context
from nova import exception as nova_exception
from nova import objects
from nova.compute import power_state
from nova.compute import task_states
from nova.compute import vm_states
from oslo_utils import timeutils
import testtools

from nova_ext_sched.dryrun.decision import admission
from tests import releases

objects.register_all()

ASKS = 'newer clients ask first unless --auto-approve'
SET_ACTIVE = f'set its state (openstack server set --state active; {ASKS})'
SET_STATE = (
    f'set its state to active or error (openstack server set --state; {ASKS})'
)
STATES = sorted(
    value
    for name, value in vars(vm_states).items()
    if name.isupper() and isinstance(value, str)
)
ACTIVE, STOPPED = vm_states.ACTIVE, vm_states.STOPPED
ALLOWED = {
    'live-migrate': {ACTIVE, vm_states.PAUSED},
    'migrate': {ACTIVE, STOPPED},
    'resize': {ACTIVE, STOPPED},
    # The build of one counts as ended.
    'evacuate': {ACTIVE, STOPPED, vm_states.ERROR, vm_states.BUILDING},
}

SPAWNING, REBOOTING = (
    {'task_state': one}
    for one in (task_states.SPAWNING, task_states.REBOOTING)
)
VTPM = {'hw_tpm_version': '2.0', 'hw_tpm_model': 'tpm-crb'}
# How a server is, and what has to be done.
BEFORE_MOVE = (
    (vm_states.RESIZED, {}, 'confirm or revert its resize'),
    (vm_states.ERROR, {}, f'repair it and {SET_ACTIVE}'),
    (vm_states.BUILDING, {'hours': 2}, 'delete it, unless the nova-compute'),
    (vm_states.BUILDING, SPAWNING, 'wait until it is built'),
    (vm_states.SOFT_DELETED, {}, 'delete --force'),
    (ACTIVE, {**REBOOTING, 'hours': 2}, f'if not, {SET_ACTIVE}'),
    (ACTIVE, REBOOTING, 'wait until that has ended'),
    (vm_states.DELETED, {}, 'bring it into another state'),
)
BEFORE_EVACUATION = (
    (vm_states.PAUSED, SET_STATE),
    (vm_states.SUSPENDED, SET_STATE),
    (vm_states.RESCUED, SET_STATE),
    (vm_states.RESIZED,
     'confirm its resize (openstack server resize confirm), which works while '
     'its host is down because nova asks the source; or revert it while its '
     'host is up'),
    (vm_states.SHELVED,
     'offload it while its host is up (openstack server shelve --offload); or '
     f'{SET_STATE}: nova then builds it from its base image, without what was '
     'shelved'),
)  # fmt: skip


def make_instance(
    vm_state,
    task_state=None,
    locked=False,
    hours=0,
    power=power_state.RUNNING,
    devices=(),
    **image,
):
    """Return a nova Instance that fails where something is saved."""
    props = objects.ImageMetaProps(**image)
    fields = {
        'uuid': 'uuid',
        'host': 'host1',
        'vm_state': vm_state,
        'task_state': task_state,
        'power_state': power,
        'pci_requests': objects.InstancePCIRequests(requests=[*devices]),
        'launched_at': 'yesterday',
        'created_at': timeutils.utcnow() - datetime.timedelta(hours=hours),
        'updated_at': None,
        'locked': locked,
        'flavor': objects.Flavor(extra_specs={}),
        'image_meta': objects.ImageMeta(properties=props),
        'services': [mock.Mock(binary='nova-compute')],
        'get_network_info': list,
        'system_metadata': {},
    }
    return mock.Mock(spec_set=[*fields], **fields)


class AskTestCase(testtools.TestCase):
    def ask(self, operation, instance, up=True, raises=None):
        """Return what nova-api refuses, or None."""
        patch = mock.patch.object
        version, api = 'get_minimum_version_all_cells', admission.compute_api
        with (
            patch(admission.servicegroup, 'API') as groups,
            patch(objects.Service, 'get_by_compute_host', side_effect=raises),
            patch(objects.RequestSpec, 'get_by_instance_uuid'),
            patch(api, 'instance_has_share', lambda *_: False, create=True),
            patch(objects.service, version, return_value=99),
        ):
            groups.return_value.service_is_up.return_value = up
            try:
                admission.ask(operation, context.get_admin_context(), instance)
            except admission.NotMovable as exc:
                return exc
        return None

    def test_states(self):
        for operation in ALLOWED:
            for state in STATES:
                refused = self.ask(operation, make_instance(state))
                if state in ALLOWED[operation]:
                    self.assertIsNone(refused)
                else:
                    self.assertEqual(f'its vm_state is {state}', str(refused))
                    self.assertEqual('state', refused.cause)
                    self.assertTrue(refused.first)

    def test_what_has_to_be_done_before_a_move(self):
        for state, others, first in BEFORE_MOVE:
            refused = self.ask('migrate', make_instance(state, **others))
            self.assertIn(first, refused.first)
            built = 'wait until it is built' in first
            self.assertEqual(built, refused.is_being_built)

    def test_what_has_to_be_done_before_an_evacuation(self):
        for state, first in BEFORE_EVACUATION:
            instance = make_instance(state)
            self.assertEqual(first, self.ask('evacuate', instance).first)
            # The same is said where the host is down.
            said = f'start it; or of the server: {first}. Then evacuate it'
            found = self.ask('migrate', instance, up=False)
            self.assertEqual(said, found.first)

    def test_it_has_never_run(self):
        instance = make_instance(vm_states.ERROR)
        instance.launched_at = None
        refused = self.ask('evacuate', instance)
        self.assertEqual('its launched_at is None', str(refused))
        self.assertEqual('state', refused.cause)
        self.assertIn('delete it', refused.first)

    def test_power_states(self):
        """nova-conductor looks at them before a live migration alone."""
        for name, may_run, state, first in (
            ('RUNNING', None, '', ''),
            ('PAUSED', None, '', ''),
            ('SHUTDOWN', False, 'shutdown', 'start it'),
            ('CRASHED', False, 'crashed', 'start it'),
            ('NOSTATE', True, 'pending', 'reboot it (openstack'),
            ('SUSPENDED', True, 'suspended', 'or, if its guest runs, wait'),
        ):
            power = getattr(power_state, name)
            instance = make_instance(ACTIVE, power=power)
            self.assertIsNone(self.ask('migrate', instance))
            refused = self.ask('live-migrate', instance)
            self.assertEqual(may_run, refused and refused.may_run)
            if refused:
                self.assertEqual(f'its power_state is {state}', str(refused))
                self.assertIn(first, refused.first)
                self.assertEqual('state', refused.cause)

    def test_devices(self):
        new = mock.Mock(return_value=mock.Mock(version=99))
        patch = mock.patch.object
        name = 'get_by_host_and_binary'
        self.enterContext(patch(objects.Service, name, new))
        for requester, specs, is_live in (
            # A port's, and others.
            ('port', {}, True),
            (None, {'live_migratable': 'true'}, releases.MOVES_DEVICES),
            (None, {'live_migratable': 'false'}, False),
            (None, {}, False),
        ):
            alias = None if requester else 'nic'
            known = {'alias_name': alias, 'requester_id': requester}
            device = objects.InstancePCIRequest(spec=[specs], **known)
            instance = make_instance(ACTIVE, devices=[device])
            refused = self.ask('live-migrate', instance)
            self.assertEqual(is_live, refused is None)
            if refused:
                why = 'live-migratable devices|non-VIF related PCI requests'
                self.assertRegex(str(refused), why)
                self.assertEqual('never live-migrated', refused.cause)
                self.assertFalse(refused.may_run)
            self.assertIsNone(self.ask('migrate', instance))

    def test_an_administrator_moves_a_locked_one(self):
        instance = make_instance(ACTIVE, locked=True)
        self.assertIsNone(self.ask('migrate', instance))

    def test_what_no_state_lifts(self):
        """nova stops and moves a server that has a vTPM."""
        instance = make_instance(ACTIVE, **VTPM)
        self.assertIsNone(self.ask('migrate', instance))
        for operation in ('evacuate', 'live-migrate'):
            refused = self.ask(operation, instance)
            self.assertEqual(f'never {operation}d', refused.cause)
            self.assertIn('vTPM', str(refused))
            # What is said of it is said of all that are like it.
            self.assertNotIn('uuid', str(refused))

    def test_other_refusals(self):
        for name, cause, first in (
            ('ForbiddenWithShare', 'never evacuated', 'detach its shares'),
            ('ForbiddenWithAccelerators', 'never evacuated', ''),
            ('ServiceUnavailable', 'state', ''),
        ):
            # Not every release of nova has each.
            if cls := getattr(nova_exception, name, None):
                raises = cls(message='it is refused')
                instance = make_instance(ACTIVE)
                refused = self.ask('evacuate', instance, raises=raises)
                self.assertEqual('it is refused', str(refused))
                found = refused.cause, refused.first
                self.assertEqual((cause, first), found)

    def test_a_host_that_was_renamed(self):
        """nova-compute may start again, and write its record anew."""
        said = 'nova has no nova-compute of the name host1, where it stands'
        gone = nova_exception.ComputeHostNotFound(host='host1')
        for operation in ALLOWED:
            refused = self.ask(operation, make_instance(ACTIVE), raises=gone)
            self.assertEqual(said, str(refused))
            self.assertIn('([DEFAULT] host = host1): ', refused.first)
            # Once the host has failed, nothing can be started there.
            is_never = operation == 'evacuate'
            cause = 'never evacuated' if is_never else 'state'
            self.assertEqual(cause, refused.cause)

    def test_the_host_is_down(self):
        rebooting = f'of the server: {SET_ACTIVE}. Then evacuate it'
        for first, state, others in (
            ('start it, or evacuate the server', ACTIVE, {}),
            ('start it, or evacuate the server', STOPPED, {}),
            ('start it, or delete the server: ', vm_states.BUILDING, SPAWNING),
            (f'start it; or {rebooting}', ACTIVE, REBOOTING),
            # It is never evacuated.
            ('start it', ACTIVE, VTPM),
        ):
            instance = make_instance(state, **others)
            refused = self.ask('migrate', instance, up=False)
            self.assertEqual('nova-compute of host1 is down', str(refused))
            self.assertEqual(first, refused.first[: len(first)])
            if others is VTPM:
                self.assertEqual(first, refused.first)
