# SPDX-License-Identifier: Apache-2.0

import collections
import itertools

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_ext_sched.dryrun.plan import shared_answers


class RankingTestCase(testtools.TestCase):
    """Hosts of which the weighers prefer the one with the highest number."""

    def setUp(self):
        super().setUp()
        self.begin()

    def begin(self):
        self.ranking = shared_answers.Ranking()
        self.versions = {}
        self.numbers = itertools.count(1)
        self.weighed = collections.Counter()

    def change(self, *hosts):
        for host in hosts:
            self.versions[host] = next(self.numbers)

    def order(self, hosts):
        self.weighed.update(hosts)
        return sorted(hosts, reverse=True)

    def add(self, *hosts):
        """Let hosts change, and order them."""
        self.change(*hosts)
        changed = self.ranking.find_changed(self.versions, self.versions)
        self.ranking.add(changed, self.versions, self.order)

    def read(self):
        return [''.join(run) for run in self.ranking.read(self.versions)]

    def test_each_run_has_an_order_of_its_own(self):
        self.add('a', 'c')
        self.add('b', 'd')
        self.assertEqual(['ca', 'db'], self.read())

    def test_a_host_that_changed_is_in_no_run(self):
        self.add('a', 'b', 'c')
        self.change('b')
        self.assertEqual(['ca'], self.read())
        self.assertEqual(
            ['b'], self.ranking.find_changed(self.versions, self.versions)
        )
        self.add()
        self.assertEqual(['ca', 'b'], self.read())

    def test_a_run_of_a_fork_that_is_dropped(self):
        self.add('a', 'b')
        before = dict(self.versions)
        self.add('b')
        self.versions = before
        self.assertEqual(['ba', ''], self.read())

    def test_runs_of_one_length_become_one(self):
        for host in 'abcdefg':
            self.add(host)
        self.assertEqual(['g', 'f', 'e', 'dcba'], sorted(self.read())[::-1])

    def test_a_host_is_weighed_a_few_times(self):
        """Not once with each host that changes after it."""
        hosts = [f'{number:04}' for number in range(1000)]
        for host in hosts:
            self.add(host)
        # 4, 16, 64 and 256 hosts became one run.
        self.assertLessEqual(max(self.weighed.values()), 5)
        self.assertLess(len(self.read()), 5 * shared_answers.MOST_RUNS)

    @given(st.lists(st.sets(st.sampled_from('abcdefghij'), min_size=1)))
    def test_each_host_is_in_one_run(self, changes):
        self.begin()
        for hosts in changes:
            self.add(*hosts)
        runs = self.read()
        self.assertEqual(sorted(self.versions), sorted(''.join(runs)))
        for run in runs:
            self.assertEqual(self.order(run), [*run])
