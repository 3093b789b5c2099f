# SPDX-License-Identifier: Apache-2.0

import datetime

import ddt
from oslo_utils import fixture as utils_fixture
import testtools

from nova_ext_sched.watch import feed
from nova_ext_sched.watch import refusals

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)


def row(number, is_open=False, age=0):
    time = NOW - datetime.timedelta(seconds=age)
    return refusals.Row(
        'cell', 'fault', number, time, 'server', 'no host', is_open
    )


@ddt.ddt
class PositionTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(utils_fixture.TimeFixture(NOW))

    @ddt.data(
        (row(4), False),
        (row(5), False),
        (row(6), True),
        (row(7), False),
        (row(6, is_open=True), False),
    )
    @ddt.unpack
    def test_is_new(self, one, expected):
        position = feed.Position(5, frozenset({7}))
        self.assertIs(expected, position.is_new(one))

    @ddt.data(
        # Nothing is settled.
        ([row(6)], {6}, 0, 5, {6}),
        # All that is handled and settled is passed, gaps too.
        ([row(6), row(9)], {6, 9}, 12, 12, set()),
        ([row(6), row(9)], {6, 9}, 8, 8, {9}),
        # A row that was not handled yet holds what follows.
        ([row(6), row(8), row(9)], {6, 9}, 12, 7, {9}),
        ([row(6), row(8), row(9)], {6, 9}, 7, 7, {9}),
        # Rows come in any order.
        ([row(9), row(6), row(8), row(7)], {6, 9}, 12, 6, {9}),
        # What is not settled does not pass what lies between.
        ([row(6), row(20)], {6}, 8, 8, set()),
        # So does one that nova works on, for two hours.
        ([row(6, True), row(8)], {8}, 12, 5, {8}),
        ([row(6, True, 7199), row(8)], {8}, 12, 5, {8}),
        ([row(6, True, 7200), row(8)], {8}, 12, 12, set()),
    )
    @ddt.unpack
    def test_advance(self, rows, handled, settled, passed, left):
        position = feed.Position(5, frozenset(handled))
        found = position.advance(rows, settled)
        self.assertEqual(feed.Position(passed, frozenset(left)), found)

    def test_each_id_settles_by_when_it_was_first_seen(self):
        seen = feed._Seen()
        for moment, newest in ((100, 6), (110, 6), (120, 8), (130, 9)):
            seen.see(newest, moment)
        for moment, settled in (
            (159, 0), (160, 6), (179, 6), (180, 8), (189, 8), (500, 9)
        ):  # fmt: skip
            self.assertEqual(settled, seen.settle(moment), moment)
