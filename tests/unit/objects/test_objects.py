# SPDX-License-Identifier: Apache-2.0

"""Our versioned objects, pinned: a change of fields needs a new version."""

import unittest

from oslo_versionedobjects import base as ovo_base
from oslo_versionedobjects import fixture

from nova_ext_sched import objects  # noqa: F401
from nova_ext_sched.objects import base

FINGERPRINTS = {
    'NovaExtSchedInstanceGroupPolicy': (
        '1.0-cf6c9e2f134e0389f4b555d3d8da64ab'
    ),
    'NovaExtSchedRequestGroup': '1.0-2de658b669415acf4a837eef3ec82831',
}


class FingerprintsTest(unittest.TestCase):
    def test_fingerprints(self):
        classes = ovo_base.VersionedObjectRegistry.obj_classes()
        ours = {
            name: classes[name]
            for name in classes
            if name.startswith(base.NAME_PREFIX)
        }
        expected, actual = fixture.ObjectVersionChecker(ours).test_hashes(
            FINGERPRINTS
        )
        self.assertEqual(expected, actual)
