# SPDX-License-Identifier: Apache-2.0

"""Plans, each carried out by nova move after move, and audited again."""

import contextlib
import csv
import io
import json
import runpy
import shlex

import fixtures
from nova.tests.functional.api import client
from oslo_utils import fixture as utils_fixture

from nova_ext_sched.cmd.audit import destinations
from tests.functional import openstackclient
from tests.functional import plans
from tests.unit import test_carry_out


class PlanTestCase(plans.PlanTestCase):
    weights = {'host1': 400, 'host2': 300, 'host3': 200, 'host4': 100}

    def test_nothing_to_mend(self):
        self.boot()
        plan = self.mend()
        self.assertEqual([], plan['moves'])
        self.assertEqual('No server has to move.', plan['sentence'])

    def test_isolation_over_a_filled_aggregate(self):
        """The fourth finds the best host full, by the first three."""
        flavor = self.sized(3)
        servers = [
            self.boot(flavor=flavor, host=host)['id']
            for host in ('host2', 'host2', 'host3', 'host3')
        ]
        self.isolate('windows', ['host2', 'host3'], 'CUSTOM_WINDOWS')
        plan = self.mend()
        self.assertEqual(
            ['host1'] * 3 + ['host4'], [m['to'] for m in plan['moves']]
        )
        self.assertEqual(
            sorted(servers), sorted(m['server'] for m in plan['moves'])
        )
        self.assertEqual('4 of 4 servers can be moved.', plan['sentence'])
        self.assertEqual(
            {('live', self.api.project_id, 'isolation')},
            {(m['kind'], m['project'], *m['policies']) for m in plan['moves']},
        )

    def test_reservation(self):
        """One belongs into it, and others out of it."""
        self.aggregate('db', ['host3'], metadata={'reservation:db': '1'})
        flavor = self.flavor(specs={'reservation:db': 'true'})
        mine = self.boot(flavor=flavor, az='nova:host1')['id']
        other = self.boot(az='nova:host3')['id']
        self.assertEqual(
            {(mine, 'host1', 'host3'), (other, 'host3', 'host1')},
            set(self.moves(self.mend())),
        )

    def test_of_a_full_group_as_many_as_are_too_many(self):
        hints = self.group(limit=2)
        for _ in range(4):
            self.boot(hints=hints, az='nova:host2')
        plan = self.mend()
        self.assertEqual(2, len(plan['moves']))
        self.assertEqual(2, len(plan['mended_by_others']))

    def test_of_a_full_rack_as_many_as_are_too_many(self):
        self.aggregate('rack1', ['host1', 'host2'], failure_domain='rack1')
        self.aggregate('rack2', ['host3', 'host4'], failure_domain='rack2')
        self.rack_limit = 2
        hints = self.group(limit=9)
        for host in ('host1', 'host1', 'host2', 'host3'):
            self.boot(hints=hints, az=f'nova:{host}')
        plan = self.mend()
        [move] = plan['moves']
        self.assertIn(move['to'], ('host3', 'host4'))
        self.assertEqual(['failure-domain'], move['policies'])

    def test_a_member_that_must_go_anyway_mends_its_group(self):
        hints = self.group(limit=1)
        flavor = self.flavor(specs={'reservation:db': 'true'})
        self.boot(hints=hints, az='nova:host2')
        must = self.boot(flavor=flavor, hints=hints, az='nova:host2')['id']
        self.aggregate('db', ['host3'], metadata={'reservation:db': '1'})
        plan = self.mend()
        self.assertEqual([(must, 'host2', 'host3')], self.moves(plan))

    def test_a_full_destination_that_an_order_resolves(self):
        """Each of three takes the place that the one before it left."""
        flavors = [
            self.sized(10, {f'reservation:{name}': 'true'}) for name in 'abc'
        ]
        servers = [
            self.boot(flavor=flavor, az=f'nova:{host}')['id']
            for flavor, host in zip(
                flavors, ('host1', 'host2', 'host3'), strict=True
            )
        ]
        for name, host in (('a', 'host2'), ('b', 'host3'), ('c', 'host4')):
            self.aggregate(name, [host], metadata={f'reservation:{name}': '1'})
        a, b, c = servers
        self.assertEqual(
            [
                (c, 'host3', 'host4'),
                (b, 'host2', 'host3'),
                (a, 'host1', 'host2'),
            ],
            self.moves(self.mend()),
        )

    def test_two_that_would_have_to_change_places(self):
        for name, host in (('a', 'host1'), ('b', 'host2')):
            self.boot(
                flavor=self.sized(10, {f'reservation:{name}': 'true'}),
                az=f'nova:{host}',
            )
        for name, host in (('a', 'host2'), ('b', 'host1')):
            self.aggregate(name, [host], metadata={f'reservation:{name}': '1'})
        plan = self.mend()
        self.assertEqual(
            '0 of 2 servers can be moved; 2 have no place: VCPU.',
            plan['sentence'],
        )
        one = plan['without_place'][0]
        self.assertEqual('VCPU on 1 host', one['would_help'])
        self.assertIn('1 is full (VCPU)', one['reason'])

    def test_a_server_that_is_stopped(self):
        server = self.boot(host='host2')
        self.admin_api.post_server_action(server['id'], {'os-stop': None})
        self._wait_for_state_change(server, 'SHUTOFF')
        self.isolate('windows', ['host2'], 'CUSTOM_WINDOWS')
        [move] = self.mend()['moves']
        self.assertEqual('cold', move['kind'])

    def test_a_server_that_nova_does_not_move(self):
        server = self.boot(host='host2')
        self.admin_api.post_server_action(server['id'], {'suspend': None})
        self._wait_for_state_change(server, 'SUSPENDED')
        self.isolate('windows', ['host2'], 'CUSTOM_WINDOWS')
        plan = self.mend()
        self.assertEqual(
            '0 of 1 server can be moved; 1 has no place: state.',
            plan['sentence'],
        )
        self.assertIn('vm_state', plan['without_place'][0]['reason'])

    def test_at_most(self):
        for _ in range(3):
            self.boot(host='host2')
        self.isolate('windows', ['host2'], 'CUSTOM_WINDOWS')
        plan = self.mend('--most', '2')
        self.assertEqual(
            '2 of 3 servers can be moved. 1 server is left (--most).',
            plan['sentence'],
        )

    def test_of_one_host_or_project(self):
        for host in ('host2', 'host3'):
            self.boot(host=host)
        self.isolate('windows', ['host2', 'host3'], 'CUSTOM_WINDOWS')
        for argv, number in (
            (('--host', 'host2'), 1),
            (('--project', 'f00d' * 8), 0),
            (('--aggregate', 'windows'), 2),
        ):
            self.assertEqual(number, len(self.plan(*argv)['moves']))


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
            self.assertTrue(mine._scheduler.states)
            # nova-api reads heartbeats of its own, before and after.
            clock.advance_time_seconds(3600)
            try:
                return judge(mine, *args, **kwargs)
            finally:
                clock.advance_time_seconds(-3600)

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.cmd.audit.destinations.Destinations.judge',
                judge_later,
            )
        )
        [move] = self.plan()['moves']
        self.assertEqual('host2', move['to'])


class CellsTestCase(plans.PlanTestCase):
    """Most hosts are in another cell, where no move goes."""

    NUMBER_OF_CELLS = 2
    weights = {'host1': 200, 'host2': 100}

    def test_the_cause_is_not_the_cell(self):
        for name in ('host3', 'host4', 'host5'):
            self._start_compute(name, cell_name='cell2')
        hints = self.group(limit=1)
        for host in ('host1', 'host1', 'host2', 'host2'):
            self.boot(hints=hints, az=f'nova:{host}')
        plan = self.mend()
        self.assertEqual(
            '0 of 4 servers can be moved; 4 have no place: anti-affinity.',
            plan['sentence'],
        )
        one = plan['without_place'][0]
        self.assertIn('3 are not in the requested cell', one['reason'])
        self.assertEqual('', one['would_help'])


class MakeRoomTestCase(plans.PlanTestCase):
    """The misplaced one fits on host2 alone, where others may stand too."""

    weights = {'host1': 300, 'host2': 200, 'host3': 100}

    def setUp(self):
        super().setUp()
        self.specs = {'reservation:db': 'true'}
        self.aggregate(
            'db', ['host2', 'host3'], metadata={'reservation:db': '1'}
        )
        self.misplaced = self.put(6, 'host1')

    def put(self, vcpus, host):
        return self.boot(
            flavor=self.sized(vcpus, self.specs), az=f'nova:{host}'
        )['id']

    def test_one_is_enough(self):
        small, large = self.put(2, 'host2'), self.put(4, 'host2')
        self.put(7, 'host3')
        self.assertEqual([], self.plan()['moves'])
        plan = self.mend('--make-room')
        self.assertEqual(
            [
                (small, 'host2', 'host3', self.misplaced),
                (self.misplaced, 'host1', 'host2', None),
            ],
            [
                (m['server'], m['from'], m['to'], m['room_for'])
                for m in plan['moves']
            ],
        )
        self.assertEqual(
            '1 of 1 server can be moved. 1 other server makes room.',
            plan['sentence'],
        )
        self.assertEqual([], plan['without_place'])
        self.assertNotEqual(large, plan['moves'][0]['server'])

    def test_nobody_can_leave(self):
        for host in ('host2', 'host3'):
            self.put(7, host)
        plan = self.mend('--make-room')
        self.assertEqual([], plan['moves'])
        self.assertEqual('VCPU', plan['without_place'][0]['cause'])


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

    def test_commands(self):
        """The OpenStackClient takes them as they are; none has a name."""
        moves = self.plan()['moves']
        status, text = self.run_audit('--plan', '-f', 'commands')
        self.assertEqual(3, status)
        lines = text.splitlines()
        self.assertEqual(3, len(lines))
        for line in lines:
            program, _, version, *words = shlex.split(line)
            self.assertEqual(('openstack', '2.68'), (program, version))
            words = [word for word in words if word != '--wait']
            status, out = self.openstack.run(*words)
            self.assertEqual(0, status, out)
            uuid = words[-1]
            [target] = [m['to'] for m in moves if m['server'] == uuid]
            self._wait_for_server_parameter(
                {'id': uuid},
                {
                    'OS-EXT-SRV-ATTR:host': target,
                    'OS-EXT-STS:task_state': None,
                },
            )
        self._wait_for_state_change({'id': self.stopped}, 'SHUTOFF')
        self.assertEqual([], self.found())

    def test_a_cloud_that_changed_is_refused_by_nova(self):
        """The scheduler looks at the host again."""
        plan = self.plan()
        self.isolate('more', ['host1', 'host3'], 'CUSTOM_MORE')
        for move in plan['moves']:
            live = ['--live-migration'] * (move['kind'] == 'live')
            words = ['--host', move['to'], move['server']]
            self.openstack.run('server', 'migrate', *live, *words)
            self._wait_for_server_parameter(
                {'id': move['server']}, {'OS-EXT-STS:task_state': None}
            )
            self.assertEqual('host2', self.host_of({'id': move['server']}))

    def test_rows(self):
        self.plan()
        _, text = self.run_audit('--plan', '-f', 'csv')
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(['1', '2'], [row['Turn'] for row in rows])
        self.assertEqual(
            {self.running: 'live', self.stopped: 'cold'},
            {row['Server']: row['Kind'] for row in rows},
        )

    def test_the_script(self):
        """Twice: where it was, it finds nothing more to do."""
        plan = self.plan()
        folder = self.useFixture(fixtures.TempDir()).path
        path = f'{folder}/plan.json'
        with open(path, 'w') as file:
            json.dump({'plan': plan}, file)
        script = runpy.run_path(test_carry_out.SCRIPT)
        typed = []

        def openstack(*words):
            typed.append(words[1])
            # For these the client would ask Cinder, Glance and Keystone.
            if words[1] == 'show':
                return self.show(script['Stop'], words[-1])
            if words[1] == 'migration':
                found = self.admin_api.api_get(
                    f'/os-migrations?instance_uuid={words[-1]}'
                ).body['migrations']
                return json.dumps([{'Status': m['status']} for m in found])
            status, out, err = self.openstack.run_apart(*words)
            if status:
                raise script['Stop'](err)
            return out

        names = script['main'].__globals__
        names.update(
            openstack=openstack,
            audit=lambda words: self.run_audit(*words)[0],
            SECONDS=0.1,
        )
        for migrations in (2, 0):
            typed.clear()
            status, said = self.run_script(script, path)
            self.assertEqual(0, status, said)
            self.assertEqual(migrations, typed.count('migrate'))
        self.api.delete_server(self.running)
        self._wait_until_deleted({'id': self.running})
        status, said = self.run_script(script, path)
        self.assertEqual(0, status, said)
        self.assertIn('was deleted', said)

    def show(self, stop, uuid):
        try:
            return json.dumps(self.admin_api.get_server(uuid))
        except client.OpenStackApiNotFoundException as exc:
            raise stop(f'No Server found for {uuid}') from exc

    def run_script(self, script, path):
        """Return the exit status of the script, and what it says."""
        said = io.StringIO()
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
        ):
            return script['main'](path), said.getvalue()
