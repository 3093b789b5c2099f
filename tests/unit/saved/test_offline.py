# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched import exception
from nova_ext_sched.saved import offline


@ddt.ddt
class ReleasesTestCase(testtools.TestCase):
    @ddt.data('13.0.0', '16.1.0.dev3')
    def test_known(self, release):
        offline.check(release)

    @ddt.data((None, 'none'), ('12.0.1', '12.0.1'), ('17.0.0', '17.0.0'))
    @ddt.unpack
    def test_others(self, release, said):
        exc = self.assertRaises(exception.UsageError, offline.check, release)
        self.assertIn(f'13 to 16 in this environment, got {said}.', str(exc))
        self.assertIn("pip install '.[offline]'", str(exc))
