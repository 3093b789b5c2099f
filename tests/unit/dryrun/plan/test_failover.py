# SPDX-License-Identifier: Apache-2.0

"""Which hosts may still fail while others are empty; nova's claims decide."""

import types
from unittest import mock

import fixtures
import testtools

from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import failover
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import spare
from tests.unit.dryrun.cloud import clouds
from tests.unit.dryrun.plan import small


class FailoverTestCase(testtools.TestCase):
    """Four hosts of four CPUs; what survive found of them is made up."""

    def setUp(self):
        super().setUp()
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.scheduler.request_filter.ALL_REQUEST_FILTERS', []
            )
        )
        self.cloud = clouds.Cloud('abcd', [clouds.KnownFilter()])
        self.instances = {}
        self.movables, self.failures = {}, []
        self.places = destinations.Destinations(self.cloud)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.dryrun.plan.survive.Survival',
                lambda places: types.SimpleNamespace(
                    find=lambda: ({}, ''), fail=self.fail_all
                ),
            )
        )

    def stand(self, **servers):
        """Let a server be on each of some hosts.

        :param servers: its CPUs, and whether it is like all that have as many
        """
        for on, (cpus, _) in servers.items():
            self.instances[on] = self.cloud.stand(f'{on}1', on)
            amounts = {'VCPU': cpus, 'MEMORY_MB': 64 * cpus}
            self.cloud.server.hold(f'{on}1', **{on: amounts})
        for on, (cpus, is_whole) in servers.items():
            uuid, spec = f'{on}1', clouds.make_spec(cpus)
            key = likeness.Key(str(cpus), is_whole)
            mine = movable.Evacuation(uuid, spec, None, on)
            small.prepare(self.places, mine, key)
            self.movables[f'host{on}'] = {uuid: mine}

    def fail_all(self, failures, advance):
        for one in self.failures:
            advance()
            known = self.movables.get(one.failure, {})
            yield one, spare.Evacuated(one.failure, {*one.hosts}, known, set())

    def fail(self, host, *stuck):
        self.failures.append(plans.Failure(host, [host], [], [*stuck]))

    def test_hosts_that_lose_their_place(self):
        self.stand(a=(3, True), b=(3, False))
        for host in ('hosta', 'hostb'):
            self.fail(host)
        advance = mock.Mock()
        found = failover.Failover(self.cloud, advance)
        # What is done is said, and each step is counted.
        self.assertEqual(
            [
                mock.call(steps=0, label='Evacuating servers'),
                *[mock.call()] * 2,
            ],
            advance.call_args_list,
        )
        with self.cloud.fork() as future:
            self.assertIsNone(found.find_lost(future, set()))
            self.assertIsNone(found.find_lost(future, {'hostc'}))
            self.assertEqual(
                'hosta', found.find_lost(future, {'hostc', 'hostd'})
            )
            # One that is empty need not be able to fail.
            self.assertEqual(
                'hostb', found.find_lost(future, {'hosta', 'hostc', 'hostd'})
            )

    def test_servers_count_where_they_are(self):
        """b's server moved to c: with d empty, it goes back to b."""
        self.stand(b=(3, False))
        self.fail('hostb')
        self.fail('hostc')
        found = failover.Failover(self.cloud)
        with self.cloud.fork() as future:
            target = self.cloud.find_target('c')
            spec = clouds.make_spec(3)
            one = self.instances['b']
            self.assertTrue(self.cloud.migrate(future, one, spec, target))
            self.assertIsNone(found.find_lost(future, {'hosta', 'hostd'}))
            self.assertEqual(
                'hostc', found.find_lost(future, {'hosta', 'hostb', 'hostd'})
            )

    def test_hosts_that_may_not_fail_today(self):
        self.stand(a=(4, True))
        stuck = plans.Stuck('a1', '', '', 'hosta', [], 'why', 'VCPU', '')
        self.fail('hosta', stuck)
        found = failover.Failover(self.cloud)
        with self.cloud.fork() as future:
            every = {'hostb', 'hostc', 'hostd'}
            self.assertIsNone(found.find_lost(future, every))
