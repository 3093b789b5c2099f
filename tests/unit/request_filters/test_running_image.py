# SPDX-License-Identifier: Apache-2.0

import logging
from unittest import mock

import ddt
import fixtures
from nova import exception as nova_exception
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from nova_ext_sched.request_filters import running_image
from tests.unit.request_filters import base as test_base


def image(image_id):
    return objects.ImageMeta(id=image_id, properties=objects.ImageMetaProps())


@ddt.ddt
class RunningImageTestCase(test_base.RequestFilterTestCase):
    def setUp(self):
        super().setUp()
        self.output = self.useFixture(
            fixtures.FakeLogger(level=logging.WARNING)
        )
        self.running = uuids.running
        self.glance = mock.Mock()
        self.glance.API.return_value.get = self.get_image
        self.read = []
        for name, replacement in {
            'glance': self.glance,
            'objects.Instance.get_by_uuid': self.get_instance,
            'objects.InstanceMapping.get_by_instance_uuid': mock.Mock(
                return_value=mock.Mock(cell_mapping='mapped')
            ),
            'nova_context.target_cell': mock.MagicMock(
                side_effect=self.target_cell
            ),
        }.items():
            self.useFixture(
                fixtures.MockPatch(
                    f'nova_ext_sched.request_filters.running_image.{name}',
                    new=replacement,
                )
            )
        self.cells = []

    def target_cell(self, ctxt, cell):
        self.assertTrue(ctxt.is_admin)
        self.cells.append(cell if isinstance(cell, str) else cell.name)
        return mock.MagicMock()

    def get_instance(self, ctxt, server, expected_attrs):
        self.assertEqual(uuids.server, server)
        return objects.Instance(uuid=server, image_ref=self.running)

    def get_image(self, ctxt, image_id):
        self.read.append(image_id)
        return {'id': image_id, 'properties': {'trait:CUSTOM_A': 'required'}}

    def restore(self, destination, **fields):
        fields.setdefault('image', image(uuids.refused))
        self.spec = test_base.request_spec(
            requested_destination=destination,
            instance_uuid=uuids.server,
            **fields,
        )
        running_image.restore(self.ctxt, self.spec)
        return self.spec.image

    @ddt.data(
        None,
        objects.Destination(),
        objects.Destination(host='h'),
        objects.Destination(aggregates=['a']),
    )
    def test_boot(self, destination):
        self.assertEqual(uuids.refused, self.restore(destination).id)
        self.assertEqual([], self.cells)

    @ddt.data('cell1', None)
    def test_move(self, name):
        cell = objects.CellMapping(name=name) if name else None
        found = self.restore(objects.Destination(cell=cell))
        self.assertEqual(uuids.running, found.id)
        self.assertEqual(['CUSTOM_A'], found.properties.traits_required)
        self.assertEqual([name or 'mapped'], self.cells)
        for part in (uuids.server, uuids.running, uuids.refused):
            self.assertIn(part, self.output.output)

    @ddt.data(uuids.refused, '', None)
    def test_move_with_nothing_to_mend(self, running):
        self.running = running
        found = self.restore(objects.Destination(cell=None))
        self.assertEqual(uuids.refused, found.id)
        self.assertEqual([], self.read)
        self.assertEqual('', self.output.output)

    @ddt.data(None, objects.ImageMeta())
    def test_nova_knows_no_image(self, unknown):
        self.restore(objects.Destination(cell=None), image=unknown)
        self.assertEqual([], self.cells)

    def test_glance_fails(self):
        self.glance.API.return_value.get = mock.Mock(side_effect=OSError)
        error = self.assertRaises(
            nova_exception.RequestFilterFailed,
            self.restore,
            objects.Destination(cell=None),
        )
        self.assertIn(uuids.running, str(error))
        self.assertEqual(uuids.refused, self.spec.image.id)
