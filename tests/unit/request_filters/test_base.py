# SPDX-License-Identifier: Apache-2.0

import logging

import fixtures
from nova import exception as nova_exception

from nova_ext_sched import exception
from nova_ext_sched.request_filters import base
from tests.unit.request_filters import base as test_base


class FailClosedTestCase(test_base.RequestFilterTestCase):
    def setUp(self):
        super().setUp()
        self.output = self.useFixture(
            fixtures.FakeLogger(level=logging.WARNING)
        )
        self.spec = test_base.request_spec()

    def test_honest_return(self):
        for answer in (True, False):
            decide = base.fail_closed(lambda ctxt, spec, answer=answer: answer)
            self.assertIs(answer, decide(self.ctxt, self.spec))

    def test_name_and_docstring_stay(self):
        @base.fail_closed
        def some_filter(ctxt, request_spec):
            """What it decides."""

        self.assertEqual('some_filter', some_filter.__name__)
        self.assertEqual('What it decides.', some_filter.__doc__)

    def test_a_refusal_is_one_line(self):
        @base.fail_closed
        def refuse(ctxt, request_spec):
            raise exception.RequestRefused('no aggregate', detail='q has it')

        error = self.assertRaises(
            nova_exception.RequestFilterFailed, refuse, self.ctxt, self.spec
        )
        # The owner of the server reads the reason, the log has the detail.
        self.assertEqual('Scheduling failed: no aggregate', str(error))
        self.assertEqual(
            f'refuse: no host for request {self.ctxt.global_id}: '
            f'no aggregate (q has it)\n',
            self.output.output,
        )

    def test_refusal_of_another_plugin(self):
        @base.fail_closed
        def refuse(ctxt, request_spec):
            raise nova_exception.RequestFilterFailed(reason='no host at all')

        self.assertRaises(
            nova_exception.RequestFilterFailed, refuse, self.ctxt, self.spec
        )
        self.assertIn('no host at all', self.output.output)

    def test_anything_else_ends_the_request(self):
        @base.fail_closed
        def broken(ctxt, request_spec):
            raise KeyError('lost')

        error = self.assertRaises(
            nova_exception.RequestFilterFailed, broken, self.ctxt, self.spec
        )
        self.assertEqual('Scheduling failed: broken cannot decide', str(error))
        self.assertIn(
            "broken cannot decide: KeyError: 'lost'", self.output.output
        )

    def test_one_traceback_an_outage(self):
        fault = None

        @base.fail_closed
        def read_database(ctxt, request_spec):
            if fault:
                raise fault
            return True

        def refused():
            before = self.output.output
            self.assertRaises(
                nova_exception.RequestFilterFailed,
                read_database,
                self.ctxt,
                self.spec,
            )
            logged = self.output.output.removeprefix(before)
            self.assertIn(f'Request {self.ctxt.global_id} is refused', logged)
            traced = 'Traceback' in logged
            if not traced:
                self.assertEqual(1, logged.count('\n'))
            return traced

        fault = OSError('gone\naway')
        self.assertEqual([True, False, False], [refused() for _ in range(3)])
        # A fault of another kind is another outage.
        fault = RuntimeError('else')
        self.assertEqual([True, False], [refused() for _ in range(2)])
        fault = OSError('gone')
        self.assertFalse(refused())
        fault = None
        self.assertTrue(read_database(self.ctxt, self.spec))
        fault = OSError('gone')
        self.assertEqual([True, False], [refused() for _ in range(2)])
