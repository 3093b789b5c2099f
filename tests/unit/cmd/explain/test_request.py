# SPDX-License-Identifier: Apache-2.0

"""The request of a server to be, without nova's database and Glance."""

import argparse
from unittest import mock

import ddt
import fixtures
from nova import context
from nova import exception as nova_exception
from nova import objects
import nova.conf
from nova.scheduler import utils
from oslo_config import fixture as config_fixture
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched import exception
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import request

objects.register_all()


def flavor(**extra_specs):
    return objects.Flavor(
        id=1,
        flavorid='f',
        name='tiny',
        memory_mb=64,
        vcpus=1,
        root_gb=0,
        ephemeral_gb=0,
        swap=0,
        extra_specs=extra_specs,
    )


class RequestTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.config = self.useFixture(config_fixture.Config(nova.conf.CONF))
        self.ctxt = context.RequestContext('user', 'project', is_admin=True)
        self.flavor = flavor()
        self.glance = self.patch(request.glance, 'API').return_value.get
        self.by_id = self.patch(objects.Flavor, 'get_by_flavor_id')
        self.by_name = self.patch(objects.Flavor, 'get_by_name')
        self.by_id.side_effect = lambda ctxt, name: self.flavor
        self.group = self.patch(objects.InstanceGroup, 'get_by_uuid')
        self.group.side_effect = lambda ctxt, uuid: objects.InstanceGroup(
            uuid=uuid, policy='anti-affinity', members=[], hosts=[]
        )

    def patch(self, place, name):
        return self.useFixture(fixtures.MockPatchObject(place, name)).mock

    def wanted(self, **arguments):
        return argparse.Namespace(
            **{
                'flavor': 'tiny',
                'image': None,
                'image_property': [],
                'hint': [],
                'server_group': None,
                'availability_zone': None,
                'project': uuids.project,
                'boot_from_volume': False,
                **arguments,
            }
        )

    def build(self, **arguments):
        wanted = self.wanted(**arguments)
        image = request.get_image(self.ctxt, wanted)
        return request.build(self.ctxt, wanted, self.flavor, image)

    def assertInvalid(self, where, expected, call, *args, **kwargs):
        error = self.assertRaises(
            exception.InvalidValue, call, *args, **kwargs
        )
        self.assertEqual(where, error.where)
        self.assertIn(expected, error.expected)
        return error


@ddt.ddt
class BuildTestCase(RequestTestCase):
    def test_flavor_alone(self):
        spec = self.build()
        self.assertEqual(
            (self.flavor, uuids.project, 1, False, None),
            (
                spec.flavor,
                spec.project_id,
                spec.num_instances,
                spec.is_bfv,
                spec.requested_destination,
            ),
        )
        self.assertEqual({}, spec.scheduler_hints)
        self.assertIsNone(spec.instance_group)
        self.assertIsNone(spec.force_hosts)

    def test_everything_named(self):
        spec = self.build(
            hint=[('a', '1'), ('b', '2'), ('a', '3')],
            boot_from_volume=True,
        )
        self.assertEqual({'a': ['1', '3'], 'b': ['2']}, spec.scheduler_hints)
        self.assertTrue(spec.is_bfv)

    def test_zone_and_forced_host(self):
        spec = self.build(availability_zone='z:h:n')
        self.assertEqual('z', spec.availability_zone)
        self.assertEqual((['h'], ['n']), (spec.force_hosts, spec.force_nodes))

    @ddt.data(
        {'server_group': uuids.group},
        {'hint': [('group', uuids.group)]},
        # The option is the group, whatever a hint says.
        {'server_group': uuids.group, 'hint': [('group', uuids.other)]},
    )
    def test_server_group(self, arguments):
        spec = self.build(**arguments)
        self.assertEqual(uuids.group, spec.instance_group.uuid)
        self.assertEqual(['group'], [*spec.scheduler_hints])

    def test_server_group_that_is_not_there(self):
        self.group.side_effect = nova_exception.InstanceGroupNotFound(
            group_uuid='web'
        )
        error = self.assertInvalid(
            '--server-group',
            'the UUID of an existing server group',
            self.build,
            server_group='web',
        )
        self.assertEqual('web', error.got)

    def test_what_nova_api_refuses(self):
        self.flavor = flavor(**{'hw:numa_nodes': 'two'})
        self.assertInvalid(
            'the request', 'a request that nova-api accepts', self.build
        )

    def test_device_profile(self):
        self.flavor = flavor(**{'accel:device_profile': 'fpga'})
        groups = self.patch(
            request.cyborg, 'get_device_profile_request_groups'
        )
        one = objects.RequestGroup(requester_id='x')
        groups.return_value = [one]
        self.assertEqual([one], self.build().requested_resources)
        groups.assert_called_once_with(self.ctxt, 'fpga')


@ddt.ddt
class NamedTestCase(RequestTestCase):
    def test_id_before_name(self):
        self.by_name.return_value = flavor()
        found = request.get_flavor(self.ctxt, 'f')
        self.assertIs(self.flavor, found)
        self.by_id.side_effect = nova_exception.FlavorNotFound(flavor_id='f')
        found = request.get_flavor(self.ctxt, 'f')
        self.assertIs(self.by_name.return_value, found)

    def test_no_flavor(self):
        self.by_id.side_effect = nova_exception.FlavorNotFound(flavor_id='f')
        self.by_name.side_effect = nova_exception.FlavorNotFoundByName(
            flavor_name='f'
        )
        self.assertInvalid(
            '--flavor', 'the ID or name', request.get_flavor, self.ctxt, 'f'
        )

    @ddt.data(('h', None), ('h:n', 'n'), ('h:', None))
    @ddt.unpack
    def test_destination(self, text, node):
        found = request.destination(text)
        self.assertEqual('h', found.host)
        self.assertEqual(node, found.node if 'node' in found else None)


@ddt.ddt
class ImageTestCase(RequestTestCase):
    def image(self, *properties, image=uuids.image):
        return request.get_image(
            self.ctxt, self.wanted(image=image, image_property=properties)
        )

    def test_none(self):
        self.assertEqual({'properties': {}}, self.image(image=None))
        self.glance.assert_not_called()

    def test_properties_on_top(self):
        theirs = {'a': '1', 'b': '2'}
        self.glance.return_value = {
            'id': uuids.image,
            'disk_format': 'raw',
            'properties': theirs,
        }
        self.assertEqual(
            {
                'id': uuids.image,
                'disk_format': 'qcow2',
                'container_format': 'bare',
                'properties': {'a': '9', 'b': '2', 'c': '3'},
            },
            self.image(
                ('a', '9'),
                ('c', '3'),
                ('disk_format', 'qcow2'),
                ('container_format', 'bare'),
            ),
        )
        self.assertEqual({'a': '1', 'b': '2'}, theirs)
        self.glance.assert_called_once_with(
            self.ctxt, uuids.image, show_deleted=False
        )

    def test_not_there(self):
        self.glance.side_effect = nova_exception.ImageNotFound(image_id='x')
        self.assertInvalid('--image', 'Glance shows these', self.image)

    def test_without_credentials(self):
        self.glance.side_effect = OSError('401')
        self.assertIsNone(self.ctxt.user_auth_plugin)
        self.assertInvalid('--image', 'credentials for Glance', self.image)

    def test_with_wrong_credentials(self):
        self.ctxt.user_auth_plugin = mock.sentinel.plugin
        self.glance.side_effect = OSError('401')
        error = self.assertRaises(nova_scheduler.CredentialsFailed, self.image)
        self.assertIn('OSError: 401', str(error))


@ddt.ddt
class GroupTestCase(RequestTestCase):
    """Conductor refuses a policy that no filter or weigher enforces."""

    def set_up(self, policy, *enabled):
        for name in ('ANTI_AFFINITY', 'AFFINITY', 'SOFT_AFFINITY'):
            # nova finds it out once a process.
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova.scheduler.utils._SUPPORTS_{name}', None
                )
            )
        self.config.config(
            group='filter_scheduler',
            enabled_filters=list(enabled),
            weight_classes=['nova.scheduler.weights.all_weighers'],
        )
        set_up = self.patch(utils, 'setup_instance_group')
        spec = objects.RequestSpec(
            instance_group=policy and objects.InstanceGroup(policy=policy)
        )
        request.set_up_group(self.ctxt, spec)
        set_up.assert_called_once_with(self.ctxt, spec)

    @ddt.data(
        (None,),
        ('anti-affinity', 'ServerGroupAntiAffinityFilter'),
        ('affinity', 'ServerGroupAffinityFilter'),
        ('soft-affinity',),
    )
    def test_enforced(self, arguments):
        self.set_up(*arguments)

    @ddt.data(
        ('anti-affinity', 'ServerGroupAffinityFilter'),
        ('affinity', 'ServerGroupAntiAffinityFilter'),
    )
    @ddt.unpack
    def test_not_enforced(self, policy, enabled):
        error = self.assertRaises(
            nova_exception.UnsupportedPolicyException,
            self.set_up,
            policy,
            enabled,
        )
        self.assertIn(f'no filter or weigher of {policy}', str(error))
