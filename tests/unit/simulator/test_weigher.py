# SPDX-License-Identifier: Apache-2.0

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
