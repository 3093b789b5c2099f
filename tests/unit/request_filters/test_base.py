# SPDX-License-Identifier: Apache-2.0

import logging

import ddt
import fixtures
from nova import exception as nova_exception
from nova import objects

from nova_ext_sched.request_filters import base
from tests.unit.request_filters import base as test_base


class FailClosedTestCase(test_base.RequestFilterTestCase):
    def setUp(self):
        super().setUp()
        self.output = self.useFixture(
            fixtures.FakeLogger(level=logging.WARNING)
        )

    def test_honest_return(self):
        for answer in (True, False):
            decide = base.fail_closed(lambda ctxt, spec, answer=answer: answer)
            self.assertIs(answer, decide(self.ctxt, None))

    def test_name_and_docstring_stay(self):
        @base.fail_closed
        def some_filter(ctxt, request_spec):
            """What it decides."""

        self.assertEqual('some_filter', some_filter.__name__)
        self.assertEqual('What it decides.', some_filter.__doc__)

    def test_own_refusal_is_logged_and_raised(self):
        @base.fail_closed
        def refuse(ctxt, request_spec):
            raise nova_exception.RequestFilterFailed(reason='no aggregate')

        self.assertRaises(
            nova_exception.RequestFilterFailed, refuse, self.ctxt, None
        )
        self.assertIn('refuse: no host for the request', self.output.output)
        self.assertIn('no aggregate', self.output.output)

    def test_anything_else_ends_the_request(self):
        @base.fail_closed
        def broken(ctxt, request_spec):
            raise KeyError('lost')

        error = self.assertRaises(
            nova_exception.RequestFilterFailed, broken, self.ctxt, None
        )
        self.assertEqual('Scheduling failed: broken cannot decide', str(error))
        self.assertIn(
            "broken cannot decide: KeyError: 'lost'", self.output.output
        )

    def test_the_cause_is_for_the_log_alone(self):
        @base.fail_closed
        def refuse(ctxt, request_spec):
            raise nova_exception.RequestFilterFailed(
                reason='no image'
            ) from OSError('glance.internal is away')

        error = self.assertRaises(
            nova_exception.RequestFilterFailed, refuse, self.ctxt, None
        )
        self.assertEqual('Scheduling failed: no image', str(error))
        self.assertIn(
            'no image (OSError: glance.internal is away)', self.output.output
        )


@ddt.ddt
class DestinationTestCase(test_base.RequestFilterTestCase):
    def specs(self):
        empty = test_base.request_spec()
        unset = objects.RequestSpec()
        present = test_base.request_spec(
            requested_destination=objects.Destination(host='h')
        )
        return empty, unset, present

    def test_forbid(self):
        for spec in self.specs():
            self.assertEqual(set(), base.forbidden_aggregates(spec))
            base.forbid_aggregates(spec, iter(['a', 'b']))
            base.forbid_aggregates(spec, ['b', 'c'])
            self.assertEqual({'a', 'b', 'c'}, base.forbidden_aggregates(spec))
        self.assertEqual('h', spec.requested_destination.host)

    def test_nothing_to_forbid_changes_nothing(self):
        spec = test_base.request_spec()
        base.forbid_aggregates(spec, [])
        self.assertIsNone(spec.requested_destination)

    @ddt.data(
        ({}, True),
        ({'force_hosts': []}, True),
        ({'force_hosts': ['h']}, False),
        ({'force_nodes': ['n']}, False),
        (
            {
                'force_hosts': ['h'],
                'scheduler_hints': {'_nova_check_type': ['rebuild']},
            },
            True,
        ),
        ({'force_hosts': ['h'], 'scheduler_hints': {'group': ['g']}}, False),
    )
    @ddt.unpack
    def test_host_filters_run(self, fields, expected):
        spec = test_base.request_spec(**fields)
        self.assertIs(expected, base.host_filters_run(spec))

    def test_host_filters_run_on_a_bare_spec(self):
        self.assertTrue(base.host_filters_run(objects.RequestSpec()))
        self.assertFalse(
            base.host_filters_run(objects.RequestSpec(force_hosts=['h']))
        )
