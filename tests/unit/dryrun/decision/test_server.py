# SPDX-License-Identifier: Apache-2.0

"""What a stored request is and becomes, without nova's databases.

tests/functional has each operation on servers of a real nova, and nova's own
requests to compare.
"""

import contextlib
import datetime
from unittest import mock

import fixtures
from nova import context
from nova import objects
from nova.compute import vm_states
import nova.conf
from oslo_config import fixture as config_fixture
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched import conf
from nova_ext_sched import exception
from nova_ext_sched import fields
from nova_ext_sched import request_state
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.decision import server as explain_server
from tests.unit.request_filters import base

conf.register_opts(nova.conf.CONF)
objects.register_all()

CREATED = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
FLAVOR = objects.Flavor(id=1, name='small', vcpus=1, extra_specs={})
LARGE = objects.Flavor(id=2, name='large', vcpus=4, extra_specs={})


class ServerTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.config = self.useFixture(config_fixture.Config(nova.conf.CONF))
        self.cctxt = context.RequestContext('user', 'operators', is_admin=True)
        self.cell = objects.CellMapping(uuid=uuids.cell, name='cell1')
        self.instance = objects.Instance(
            uuid=uuids.server,
            display_name='web',
            host='h1',
            vm_state=vm_states.ACTIVE,
            flavor=FLAVOR,
            project_id=uuids.project,
            user_id='u',
            info_cache=None,
            image_ref=uuids.image,
            system_metadata={},
        )
        absent = 'numa_topology', 'ignore_hosts', 'instance_group'
        self.spec = base.request_spec(
            project_id=uuids.project,
            user_id='u',
            num_instances=5,
            flavor=FLAVOR,
            image=base.image(uuids.image),
            pci_requests=objects.InstancePCIRequests(requests=[]),
            **dict.fromkeys(('force_hosts', 'force_nodes'), ['old']),
            instance_uuid=uuids.server,
            **dict.fromkeys(absent),
        )
        # What nova does not store.
        for name in ('requested_resources', 'request_level_params'):
            delattr(self.spec, f'_obj_{name}')
        self.cloud = mock.Mock(
            target_cell=lambda ctxt, cell: contextlib.nullcontext(self.cctxt)
        )
        self.reader = servers.Reader(self.cloud)
        self.reader.load = lambda stored: self.spec
        self.reader.find = self.find
        name = 'nova.scheduler.utils.setup_instance_group'
        group = self.useFixture(fixtures.MockPatch(name))
        self.set_up_group = group.mock
        self.text = 'text'

    def find(self, uuid):
        return servers.Stored(uuid, self.instance, self.cell, self.text)

    def server(self):
        return explain_server.Server(self.reader, uuids.server)

    def assertInvalid(self, expected, call, *args):
        error = self.assertRaises(exception.InvalidValue, call, *args)
        self.assertIn(expected, str(error))


class StoredTestCase(ServerTestCase):
    def test_what_is_known(self):
        server = self.server()
        self.assertEqual('web', server.name)
        self.assertIsNone(server.read_build())
        # The project that owns it, whoever asks.
        self.assertEqual(uuids.project, server.ctxt.project_id)
        # It was created with others.
        self.assertEqual(1, server.spec_obj.num_instances)
        # What ports and devices ask for.
        self.assertEqual([], server.spec_obj.requested_resources)

    def test_what_was_read_before_is_not_read_again(self):
        stored, self.reader.find = self.find(uuids.server), None
        server = explain_server.Server(self.reader, uuids.server, stored)
        self.assertEqual(self.cell.uuid, server.cell)
        with server.read() as (cctxt, instance):
            self.assertIs(self.cctxt, cctxt)
            self.assertIs(self.instance, instance)
        # Nor a request, of a server that nova has none of.
        self.text = None
        self.reader.find, spec = self.find, self.spec.obj_clone()
        asked = self.reader, uuids.server
        server = explain_server.Server(*asked, spec_obj=spec)
        self.assertIs(spec, server.spec_obj)

    def test_a_server_that_never_ran(self):
        for state, host, ran, failed, since in (
            # When it first ran; whether its build ended, and since when it
            # lasts.
            (vm_states.ERROR, None, None, True, None),
            # nova-compute started anew while it built it.
            (vm_states.ERROR, 'h1', None, True, None),
            # It could not be unshelved.
            (vm_states.ERROR, None, CREATED, False, None),
            (vm_states.BUILDING, None, None, False, CREATED),
            (vm_states.BUILDING, 'h1', None, False, None),
            (vm_states.ACTIVE, 'h1', CREATED, False, None),
        ):
            self.instance.vm_state, self.instance.host = state, host
            self.instance.created_at = CREATED
            self.instance.launched_at = ran
            server = self.server()
            with mock.patch.object(explain_server.build, 'read') as read:
                expected = read.return_value if failed else None
                self.assertEqual(expected, server.read_build())
            self.assertEqual(since, server.building_since)

    def test_nova_does_not_know_it(self):
        self.text = None
        self.assertInvalid('There is no server', self.server)
        self.reader.find = lambda _: None
        self.assertInvalid('There is no server', self.server)

    def test_whether_it_boots_from_a_volume_is_found_out(self):
        delattr(self.spec, '_obj_is_bfv')
        name, asked = 'is_volume_backed_instance', explain_server.compute_utils
        with mock.patch.object(asked, name, return_value=True) as ask:
            server = self.server()
            with server.read():
                self.assertTrue(server.spec_obj.is_bfv)
        ask.assert_called_once_with(self.cctxt, self.instance)


class StayTestCase(ServerTestCase):
    """What the policies judge a server by where it stands."""

    def stay(self):
        image = explain_server.running_image
        with mock.patch.object(image, 'restore') as self.restore:
            server = self.server()
            server.stay()
        return server

    def test_as_it_is_now(self):
        self.spec.flavor = LARGE
        # A member's keeps no filter from judging.
        hints = {fields.CHECK_TYPE: ['rebuild'], 'reservation': ['a']}
        self.spec.scheduler_hints = hints
        self.stay()
        self.assertEqual('small', self.spec.flavor.name)
        self.assertIs(self.cell, self.spec.requested_destination.cell)
        self.assertEqual({'reservation': ['a']}, self.spec.scheduler_hints)
        self.restore.assert_not_called()

    def test_another_image(self):
        self.instance.image_ref = uuids.other
        server = self.stay()
        self.restore.assert_called_once_with(server.ctxt, self.spec)

    def test_disks_that_were_read_are_not_read_again(self):
        """One that boots from a volume; Cinder alone is asked."""
        self.instance.image_ref = ''
        root = objects.BlockDeviceMapping(
            boot_index=0,
            source_type='volume',
            destination_type='volume',
            volume_id=uuids.volume,
            image_id=None,
        )
        disks = objects.BlockDeviceMappingList(objects=[root])
        stored = self.find(uuids.server)._replace(disks=disks)
        server = explain_server.Server(self.reader, uuids.server, stored)
        metadata = {'image_id': uuids.rebuilt}
        with mock.patch('nova.volume.cinder.API') as cinder:
            get = cinder.return_value.get
            get.return_value = {'volume_image_metadata': metadata}
            server.stay()
        get.assert_called_once_with(mock.ANY, uuids.volume)
        self.assertEqual(uuids.rebuilt, server.spec_obj.image.id)
        # nova has no root disk of it.
        root.boot_index = 1
        server = explain_server.Server(self.reader, uuids.server, stored)
        refused = self.assertRaises(exception.RequestRefused, server.stay)
        self.assertIn(uuids.server, str(refused))

    def test_keys_of_the_image_are_read_once(self):
        self.config.config(
            group='nova_ext_sched',
            member_sources=['image'],
            placement_req_required_member_prefix=['a:'],
        )
        with mock.patch.object(
            servers.reservation, 'read_image_keys', return_value={'a:b'}
        ) as read:
            self.reader = servers.Reader(self.cloud)
            self.reader.load = lambda _: self.spec.obj_clone()
            self.reader.find = self.find
            for server in (self.stay(), self.stay()):
                found = request_state.of(server.spec_obj).image_keys
                self.assertEqual({'a:b'}, found)
        read.assert_called_once()


class OperationsTestCase(ServerTestCase):
    def test_where_it_must_be(self):
        self.instance.host = None
        for operation in ('migrate', 'live_migrate', 'evacuate'):
            server = self.server()
            self.assertInvalid('on no host: use', getattr(server, operation))
        self.cell = None
        for operation in ('migrate', 'live_migrate', 'evacuate', 'unshelve'):
            server = self.server()
            self.assertInvalid('not in a cell', getattr(server, operation))

    def test_a_server_that_conductor_has_not_created_yet(self):
        self.cell = None
        known = {'display_name': 'new', 'created_at': CREATED, 'host': None}
        building = vm_states.BUILDING
        self.instance = objects.Instance(vm_state=building, **known)
        server = self.server()
        self.assertEqual('new', server.name)
        self.assertEqual(CREATED, server.building_since)
        server.boot()
        self.set_up_group.assert_called_once()
