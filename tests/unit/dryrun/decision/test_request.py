# SPDX-License-Identifier: Apache-2.0

"""The request of a server to be, without nova's database and Glance."""

import fixtures
from keystoneauth1 import exceptions as keystone_exceptions
from nova import context
from nova import exception as nova_exception
from nova import objects
import nova.conf
from nova.scheduler import utils
from oslo_config import fixture as config_fixture
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched import exception
from nova_ext_sched import fields
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import request
from tests.unit.dryrun.cloud import clouds
from tests.unit.request_filters import base

Host = snapshot.Node


def flavor(**extra_specs):
    return base.flavor(id=1, flavorid='f', extra_specs=extra_specs)


class RequestTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.config = self.useFixture(config_fixture.Config(nova.conf.CONF))
        self.ctxt = context.RequestContext('user', 'project', is_admin=True)
        self.cloud = clouds.stub(
            {'2': 'host2'}, zones={'z', 'mars-1', 'other'}
        )
        self.cloud.nodes['1'] = Host('h', 'n', 'c')
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
        return request.Question(project=uuids.project, **arguments)

    def build(self, **arguments):
        wanted = self.wanted(**arguments)
        image = request.get_image(self.ctxt, wanted)
        return request.build(self.ctxt, self.cloud, wanted, self.flavor, image)

    def assertInvalid(self, where, expected, call, *args, **kwargs):
        invalid = exception.InvalidValue
        error = self.assertRaises(invalid, call, *args, **kwargs)
        self.assertEqual(where, error.where)
        self.assertIn(expected, error.expected)
        return error


class BuildTestCase(RequestTestCase):
    def test_everything_named(self):
        spec = self.build(
            hints=[('a', '1'), ('b', '2'), ('a', '3')],
            boot_from_volume=True,
            instances=3,
            availability_zone='z:h:n',
        )
        self.assertEqual({'a': ['1', '3'], 'b': ['2']}, spec.scheduler_hints)
        self.assertEqual((True, 3), (spec.is_bfv, spec.num_instances))
        self.assertEqual('z', spec.availability_zone)
        self.assertEqual((['h'], ['n']), (spec.force_hosts, spec.force_nodes))

    def test_zones_and_hosts(self):
        for text, expected in (
            ('mars', 'zone with hosts mars. Did you mean mars-1?'),
            # The zone of a node alone is looked at, as in nova-api.
            ('mars::n', 'zone with hosts mars. Did you mean mars-1?'),
            ('mars:host1', 'host host1. Did you mean host2?'),
            ('z:h:x', 'node x.'),
            ('z::x', 'node x.'),
        ):
            asked = exception.UnknownName, self.build
            error = self.assertRaises(*asked, availability_zone=text)
            self.assertEqual(f'There is no {expected}', str(error))
        for text in ('z', 'z:h', 'z::n', 'z:h:n', 'mars:h', ':h', ''):
            self.build(availability_zone=text)

    def test_a_host_of_a_silent_cell(self):
        self.cloud.silent_cells['c'] = 'gone'
        spec = self.build(availability_zone='z:absent')
        self.assertEqual(['absent'], spec.force_hosts)

    def test_a_new_server_is_no_rebuild(self):
        """Whatever a member or the operator writes."""
        spec = self.build(
            hints=[(fields.CHECK_TYPE, 'rebuild')], availability_zone='z:h:n'
        )
        self.assertTrue(utils.request_is_rebuild(spec))
        self.assertTrue(fields.pretends_rebuild(spec))
        self.assertFalse(fields.is_rebuild(spec))

    def test_server_group(self):
        for arguments in (
            {'server_group': uuids.group},
            {'hints': [('group', uuids.group)]},
            # The option is the group, whatever a hint says.
            {'server_group': uuids.group, 'hints': [('group', uuids.other)]},
        ):
            spec = self.build(**arguments)
            self.assertEqual(uuids.group, spec.instance_group.uuid)
            self.assertEqual(['group'], [*spec.scheduler_hints])

    def test_what_nova_api_refuses(self):
        self.flavor = flavor(**{'hw:numa_nodes': 'two'})
        expected = 'a request that nova-api accepts'
        self.assertInvalid('the request', expected, self.build)

    def test_device_profile(self):
        self.flavor = flavor(**{'accel:device_profile': 'fpga'})
        name = 'get_device_profile_request_groups'
        groups = self.patch(request.cyborg, name)
        one = objects.RequestGroup(requester_id='x')
        groups.return_value = [one]
        self.assertEqual([one], self.build().requested_resources)
        groups.assert_called_once_with(self.ctxt, 'fpga')


class NamedTestCase(RequestTestCase):
    def test_id_before_name(self):
        self.by_name.return_value = flavor()
        found = request.get_flavor(self.ctxt, 'f')
        self.assertIs(self.flavor, found)
        self.by_id.side_effect = nova_exception.FlavorNotFound(flavor_id='f')
        found = request.get_flavor(self.ctxt, 'f')
        self.assertIs(self.by_name.return_value, found)
        # One that was read before.
        self.by_id.reset_mock()
        one = flavor()
        self.assertIs(one, request.get_flavor(self.ctxt, one))
        self.by_id.assert_not_called()

    def test_destination(self):
        for text, node in (('h', None), ('h:n', 'n'), ('h:', None)):
            found = request.destination(self.cloud, text)
            self.assertEqual('h', found.host)
            self.assertEqual(node, found.node if 'node' in found else None)
        for text in ('x', 'h:x', 'host2:n', 'n'):
            asked = request.destination, self.cloud, text
            error = self.assertRaises(exception.UnknownName, *asked)
            self.assertIn(error.got, text.split(':'))


class ImageTestCase(RequestTestCase):
    def image(self, *properties, image=uuids.image):
        return request.get_image(
            self.ctxt, self.wanted(image=image, image_properties=properties)
        )

    def test_one_that_was_read_before(self):
        """It may have what nova takes from its database alone."""
        one = {'id': uuids.image, 'properties': {'hw_architecture': 'old'}}
        self.assertEqual(one, self.image(image=one))
        self.assertEqual({'properties': {}}, self.image(image=None))
        self.glance.assert_not_called()

    def test_properties_on_top(self):
        theirs, found = {'a': '1', 'b': '2'}, {'id': uuids.image}
        stored = {**found, 'disk_format': 'raw', 'properties': theirs}
        self.glance.return_value = stored
        fields_ = {'disk_format': 'qcow2', 'container_format': 'bare'}
        made = self.image(('a', '9'), ('c', '3'), *fields_.items())
        properties = {**theirs, 'a': '9', 'c': '3'}
        self.assertEqual({**found, **fields_, 'properties': properties}, made)
        self.assertEqual({'a': '1', 'b': '2'}, theirs)
        asked = self.ctxt, uuids.image
        self.glance.assert_called_once_with(*asked, show_deleted=False)

    def test_a_property_that_nova_does_not_take(self):
        takes = 'what nova takes (Invalid inclusion expr'
        number = 'what nova takes (invalid literal for int'
        for key, value, expected in (
            ('hw_architecture', 'x86-64', 'one of x86_64, '),
            ('hw_cpu_sockets', 'two', number),
            ('hw_numa_cpus.0', 'x', takes),
        ):
            asked = f'--image-property: {key}', expected, self.image
            error = self.assertInvalid(*asked, (key, value), image=None)
            self.assertEqual(value, error.got)
            self.glance.return_value = {'properties': {key: value}}
            self.assertInvalid(f'--image: {key}', expected, self.image)

    def test_no_answer(self):
        nothing = keystone_exceptions.MissingRequiredOptions([])
        for raised, said in (
            (
                OSError('401'),
                'no answer to the user of OS_CLOUD or OS_* (OSError: 401)',
            ),
            (nothing, 'no usable credentials (set OS_CLOUD or OS_*)'),
        ):
            self.glance.side_effect = raised
            error = self.assertRaises(request.GlanceFailed, self.image)
            self.assertEqual(f'Glance: {said}', str(error))


class GroupTestCase(RequestTestCase):
    """Conductor refuses a policy that no filter or weigher enforces."""

    def test_policy(self):
        names = 'anti-affinity', 'affinity'
        filters = 'ServerGroupAntiAffinityFilter', 'ServerGroupAffinityFilter'
        for policy, enabled, is_enforced in (
            (None, '', True),
            (names[0], filters[0], True),
            (names[1], filters[1], True),
            ('soft-affinity', '', True),
            (names[0], filters[1], False),
            (names[1], filters[0], False),
        ):
            for name in ('ANTI_AFFINITY', 'AFFINITY', 'SOFT_AFFINITY'):
                # nova finds it out once a process.
                name = f'nova.scheduler.utils._SUPPORTS_{name}'
                self.useFixture(fixtures.MonkeyPatch(name, None))
            self.config.config(
                group='filter_scheduler',
                enabled_filters=[enabled],
                weight_classes=['nova.scheduler.weights.all_weighers'],
            )
            set_up = self.patch(utils, 'setup_instance_group')
            spec = objects.RequestSpec(
                instance_group=policy and objects.InstanceGroup(policy=policy)
            )
            if is_enforced:
                request.set_up_group(self.ctxt, spec)
                set_up.assert_called_once_with(self.ctxt, spec)
                continue
            refused = nova_exception.UnsupportedPolicyException
            asked = request.set_up_group, self.ctxt, spec
            error = self.assertRaises(refused, *asked)
            named = request._READS_GROUPS[policy]
            self.assertIn(f'nova.conf does not have {named}', str(error))
