# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.policy import relative_room
from nova_ext_sched.policy.relative_room import Amount


@ddt.ddt
class ShareTestCase(testtools.TestCase):
    @ddt.data(
        # What is free after the request.
        ([Amount(100, 20, 30)], 0.5),
        ([Amount(100, 0, 100)], 0.0),
        # The scarcest.
        ([Amount(100, 20, 30), Amount(8, 4, 2), Amount(10, 0, 1)], 0.25),
        # More is used than there is.
        ([Amount(100, 120, 1), Amount(8, 0, 2)], 0.0),
        # The request takes none of it.
        ([Amount(100, 99, 0), Amount(8, 0, 2)], 0.75),
        # The host has none.
        ([Amount(0, 0, 5), Amount(8, 0, 2)], 0.75),
        # None counts.
        ([Amount(0, 0, 5), Amount(8, 0, 0)], 0.0),
        ([], 0.0),
    )
    @ddt.unpack
    def test_table(self, amounts, share):
        self.assertEqual(share, relative_room.find_share(amounts))
