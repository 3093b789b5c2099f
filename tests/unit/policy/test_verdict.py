# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_ext_sched.policy import verdict


class VerdictTestCase(testtools.TestCase):
    def test_reject(self):
        self.assertTrue(verdict.PASS.passes)
        self.assertEqual(
            (False, 'full', '', False, False), verdict.reject('full')
        )
