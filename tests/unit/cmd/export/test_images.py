# SPDX-License-Identifier: Apache-2.0

import unittest

import ddt
from nova import objects

from nova_ext_sched.cmd.export import images
from nova_ext_sched.cmd.export import unsaid

objects.register_all()


@ddt.ddt
class ImagesTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.unsaid = unsaid.Unsaid()
        self.images = images.Images(self.unsaid)

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
