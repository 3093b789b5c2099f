# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched import exception
from nova_ext_sched.policy import names


@ddt.ddt
class NamesTestCase(testtools.TestCase):
    @ddt.data(
        ([str(number) for number in range(100)], None),
        (
            [str(number) for number in range(101)],
            'the request names 101 things: expected at most 100',
        ),
        (['a' * 255], None),
        (['a' * 256], 'hint: expected a name of up to 255 printable'),
        (['a', 'b\n'], 'hint: expected a name of up to 255 printable'),
        (['a', '\U00010000'], 'hint: expected a name of up to 255 printable'),
    )
    @ddt.unpack
    def test_check(self, given, expected):
        if expected is None:
            self.assertIsNone(names.check(given, 'things', 'hint'))
            return
        error = self.assertRaises(
            exception.RequestRefused, names.check, given, 'things', 'hint'
        )
        self.assertIn(expected, error.reason)
        # Members write them.
        self.assertIn('because of what a member wrote', str(error))
