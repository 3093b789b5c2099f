# SPDX-License-Identifier: Apache-2.0

"""Groups of stored requests; tests/functional compares specs with nova's."""

from unittest import mock

from nova import exception as nova_exception
from nova import objects
from oslo_serialization import jsonutils
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched.cmd.audit import request_specs

objects.register_all()


class LoaderTestCase(testtools.TestCase):
    def load(self, spec, **groups):
        """Load a spec twice; return it and the groups that were read."""
        text = jsonutils.dumps(spec.obj_to_primitive())
        with mock.patch.object(
            objects.InstanceGroup, 'get_by_uuid', **groups
        ) as read:
            loader = request_specs.Loader(None)
            loader.load(uuids.other, text)
            loaded = loader.load(uuids.server, text)
        self.assertEqual(uuids.server, loaded.instance_uuid)
        return loaded, [call.args[1] for call in read.mock_calls]

    def test_no_group(self):
        _, read = self.load(objects.RequestSpec(instance_group=None))
        self.assertEqual([], read)

    def test_a_group_is_read_once(self):
        group = objects.InstanceGroup(uuid=uuids.group)
        full = objects.InstanceGroup(uuid=uuids.group, members=['a'])
        loaded, read = self.load(
            objects.RequestSpec(instance_group=group), return_value=full
        )
        self.assertIs(full, loaded.instance_group)
        self.assertEqual([uuids.group], read)

    def test_group_that_only_the_hint_names(self):
        spec = objects.RequestSpec(
            instance_group=objects.InstanceGroup(),
            scheduler_hints={'group': [uuids.group]},
        )
        _, read = self.load(spec, return_value=None)
        self.assertEqual([uuids.group], read)

    def test_group_that_was_deleted(self):
        group = objects.InstanceGroup(uuid=uuids.group)
        loaded, _ = self.load(
            objects.RequestSpec(instance_group=group),
            side_effect=nova_exception.InstanceGroupNotFound(
                group_uuid=uuids.group
            ),
        )
        self.assertIsNone(loaded.instance_group)
