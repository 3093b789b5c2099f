# SPDX-License-Identifier: Apache-2.0

import collections
import itertools
from unittest import mock

import fixtures
from hypothesis import given
from hypothesis import strategies as st
from nova import exception as nova_exception
from nova.scheduler import utils
import testtools

from nova_ext_sched.dryrun.cloud import jobs
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.plan import shared_answers
from tests.unit.dryrun.plan import small


class AheadTestCase(small.TestCase):
    """What jobs ask placement, before a plan does."""

    def setUp(self):
        super().setUp()
        self.cloud = self.small.build('h1=9 a=1 b=1+g c=2; h2=9 d=3')
        self.answers = shared_answers.SharedAnswers(self.cloud)
        self.useFixture(fixtures.MockPatchObject(jobs, 'run', self.run_jobs))
        # How many questions, and jobs.
        self.ran = []

    def run_jobs(self, cloud, parts, work, number):
        """Forget what this process was told, as if a job had asked."""
        self.ran.append((len(parts), number))
        for index, part in enumerate(parts):
            answer = work(part, lambda: None)
            cloud.providers._answers.clear()
            cloud.providers._rooms.clear()
            yield index, answer

    def ask_ahead(self, servers, number=2):
        specs = []
        for uuid in servers:
            spec = self.small.make_spec(uuid)
            spec.flavor.flavorid = str(spec.flavor.vcpus)
            specs.append(spec)
        self.answers.ask_ahead(specs, number)

    def count_asked(self, servers):
        """Count the questions that remain when a plan is made."""
        asked = self.cloud.server.asked
        asked.clear()
        for uuid in servers:
            self.answers.make(self.small.make_spec(uuid))
        return len([url for url in asked if 'allocation_candidates' in url])

    def test_each_question_once(self):
        """What groups and hints add is not in it."""

        def refuse(ctxt, spec_obj):
            if spec_obj.instance_group or spec_obj.scheduler_hints:
                raise nova_exception.RequestFilterFailed(reason='own')

        self.small.request_filters.append(refuse)
        self.ask_ahead('cab')
        self.assertEqual([(2, 2)], self.ran)
        self.assertEqual(0, self.count_asked('abc'))
        # The room of each host is known as well.
        self.assertEqual({'h1', 'h2'}, self.cloud.providers._rooms.keys())
        self.assertEqual(1, self.count_asked('d'))

    def test_what_fails_is_asked_when_it_is_needed(self):
        away = placement.PlacementFailed(query='GET', cause='away')
        with mock.patch.object(
            self.cloud.providers, 'get_candidates', side_effect=away
        ):
            self.ask_ahead('a')
        self.assertEqual([(1, 2)], self.ran)
        self.assertEqual(1, self.count_asked('a'))

    def test_a_request_that_cannot_be_made(self):
        """It hinders no other one."""
        make = utils.resources_from_request_spec

        def fail(ctxt, spec_obj, *_, **__):
            if spec_obj.flavor.vcpus == 1:
                raise nova_exception.NoValidHost(reason='none')
            return make(ctxt, spec_obj, *_, **__)

        with mock.patch.object(utils, 'resources_from_request_spec', fail):
            self.ask_ahead('ac')
        self.assertEqual([(1, 2)], self.ran)
        self.assertEqual(
            [1, 0], [self.count_asked('a'), self.count_asked('c')]
        )


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
