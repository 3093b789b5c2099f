# SPDX-License-Identifier: Apache-2.0

import collections
import logging

import ddt
import fixtures
from nova import objects
import testtools

from nova_ext_sched import faults
from nova_ext_sched.filters import base
from nova_ext_sched.policy import verdict
from tests.unit.filters import base as test_base

LOG = logging.getLogger(__name__)

REBUILD = {'_nova_check_type': ['rebuild']}


class OddFilter(base.PolicyFilter):
    """Refuses hosts whose name ends in an odd digit."""

    def judge(self, spec_obj):
        def judge(host_state):
            if int(host_state.host[-1]) % 2:
                return verdict.reject('the number is odd')
            return verdict.PASS

        return judge


class OddOnRebuildFilter(OddFilter):
    RUN_ON_REBUILD = True


class IdleFilter(base.PolicyFilter):
    def judge(self, spec_obj):
        return None


class CountingFilter(base.AggregatesFilter):
    """Refuses hosts in an aggregate named "bad", and counts decisions."""

    def __init__(self):
        super().__init__()
        self.decisions = 0

    def judge_aggregates(self, spec_obj):
        def decide(aggregates):
            self.decisions += 1
            if any(agg.name == 'bad' for agg in aggregates):
                return verdict.reject('aggregate bad')
            return verdict.PASS

        return decide


class PooledFilter(base.PooledAggregatesFilter):
    """Refuses hosts in an aggregate of level=high; counts what is asked."""

    def __init__(self):
        super().__init__()
        self.fault_log = faults.FaultLog(LOG)
        self.asked = collections.Counter()

    def decide(self, spec_obj):
        return PooledDecision(self.asked)


class PooledDecision:
    request_faults = ('the request is odd',)

    def __init__(self, asked):
        self.asked = asked

    def digest(self, metadata):
        self.asked['digest'] += 1
        return {'low': 2, 'high': 4}.get(metadata['level'], 1)

    def passes(self, digest):
        self.asked['passes'] += 1
        return not digest & 4

    def judge(self, aggregates):
        self.asked['judge'] += 1
        high = [name for name, data in aggregates if data['level'] == 'high']
        if high:
            return verdict.reject(f'aggregate {high[0]} is high')
        return verdict.PASS

    def faults(self, name, metadata):
        return [f'aggregate {name}: level: got {metadata["level"]}']


@ddt.ddt
class PolicyFilterTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.output = self.useFixture(
            fixtures.FakeLogger(
                level=logging.DEBUG, format='%(levelname)s %(message)s'
            )
        )
        self.hosts = [test_base.host_state(f'h{i}') for i in range(5)]

    def names(self, filter_, **fields):
        return [
            state.host
            for state in filter_.filter_all(
                iter(self.hosts), objects.RequestSpec(**fields)
            )
        ]

    def test_passed_keep_their_order(self):
        self.assertEqual(['h0', 'h2', 'h4'], self.names(OddFilter()))
        self.assertEqual(
            'DEBUG OddFilter rejected 2 of 5 hosts: 2 because the number is '
            'odd\n',
            self.output.output,
        )

    def test_no_host_left_is_told_at_info(self):
        self.hosts = self.hosts[1:2]
        self.assertEqual([], self.names(OddFilter()))
        self.assertIn('INFO OddFilter rejected 1 of 1', self.output.output)

    def test_nothing_rejected_nothing_logged(self):
        self.assertEqual(5, len(self.names(IdleFilter())))
        self.hosts = self.hosts[::2]
        self.assertEqual(3, len(self.names(OddFilter())))
        self.assertEqual('', self.output.output)

    @ddt.data(
        (OddFilter, {}, 3),
        (OddFilter, {'scheduler_hints': {}}, 3),
        (OddFilter, {'scheduler_hints': REBUILD}, 5),
        (OddOnRebuildFilter, {'scheduler_hints': REBUILD}, 3),
    )
    @ddt.unpack
    def test_rebuild(self, cls, fields, expected):
        self.assertEqual(expected, len(self.names(cls(), **fields)))
        spec = objects.RequestSpec(**fields)
        one_by_one = [cls().host_passes(state, spec) for state in self.hosts]
        self.assertEqual(expected, sum(one_by_one))

    def test_reasons_are_counted_most_frequent_first(self):
        class Reasons(base.PolicyFilter):
            def judge(self, spec_obj):
                return lambda state: verdict.reject(
                    'rare' if state.host == 'h0' else 'frequent'
                )

        self.names(Reasons())
        self.assertIn('4 because frequent; 1 because rare', self.output.output)


class AggregatesFilterTestCase(testtools.TestCase):
    def test_one_decision_for_each_set(self):
        good, bad = test_base.aggregate('good'), test_base.aggregate('bad')
        hosts = [
            test_base.host_state('h0', good),
            test_base.host_state('h1', good),
            test_base.host_state('h2', good, bad),
            test_base.host_state('h3', good, bad),
            test_base.host_state('h4'),
        ]
        filter_ = CountingFilter()
        passed = filter_.filter_all(hosts, objects.RequestSpec())
        self.assertEqual(['h0', 'h1', 'h4'], [s.host for s in passed])
        self.assertEqual(3, filter_.decisions)

    def test_an_update_takes_effect_on_the_next_request(self):
        aggregate = test_base.aggregate('good')
        hosts = [test_base.host_state('h', aggregate)]
        filter_ = CountingFilter()
        spec = objects.RequestSpec()
        self.assertEqual(hosts, filter_.filter_all(hosts, spec))
        aggregate.name = 'bad'
        self.assertEqual([], filter_.filter_all(hosts, spec))


class PooledAggregatesFilterTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.output = self.useFixture(
            fixtures.FakeLogger(
                level=logging.DEBUG, format='%(levelname)s %(message)s'
            )
        )
        self.low = test_base.aggregate('low', level='low')
        self.high = test_base.aggregate('high', level='high')
        self.hosts = [
            test_base.host_state('h0', self.low),
            test_base.host_state('h1', self.low, self.high),
            test_base.host_state('h2'),
            test_base.host_state('h3', self.high),
            test_base.host_state('h4', self.low),
        ]
        self.filter = PooledFilter()
        self.spec = objects.RequestSpec()

    def names(self, **fields):
        return [
            state.host
            for state in self.filter.filter_all(
                iter(self.hosts), objects.RequestSpec(**fields)
            )
        ]

    def test_passed_keep_their_order(self):
        self.assertEqual(['h0', 'h2', 'h4'], self.names())
        self.assertIn(
            'DEBUG PooledFilter rejected 2 of 5 hosts: 2 because aggregate '
            'high is high\n',
            self.output.output,
        )

    def test_each_aggregate_and_each_outcome_is_asked_about_once(self):
        self.names()
        # Outcomes: low, low and high, none, high. The sets of the hosts that
        # are rejected: low and high, high.
        self.assertEqual(
            {'digest': 2, 'passes': 4, 'judge': 2}, self.filter.asked
        )

    def test_reasons_are_not_made_up_where_nobody_reads_them(self):
        base.LOG.logger.setLevel(logging.INFO)
        self.addCleanup(base.LOG.logger.setLevel, logging.NOTSET)
        self.names()
        self.assertEqual(0, self.filter.asked['judge'])
        self.hosts = [self.hosts[3]]
        self.assertEqual([], self.names())
        self.assertEqual(1, self.filter.asked['judge'])
        self.assertIn('INFO PooledFilter rejected 1 of 1', self.output.output)

    def test_an_update_takes_effect_on_the_next_request(self):
        self.names()
        self.low.metadata['level'] = 'high'
        self.assertEqual(['h2'], self.names())

    def test_faults_are_told_once(self):
        self.low.metadata['level'] = 'odd'
        for _ in range(2):
            self.assertEqual(['h0', 'h2', 'h4'], self.names())
        for fault in (
            'WARNING PooledFilter: the request is odd\n',
            'WARNING PooledFilter: aggregate low: level: got odd\n',
        ):
            self.assertEqual(1, self.output.output.count(fault), fault)

    def test_one_by_one_and_all_at_once_agree(self):
        self.low.metadata['level'] = 'odd'
        passed = self.names()
        self.filter = PooledFilter()
        self.assertEqual(
            passed,
            [
                state.host
                for state in self.hosts
                if self.filter.host_passes(state, self.spec)
            ],
        )
        # Once by each of the two filters.
        self.assertEqual(
            2, self.output.output.count('aggregate low: level: got odd')
        )

    def test_rebuild_is_skipped(self):
        self.assertEqual(5, len(self.names(scheduler_hints=REBUILD)))
        self.assertEqual({}, self.filter.asked)
