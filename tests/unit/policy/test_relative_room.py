# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.policy import relative_room


@ddt.ddt
class ShareTestCase(testtools.TestCase):
    @ddt.data(
        # What is free after the request.
        ([(100, 20, 30)], 0.5),
        ([(100, 0, 100)], 0.0),
        # The scarcest.
        ([(100, 20, 30), (8, 4, 2), (10, 0, 1)], 0.25),
        # More is used than there is.
        ([(100, 120, 1), (8, 0, 2)], 0.0),
        # The request takes none of it.
        ([(100, 99, 0), (8, 0, 2)], 0.75),
        # The host has none.
        ([(0, 0, 5), (8, 0, 2)], 0.75),
        # None counts.
        ([(0, 0, 5), (8, 0, 0)], 0.0),
        ([], 0.0),
    )
    @ddt.unpack
    def test_table(self, amounts, share):
        self.assertEqual(share, relative_room.find_share(amounts))
