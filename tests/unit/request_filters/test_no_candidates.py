# SPDX-License-Identifier: Apache-2.0

import logging
import threading

import ddt
import fixtures
from nova.scheduler import manager

from nova_ext_sched.request_filters import base
from nova_ext_sched.request_filters import member_of
from nova_ext_sched.request_filters import no_candidates
from tests.unit.request_filters import base as test_base

#: Of nova.scheduler.manager; tests/functional shows that nova writes it.
LINE = (
    'Got no allocation candidates from the Placement API. This could be due '
    'to insufficient resources or a temporary occurrence as compute nodes '
    'start up.'
)


@ddt.ddt
class NoCandidatesTestCase(test_base.RequestFilterTestCase):
    def setUp(self):
        super().setUp()
        self.output = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        no_candidates.install()
        self.spec = test_base.request_spec()

    def run_filter(self, name, change, spec=None):
        def request_filter(ctxt, request_spec):
            change(request_spec)
            return True

        request_filter.__name__ = name
        base.fail_closed(request_filter)(self.ctxt, spec or self.spec)

    def lines(self, line=LINE):
        before = len(self.output.output)
        manager.LOG.info(line)
        return self.output.output[before:].splitlines()

    def forbid(self, *uuids):
        return lambda spec: member_of._get_destination(
            spec
        ).append_forbidden_aggregates(set(uuids))

    @ddt.data(
        (lambda spec: member_of.require(spec, ['a']), 'a host in 1 aggregate'),
        (
            lambda spec: member_of.require(spec, ['a', 'b']),
            'a host in one of 2 aggregates',
        ),
        (
            lambda spec: member_of._get_destination(
                spec
            ).append_forbidden_aggregates({'a', 'b'}),
            'no host of 2 aggregates',
        ),
        (lambda spec: spec.root_forbidden.add('X'), 'no host with 1 trait'),
    )
    @ddt.unpack
    def test_what_a_filter_asked_for(self, change, expected):
        self.run_filter('some_filter', change)
        ours, novas = self.lines()
        self.assertIn(
            f'for request {self.ctxt.global_id}. The request filters asked '
            f'placement for: some_filter: {expected}. nova-ext-sched explain',
            ours,
        )
        self.assertEqual(LINE, novas)

    def test_each_filter_by_itself(self):
        self.spec.root_forbidden.add('COMPUTE_STATUS_DISABLED')
        self.run_filter('one', self.forbid('a'))
        self.run_filter('two', lambda spec: None)

        def both(spec):
            member_of.require(spec, ['r'])
            self.forbid('a', 'b', 'c')(spec)

        self.run_filter('three', both)
        self.assertIn(
            ': one: no host of 1 aggregate; three: a host in 1 aggregate, '
            'no host of 2 aggregates.',
            self.lines()[0],
        )

    def test_nothing_asked_for(self):
        self.run_filter('one', lambda spec: None)
        self.assertEqual([LINE], self.lines())

    def test_the_next_request_of_the_thread(self):
        self.run_filter('one', self.forbid('a'))
        self.run_filter(
            'two', lambda spec: None, spec=test_base.request_spec()
        )
        self.assertEqual([LINE], self.lines())

    def test_another_line_of_nova(self):
        self.run_filter('one', self.forbid('a'))
        self.assertEqual(['Else.'], self.lines('Else.'))

    def test_requests_of_other_threads(self):
        self.run_filter('one', self.forbid('a'))
        thread = threading.Thread(
            target=self.run_filter,
            args=('two', self.forbid('b'), test_base.request_spec()),
        )
        thread.start()
        thread.join()
        self.assertIn(': one: no host of 1 aggregate.', self.lines()[0])

    def test_one_line_if_installed_twice(self):
        no_candidates.install()
        self.run_filter('one', self.forbid('a'))
        self.assertEqual(2, len(self.lines()))
