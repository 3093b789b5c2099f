# SPDX-License-Identifier: Apache-2.0

"""maintain's rounds through a night: users, faults, and appliers that die.

Every five seconds a user boots, deletes, stops or starts a server, also of
those that are to move. In each round something else goes wrong. An operator
does what the commands name, and nothing else.
"""

import contextlib
import datetime
import http.server
import itertools
import json
import re
import signal
import subprocess
import threading
import time

import requests
import yaml

from tests.cloud import cloud as clouds
from tests.cloud import forms
from tests.cloud import moves
from tests.cloud import test_maintain
from tests.cloud import world

SECONDS = 5
AWAY_SECONDS = 30
#: One request of so many is answered with 503.
BUSY = 20
#: As whom nova-api is asked through the proxy.
PROXIED = 'proxied'
#: How long a server that somebody starts may be taken for stopped: the look
#: and the request are not one.
RACE = datetime.timedelta(seconds=4)
MOST_TRIES = 25
FREE = re.compile(
    r'openstack resource provider allocation delete [0-9a-f-]{36}'
)


class Proxy:
    """Stands in front of nova-api, and is busy now and then."""

    def __init__(self, port):
        numbers = itertools.count(1)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def answer(self):
                length = int(self.headers.get('Content-Length', 0))
                body = self.rfile.read(length)
                if next(numbers) % BUSY == 0:
                    status, found, type_ = 503, b'busy', 'text/plain'
                else:
                    answer = requests.request(
                        self.command,
                        f'http://127.0.0.1:{port}{self.path}',
                        headers=dict(self.headers),
                        data=body,
                        timeout=120,
                    )
                    status, found = answer.status_code, answer.content
                    type_ = answer.headers.get('Content-Type', 'text/plain')
                self.send_response(status)
                self.send_header('Content-Type', type_)
                self.send_header('Content-Length', str(len(found)))
                self.end_headers()
                self.wfile.write(found)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def handle(self):
                # An applier that is killed does not read on.
                with contextlib.suppress(OSError):
                    super().handle()

            def log_message(self, *_):
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(
            ('127.0.0.1', 0), Handler
        )
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Owner:
    """A user who stops and starts servers, and says when.

    :ivar said: by server, when it was asked for what, where nova took it
    """

    def __init__(self, case):
        self.case, self.said, self.stop = case, {}, threading.Event()
        self.admin = case.cloud.connect()
        self.admin.compute.default_microversion = '2.90'
        self.deleted = set()
        self.thread = threading.Thread(target=self._go_on)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def _go_on(self):
        for server in itertools.cycle([*self.case.before]):
            if self.stop.wait(SECONDS):
                return
            with contextlib.suppress(*world.TOLD):
                self.toggle(server)

    def toggle(self, server):
        if server in self.deleted:
            return
        found = self.admin.compute.get_server(server)
        action = {'ACTIVE': 'stop', 'SHUTOFF': 'start'}.get(found.status)
        if action is None or found.task_state:
            return
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        answer = self.admin.compute.post(
            f'/servers/{server}/action', json={f'os-{action}': None}
        )
        if answer.status_code == 202:
            self.said.setdefault(server, []).append((now, action))

    def is_stopped(self, server, when):
        """Return whether a server was stopped at a time, or may have been."""
        state = self.case.row_of[server].status == 'SHUTOFF'
        for then, action in self.said.get(server, ()):
            if then + RACE < when:
                state = action == 'stop'
            elif action == 'stop' and then < when + RACE:
                # It was about to be, by nova's clock and this one.
                state = True
        return state


class NightTestCase(moves.MovesTestCase):
    form = forms.ONE_CELL
    command = 'maintain'
    rows = test_maintain.ROWS
    rules = test_maintain.MaintainTestCase.rules
    closing = test_maintain.MaintainTestCase.closing

    def setUp(self):
        super().setUp()
        proxy = Proxy(self.cloud.nova.port)
        self.addCleanup(proxy.server.shutdown)
        known = yaml.safe_load(self.cloud.clouds_file.read_text())
        known['clouds'][PROXIED] = {
            **known['clouds'][clouds.ADMINISTRATOR],
            'compute_endpoint_override': (
                f'http://127.0.0.1:{proxy.port}/v2.1'
            ),
        }
        self.cloud.clouds_file.write_text(yaml.safe_dump(known))
        self.ends, self.kills = [], 0

    def test_every_host_is_empty_once(self):
        self.misplace()
        done, rounds = set(), iter(self.faults())
        with (
            self.world.stream(seconds=SECONDS, told=world.TOLD, most=9),
            Owner(self) as self.owner,
        ):
            while done != {*self.world.hosts}:
                hosts = self.carry_out_round(done, next(rounds, None))
                self.assertEqual(set(), hosts & done)
                done |= hosts
        self.world.settled()
        self.assertLess(2, self.kills)
        self.check_nobody_was_shut_down()
        self.check_nothing_is_lost()
        self.check_by_oracle(self.owner.deleted)
        self.assertEqual(set(), {*self.ends} - {0, 1, 3})

    # A round.

    def carry_out_round(self, done, fault):
        """Let the hosts of the next round be empty; return them."""
        named = ' '.join(f'--done {host}' for host in sorted(done))
        plan = self.plan_round(f'maintain {named} --round 1')
        hosts = {*plan['to_be_empty']}
        self.say(f'round of {sorted(hosts)}: {len(plan["moves"])} moves')
        if fault:
            fault(plan)
        else:
            self.apply('round.json', '--disable')
        names = ' '.join(sorted(hosts))
        for _ in range(MOST_TRIES):
            if not self.held(hosts):
                break
            self.disable(hosts)
            self.plan(f'drain {names}', 'round.json', None)
            # It says what would help those that have no place.
            self.obey(self.apply('round.json', '--disable'))
        self.assertEqual(set(), self.held(hosts), self.said)
        self.apply('round.json', '--enable', expect=0)
        self.assertEqual(
            set(),
            {
                one.host
                for one in self.world.admin.compute.services(
                    binary='nova-compute'
                )
                if one.status == 'disabled'
            },
        )
        return hosts

    def plan_round(self, command):
        """Plan a round, when no server of its host has a task."""
        for _ in range(MOST_TRIES):
            try:
                return self.plan(command, 'round.json', 0)
            except RuntimeError as exc:
                said = str(exc)
                self.say(said)
            time.sleep(SECONDS)
        self.fail(said)

    def disable(self, hosts):
        """Check that an applier which was killed early left none open."""
        for one in self.world.admin.compute.services(binary='nova-compute'):
            if one.host in hosts and one.status != 'disabled':
                self.world.set_service(
                    one.host,
                    status='disabled',
                    disabled_reason='nova-ext-sched: to be empty',
                )

    def start(self, name='round.json', options='--disable'):
        """Start an applier; return its process."""
        path = self.cloud.folder / f'applier-{time.monotonic()}.txt'
        with path.open('w') as output:
            process = subprocess.Popen(
                f'exec openstack move plan apply {name} {options} --at-once 2',
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.cloud.folder,
                env=self.cloud.processes.environment(
                    PATH=f'{self.cloud.programs_path}:/usr/bin:/bin',
                    OS_CLIENT_CONFIG_FILE=self.cloud.clouds_file,
                    OS_CLOUD=PROXIED,
                ),
            )
        process.output = path
        return process

    def wait_until_begun(self, process):
        """Wait until an applier has said what it carries out."""
        while process.poll() is None:
            if 'Planned ' in process.output.read_text():
                break
            time.sleep(0.2)

    def finish(self, process):
        """Wait for an applier; return what it said."""
        status = process.wait(moves.APPLY_SECONDS)
        self.said = process.output.read_text()
        self.say(f'applier ends with {status}')
        self.say(self.said)
        self.assertNotIn('Traceback', self.said)
        self.ends.append(status)
        # What is not done is never said to be.
        if status == 1:
            self.assertRegex(
                ' '.join(self.said.split()),
                '[Rr]un the command again|make a new plan',
            )
        return self.said

    def apply(self, name, options, expect=None):
        """Run an applier to its end; return what it said."""
        process = self.start(name, options)
        said = self.finish(process)
        if expect is not None:
            self.assertEqual(expect, process.returncode, said)
        return said

    def obey(self, said):
        """Do what a command named; the loop makes a new plan."""
        said = ' '.join(said.split())
        for command in {*FREE.findall(said)}:
            self.cloud.execute(command, user='admin', status=None)
        for server in re.findall(
            'server resize confirm ([0-9a-f-]{36})', said
        ):
            self.world.act(server, {'confirmResize': None})
        if 'in ERROR' in said:
            for server in self.before:
                if server in self.owner.deleted:
                    continue
                if self.world.show(server).status == 'ERROR':
                    self.world.act(
                        server, {'os-resetState': {'state': 'active'}}
                    )
                    self.world.act(server, {'reboot': {'type': 'HARD'}})

    def say(self, text):
        """Keep the night's log."""
        now = time.strftime('%H:%M:%S')
        with (self.cloud.folder.parent / 'night.log').open('a') as log:
            log.write(f'{now} {text}\n')

    # What goes wrong, a round each.

    def faults(self):
        yield self.kill
        yield self.kill_before_confirm
        yield self.owners_act
        yield self.services_are_away
        yield self.a_cell_and_a_host_are_away
        yield self.two_at_once

    def kill(self, plan):
        """Four times in the middle of moves."""
        for seconds in (1, 3, 5, 7):
            process = self.start()
            self.wait_until_begun(process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            process.kill()
            self.kills += process.wait() == -signal.SIGKILL
        self.obey(self.apply('round.json', '--disable'))

    def kill_before_confirm(self, plan):
        """Between VERIFY_RESIZE and confirm; nothing is left there."""
        for move in plan['moves']:
            # One that the plan moves cold is there, whatever its owner did.
            if self.row_of.get(move['server']):
                self.world.act(move['server'], {'os-stop': None})
                now = datetime.datetime.now(datetime.UTC)
                self.owner.said.setdefault(move['server'], []).append(
                    (now.replace(tzinfo=None), 'stop')
                )
        process = self.start()
        while process.poll() is None:
            waiting = self.world.admin.compute.get(
                '/servers?all_tenants=1&status=VERIFY_RESIZE'
            ).json()['servers']
            if waiting:
                process.kill()
                break
            time.sleep(0.2)
        killed = process.wait() == -signal.SIGKILL
        self.say(f'killed before confirm: {killed}')
        self.kills += killed
        self.obey(self.apply('round.json', '--disable'))

    def owners_act(self, plan):
        """A planned server is deleted, another resized, another moved."""
        mine = [one for one in plan['moves'] if one['server'] in self.row_of]
        mine.sort(key=lambda one: self.row_of[one['server']].flavor == 'big')
        if not mine:
            self.obey(self.apply('round.json', '--disable'))
            return
        deleted, resized, moved = (mine * 3)[:3]
        self.owner.deleted.add(deleted['server'])
        self.world.delete(deleted['server'])
        del self.before[deleted['server']]
        if resized is not deleted:
            flavor = f'{self.row_of[resized["server"]].flavor}-large'
            self.world.act(
                resized['server'],
                {'resize': {'flavorRef': self.world.flavor(flavor)}},
            )
        if moved is not deleted:
            self.world.act(
                moved['server'],
                {'os-migrateLive': {'host': None, 'block_migration': 'auto'}},
            )
        for _ in range(3):
            self.obey(self.apply('round.json', '--disable --keep-going'))

    def services_are_away(self, plan):
        """keystone, then placement, and every token ends at once."""
        process = self.start()
        self.wait_until_begun(process)
        for name in ('keystone', 'placement'):
            with getattr(self.cloud, name).away():
                time.sleep(AWAY_SECONDS)
            time.sleep(5)
        self.cloud.keystone.forget_tokens()
        self.obey(self.finish(process))

    def a_cell_and_a_host_are_away(self, plan):
        """The cell's database, then nova-compute of a destination."""
        process = self.start()
        self.wait_until_begun(process)
        with self.cloud.mariadb.cut('nova_cell1'):
            time.sleep(AWAY_SECONDS)
        host = plan['moves'][-1]['expected'] if plan['moves'] else 'compute1'
        names = [
            one for one in self.cloud.processes.names if one.endswith(host)
        ]
        for name in names:
            self.cloud.processes.stop_named(name)
        time.sleep(AWAY_SECONDS)
        for name in names:
            self.cloud.processes.start_again(name)
        self.obey(self.finish(process))

    def two_at_once(self, plan):
        one, other = self.start(), self.start()
        self.finish(one)
        self.obey(self.finish(other))

    # What is true in the morning.

    def check_nobody_was_shut_down(self):
        """Each server that was moved cold was stopped then."""
        found = self.world.admin.compute.get(
            '/os-migrations', microversion='2.59'
        ).json()['migrations']
        cold = [
            one
            for one in found
            if one['migration_type'] == 'migration'
            and one['instance_uuid'] in self.row_of
        ]
        self.say(f'{len(cold)} of {len(found)} migrations are cold')
        for one in cold:
            when = datetime.datetime.fromisoformat(one['created_at'][:19])
            self.assertTrue(
                self.owner.is_stopped(one['instance_uuid'], when),
                (one, self.owner.said.get(one['instance_uuid'])),
            )

    def check_nothing_is_lost(self):
        """Each server is where placement has it, and in no state between."""
        for server in self.before:
            found = self.world.wait(server)
            self.assertIn(found.status, ('ACTIVE', 'SHUTOFF'), found.fault)
            self.assertEqual([found.hypervisor_hostname], self.hosts(server))
        self.say(json.dumps({'ends': self.ends, 'kills': self.kills}))
