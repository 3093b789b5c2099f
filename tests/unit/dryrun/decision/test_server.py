# SPDX-License-Identifier: Apache-2.0

"""What each operation makes of a stored request, without nova's databases.

tests/functional has servers of a real nova, and its own requests to compare.
"""

import contextlib
import datetime
from unittest import mock

import ddt
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
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.decision import server as explain_server

objects.register_all()

CREATED = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
LIVE_MIGRATION = 'nova.conductor.tasks.live_migrate.LiveMigrationTask'
FLAVOR = objects.Flavor(id=1, name='small', vcpus=1, extra_specs={})
LARGE = objects.Flavor(
    id=2,
    name='large',
    vcpus=4,
    memory_mb=1,
    extra_specs={'hw:numa_nodes': '1'},
)


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
            node='n1',
            vm_state=vm_states.ACTIVE,
            created_at=None,
            flavor=FLAVOR,
            project_id=uuids.project,
            user_id='u',
            info_cache=None,
            image_ref=uuids.image,
            system_metadata={},
        )
        self.spec = objects.RequestSpec(
            id=1,
            instance_uuid=uuids.server,
            project_id=uuids.project,
            user_id='u',
            num_instances=5,
            flavor=FLAVOR,
            is_bfv=False,
            image=objects.ImageMeta(
                id=uuids.image, properties=objects.ImageMetaProps()
            ),
            pci_requests=objects.InstancePCIRequests(requests=[]),
            numa_topology=None,
            ignore_hosts=None,
            force_hosts=['old'],
            force_nodes=['old'],
            instance_group=None,
            requested_destination=None,
        )
        self.cloud = mock.Mock(
            target_cell=lambda ctxt, cell: contextlib.nullcontext(self.cctxt)
        )
        self.reader = servers.Reader(self.cloud)
        self.reader.load = lambda stored: self.spec
        self.reader.find = self.find
        place = 'nova_ext_sched.dryrun.decision.server'
        for name, value in {
            f'{place}.utils.setup_instance_group': self.note('group'),
            f'{place}.report.report_client_singleton': mock.Mock(),
            # As nova-compute reports it.
            f'{place}.compute_api.API._allow_resize_to_same_host': (
                lambda api, cold, instance: self.stays(cold)
            ),
            f'{place}._MigrationTask._execute': self.note('execute'),
            # As nova-conductor asks for it.
            f'{place}.objects.InstanceMapping.get_by_instance_uuid': (
                lambda *_: objects.InstanceMapping(cell_mapping=self.cell)
            ),
        }.items():
            self.useFixture(fixtures.MonkeyPatch(name, value))
        self.text = 'text'
        self.stays = lambda cold: False
        self.calls = []

    def find(self, uuid):
        return servers.Stored(uuid, self.instance, self.cell, self.text)

    def note(self, name):
        return lambda *_: self.calls.append(name)

    def server(self):
        return explain_server.Server(self.reader, uuids.server)

    def assertInvalid(self, expected, call, *args):
        error = self.assertRaises(exception.InvalidValue, call, *args)
        self.assertIn(expected, str(error))


@ddt.ddt
class StoredTestCase(ServerTestCase):
    def test_what_is_known(self):
        server = self.server()
        self.assertEqual('web', server.name)
        self.assertIsNone(server.read_build())
        # The project that owns it, whoever asks.
        self.assertEqual(uuids.project, server.ctxt.project_id)
        # It was created with others.
        self.assertEqual(1, server.spec_obj.num_instances)
        # nova does not store what ports and devices ask for.
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
        server = explain_server.Server(
            self.reader, uuids.server, spec_obj=spec
        )
        self.assertIs(spec, server.spec_obj)

    @ddt.data(
        # When it first ran; whether its build ended, and since when it lasts.
        (vm_states.ERROR, None, None, True, None),
        # nova-compute started anew while it built it.
        (vm_states.ERROR, 'h1', None, True, None),
        # It could not be unshelved.
        (vm_states.ERROR, None, CREATED, False, None),
        (vm_states.BUILDING, None, None, False, CREATED),
        (vm_states.BUILDING, 'h1', None, False, None),
        (vm_states.ACTIVE, 'h1', CREATED, False, None),
    )
    @ddt.unpack
    def test_a_server_that_never_ran(self, state, host, ran, failed, since):
        self.instance.vm_state = state
        self.instance.host = host
        self.instance.created_at = CREATED
        self.instance.launched_at = ran
        server = self.server()
        with mock.patch.object(explain_server.build, 'read') as read:
            self.assertEqual(
                read.return_value if failed else None, server.read_build()
            )
        self.assertEqual(since, server.building_since)

    def test_nova_does_not_know_it(self):
        self.text = None
        self.assertInvalid('expected the UUID of an existing', self.server)
        self.reader.find = lambda _: None
        self.assertInvalid('expected the UUID of an existing', self.server)

    def test_whether_it_boots_from_a_volume_is_found_out(self):
        delattr(self.spec, '_obj_is_bfv')
        with mock.patch.object(
            explain_server.compute_utils,
            'is_volume_backed_instance',
            return_value=True,
        ) as ask:
            server = self.server()
            with server.read():
                self.assertTrue(server.spec_obj.is_bfv)
        ask.assert_called_once_with(self.cctxt, self.instance)


class StayTestCase(ServerTestCase):
    """What the policies judge a server by where it stands."""

    def stay(self):
        with mock.patch.object(
            explain_server.running_image, 'restore'
        ) as self.restore:
            server = self.server()
            server.stay()
        return server

    def test_as_it_is_now(self):
        self.spec.flavor = LARGE
        # A member's keeps no filter from judging.
        self.spec.scheduler_hints = {
            fields.CHECK_TYPE: ['rebuild'],
            'reservation': ['a'],
        }
        self.stay()
        self.assertEqual('small', self.spec.flavor.name)
        self.assertIs(self.cell, self.spec.requested_destination.cell)
        self.assertEqual({'reservation': ['a']}, self.spec.scheduler_hints)
        self.restore.assert_not_called()

    def test_another_image(self):
        self.instance.image_ref = uuids.other
        server = self.stay()
        self.restore.assert_called_once_with(server.ctxt, self.spec)

    def test_keys_of_the_image_are_read_once(self):
        conf.register_opts(nova.conf.CONF)
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
                self.assertEqual(
                    {'a:b'}, request_state.of(server.spec_obj).image_keys
                )
        read.assert_called_once()


@ddt.ddt
class OperationsTestCase(ServerTestCase):
    @ddt.data('migrate', 'live_migrate', 'evacuate')
    def test_it_must_be_on_a_host(self, operation):
        self.instance.host = None
        self.assertInvalid(
            'boot or unshelve', getattr(self.server(), operation)
        )

    @ddt.data('migrate', 'live_migrate', 'evacuate', 'unshelve')
    def test_it_must_be_in_a_cell(self, operation):
        self.cell = None
        server = self.server()
        self.assertInvalid('not in a cell', getattr(server, operation))

    def test_a_server_that_conductor_has_not_created_yet(self):
        self.cell = None
        self.instance = objects.Instance(
            display_name='new',
            created_at=CREATED,
            host=None,
            vm_state=vm_states.BUILDING,
        )
        server = self.server()
        self.assertEqual(
            ('new', CREATED), (server.name, server.building_since)
        )
        server.boot()
        self.assertEqual(['group'], self.calls)

    @ddt.data(
        (False, None),
        (True, None),
        # What it has already, by another name.
        (False, objects.Flavor(id=1, name='renamed')),
    )
    @ddt.unpack
    def test_migrate(self, stays, flavor):
        self.stays = lambda cold: self.assertTrue(cold) or stays
        server = self.server()
        spec, pci_requests = server.spec_obj, server.spec_obj.pci_requests
        destination = objects.Destination(host='h2')
        server.migrate(destination, flavor)
        self.assertEqual([] if stays else ['h1'], spec.ignore_hosts)
        self.assertEqual('small', spec.flavor.name)
        self.assertIs(pci_requests, spec.pci_requests)
        self.assertIs(destination, spec.requested_destination)
        self.assertEqual(['execute'], self.calls)

    def test_live_migrate(self):
        self.useFixture(
            fixtures.MonkeyPatch(
                f'{LIVE_MIGRATION}._get_request_spec_for_select_destinations',
                lambda task: self.calls.append(task.request_spec),
            )
        )
        server = self.server()
        server.live_migrate()
        self.assertEqual([server.spec_obj], self.calls)
        self.assertEqual(['h1'], server.spec_obj.ignore_hosts)

    def test_devices_of_the_flavor(self):
        self.spec.flavor = objects.Flavor(
            id=1, extra_specs={'accel:device_profile': 'fpga'}
        )
        one = objects.RequestGroup(requester_id='x', resources={})
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.objects.RequestSpec.'
                'generate_request_groups_from_pci_requests',
                self.note('devices'),
            )
        )
        server = self.server()
        with mock.patch.object(
            request.cyborg,
            'get_device_profile_request_groups',
            return_value=[one],
        ):
            server.boot()
        self.assertEqual([one], server.spec_obj.requested_resources)
        self.assertEqual(['devices', 'group'], self.calls)

    def test_resize(self):
        self.stays = lambda cold: self.assertFalse(cold)
        self.spec.pci_requests.requests = [
            objects.InstancePCIRequest(
                count=1, request_id=name, alias_name=alias
            )
            for name, alias in ((uuids.port, None), (uuids.gpu, 'gpu'))
        ]
        server = self.server()
        with mock.patch.object(
            explain_server.hardware, 'numa_get_constraints'
        ) as numa:
            numa.return_value = objects.InstanceNUMATopology(cells=[])
            server.migrate(flavor=LARGE)
        spec = server.spec_obj
        self.assertEqual('large', spec.flavor.name)
        self.assertIs(numa.return_value, spec.numa_topology)
        # Of the old flavor's devices none is left, and every port's.
        self.assertEqual(
            [uuids.port],
            [one.request_id for one in spec.pci_requests.requests],
        )
        self.assertEqual(uuids.server, spec.pci_requests.instance_uuid)

    @ddt.data(('evacuate', 'h1', ['h1']), ('unshelve', None, None))
    @ddt.unpack
    def test_it_leaves_its_host(self, operation, host, ignored):
        self.instance.host = host
        server = self.server()
        getattr(server, operation)()
        spec = server.spec_obj
        self.assertEqual(ignored, spec.ignore_hosts)
        self.assertIsNone(spec.force_hosts)
        self.assertIs(self.cell, spec.requested_destination.cell)
        self.assertEqual(['group'], self.calls)

    def test_rebuild(self):
        server = self.server()
        validate = mock.Mock()
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.conductor.manager.ComputeTaskManager.'
                '_validate_image_traits_for_rebuild',
                staticmethod(validate),
            )
        )
        server.rebuild({'id': uuids.other, 'properties': {}})
        spec = server.spec_obj
        self.assertEqual(uuids.other, spec.image.id)
        self.assertTrue(fields.is_rebuild(spec))
        self.assertEqual(
            (['h1'], ['n1']), (spec.force_hosts, spec.force_nodes)
        )
        checker, _, instance, image = validate.call_args.args
        self.assertIs(self.cloud.client, checker.report_client)
        self.assertIs(self.instance, instance)
        self.assertEqual(uuids.other, image)
