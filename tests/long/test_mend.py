# SPDX-License-Identifier: Apache-2.0

"""Orders of moves that are long, of two cells, and in each format."""

import csv
import io

import fixtures
from oslo_utils import fixture as utils_fixture

from nova_ext_sched.dryrun.decision import server as explain_server
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import stuck
from tests.functional import openstackclient
from tests.functional import plans


class LongTestCase(plans.PlanTestCase):
    """A plan takes longer than a service may be silent."""

    weights = {'host1': 200, 'host2': 100}

    def test_hosts_are_as_when_they_were_read(self):
        hints = self.group(limit=1)
        for _ in range(2):
            self.boot(hints=hints, az='nova:host1')
        clock = self.useFixture(utils_fixture.TimeFixture())
        judge = destinations.Destinations.judge

        def judge_later(mine, *args, **kwargs):
            self.assertTrue(mine.cloud.states)
            # nova-api reads heartbeats of its own, before and after.
            clock.advance_time_seconds(3600)
            try:
                return judge(mine, *args, **kwargs)
            finally:
                clock.advance_time_seconds(-3600)

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.dryrun.plan.destinations.Destinations.judge',
                judge_later,
            )
        )
        [move] = self.plan()['moves']
        self.assertEqual('host2', move['to'])


class TwoPoliciesTestCase(plans.PlanTestCase):
    weights = {'host1': 400, 'host2': 300, 'host3': 200, 'host4': 100}

    def test_of_a_full_host_and_rack_as_many_as_are_too_many(self):
        self.aggregate('rack1', ['host1', 'host2'], failure_domain='rack1')
        self.aggregate('rack2', ['host3', 'host4'], failure_domain='rack2')
        self.rack_limit = 2
        hints = self.group(limit=9)
        for host in ('host1', 'host1', 'host2', 'host3'):
            self.boot(hints=hints, az=f'nova:{host}')
        hints = self.group(limit=1)
        for _ in range(2):
            self.boot(hints=hints, az='nova:host2')
        plan = self.mend()
        by = {one['policies'][0]: one['to'] for one in plan['moves']}
        self.assertEqual({'anti-affinity', 'failure-domain'}, {*by})
        self.assertEqual(2, len(plan['moves']))
        self.assertIn(by['failure-domain'], ('host3', 'host4'))
        self.assertEqual(3, len(plan['mended_by_others']))


class CellsTestCase(plans.PlanTestCase):
    """Most hosts are in another cell, where no move goes."""

    NUMBER_OF_CELLS = 2
    weights = {'host1': 200, 'host2': 100, 'host3': 20, 'host4': 10}
    cells = {'host3': 'cell2', 'host4': 'cell2'}

    def test_the_cause_is_not_the_cell(self):
        hints = self.group(limit=1)
        for host in ('host1', 'host1', 'host2'):
            self.boot(hints=hints, az=f'nova:{host}')
        plan = self.mend()
        self.assertSentence(
            '0 of 2 servers can be moved; 2 cannot: anti-affinity.',
            plan,
        )
        one = plan['without_place'][0]
        self.assertIn('2 are not in the requested cell', one['reason'])
        self.assertEqual('', one['would_help'])


class FormatsTestCase(plans.PlanTestCase):
    weights = {'host1': 300, 'host2': 200, 'host3': 100}

    def setUp(self):
        super().setUp()
        self.running = self.boot(host='host2', name='web; $(reboot)')['id']
        server = self.boot(host='host2')
        self.stopped = server['id']
        self.admin_api.post_server_action(self.stopped, {'os-stop': None})
        self._wait_for_state_change(server, 'SHUTOFF')
        self.isolate('windows', ['host2'], 'CUSTOM_WINDOWS')
        self.openstack = self.useFixture(
            openstackclient.OpenStackClient(
                self.api_fixture.base_url, microversion='2.68'
            )
        )

    def test_rows_of_a_cloud_that_changes(self):
        """The scheduler looks at the host again, and refuses the move."""
        plan = self.plan()
        _, text = self.run_mend('-f', 'csv')
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(['1', '2'], [row['Turn'] for row in rows])
        self.assertEqual(
            {self.running: 'live', self.stopped: 'cold'},
            {row['Server']: row['Method'] for row in rows},
        )
        self.isolate('more', ['host1', 'host3'], 'CUSTOM_MORE')
        for move in plan['moves']:
            live = ['--live-migration'] * (move['method'] == 'live')
            words = ['--host', move['to'], move['server']]
            self.openstack.run('server', 'migrate', *live, *words)
            self._wait_for_server_parameter(
                {'id': move['server']}, {'OS-EXT-STS:task_state': None}
            )
            self.assertEqual('host2', self.host_of({'id': move['server']}))


class DeletedTestCase(plans.PlanTestCase):
    """Servers that are deleted while they are judged, and moved."""

    weights = {'host1': 300, 'host2': 200}

    def test_at_any_moment(self):
        self.isolate('windows', ['host1'], 'CUSTOM_WINDOWS')
        servers = [self.boot(host='host1') for _ in range(5)]
        for target, name, state in (
            (explain_server.Server, '__init__', 'active'),
            (destinations.Destinations, 'find', 'active'),
            (stuck.StuckExplainer, '_explain', 'error'),
            (planner, 'compare_groups', 'active'),
        ):
            server = servers.pop()
            self.reset_state(server, state)
            with self.deleting(server, target, name):
                plan = self.plan()
            self.assertDeleted([server], plan)
            self.assertEqual(
                sorted(one['id'] for one in servers),
                sorted(one['server'] for one in plan['moves']),
            )
