# SPDX-License-Identifier: Apache-2.0

"""Tests of the base of our versioned objects."""

import unittest

from oslo_versionedobjects import base as ovo_base
from oslo_versionedobjects import fields

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

    def test_name_of_the_primitive(self):
        self.assertEqual(
            'NovaExtSchedThing',
            Thing(size=3).obj_to_primitive()['nova_ext_sched_object.name'],
        )
