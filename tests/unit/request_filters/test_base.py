# SPDX-License-Identifier: Apache-2.0

import logging

import ddt
import fixtures
from keystoneauth1 import exceptions as ks_exc
from nova import exception as nova_exception
from oslo_db import exception as db_exception
import testtools

from nova_ext_sched import exception
from nova_ext_sched.request_filters import base
from tests.unit.request_filters import base as test_base


@ddt.ddt
class FailClosedTestCase(test_base.RequestFilterTestCase):
    def setUp(self):
        super().setUp()
        self.output = self.useFixture(
            fixtures.FakeLogger(
                level=logging.INFO, format='%(levelname)s %(message)s'
            )
        )
        self.spec = test_base.request_spec()
        base.OUTAGES.clear()

    def test_honest_return(self):
        for answer in (True, False):
            decide = base.fail_closed()(
                lambda ctxt, spec, answer=answer: answer
            )
            self.assertIs(answer, decide(self.ctxt, self.spec))

    def test_name_and_docstring_stay(self):
        @base.fail_closed()
        def some_filter(ctxt, request_spec):
            """What it decides."""

        self.assertEqual('some_filter', some_filter.__name__)
        self.assertEqual('What it decides.', some_filter.__doc__)

    def refused(self, fault):
        """Return what is logged where a filter raises it."""

        @base.fail_closed()
        def refuse(ctxt, request_spec):
            raise fault

        error = self.assertRaises(
            nova_exception.RequestFilterFailed, refuse, self.ctxt, self.spec
        )
        # The owner of the server reads the reason, the log has the detail.
        self.assertEqual('Scheduling failed: no aggregate', str(error), fault)
        return self.output.output

    def test_a_refusal_is_one_line(self):
        self.assertEqual(
            f'INFO refuse: no host for request {self.ctxt.global_id}: '
            f'no aggregate (q has it)\n',
            self.refused(
                exception.RequestRefused('no aggregate', detail='q has it')
            ),
        )

    def test_refusal_of_another_plugin(self):
        self.assertEqual(
            f'INFO refuse: no host for request {self.ctxt.global_id}: '
            f'Scheduling failed: no aggregate\n',
            self.refused(
                nova_exception.RequestFilterFailed(reason='no aggregate')
            ),
        )

    @ddt.data(
        exception.RequestRefused('no aggregate', detail='d'),
        nova_exception.RequestFilterFailed(reason='no aggregate'),
    )
    def test_a_refusal_with_a_cause_is_an_outage(self, fault):
        fault.__cause__ = OSError('gone')
        logged = self.refused(fault)
        self.assertIn('ERROR Request', logged)
        self.assertTrue(logged.endswith('no aggregate: OSError: gone\n'))

    def test_anything_else_ends_the_request(self):
        @base.fail_closed()
        def broken(ctxt, request_spec):
            raise KeyError('lost')

        error = self.assertRaises(
            nova_exception.RequestFilterFailed, broken, self.ctxt, self.spec
        )
        self.assertEqual('Scheduling failed: broken cannot decide', str(error))
        self.assertIn(
            f'ERROR Request {self.ctxt.global_id} is refused, because '
            f'without the filter it could land on any host: broken cannot '
            f"decide: KeyError: 'lost'",
            self.output.output,
        )

    def test_an_outage_is_one_line(self):
        self.now = 0
        self.useFixture(
            fixtures.MockPatchObject(base.timeutils, 'now', lambda: self.now)
        )
        faults = [OSError('gone')] * 3 + [False, True]

        @base.fail_closed()
        def read_database(ctxt, request_spec):
            fault = faults.pop(0)
            if isinstance(fault, Exception):
                raise fault
            return fault

        for _ in range(3):
            self.assertRaises(
                nova_exception.RequestFilterFailed,
                read_database,
                self.ctxt,
                self.spec,
            )
        self.now = 60
        # It does not apply, so nothing was asked.
        self.assertFalse(read_database(self.ctxt, self.spec))
        self.assertEqual(1, self.output.output.count('\n'))
        self.assertTrue(read_database(self.ctxt, self.spec))
        self.assertEqual(
            'WARNING read_database decides again, after 3 failures in 0 '
            'seconds.',
            self.output.output.splitlines()[1],
        )


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
        self.outage = base.Outage(__name__)

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
        self.outage = base.Outage(__name__, logging.WARNING)
        self.assertEqual(['WARNING no host: OSError: gone'], self.begin())
