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

FORM = '%(levelname)s %(message)s'


@ddt.ddt
class FailClosedTestCase(test_base.RequestFilterTestCase):
    def setUp(self):
        super().setUp()
        logger = fixtures.FakeLogger('', logging.INFO, FORM)
        self.output = self.useFixture(logger)
        self.spec = test_base.request_spec()

    def refused(self, fault, reason='no aggregate'):
        """Return what is logged where a filter raises it.

        :param reason: what the owner of the server reads
        """

        @base.fail_closed()
        def refuse(ctxt, request_spec):
            raise fault

        error = self.assertFails(refuse, self.ctxt, self.spec)
        self.assertEqual(f'Scheduling failed: {reason}', error, fault)
        return self.output.output

    @ddt.data(
        (exception.RequestRefused('no aggregate', detail='q has it'),
         'no aggregate (q has it)'),
        # Of another plugin.
        (nova_exception.RequestFilterFailed(reason='no aggregate'),
         'Scheduling failed: no aggregate'),
    )  # fmt: skip
    @ddt.unpack
    def test_a_refusal_is_one_line(self, fault, logged):
        self.assertEqual(
            f'INFO refuse: no host for request {self.ctxt.global_id}: '
            f'{logged}\n',
            self.refused(fault),
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
        """It is said once, however many requests meet it."""
        for _ in range(3):
            logged = self.refused(KeyError('lost'), 'refuse cannot decide')
        self.assertIn(
            f'ERROR Request {self.ctxt.global_id} is refused, because '
            f'without the filter it could land on any host: refuse cannot '
            f'decide\nTraceback',
            logged,
        )
        self.assertEqual(1, logged.count('ERROR'))


@ddt.ddt
class OutageTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        logger = fixtures.FakeLogger(__name__, logging.INFO, FORM)
        self.output = self.useFixture(logger)
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

    def fail(self, exc=None, after=0):
        self.now += after
        exc = exc or OSError('gone')
        return self.lines(self.outage.failed, 'no host', exc)

    def test_once_in_five_minutes_with_the_number_since(self):
        self.assertEqual(['ERROR no host: OSError: gone'], self.fail())
        self.assertEqual([], self.fail())
        self.assertEqual([], self.fail(after=299))
        [found] = self.fail(after=1)
        self.assertEqual(
            'ERROR no host: OSError: gone (3 failures since the last line of '
            'this kind)',
            found,
        )
        self.assertEqual([], self.fail(after=299))
        self.assertIn('(2 failures', self.fail(after=1)[0])
        self.assertEqual(
            ['ERROR no host: OSError: gone'], self.fail(after=300)
        )

    def test_a_fault_of_another_kind(self):
        self.fail()
        found = self.fail(ConnectionError('no\nroute'))
        self.assertEqual(['ERROR no host: ConnectionError: no'], found)
        self.assertEqual([], self.fail(ConnectionError('else')))

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
            found = self.fail(raised)
        self.assertIs(expected, 'Traceback' in ''.join(found[1:]))

    def test_level(self):
        self.outage = base.Outage(__name__, logging.WARNING)
        self.assertEqual(['WARNING no host: OSError: gone'], self.fail())
