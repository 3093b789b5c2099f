# SPDX-License-Identifier: Apache-2.0

"""``openstack move plan apply`` against a real nova and placement."""

import io
import json

import fixtures

from nova_ext_sched.cmd.moves import command
from nova_ext_sched.osc import moves_run
from tests.functional import openstackclient
from tests.functional import plans

APPLY = ('move', 'plan', 'apply')


class ApplyTestCase(plans.PlanTestCase):
    """host1 is to be empty, which has a running and a stopped server."""

    weights = {'host1': 300, 'host2': 200, 'host3': 100}

    def setUp(self):
        super().setUp()
        self.useFixture(
            fixtures.MockPatchObject(moves_run, 'SECONDS', new=0.05)
        )
        self.openstack = self.useFixture(
            openstackclient.OpenStackClient(
                self.api_fixture.base_url,
                {'placement': self.placement.fixture.endpoint},
            )
        )
        self.running = self.boot(host='host1', name='[bold]web[/] $(reboot)')
        self.stopped = self.boot(host='host1')
        self.admin_api.post_server_action(
            self.stopped['id'], {'os-stop': None}
        )
        self._wait_for_state_change(self.stopped, 'SHUTOFF')

    def drain(self):
        return self.plan('host1', by=command.Drain)

    def apply(self, plan, *arguments, status=0):
        """Run the command; return the result of each move."""
        path = f'{self.useFixture(fixtures.TempDir()).path}/plan.json'
        with open(path, 'w') as file:
            json.dump(plan, file)
        got, output, errors = self.openstack.run_apart(
            *APPLY, path, *arguments, '-f', 'json'
        )
        self.assertEqual(status, got, output + errors)
        self.said = ' '.join(errors.split())
        if not output:
            return []
        self.rows = json.loads(output)
        return [row['Result'] for row in self.rows]

    def migrations(self):
        """Return kind and status of all, sorted."""
        found = self.admin_api.api_get('/os-migrations').body['migrations']
        return sorted((one['migration_type'], one['status']) for one in found)

    def assertMoved(self, plan):
        """Check that each server is where it belongs, moved once."""
        for move in plan['moves']:
            found = self.admin_api.get_server(move['server'])
            self.assertEqual(
                move['expected'], found['OS-EXT-SRV-ATTR:host'], found
            )
            self.assertIn(found['status'], ('ACTIVE', 'SHUTOFF'))
        self.assertEqual(
            [('live-migration', 'completed'), ('migration', 'confirmed')],
            self.migrations(),
        )
        provider = self._get_provider_uuid_by_host('host1')
        self.assertEqual({}, self._get_allocations_by_provider_uuid(provider))


class DrainTest(ApplyTestCase):
    def test_to_the_end(self):
        plan = self.drain()
        before = self.migrations()
        self.assertEqual(
            ['planned', 'planned'], self.apply(plan, '--dry-run', status=3)
        )
        self.assertEqual(before, self.migrations())
        self.assertEqual(['moved', 'moved'], self.apply(plan))
        self.assertIn('2 of 2 moves are done: moved 2.', self.said)
        self.assertEqual(
            [
                (m['server'], m['name'], m['host'], m['to'], m['kind'])
                for m in plan['moves']
            ],
            [
                (r['Server'], r['Name'], r['Host'], r['To'], r['Kind'])
                for r in self.rows
            ],
        )
        self.assertMoved(plan)
        for arguments in ((), ('--dry-run',)):
            self.assertEqual(
                ['there before'] * 2, self.apply(plan, *arguments)
            )
        self.assertMoved(plan)
        with fixtures.MonkeyPatch('sys.stdin', io.StringIO(json.dumps(plan))):
            status, text = self.openstack.run(*APPLY, '-')
        self.assertEqual(0, status)
        self.assertTrue(
            text.startswith('2 of 2 moves are done:\n  2  there before\n'),
            text,
        )
        # As a user wrote it.
        self.assertIn('  [bold]web[/]', text)
        status, text = self.openstack.run(*APPLY, 'no/such/file')
        self.assertEqual(2, status)
        self.assertIn('expected a file', text)
