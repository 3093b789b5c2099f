# SPDX-License-Identifier: Apache-2.0

import logging
import re
from unittest import mock

import ddt
import fixtures
from nova import objects
from nova.scheduler import filters
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched import request_state
from nova_ext_sched.filters import base
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import verdict
from tests.unit.filters import base as test_base

POLICY = declaration.Policy(name='bad', refuses='are bad')


class OddFilter(base.PolicyFilter):
    """Refuses hosts whose name ends in an odd digit."""

    def decisions(self, spec_obj):
        def judge(host_state):
            if int(host_state.host[-1]) % 2:
                return verdict.reject('the number is odd')
            return verdict.PASS

        yield POLICY, judge


class OddOnRebuildFilter(OddFilter):
    RUN_ON_REBUILD = True


class IdleFilter(base.PolicyFilter):
    def decisions(self, spec_obj):
        yield from ()


class CountingFilter(base.PolicyFilter):
    """Refuses hosts in an aggregate named "bad", and counts decisions."""

    def __init__(self):
        super().__init__()
        self.decided = 0

    def decisions(self, spec_obj):
        def decide(aggregates):
            self.decided += 1
            if any(one.name == 'bad' for one in aggregates):
                return verdict.reject('aggregate bad')
            return verdict.PASS

        yield POLICY, base.ByAggregates(decide)


@ddt.ddt
class PolicyFilterTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        form = '%(levelname)s %(message)s'
        logger = fixtures.FakeLogger('', logging.DEBUG, form)
        self.output = self.useFixture(logger)
        self.hosts = [test_base.host_state(f'h{i}') for i in range(5)]

    def names(self, filter_, **fields):
        spec = objects.RequestSpec(**fields)
        return test_base.names(filter_.filter_all(iter(self.hosts), spec))

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
        (OddFilter, test_base.REBUILD, 5),
        (OddFilter, {'scheduler_hints': test_base.HINT}, 3),
        (OddFilter, {**test_base.REBUILD, 'id': 1}, 3),
        (OddOnRebuildFilter, test_base.REBUILD, 3),
        (OddOnRebuildFilter, {'scheduler_hints': test_base.HINT}, 3),
    )
    @ddt.unpack
    def test_rebuild(self, cls, fields, expected):
        self.assertEqual(expected, len(self.names(cls(), **fields)))

    def test_a_member_who_writes_the_hint(self):
        """One line for each project, and none that raises an alert."""
        for project in ('p', 'p', 'q\nq'):
            for cls in (OddFilter, OddOnRebuildFilter, IdleFilter):
                of = {'project_id': project, 'instance_uuid': uuids.server}
                self.names(cls(), scheduler_hints=test_base.HINT, **of)
        self.assertEqual(
            [
                f'INFO Server {uuids.server} of project {project} '
                for project in ('p', r"'q\nq'")
            ],
            re.findall(
                '(.+)has the .*only nova may write', self.output.output
            ),
        )
        self.names(OddFilter(), **test_base.REBUILD)
        self.assertEqual(2, self.output.output.count('only nova may write'))

    @ddt.data(False, True)
    def test_what_is_refused_for_the_group(self, counts_group):
        """The weigher learns of it; of no other refusal."""
        host_filter = OddFilter()
        policy = mock.Mock(counts_group=counts_group)
        host_filter.policies = (policy,)
        spec = objects.RequestSpec()
        host_filter.filter_all(self.hosts, spec)
        refused = request_state.of(spec).group.refused
        self.assertEqual(2 if counts_group else 0, len(refused))

    def test_no_reasons_are_made_up_where_nobody_reads_them(self):
        class Counting(OddFilter):
            counted = 0

            def count_reasons(self, rejected, judges):
                self.counted += 1
                return super().count_reasons(rejected, judges)

        filter_ = Counting()
        base.LOG.logger.setLevel(logging.INFO)
        self.addCleanup(base.LOG.logger.setLevel, logging.NOTSET)
        self.names(filter_)
        self.assertEqual(0, filter_.counted)
        self.hosts = self.hosts[1:2]
        self.names(filter_)
        self.assertEqual(1, filter_.counted)

    def test_reasons_are_counted_most_frequent_first(self):
        class Reasons(base.PolicyFilter):
            def decisions(self, spec_obj):
                rare = verdict.reject('rare')
                first = {'h0': rare}
                yield POLICY, lambda one: first.get(one.host, verdict.PASS)
                # The first reason counts.
                yield POLICY, lambda one: verdict.reject('frequent')

        self.assertEqual([], self.names(Reasons()))
        self.assertIn('4 because frequent; 1 because rare', self.output.output)


class OthersTestCase(testtools.TestCase):
    """A filter of another package is asked about one host."""

    def test_answers(self):
        state = test_base.host_state('h')

        class Other(filters.BaseHostFilter):
            def filter_all(self, hosts, spec_obj):
                return self.answer

        other = Other()

        for other.answer, passes in (
            ([state], True),
            (iter([state]), True),
            ([], False),
            (iter(()), False),
            (None, False),
        ):
            ((_, judge),) = base.decisions_of(other, objects.RequestSpec())
            self.assertIs(passes, judge(state).passes)


def refuse_red(aggregates):
    """Decide as the bits of READ_RED."""
    if any('red' in one.metadata for one in aggregates):
        return verdict.reject('it is red')
    return verdict.PASS


@ddt.ddt
class ByEachAggregateTestCase(testtools.TestCase):
    """Both ways to ask give one answer."""

    def setUp(self):
        super().setUp()
        self.output = self.useFixture(fixtures.FakeLogger())
        self.read = []
        red = test_base.aggregate('red', red='1')
        blue = test_base.aggregate('blue')
        unread, none = objects.Aggregate(name='unread'), objects.Aggregate()
        none._obj_metadata = None
        self.hosts = [
            test_base.host_state('blue', blue),
            test_base.host_state('both', blue, red),
            test_base.host_state('red', red),
            test_base.host_state('unread', unread, blue),
            test_base.host_state('none', none),
            test_base.host_state('bare'),
        ]

    def judges(self, **left_out):
        left_out = request_state.LeftOut(**left_out)
        yield base.ByEachAggregate(
            self.read_red, lambda bits: not bits & 1, refuse_red, left_out
        )
        yield base.ByAggregates(refuse_red, left_out)

    def read_red(self, aggregate, metadata):
        self.read.append(aggregate.name)
        return 'red' in metadata

    def reasons(self, judge):
        return {
            state.host: judge(state).reason
            for state in self.hosts
            if not judge(state).passes
        }

    def test_each_aggregate_is_read_once(self):
        judge, _ = self.judges()
        passed, rejected = judge.split(self.hosts)
        self.assertEqual(['blue', 'bare'], test_base.names(passed))
        self.assertEqual(4, len(rejected))
        self.assertEqual(['blue', 'red'], sorted(self.read))

    def test_what_cannot_be_read_is_refused(self):
        for judge in self.judges():
            found = self.reasons(judge)
            self.assertEqual({'both', 'red', 'unread', 'none'}, {*found})
            self.assertEqual('it is red', found['both'])
            self.assertIn('aggregate unread has no metadata', found['unread'])
            self.assertIn('without a name has no metadata', found['none'])
        self.assertEqual(2, self.output.output.count('Hosts are rejected'))

    def test_what_stage_1_left_out(self):
        """It refuses more, and never opens what the memory refuses."""
        closed = {'blue': 'closed\n', 'red': 'closed'}
        for judge in self.judges(forbidden=closed):
            found = self.reasons(judge)
            expected = {'blue', 'both', 'red', 'unread', 'none'}
            self.assertEqual(expected, {*found})
            self.assertEqual('it is red', found['red'])
            self.assertIn(
                "aggregate 'closed\\n' is forbidden to the request by the "
                'API database',
                found['blue'],
            )
            self.assertEqual('closed\n', judge(self.hosts[0]).aggregate)
        judge, _ = self.judges(forbidden={'blue': 'closed'})
        passed, rejected = judge.split(self.hosts)
        self.assertEqual(['bare'], test_base.names(passed))
        self.assertEqual(5, len(rejected))
        # Where nothing else is refused, too.
        passed, rejected = judge.split([self.hosts[0], self.hosts[-1]])
        self.assertEqual(['bare'], test_base.names(passed))
        self.assertEqual(['blue'], test_base.names(rejected))

    @ddt.data(
        ([{'blue', 'both'}], ['blue']),
        ([{'blue', 'bare'}, {'bare'}], ['bare']),
        ([{'blue'}, {'bare'}], []),
        ([set()], []),
    )
    @ddt.unpack
    def test_required_sets_that_stage_1_left_out(self, sets, expected):
        """A host must be in each; the memory still refuses what it refuses."""
        left_out = [(hosts, '2 aggregates: a, b') for hosts in sets]
        for judge in self.judges(required=left_out):
            passed = [one.host for one in self.hosts if judge(one).passes]
            self.assertEqual(expected, passed)
            out = judge(self.hosts[0 if expected != ['blue'] else -1])
            self.assertEqual(
                'the host is in none of 2 aggregates: a, b by the API '
                'database, and this nova-scheduler has not heard of it',
                out.reason,
            )
            self.assertTrue(out.lacks)
        judge, _ = self.judges(required=left_out)
        passed, rejected = judge.split(self.hosts)
        self.assertEqual(expected, test_base.names(passed))
        self.assertEqual(6 - len(expected), len(rejected))

    def test_one_line_for_what_cannot_be_read(self):
        """Whether or not other hosts pass, when no reason is asked for."""
        for judge in (*self.judges(), *self.judges()):
            passed, _ = base._split(self.hosts, [judge])
            self.assertEqual(['blue', 'bare'], test_base.names(passed))
            logged = self.output.output
            self.assertEqual(2, logged.count('Hosts are rejected: aggregate '))


class ByAggregatesTestCase(testtools.TestCase):
    def test_one_decision_for_each_set(self):
        """Sets of one size are told apart, in either order."""
        good, bad = test_base.aggregate('good'), test_base.aggregate('bad')
        sets = [good], [good], [bad], [good, good], [good, bad], [good, bad]
        hosts = [
            test_base.host_state(f'h{number}', *mine)
            for number, mine in enumerate((*sets, []))
        ]
        for some in (hosts, hosts[::-1]):
            filter_ = CountingFilter()
            passed = filter_.filter_all(some, objects.RequestSpec())
            expected = ['h0', 'h1', 'h3', 'h6']
            self.assertEqual(expected, sorted(test_base.names(passed)))
            self.assertEqual(5, filter_.decided)
