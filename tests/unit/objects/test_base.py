#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""Tests of the base of our versioned objects."""

import importlib
import json
import pkgutil
import subprocess
import sys
import unittest

from oslo_versionedobjects import base as ovo_base
from oslo_versionedobjects import fields

import nova_ext_sched
from nova_ext_sched.objects import base


class Thing(base.NovaExtSchedObject):
    fields = {'size': fields.IntegerField()}


class NovaExtSchedObjectTest(unittest.TestCase):
    def setUp(self):
        classes = ovo_base.VersionedObjectRegistry.obj_classes()
        base.register(Thing)
        self.addCleanup(classes.pop, 'NovaExtSchedThing')

    def test_the_class_keeps_its_name_and_registers_under_another(self):
        self.assertEqual('Thing', Thing.__name__)
        classes = ovo_base.VersionedObjectRegistry.obj_classes()
        self.assertEqual([Thing], classes['NovaExtSchedThing'])
        self.assertNotIn('Thing', classes)

    def test_round_trip_through_the_primitive(self):
        thing = Thing(size=3)
        primitive = json.loads(json.dumps(thing.obj_to_primitive()))
        self.assertEqual(
            thing, base.NovaExtSchedObject.obj_from_primitive(primitive)
        )
        self.assertEqual(
            'NovaExtSchedThing', primitive['nova_ext_sched_object.name']
        )

    def test_objects_differ_where_a_field_does(self):
        self.assertEqual(Thing(size=3), Thing(size=3))
        self.assertNotEqual(Thing(size=3), Thing(size=4))
        self.assertNotEqual(Thing(size=3), Thing())
        self.assertNotEqual(Thing(size=3), {'size': 3})

    def test_equality_does_not_ask_what_changed(self):
        stored = Thing(size=3)
        stored.obj_reset_changes()
        self.assertEqual(Thing(size=3), stored)


class ImportWithoutNovaTest(unittest.TestCase):
    def test_the_objects_import_where_nova_is_not_installed(self):
        subprocess.run(
            [sys.executable, '-c', _WITHOUT_NOVA],
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )


class NovasRegistryTest(unittest.TestCase):
    """nova's objects stay what they are, whoever is imported first.

    In processes of their own: the import order is what is tested.
    """

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.nova_first = cls.registries('nova', 'ours')
        cls.ours_first = cls.registries('objects', 'nova', 'ours')

    @staticmethod
    def registries(*steps):
        """Return what is registered after each import step."""
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', __file__, *steps],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=300,
        )
        return json.loads(done.stdout.splitlines()[-1])

    def test_the_snapshot_sees_the_objects_that_could_clash(self):
        registered = self.nova_first['nova']
        for name in ('RequestGroup', 'InstanceGroup', 'RequestSpec'):
            self.assertIn(f'registry:{name}', registered)
            self.assertIn(f'nova.objects:{name}', registered)

    def test_nova_first(self):
        self.assert_novas_are_kept(
            self.nova_first['nova'], self.nova_first['ours']
        )

    def test_ours_first(self):
        self.assert_novas_are_kept(
            self.nova_first['nova'], self.ours_first['nova']
        )
        self.assert_novas_are_kept(
            self.nova_first['nova'], self.ours_first['ours']
        )

    def test_ours_register_under_the_prefix_alone(self):
        ours = {
            name
            for name, classes in self.nova_first['ours'].items()
            if any('nova_ext_sched.' in cls for cls in classes)
        }
        strangers = {
            name
            for name in ours
            if not name.startswith(f'registry:{base.NAME_PREFIX}')
        }
        self.assertEqual(set(), strangers)

    def assert_novas_are_kept(self, before, after):
        self.assertEqual(before, {name: after.get(name) for name in before})


_WITHOUT_NOVA = """
import importlib.abc
import sys


class NoNova(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition('.')[0] in ('nova', 'placement'):
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, NoNova())
import nova_ext_sched.objects
"""


def _registered():
    import nova.objects

    found = {
        f'registry:{name}': classes
        for name, classes in (
            ovo_base.VersionedObjectRegistry.obj_classes().items()
        )
    }
    found |= {
        f'nova.objects:{name}': [value]
        for name, value in vars(nova.objects).items()
        if isinstance(value, type)
    }
    return {
        name: [f'{cls.__module__}.{cls.__name__}' for cls in classes]
        for name, classes in found.items()
    }


def _import_nova():
    import nova.objects

    nova.objects.register_all()


def _import_ours():
    for module in pkgutil.walk_packages(
        nova_ext_sched.__path__, 'nova_ext_sched.'
    ):
        importlib.import_module(module.name)


def _import_objects():
    importlib.import_module('nova_ext_sched.objects')


def main(steps):
    """Import in the order of ``steps``; print what is registered after each.

    Runs in a process of its own.
    """
    taken = {}
    for step in steps:
        globals()[f'_import_{step}']()
        if step != 'objects':
            taken[step] = _registered()
    print(json.dumps(taken))


if __name__ == '__main__':
    main(sys.argv[1:])
