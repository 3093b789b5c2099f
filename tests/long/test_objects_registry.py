# SPDX-License-Identifier: Apache-2.0

"""Our versioned objects beside nova's, in processes of their own."""

import functools
import json
import subprocess
import sys
import unittest

from nova_ext_sched.objects import base
from tests.long import registered


class NovasRegistryTest(unittest.TestCase):
    """nova's objects stay what they are, whoever is imported first.

    In processes of their own: the import order is what is tested.
    """

    maxDiff = None

    def setUp(self):
        super().setUp()
        self.nova, self.nova_then_ours = self.registries('nova', 'ours')
        self.objects, _, self.objects_then_all = self.registries(
            'objects', 'nova', 'ours'
        )

    @staticmethod
    @functools.cache
    def registries(*steps):
        """Return what is registered after each import step."""
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', registered.__file__, *steps],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=300,
        )
        return json.loads(done.stdout.splitlines()[-1])

    def test_the_steps_are_what_they_say(self):
        for name in ('RequestGroup', 'InstanceGroup', 'RequestSpec'):
            self.assertIn(f'registry:{name}', self.nova)
            self.assertIn(f'nova.objects:{name}', self.nova)
        self.assertEqual(set(), self.names_of_ours(self.nova))
        self.assertEqual(
            self.names_of_ours(self.nova_then_ours), set(self.objects)
        )

    def test_nova_first(self):
        self.assert_novas_are_kept(self.nova_then_ours)

    def test_ours_first(self):
        self.assert_novas_are_kept(self.objects_then_all)

    def test_ours_register_under_the_prefix_alone(self):
        names = self.names_of_ours(self.nova_then_ours)
        self.assertTrue(names)
        for name in names:
            self.assertTrue(
                name.startswith(f'registry:{base.NAME_PREFIX}'), name
            )

    @staticmethod
    def names_of_ours(registry):
        return {
            name
            for name, classes in registry.items()
            if any(cls.startswith('nova_ext_sched.') for cls in classes)
        }

    def assert_novas_are_kept(self, registry):
        self.assertEqual(
            self.nova, {name: registry.get(name) for name in self.nova}
        )
