# SPDX-License-Identifier: Apache-2.0

import logging
from unittest import mock

from cinderclient import exceptions as cinder_exc
import ddt
import fixtures
from keystoneauth1 import exceptions as ks_exc
from nova import context
from nova import exception as nova_exception
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from nova_ext_sched import exception
from nova_ext_sched.queries import reservation
from nova_ext_sched.queries import running_image
from tests.unit.request_filters import base as test_base

MOVE = objects.Destination(cell=None)


def said(image_id=None, **properties):
    """What Cinder says of a volume with such image metadata."""
    metadata = {**properties, **({'image_id': image_id} if image_id else {})}
    return {'size': 1, 'volume_image_metadata': metadata}


@ddt.ddt
class RunningImageTestCase(test_base.RequestFilterTestCase):
    """With nova's databases, Glance and Cinder replaced.

    tests/functional/test_running_image.py has nova's own.
    """

    level = logging.INFO

    def setUp(self):
        super().setUp()
        # A project's user, who may be allowed to migrate servers of others.
        self.ctxt = context.RequestContext('user', 'project', is_admin=False)
        self.running = uuids.running
        self.root = objects.BlockDeviceMapping(
            boot_index=0, destination_type='local', image_id=uuids.running
        )
        self.volume = {'size': 1}
        self.cells = []
        self.read = []
        self.system_metadata = {}
        self.glance, self.cinder = mock.Mock(), mock.Mock()
        self.glance.API.return_value.get = self.get_image
        self.cinder.API.return_value.get = self.get_volume
        for name, replacement in {
            'glance': self.glance,
            'cinder': self.cinder,
            'objects.Instance.get_by_uuid': self.get_instance,
            'objects.BlockDeviceMappingList.get_by_instance_uuid': (
                self.get_bdms
            ),
            'objects.InstanceMapping.get_by_instance_uuid': (
                lambda _, server: mock.Mock(cell_mapping='mapped')
            ),
            'nova_context.target_cell': self.target_cell,
        }.items():
            self.patch(name, replacement)

    def patch(self, name, replacement):
        """Replace what the module asks."""
        path = f'nova_ext_sched.queries.running_image.{name}'
        self.useFixture(fixtures.MockPatch(path, new=replacement))

    def target_cell(self, ctxt, cell):
        # The database hides other projects' servers from who is no admin.
        self.assertTrue(ctxt.is_admin)
        self.cells.append(cell if isinstance(cell, str) else cell.name)
        return mock.MagicMock()

    def get_instance(self, ctxt, server, expected_attrs):
        self.assertEqual(uuids.server, server)
        self.assertEqual([], expected_attrs)
        # nova reads the metadata where it is asked for.
        rest = {'system_metadata': self.system_metadata}
        return objects.Instance(uuid=server, image_ref=self.running, **rest)

    def get_bdms(self, ctxt, server):
        self.assertEqual(uuids.server, server)
        bdms = [self.root] if self.root else []
        return objects.BlockDeviceMappingList(objects=bdms)

    def get_image(self, ctxt, image_id):
        self.read.append(image_id)
        return {'id': image_id, 'properties': {'trait:CUSTOM_A': 'required'}}

    def get_volume(self, ctxt, volume_id):
        self.assertTrue(ctxt.is_admin)
        self.read.append(volume_id)
        return self.volume

    def request(self, image_id, destination=MOVE, **fields):
        return test_base.request_spec(
            requested_destination=destination,
            instance_uuid=uuids.server,
            **{'image': test_base.image(image_id), **fields},
        )

    def restore(self, destination=MOVE, **fields):
        self.spec = self.request(uuids.refused, destination, **fields)
        running_image.restore(self.ctxt, self.spec)
        return self.spec.image

    def refused(self, outage=False):
        """Move; return what the owner of the server reads.

        :param outage: whether it is no fault of an owner's
        """
        error = self.assertRaises(exception.RequestRefused, self.restore)
        self.assertEqual(uuids.refused, self.spec.image.id)
        self.assertIs(outage, error.__cause__ is not None)
        return error.reason

    @ddt.data(
        None,
        objects.Destination(),
        objects.Destination(host='h'),
        objects.Destination(aggregates=['a']),
    )
    def test_boot(self, destination):
        self.assertEqual(uuids.refused, self.restore(destination).id)
        self.assertEqual([], self.cells)

    @ddt.data(
        ('Instance', nova_exception.InstanceNotFound(instance_id='x')),
        ('InstanceMapping', nova_exception.InstanceMappingNotFound(uuid='x')),
    )
    @ddt.unpack
    def test_server_that_its_owner_deletes(self, kind, error):
        """No outage: the owner would page the operator."""
        reader = 'uuid' if kind == 'Instance' else 'instance_uuid'
        read = mock.Mock(side_effect=error)
        self.patch(f'objects.{kind}.get_by_{reader}', read)
        self.assertEqual(
            f'server {uuids.server} cannot be read', self.refused()
        )

    @ddt.data('cell1', None)
    def test_move(self, name):
        cell = objects.CellMapping(name=name) if name else None
        found = self.restore(objects.Destination(cell=cell))
        self.assertEqual(uuids.running, found.id)
        self.assertEqual(['CUSTOM_A'], found.properties.traits_required)
        self.assertEqual([name or 'mapped'], self.cells)
        for part in (uuids.server, uuids.running, uuids.refused):
            self.assertIn(part, self.output.output)

    def restored_by(self, *askers):
        """Return what was read of the server, and of images or the volume."""
        self.cells, self.read = [], []
        for asker in askers:
            running_image.restore(self.ctxt, self.spec, asker)
        return len(self.cells), len(self.read)

    @ddt.data(True, False)
    def test_all_request_filters_read_once(self, on_volume):
        if on_volume:
            self.boot_from_volume()
            self.volume = said(uuids.running)
        self.restore()
        # The spec has the server's own image now.
        images = int(on_volume)
        self.assertEqual((1, images), self.restored_by('', 'one'))
        # Filtered again, and after a failure.
        self.assertEqual((1, images), self.restored_by('one', ''))
        self.running = uuids.other
        with mock.patch.object(running_image, '_restore', side_effect=OSError):
            self.assertRaises(OSError, self.restored_by, 'one')
        self.assertEqual((1, 1), self.restored_by(''))

    def test_an_image_is_read_once(self):
        self.set(placement_req_required_member_prefix=['trait:'])
        self.restore()
        for _ in range(2):
            found = reservation.find_image_keys(self.ctxt, self.spec)
            self.assertEqual({'trait:CUSTOM_A'}, found)
        self.assertEqual([uuids.running], self.read)

    def test_move_with_nothing_to_mend(self):
        self.running = uuids.refused
        self.assertEqual(uuids.refused, self.restore().id)
        self.assertEqual([], self.read)
        self.assertEqual('', self.output.output)

    @ddt.data(None, objects.ImageMeta())
    def test_image_that_was_never_to_be_rebuilt(self, unknown):
        self.restore(image=unknown)
        self.assertEqual([], self.cells)

    @ddt.data(
        (nova_exception.ImageNotFound(image_id='x'), True),
        # It may be there: no copy stands in for it.
        (nova_exception.ImageNotAuthorized(image_id='x'), False),
        (nova_exception.GlanceConnectionFailed(server='x', reason='x'), False),
        (OSError(), False),
    )
    @ddt.unpack
    def test_image_that_is_gone(self, error, expected):
        self.glance.API.return_value.get = mock.Mock(side_effect=error)
        known, args = {}, (self.ctxt, uuids.running)
        found = self.assertRaises(
            exception.RequestRefused, running_image.read, *args, known
        )
        self.assertIs(expected, isinstance(found, running_image.ImageGone))
        self.assertEqual({}, known)

    @ddt.data(
        (OSError, 'token', True),
        # Its owner took it away.
        (nova_exception.ImageNotFound(image_id='x'), None, False),
        (nova_exception.ImageNotAuthorized(image_id='x'), None, False),
        # nova cannot read it: its owner may write it so, after the boot.
        ([{'properties': {'hw_disk_bus': 'none'}}], 'token', False),
    )
    @ddt.unpack
    def test_image_that_cannot_be_read(self, answer, token, outage):
        self.ctxt.auth_token = token
        self.glance.API.return_value.get = mock.Mock(side_effect=answer)
        self.assertIn(uuids.running, self.refused(outage=outage))

    def boot_from_volume(self, booted_from=None, image_ref=''):
        self.running = image_ref
        ids = {'volume_id': uuids.volume, 'image_id': booted_from}
        self.root = objects.BlockDeviceMapping(
            boot_index=0, destination_type='volume', **ids
        )

    # nova writes the image of the instance where it rolls back a rebuild, and
    # never again: only the volume's counts.
    @ddt.named_data(
        ['empty', ''], ['refused', uuids.refused], ['stale', uuids.stale]
    )
    def test_volume(self, image_ref):
        self.boot_from_volume(image_ref=image_ref)
        self.volume = said(uuids.running, **{'trait:CUSTOM_B': 'required'})
        found = self.restore()
        self.assertEqual(uuids.running, found.id)
        self.assertEqual(['CUSTOM_B'], found.properties.traits_required)
        self.assertEqual([uuids.volume], self.read)
        for part in (uuids.server, uuids.running, uuids.refused):
            self.assertIn(part, self.output.output)

    def test_volume_with_the_image_of_the_request(self):
        self.boot_from_volume(image_ref=uuids.stale)
        self.volume = said(uuids.refused)
        self.assertEqual(uuids.refused, self.restore().id)
        self.assertEqual('', self.output.output)

    def test_volume_that_says_properties_and_no_image(self):
        self.boot_from_volume(uuids.refused)
        self.volume = said(**{'trait:CUSTOM_B': 'required'})
        found = self.restore()
        self.assertNotIn('id', found)
        self.assertEqual(['CUSTOM_B'], found.properties.traits_required)
        self.assertIn(uuids.volume, self.output.output)

    @ddt.data({'size': 1}, {'size': 1, 'volume_image_metadata': {}})
    def test_volume_that_says_nothing(self, volume):
        self.volume = volume
        self.boot_from_volume()
        self.assertIn(uuids.volume, self.refused())
        self.boot_from_volume(uuids.other)
        self.assertIn(uuids.volume, self.refused())
        self.boot_from_volume(uuids.refused)
        self.assertEqual(uuids.refused, self.restore().id)

    @ddt.data(
        (nova_exception.VolumeNotFound(volume_id='v'), 'token', False),
        (nova_exception.VolumeNotFound(volume_id='v'), None, False),
        # A token that its owner revoked, or that may not read.
        (nova_exception.Forbidden(), 'token', False),
        (cinder_exc.Unauthorized(401), 'token', False),
        (ks_exc.Unauthorized(), 'token', False),
        # [cinder] of nova.conf.
        (nova_exception.Forbidden(), None, True),
        (cinder_exc.Unauthorized(401), None, True),
        (ks_exc.Unauthorized(), None, True),
        (nova_exception.CinderConnectionFailed(reason='r'), 'token', True),
        (OSError('cinder.internal'), 'token', True),
    )
    @ddt.unpack
    def test_volume_that_cannot_be_read(self, error, token, outage):
        """No outage where its owner deletes it, or may not see it."""
        self.ctxt.auth_token = token
        self.boot_from_volume(uuids.refused)
        self.cinder.API.return_value.get = mock.Mock(side_effect=error)
        reason = self.refused(outage=outage)
        self.assertIn(uuids.volume, reason)
        self.assertNotIn('cinder.internal', reason)

    @ddt.data({'min_ram': 'lots'}, {'hw_disk_bus': 'none'})
    def test_properties_that_nova_cannot_read(self, properties):
        """The owner of a volume may write them."""
        self.boot_from_volume()
        self.volume = said(uuids.running, **properties)
        self.assertIn(uuids.volume, self.refused())

    @ddt.data(
        ({}, ['reservation:a', 'base_image_ref']),
        # No move.
        ({'destination': objects.Destination()}, None),
        # The copy is of the image of a rebuild that was refused.
        ({'stored': uuids.other}, None),
        ({'instance': uuids.other}, None),
        # The owner of a volume writes its image metadata.
        ({'volume': uuids.volume}, None),
    )
    @ddt.unpack
    def test_copy_of_an_image(self, given, expected):
        if 'volume' in given:
            self.boot_from_volume(image_ref=uuids.running)
        self.running = given.get('instance', uuids.running)
        self.system_metadata = {
            'image_reservation:a': 'true',
            'image_base_image_ref': 'b',
            'reservation:b': 'true',
        }
        self.stored(given.get('stored', uuids.running))
        destination = given.get('destination', MOVE)
        spec = self.request(uuids.running, destination)
        self.assertEqual(expected, running_image.read_copy(self.ctxt, spec))

    def stored(self, image_id):
        self.patch(
            'objects.RequestSpec.get_by_instance_uuid',
            lambda *_: objects.RequestSpec(image=test_base.image(image_id)),
        )

    def test_copy_of_a_server_that_is_deleted(self):
        gone = nova_exception.RequestSpecNotFound(instance_uuid='x')
        read = mock.Mock(side_effect=gone)
        self.patch('objects.RequestSpec.get_by_instance_uuid', read)
        args = self.ctxt, self.request(uuids.running)
        error = self.assertRaises(
            exception.RequestRefused, running_image.read_copy, *args
        )
        self.assertIsNone(error.__cause__)

    def test_server_without_a_root_disk(self):
        """nova then takes it for one on a volume, and knows none."""
        self.root, self.running = None, ''
        self.assertIn(uuids.server, self.refused())
