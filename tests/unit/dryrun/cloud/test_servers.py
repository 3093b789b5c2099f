# SPDX-License-Identifier: Apache-2.0

"""The request of each server; tests/functional reads real ones."""

import types
from unittest import mock

import ddt
from nova import exception as nova_exception
from nova import objects
import nova.conf
from oslo_config import fixture as config_fixture
from oslo_serialization import jsonutils
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched import conf
from nova_ext_sched import exception
from nova_ext_sched import request_state
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.queries import running_image

CONF = nova.conf.CONF
objects.register_all()


@ddt.ddt
class ServersTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        conf.register_opts(CONF)
        self.config = self.useFixture(config_fixture.Config(CONF)).config
        self.spec = objects.RequestSpec(
            image=objects.ImageMeta(id='image1'), project_id='p', user_id='u'
        )
        self.stored = {uuid: 'text' for uuid in ('a', 'b')}
        self.aggregates = [types.SimpleNamespace(name='rack1')]
        self.cloud = mock.Mock(cells={'cell': objects.CellMapping()})
        self.cloud.ask_cell = lambda _cell, select, *args: select(None, *args)
        self.cloud.aggregates_of.return_value = self.aggregates
        self.cloud.host_state_cls = lambda host, *_: types.SimpleNamespace(
            host=host
        )

    def read(self, image_ref='image1', load=None):
        instances = [
            types.SimpleNamespace(
                uuid=uuid,
                display_name=name,
                project_id='p',
                user_id='u',
                flavor=objects.Flavor(name='now'),
                image_ref=image_ref,
            )
            for uuid, name in (('a', 'web'), ('b', None))
        ]
        with (
            mock.patch.object(objects, 'InstanceList') as listed,
            mock.patch.object(
                servers, '_select_specs', return_value=self.stored
            ),
            mock.patch.object(
                servers.Loader,
                'load',
                side_effect=load or (lambda *_: self.spec),
            ),
            mock.patch.object(servers.process, 'context') as ctxt,
            mock.patch.object(running_image, 'restore') as self.restore,
        ):
            listed.get_uuids_by_host.return_value = ['b', 'a', 'other']
            listed.get_by_filters.return_value = instances
            self.listed = listed
            self.ctxt = ctxt.return_value
            return list(servers.Servers(self.cloud).read('cell', 'h'))

    def test_pages(self):
        with mock.patch.object(servers, 'PAGE', 2):
            self.read()
        self.assertEqual(
            [['a', 'b'], ['other']],
            [
                call.args[1]['uuid']
                for call in self.listed.get_by_filters.call_args_list
            ],
        )

    def test_servers(self):
        first, second = self.read()
        self.assertEqual(
            [('a', 'web', 'p', ''), ('b', '', 'p', '')],
            [(s.uuid, s.name, s.project_id, s.fault) for s in (first, second)],
        )
        # Each beside the others of its host, as if it were placed there now.
        self.assertEqual({'b', 'other'}, {*first.host_state.instances})
        self.assertEqual({'a', 'other'}, {*second.host_state.instances})
        self.assertEqual(self.aggregates, first.host_state.aggregates)
        self.assertEqual('now', first.request_spec.flavor.name)
        self.restore.assert_not_called()

    def test_hint_of_a_rebuild(self):
        """A member's keeps no filter from judging."""
        self.spec.scheduler_hints = {
            '_nova_check_type': ['rebuild'],
            'reservation': ['a'],
        }
        first, _second = self.read()
        self.assertEqual(
            {'reservation': ['a']}, first.request_spec.scheduler_hints
        )

    def test_another_image(self):
        self.read(image_ref='image0')
        self.assertEqual(
            [mock.call(self.ctxt, self.spec)] * 2, self.restore.mock_calls
        )

    def read_images(self, **answer):
        """Read where keys of the image count; Glance answers this."""
        self.config(
            group='nova_ext_sched',
            member_sources=['image'],
            placement_req_required_member_prefix=['a:'],
        )
        with mock.patch.object(
            servers.reservation, 'read_image_keys', **answer
        ) as read:
            return self.read(), read

    def test_keys_of_the_image(self):
        _, read = self.read_images(return_value={'a:b'})
        self.assertEqual({'a:b'}, request_state.of(self.spec).image_keys)
        # Once for both servers.
        read.assert_called_once_with(self.ctxt, 'image1')

    def test_no_request_spec(self):
        del self.stored['a']
        first, second = self.read()
        self.assertIsNone(first.request_spec)
        self.assertEqual(
            'nova has no request spec of the server, and nova cannot move it '
            'either',
            first.fault,
        )
        self.assertEqual('', second.fault)

    def test_broken_request_spec(self):
        first, _ = self.read(load=ValueError('no JSON'))
        self.assertEqual(
            'its request spec cannot be read, and nova cannot move it either: '
            'ValueError: no JSON',
            first.fault,
        )

    @ddt.data(
        (exception.RequestRefused('no volume'), 'no volume'),
        (KeyError('x'), "KeyError: 'x'"),
    )
    @ddt.unpack
    def test_image_that_cannot_be_read(self, exc, fault):
        (first, _), _ = self.read_images(side_effect=exc)
        self.assertIsNone(first.request_spec)
        self.assertEqual(fault, first.fault)


class LoaderTestCase(testtools.TestCase):
    """tests/functional compares specs with nova's."""

    def load(self, spec, **groups):
        """Load a spec twice; return it and the groups that were read."""
        text = jsonutils.dumps(spec.obj_to_primitive())
        with mock.patch.object(
            objects.InstanceGroup, 'get_by_uuid', **groups
        ) as read:
            loader = servers.Loader(None)
            loader.load(uuids.other, text)
            loaded = loader.load(uuids.server, text)
        self.assertEqual(uuids.server, loaded.instance_uuid)
        return loaded, [call.args[1] for call in read.mock_calls]

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
