# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
from nova import objects
import testtools

from nova_ext_sched.cmd.export import parts
from nova_ext_sched.cmd.export import unsaid

objects.register_all()


@ddt.ddt
class NamesTest(testtools.TestCase):
    def test_names_of_their_own(self):
        given = parts.Part()
        self.assertEqual('web', given.give('web', '1'))
        self.assertEqual('2', given.give('web', '2'))
        self.assertEqual('web', given.give('web', '1'))

    @ddt.data('', None, ' web', 'web\n', 'a\x07', '\U0001f4a9', 'a{1..3}')
    def test_id(self, name):
        self.assertEqual('1', parts.Part().give(name, '1'))


def flavor(name='small', flavorid='1', **fields):
    return objects.Flavor(
        **{
            'name': name,
            'flavorid': flavorid,
            'vcpus': 1,
            'memory_mb': 512,
            'root_gb': 1,
            'ephemeral_gb': 0,
            'swap': 0,
            'extra_specs': {},
            **fields,
        }
    )


class FlavorsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.flavors = parts.Flavors()

    def test_what_a_scenario_has_by_default_is_left_out(self):
        self.flavors.name(flavor())
        self.flavors.name(
            flavor(
                'all',
                root_gb=0,
                ephemeral_gb=2,
                swap=3,
                extra_specs={'a': 'b'},
            )
        )
        self.assertEqual(
            {
                'small': {'vcpus': 1, 'memory_mb': 512, 'disk_gb': 1},
                'all': {
                    'vcpus': 1,
                    'memory_mb': 512,
                    'disk_gb': 0,
                    'ephemeral_gb': 2,
                    'swap_mb': 3,
                    'extra_specs': {'a': 'b'},
                },
            },
            self.flavors.documents,
        )

    def test_old_ones_of_a_name(self):
        """Servers keep flavors that have changed; equal ones are one."""
        names = [
            self.flavors.name(flavor(vcpus=vcpus)) for vcpus in (1, 2, 3, 2, 1)
        ]
        self.assertEqual(
            ['small', 'small #2', 'small #3', 'small #2', 'small'], names
        )
        self.assertEqual(
            [1, 2, 3],
            [one['vcpus'] for one in self.flavors.documents.values()],
        )

    def test_name_that_a_scenario_does_not_take(self):
        self.assertEqual('1', self.flavors.name(flavor('a{1..3}')))
        self.assertEqual('1 #2', self.flavors.name(flavor('a{1..3}', vcpus=2)))


@ddt.ddt
class ImagesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.unsaid = unsaid.Unsaid()
        self.images = parts.Images(self.unsaid)

    def describe(self, **properties):
        image = objects.ImageMeta.from_dict(
            {'id': 'u1', 'name': 'linux', 'properties': properties}
        )
        self.assertEqual('linux', self.images.name(image))
        return self.images.documents['linux'].get('properties')

    @ddt.data(
        ({}, None),
        ({'os_distro': 'ubuntu'}, {'os_distro': 'ubuntu'}),
        ({'hw_cpu_cores': '4'}, {'hw_cpu_cores': '4'}),
        ({'os_require_quiesce': 'yes'}, {'os_require_quiesce': 'True'}),
        ({'reservation:x': 'true'}, None),
        (
            {'trait:CUSTOM_B': 'required', 'trait:CUSTOM_A': 'required'},
            {'trait:CUSTOM_A': 'required', 'trait:CUSTOM_B': 'required'},
        ),
    )
    @ddt.unpack
    def test_properties(self, given, found):
        self.assertEqual(found, self.describe(**given))
        self.assertEqual([], [*self.unsaid])

    def test_list(self):
        """Counted once, however many requests have the image."""
        for _ in range(2):
            self.assertEqual(
                {'os_distro': 'x'},
                self.describe(**{'hw_numa_cpus.0': '0,1', 'os_distro': 'x'}),
            )
        self.assertEqual(
            ['1 image with hw_numa_cpus, which is a list'], [*self.unsaid]
        )

    @ddt.data(
        ({'id': 'u1', 'name': 'linux'}, 'linux'),
        ({'id': 'u1', 'name': 'a\n'}, 'u1'),
        ({'id': 'u1'}, 'u1'),
        ({'name': ''}, 'volume'),
        ({}, 'volume'),
    )
    @ddt.unpack
    def test_name(self, fields, name):
        self.assertEqual(name, self.images.name(objects.ImageMeta(**fields)))
        self.assertEqual({name: {}}, self.images.documents)

    def test_two_of_a_name(self):
        for id_, distro in (('u1', 'a'), ('u2', 'b'), ('u1', 'a')):
            self.images.name(
                objects.ImageMeta.from_dict(
                    {
                        'id': id_,
                        'name': 'linux',
                        'properties': {'os_distro': distro},
                    }
                )
            )
        self.assertEqual(
            {
                'linux': {'properties': {'os_distro': 'a'}},
                'u2': {'properties': {'os_distro': 'b'}},
            },
            self.images.documents,
        )


def group(uuid, name='web', policy='anti-affinity', rules=None, members=()):
    return objects.InstanceGroup(
        uuid=uuid,
        name=name,
        policy=policy,
        rules=rules or {},
        members=[*members],
        project_id='p',
    )


@ddt.ddt
class ServerGroupsTest(testtools.TestCase):
    def groups(self, *found):
        with mock.patch.object(
            objects.InstanceGroupList,
            'get_all',
            return_value=objects.InstanceGroupList(objects=[*found]),
        ):
            return parts.ServerGroups(None)

    def test_only_those_that_are_named(self):
        groups = self.groups(
            group('g1', members=['a', 'b']),
            group('g2', 'db', members=['c']),
            group('g3', 'idle'),
        )
        self.assertEqual({'a': 'g1', 'b': 'g1', 'c': 'g2'}, groups.members)
        self.assertEqual({}, groups.documents)
        self.assertEqual('web', groups.name('g1'))
        self.assertEqual(
            {'web': {'policy': 'anti-affinity', 'project': 'p', 'uuid': 'g1'}},
            groups.documents,
        )

    @ddt.data(None, 'g2')
    def test_deleted(self, uuid):
        groups = self.groups(group('g1'))
        self.assertIsNone(groups.name(uuid))
        self.assertEqual({}, groups.documents)

    def test_rules_are_numbers(self):
        """nova stores texts."""
        groups = self.groups(group('g1', rules={'max_server_per_host': '3'}))
        groups.name('g1')
        self.assertEqual(
            {'max_server_per_host': 3}, groups.documents['web']['rules']
        )

    @ddt.data('web', 'a\n', '!!python {1..3}')
    def test_name_that_another_has_or_a_scenario_does_not_take(self, name):
        groups = self.groups(group('g1'), group('g2', name))
        self.assertEqual('web', groups.name('g1'))
        for _ in range(2):
            self.assertEqual('g2', groups.name('g2'))
        self.assertEqual(['web', 'g2'], [*groups.documents])
