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

import types
import unittest
from unittest import mock

from nova import weights

from nova_ext_sched.simulator import weigher


class PreferredHostsTest(unittest.TestCase):
    def test_order(self):
        hosts = [
            weights.WeighedObject(types.SimpleNamespace(host=name), 0.0)
            for name in 'abcd'
        ]
        with mock.patch.object(weigher.PreferredHosts, 'order', ('c', 'a')):
            weighed = weigher.PreferredHosts().weigh_objects(hosts, None)
        self.assertEqual([1.0, 0.0, 2.0, 0.0], weighed)
