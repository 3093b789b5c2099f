# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_ext_sched.cmd import drain
from tests.unit.cli import commands


class DrainTestCase(testtools.TestCase):
    def test_nothing_is_named(self):
        status, _, err = commands.run(drain.Drain)
        self.assertEqual(2, status)
        self.assertIn('HOST, --aggregate or --domain.', err)
