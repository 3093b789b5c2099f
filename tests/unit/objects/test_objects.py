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

"""Our versioned objects, pinned: a change of fields needs a new version."""

import unittest

from oslo_versionedobjects import base as ovo_base
from oslo_versionedobjects import fixture

from nova_ext_sched import objects  # noqa: F401
from nova_ext_sched.objects import base

FINGERPRINTS = {
    'NovaExtSchedInstanceGroupPolicy': (
        '1.0-551675f70a7ccf3a968d0b18c7f0e1be'
    ),
    'NovaExtSchedRequestGroup': '1.0-8e8a5b5d9b3ce73ae28e533bfd451f72',
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
