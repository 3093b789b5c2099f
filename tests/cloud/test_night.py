# SPDX-License-Identifier: Apache-2.0

"""maintain's rounds through a night: users, faults, and appliers that die.

Every five seconds one user boots or deletes a server, and another stops or
starts one, also of those that are to move. Each time that moves are carried
out something else goes wrong. An operator does what the commands name, and
nothing else.
"""

import contextlib
import datetime
import functools
import json
import re
import signal
import time

from openstack import exceptions
import yaml

from tests.cloud import appliers
from tests.cloud import cloud as clouds
from tests.cloud import environments
from tests.cloud import forms
from tests.cloud import keystone
from tests.cloud import moves
from tests.cloud import owner as owners
from tests.cloud import proxy as proxies
from tests.cloud import test_maintain
from tests.cloud import world

SECONDS = 5
AWAY_SECONDS = 30
#: Of a token.
TOKEN_SECONDS = 300
#: One request of so many is answered with 503.
BUSY = 20
#: As whom nova-api is asked through the proxy.
PROXIED = 'proxied'
MOST_TRIES = 40
FREE = re.compile(
    r'openstack resource provider allocation delete [0-9a-f-]{36}'
)
CONFIRM = re.compile(r'openstack server resize confirm ([0-9a-f-]{36})')
SET = re.compile(r'openstack server set --state active ([0-9a-f-]{36})')
FORM = [
    class_.variant(token_seconds=TOKEN_SECONDS)
    if class_ is keystone.Keystone
    else class_
    for class_ in forms.ONE_CELL
]


class NightTestCase(appliers.ApplierTestCase):
    form = appliers.slow(FORM)
    log = 'night.log'
    user = PROXIED
    command = 'maintain'
    rows = test_maintain.ROWS
    rules = test_maintain.MaintainTestCase.rules
    closing = test_maintain.MaintainTestCase.closing

    def setUp(self):
        super().setUp()
        self.proxy = proxies.Proxy(self.cloud.nova.port, BUSY)
        self.addCleanup(self.proxy.stop)
        known = yaml.safe_load(self.cloud.clouds_file.read_text())
        known['clouds'][PROXIED] = {
            **known['clouds'][clouds.ADMINISTRATOR],
            'compute_endpoint_override': (
                f'http://127.0.0.1:{self.proxy.port}/v2.1'
            ),
        }
        self.cloud.clouds_file.write_text(yaml.safe_dump(known))
        #: What goes wrong yet; the exit statuses; servers whose state was set.
        self.faults = [*self.make_faults()]
        self.acts = [self.resize, self.move, self.delete]
        self.ends, self.repaired = [], set()

    def test_every_host_is_empty_once(self):
        (environments.CACHE / self.log).unlink(missing_ok=True)
        self.misplace()
        self.say(f'{len(self.row_of)} servers')
        was = {server: row.status for server, row in self.row_of.items()}
        done = set()
        with (
            self.world.stream(seconds=SECONDS, told=world.TOLD, most=9),
            owners.Owner(self.cloud, SECONDS, was) as self.owner,
        ):
            while done != {*self.world.hosts} or self.faults:
                if done == {*self.world.hosts}:
                    # Some have not happened yet.
                    done = set()
                hosts = self.carry_out_round(done)
                self.assertEqual(set(), hosts & done)
                done |= hosts
        self.say(json.dumps({'ends': self.ends, '503': self.proxy.refused}))
        self.assertEqual([], [name for name, _ in self.faults])
        self.assertEqual(set(), {*self.ends} - {0, 1, 3})
        self.assertLess(5, self.proxy.refused)
        self.world.settled()
        self.check_nobody_was_shut_down()
        self.check_nothing_is_lost()
        self.check_by_oracle(self.owner.deleted)

    # A round.

    def carry_out_round(self, done):
        """Let the hosts of the next round be empty; return them."""
        named = ' '.join(f'--done {host}' for host in sorted(done))
        plan = self.plan_round(f'maintain {named} --round 1')
        hosts = {*plan['to_be_empty']}
        names = ' '.join(sorted(hosts))
        self.say(f'ROUND of {names}: {len(plan["moves"])} moves')
        for _ in range(MOST_TRIES):
            if not (held := self.held(hosts)):
                break
            self.say(f'{len(held)} hold room of {names}')
            name, carry_out = self.faults[0] if self.faults else ('', None)
            self.said = ''
            if carry_out and carry_out(plan):
                self.say(f'HAPPENED: {name}')
                del self.faults[0]
                if not self.said:
                    # Killed: the same plan is carried out again.
                    continue
            elif not self.said:
                self.apply()
            # Whoever is told to runs the command again, once.
            if self.is_to_run_again():
                self.apply()
            plan = self.plan(f'drain {names}', appliers.PLAN, None)
            self.do_what_helps(plan['without_place'])
        self.assertEqual(set(), self.held(hosts), self.said)
        status, said = self.finish(self.start('--enable'))
        self.assertEqual(0, status, said)
        self.assertEqual(set(), self.disabled())
        self.say(f'EMPTY: {names}')
        return hosts

    def plan_round(self, command):
        """Plan a round, doing what the command names where there is none."""
        for _ in range(MOST_TRIES):
            plan = self.plan(command, appliers.PLAN, None)
            if 'moves' in plan:
                return plan
            self.say(plan['answer']['sentence'])
            for one in plan['not_emptied']:
                self.do_what_helps(one['without_place'])
            time.sleep(SECONDS)
        self.fail(plan)

    def do_what_helps(self, stuck):
        """Do what a plan names of servers that cannot be moved."""
        for one in stuck:
            self.say(f'NO PLACE: {json.dumps(one)}')
            helps = one['would_help']
            self.free(helps)
            if 'resize confirm' in helps:
                self.world.act(one['server'], {'confirmResize': None})
            if 'its vm_state is error' in one['reason']:
                self.repair(one['server'])
            elif 'server set --state active' in helps:
                self.set_active(one['server'])

    def obey(self, said):
        """Do what an applier named."""
        self.free(said)
        for server in CONFIRM.findall(said):
            self.world.act(server, {'confirmResize': None})
        for server in SET.findall(said):
            self.set_active(server)
        if 'in ERROR' in said:
            for server in self.before:
                if self.world.show(server).status == 'ERROR':
                    self.repair(server)

    def free(self, text):
        """Delete the allocations that a text names."""
        for command in {*FREE.findall(text)}:
            done = self.cloud.execute(command, user='admin', status=None)
            self.say(f'{command}: {done.returncode} {done.stderr}')

    def repair(self, server):
        """Mend a server, as is done with one in ERROR that runs."""
        self.say(f'REPAIRED: {server}')
        self.repaired.add(server)
        self.set_active(server)
        self.world.act(server, {'reboot': {'type': 'HARD'}})
        self.owner.note(server, 'start')

    def set_active(self, server):
        self.say(f'SET: {server}')
        self.world.act(server, {'os-resetState': {'state': 'active'}})

    # Appliers.

    def finish(self, process):
        """See the base; keep what was said."""
        status, self.said = super().finish(process)
        self.ends.append(status)
        return status, self.said

    def apply(self, options='--disable'):
        """Run an applier to its end, and do what it names."""
        plan = json.loads((self.cloud.folder / appliers.PLAN).read_text())
        self.conclude(self.start(options), plan)

    def conclude(self, process, plan):
        """Wait for an applier, check what it says, do what it names."""
        status, said = self.finish(process)
        if status == 0:
            # What is not done is never said to be.
            for move in plan['moves']:
                with contextlib.suppress(exceptions.NotFoundException):
                    found = self.world.show(move['server'])
                    if found.task_state != 'deleting':
                        self.assertNotEqual(
                            move['host'], found.hypervisor_hostname, said
                        )
        self.obey(said)

    def is_to_run_again(self):
        """Return whether the last applier says so."""
        return self.ends[-1] == 1 and 'un the command again' in self.said

    # What goes wrong: one after the other, each where a move is under way.
    # Where none was it is tried again with the next plan.

    def make_faults(self):
        """Yield what goes wrong, with its name."""
        killed = 'killed in the middle of a move'
        yield killed, self.kill
        yield 'two appliers at once', self.run_two
        yield killed, self.kill
        yield 'killed between VERIFY_RESIZE and confirm', self.kill_before
        yield 'placement away', functools.partial(self.be_away, 'placement')
        yield killed, self.kill
        yield 'owners deleted, resized and moved planned servers', self.act
        yield killed, self.kill
        yield 'keystone was away', functools.partial(self.be_away, 'keystone')
        yield killed, self.kill
        yield "the cell's database was away", self.cut_database
        yield "the destination's nova-compute was away", self.stop_compute

    def kill(self, plan, statuses=None):
        """Kill an applier; return whether that was in time."""
        process = self.start()
        found = self.wait_for(process, statuses)
        process.kill()
        if found and process.wait() == -signal.SIGKILL:
            self.say(f'{found["migration_type"]} was {found["status"]}')
            return True
        self.conclude(process, plan)
        return False

    def kill_before(self, plan):
        """Kill it where a cold move waits to be confirmed."""
        for move in self.find_planned(plan):
            self.owner.ask(move['server'], 'stop')
        return self.kill(plan, ('finished',))

    def find_planned(self, plan):
        """Return the moves of servers that no stream has created."""
        return [one for one in plan['moves'] if one['server'] in self.before]

    def act(self, plan):
        """Let owners act on servers of a plan that still wait, the last first.

        What was done once is not done again with another plan.
        """
        planned = self.find_planned(plan)
        process = self.start('--disable --keep-going')
        found = self.wait_for(process)
        for one in reversed(planned):
            if not found or not self.acts:
                break
            if one['server'] != found['instance_uuid']:
                change = self.acts[0]
                if change(one['server']):
                    self.say(f'{change.__name__}: {one["server"]}')
                    del self.acts[0]
        self.conclude(process, plan)
        return not self.acts

    def delete(self, server):
        self.owner.deleted.add(server)
        del self.before[server]
        self.world.admin.compute.delete_server(server)
        return True

    def resize(self, server):
        flavor = self.row_of[server].flavor
        if flavor in moves.BIG:
            return False
        larger = self.world.flavor(f'{flavor}-large')
        return self.world.act(server, {'resize': {'flavorRef': larger}}).ok

    def move(self, server):
        if self.world.show(server).status != 'ACTIVE':
            return self.world.act(server, {'migrate': None}).ok
        return self.world.act(server, world.LIVE).ok

    def be_away(self, name, plan):
        """Take a service away; keystone forgets its tokens meanwhile."""

        @contextlib.contextmanager
        def away(_):
            with getattr(self.cloud, name).away():
                if name == 'keystone':
                    self.cloud.keystone.forget_tokens()
                yield

        return self.take_away(plan, away)

    def cut_database(self, plan):
        """Take the cell's database away.

        The migration that runs then stays so: what records its end is lost.
        nova-compute ends it when it starts anew, as an operator lets it.
        """

        @contextlib.contextmanager
        def away(one):
            with self.cloud.mariadb.cut('nova_cell1'):
                yield
            name = f'nova-compute-{one["source_compute"]}'
            self.cloud.processes.stop_named(name)
            self.cloud.processes.start_again(name)

        return self.take_away(plan, away)

    def stop_compute(self, plan):
        """Stop nova-compute where a server is about to arrive."""

        @contextlib.contextmanager
        def away(one):
            host = one['dest_compute'] or plan['moves'][0]['expected']
            name = f'nova-compute-{host}'
            self.cloud.processes.stop_named(name)
            yield
            self.cloud.processes.start_again(name)

        return self.take_away(plan, away)

    def take_away(self, plan, away):
        """Let something be away; return whether that was amid a move.

        :param away: returns a context manager for a migration under way
        """
        process = self.start()
        found = self.wait_for(process)
        if found:
            self.say(f'{found["migration_type"]} is {found["status"]}')
            with away(found):
                time.sleep(AWAY_SECONDS)
        self.conclude(process, plan)
        return bool(found)

    def run_two(self, plan):
        one, other = self.start(), self.start()
        found = self.wait_for(one)
        are_two = bool(found) and other.poll() is None
        self.conclude(one, plan)
        self.conclude(other, plan)
        return are_two

    # What is true in the morning.

    def check_nobody_was_shut_down(self):
        """Each server that was moved cold was stopped then, or is repaired."""
        found = self.list_migrations()
        cold = [
            one
            for one in found
            if one['migration_type'] == 'migration'
            and one['instance_uuid'] in self.row_of
        ]
        self.say(f'{len(cold)} of {len(found)} migrations were cold')
        for one in cold:
            when = datetime.datetime.fromisoformat(one['created_at'][:19])
            self.assertTrue(
                self.owner.was_stopped(one['instance_uuid'], when),
                (one, self.owner.said.get(one['instance_uuid'])),
            )
        for server in {*self.before} - self.repaired:
            status = self.world.show(server).status
            said = self.owner.said.get(server)
            self.assertEqual(self.owner.wants(server), status, (server, said))

    def check_nothing_is_lost(self):
        """Each server is where placement has it, and in no state between."""
        for server in self.before:
            found = self.world.wait(server)
            self.assertIn(found.status, ('ACTIVE', 'SHUTOFF'), found.fault)
            self.assertEqual([found.hypervisor_hostname], self.hosts(server))
        for found in self.world.admin.compute.servers(all_projects=True):
            self.assertNotEqual('VERIFY_RESIZE', found.status, found)
        self.say(f'{len(self.before)} servers are there')
