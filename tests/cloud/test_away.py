# SPDX-License-Identifier: Apache-2.0

"""Plans that nova carries out while one of its services is away.

It goes in the middle of a move, and others would begin before it is back. An
operator then types what the applier names, and nothing else.
"""

import contextlib
import datetime
import re
import time

import ddt

from tests.cloud import appliers
from tests.cloud import cinder
from tests.cloud import forms
from tests.cloud import moves
from tests.cloud import owner
from tests.cloud import world

DATABASE = 'nova_cell1'
#: The processes of each service, and a database.
SERVICES = {
    'placement': ('placement-api',),
    'rabbitmq': ('rabbitmq',),
    'neutron': ('neutron-api',),
    'keystone': ('keystone-api',),
    DATABASE: (),
    'glance': ('glance-api',),
    'conductor': ('nova-conductor', 'nova-conductor-cell1'),
    'scheduler': ('scheduler1',),
    'nova-api': ('nova-api',),
}
#: How long one is away, in seconds.
AWAY = {'placement': 40}
AWAY_SECONDS = 30
MOST_TRIES = 6
HOST = 'compute1'
#: What is named to be typed.
NAMED = re.compile(
    r'openstack (?:server (?:set --state active|reboot --hard|stop|resize '
    r'confirm)|resource provider allocation delete) [0-9a-f-]{36}'
)


@ddt.ddt
class AwayTestCase(appliers.ApplierTestCase):
    form = appliers.slow(
        [one for one in forms.ONE_CELL if one is not cinder.Cinder],
        cells={'cell1': (HOST, 'compute2', 'compute3')},
        schedulers=('scheduler1',),
    )
    log = 'away.log'
    rows = (
        moves.Row(HOST, 4),
        moves.Row(HOST, 2, status='SHUTOFF'),
    )

    @ddt.data(*SERVICES)
    def test_service(self, name):
        for row in self.rows:
            self.put(row, row.number)
        self.world.enable(self.world.hosts)
        self.say(f'AWAY: {name}')
        self.plan(f'drain {HOST}', appliers.PLAN, 0)
        process = self.start('--disable --keep-going')
        self.assertIsNotNone(self.wait_for(process))
        with self.away(name):
            gone = owner.read_clock()
            time.sleep(AWAY.get(name, AWAY_SECONDS))
            back = owner.read_clock()
        if name == 'placement':
            self.check_nothing_began(gone, back)
        status, said = self.finish(process)
        for _ in range(MOST_TRIES):
            self.check_said(status, said)
            if status == 0:
                break
            self.obey(said)
            if 'make a new plan' in said:
                self.plan(f'drain {HOST}', appliers.PLAN, None)
            status, said = self.finish(self.start('--disable --keep-going'))
        self.assertEqual(0, status, said)
        for server, (*was, host) in self.before.items():
            *now, stands = self.state(server)
            self.assertEqual(was, now)
            self.assertNotEqual(host, stands)
            self.assertEqual([stands], self.hosts(server))
        self.assertEqual(set(), self.held({HOST}))

    @contextlib.contextmanager
    def away(self, name):
        """Take a service away, or the cell's database."""
        if name == DATABASE:
            with self.cloud.mariadb.cut(name):
                yield
            return
        for one in SERVICES[name]:
            self.cloud.processes.stop_named(one)
        yield
        for one in SERVICES[name]:
            self.cloud.processes.start_again(one)
        if name == 'neutron':
            world.wake_neutron(self.world.admin)

    def check_said(self, status, said):
        """Check what is said of servers in ERROR, and that they stay so."""
        broken = 0
        for server in self.before:
            found = self.world.show(server)
            if found.status != 'ERROR':
                continue
            broken += 1
            self.assertNotEqual(0, status)
            self.assertRegex(
                said,
                rf'it is on {found.compute_host} in ERROR, power state '
                rf'((?!Move \d+ ).)*{server}',
            )
        self.say(f'{broken} servers in ERROR')
        # Three, and one that was under way.
        self.assertLessEqual(broken, 4, said)
        if broken > 2:
            self.assertIn('Nothing more was begun', said)
        # The reasons are between what was done and what is to be done.
        reasons = re.split('moves? (is|are) done', said)[-1]
        reasons = reasons.partition('hen run the command again')[0]
        for host in re.findall('--not-to ([^ .]+)', said):
            self.assertIn(host, reasons)

    def check_nothing_began(self, gone, back):
        """Check that no move began between two times."""
        for one in self.list_migrations():
            began = datetime.datetime.fromisoformat(one['created_at'][:19])
            # A request may have been on its way.
            self.assertFalse(gone + owner.RACE < began < back, one)

    def obey(self, said):
        """Type what an applier named."""
        for command in NAMED.findall(said):
            server = command.split()[-1]
            if ' set ' in command:
                # Else the client asks.
                command += ' --auto-approve'
            done = self.cloud.execute(command, user='admin', status=None)
            self.say(f'{command}: {done.returncode} {done.stderr}')
            if server in self.before:
                self.world.wait(server)
