# SPDX-License-Identifier: Apache-2.0

import logging

import ddt
import fixtures
from keystoneauth1 import exceptions as ks_exc
from nova import exception as nova_exception
from oslo_db import exception as db_exception
import testtools

from nova_ext_sched.request_filters import outage


@ddt.ddt
class OutageTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.output = self.useFixture(
            fixtures.FakeLogger(
                name=__name__,
                level=logging.INFO,
                format='%(levelname)s %(message)s',
            )
        )
        self.now = 1000.0
        self.useFixture(
            fixtures.MonkeyPatch('oslo_utils.timeutils.now', lambda: self.now)
        )
        self.outage = outage.Outage(__name__)

    def lines(self, do, *args):
        """Return what is logged then."""
        before = self.output.output
        do(*args)
        return self.output.output.removeprefix(before).splitlines()

    def begin(self, exc=None, after=0):
        self.now += after
        exc = exc or OSError('gone')
        return self.lines(self.outage.begin, 'no host', exc)

    def end(self, after=0):
        self.now += after
        return self.lines(self.outage.end, 'It decides')

    def test_begins_and_ends_once(self):
        self.assertEqual(['ERROR no host: OSError: gone'], self.begin())
        self.assertEqual([], self.begin())
        self.assertEqual([], self.begin(after=4))
        self.assertEqual(
            ['WARNING It decides again, after 3 failures in 4 seconds.'],
            self.end(after=30),
        )
        self.assertEqual([], self.end(after=30))
        self.assertEqual(['ERROR no host: OSError: gone'], self.begin())
        self.assertEqual(
            ['WARNING It decides again, after 1 failure in 0 seconds.'],
            self.end(after=30),
        )

    def test_nothing_ends_that_did_not_begin(self):
        self.assertEqual([], self.end())

    def test_an_answer_between_failures_is_no_end(self):
        """It may have needed nothing of what is away."""
        self.begin()
        self.assertEqual([], self.end(after=29))
        self.assertEqual([], self.begin())
        self.assertEqual([], self.end(after=29))

    def test_one_that_lasts_is_said_again(self):
        self.begin()
        self.assertEqual([], self.begin(after=299))
        self.assertEqual(1, len(self.begin(after=1)))
        self.assertEqual([], self.begin(after=299))

    def test_a_fault_of_another_kind(self):
        self.begin()
        found = self.begin(ConnectionError('no\nroute'))
        self.assertEqual(['ERROR no host: ConnectionError: no'], found)
        self.assertEqual([], self.begin(ConnectionError('else')))

    @ddt.data(
        (OSError('x'), False),
        (db_exception.DBConnectionError('x'), False),
        (ks_exc.ConnectFailure('x'), False),
        (nova_exception.CellTimeout(), False),
        (LookupError('x'), True),
    )
    @ddt.unpack
    def test_what_nobody_expected_has_a_traceback(self, exc, expected):
        try:
            raise exc
        except Exception as raised:
            found = self.begin(raised)
        self.assertIs(expected, 'Traceback' in ''.join(found[1:]))

    def test_level(self):
        self.outage = outage.Outage(__name__, logging.WARNING)
        self.assertEqual(['WARNING no host: OSError: gone'], self.begin())
