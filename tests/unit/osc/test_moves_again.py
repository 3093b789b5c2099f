# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.osc import moves_again


@ddt.ddt
class AgainTestCase(testtools.TestCase):
    # Whether nova and placement answer after each refusal, and whether nova is
    # asked anew then.
    @ddt.data(
        ([False, False, False, False], [True, True, True, False]),
        ([True, True], [True, False]),
        ([True, False, True], [True, True, False]),
        ([False, True, True], [True, True, False]),
        ([False, False, False, True], [True, True, True, False]),
    )
    @ddt.unpack
    def test_table(self, answers, expected):
        again = moves_again.Again()
        found = [again.note_refusal(one, 0) for one in answers]
        self.assertEqual(expected, found)

    def test_a_minute_later(self):
        again = moves_again.Again()
        self.assertTrue(again.is_due(0))
        again.note_refusal(True, 10)
        later = 10 + moves_again.AGAIN
        self.assertFalse(again.is_due(later - 1))
        self.assertTrue(again.is_due(later))
