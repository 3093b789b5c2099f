# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched watch`` as a process, with signals."""

import configparser
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import fixtures
from nova.db.api import models as api_models
from nova.db.main import models
from oslo_utils import timeutils
from oslo_utils import uuidutils
import sqlalchemy as sa
from sqlalchemy import orm
import testtools

from tests import promtool
from tests.functional.placement import servers

SECONDS = 90
UNIT = (
    pathlib.Path(__file__).parents[2]
    / 'etc/nova-ext-sched/nova-ext-sched-watch.service'
)
CELL0 = '00000000-0000-0000-0000-000000000000'


class ProcessTest(testtools.TestCase):
    """A cloud of databases alone: nova wrote there, and is away."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.records = self.folder / 'records'
        self.state = self.folder / 'state'
        self.port = servers.free_port()
        self.cell0 = f'sqlite:///{self.folder}/cell0.db'
        self.conf = self.folder / 'nova.conf'
        self.conf.write_text(
            f'[DEFAULT]\nstate_path = {self.folder}\n'
            f'transport_url = fake:/\n'
            f'[api_database]\nconnection = sqlite:///{self.folder}/api.db\n'
            f'[database]\nconnection = {self.cell0}\n'
        )
        self.engine = sa.create_engine(self.cell0)
        self.addCleanup(self.engine.dispose)
        models.BASE.metadata.create_all(self.engine)
        self.api = sa.create_engine(f'sqlite:///{self.folder}/api.db')
        self.addCleanup(self.api.dispose)
        api_models.BASE.metadata.create_all(self.api)
        self.add_cell('cell0', CELL0, self.cell0)

    def add_cell(self, name, uuid, url):
        with orm.Session(self.api) as session, session.begin():
            session.add(
                api_models.CellMapping(
                    uuid=uuid,
                    name=name,
                    transport_url='none:///',
                    database_connection=url,
                )
            )

    def refuse(self):
        """Add what nova-conductor adds; return the server's UUID."""
        server = uuidutils.generate_uuid()
        now = timeutils.utcnow()
        with orm.Session(self.engine) as session, session.begin():
            session.add(models.Instance(uuid=server, created_at=now))
            session.flush()
            session.add(
                models.InstanceAction(
                    action='create',
                    instance_uuid=server,
                    request_id=f'req-{server}',
                    start_time=now,
                    created_at=now,
                )
            )
            session.add(
                models.InstanceFault(
                    instance_uuid=server,
                    code=500,
                    message='No valid host was found.',
                    created_at=now,
                )
            )
        return server

    def read(self, records=None):
        """Return the servers of the records of a file."""
        records = records or self.records
        if not records.exists():
            return []
        lines = records.read_text().splitlines()
        return [json.loads(line)['server'] for line in lines]

    def metrics(self):
        url = f'http://127.0.0.1:{self.port}/metrics'
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()

    def unit_command(self):
        """Return the unit's command, with other paths and another port."""
        unit = configparser.RawConfigParser(strict=False)
        unit.optionxform = str
        unit.read(UNIT)
        command = unit['Service']['ExecStart']
        for old, new in {
            '/usr/local/bin': os.path.dirname(sys.executable),
            '/var/log/nova/nova-ext-sched-watch.json': self.records,
            '/var/lib/nova/nova-ext-sched-watch.state': self.state,
            '9653': self.port,
        }.items():
            self.assertIn(old, command)
            command = command.replace(old, str(new))
        return command.split()

    @contextlib.contextmanager
    def watching(self, *command, output=None):
        with (self.folder / 'log').open('ab') as log:
            process = subprocess.Popen(
                [
                    *command,
                    '--config-file',
                    str(self.conf),
                    '--interval',
                    '0.2',
                ],
                stdout=output or log,
                stderr=log,
                env=os.environ | {'PYTHONWARNINGS': 'ignore'},
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def wait(self, condition):
        deadline = time.monotonic() + SECONDS
        while not condition():
            if time.monotonic() > deadline:
                self.fail((self.folder / 'log').read_text()[-3000:])
            time.sleep(0.1)

    def test_unit_and_container(self):
        expected = self.run_unit()
        # Recorded after the next start, and nothing is repeated.
        expected.append(self.refuse())
        self.run_container(expected)

    def run_unit(self):
        """As systemd starts it, until it is killed."""
        expected = []
        with self.watching(*self.unit_command()) as process:
            self.wait(self.has_looked)
            expected.append(self.refuse())
            self.wait(lambda: self.read() == expected)
            # A record is written before it is counted.
            counted = (
                'nova_ext_sched_refusals_total{constraint="gone",'
                'operation="boot"} 1.0'
            )
            self.wait(lambda: counted in self.metrics())
            if shutil.which('promtool'):
                text = self.metrics().encode()
                promtool.run(self, 'check', 'metrics', input=text)
            self.a_second_one()
            process.send_signal(signal.SIGHUP)
            self.assertEqual(0, process.wait(SECONDS))
        expected.append(self.refuse())
        # As systemd starts it again, with another nova.conf.
        self.move_api_database()
        with self.watching(*self.unit_command()) as process:
            self.wait(lambda: self.read() == expected)
            # Without a file of records a restart knows the state alone.
            self.wait(lambda: self.handled() == len(expected))
            process.kill()
        return expected

    def has_looked(self):
        try:
            return 'nova_ext_sched_look_timestamp_seconds' in self.metrics()
        except OSError:
            return False

    def a_second_one(self):
        """It says which file, and changes nothing."""
        before = self.records.read_bytes()
        with self.watching(*self.unit_command()) as process:
            self.assertEqual(2, process.wait(SECONDS))
        log = (self.folder / 'log').read_text()
        self.assertIn(f'{self.records}: expected a file that no other', log)
        self.assertEqual(before, self.records.read_bytes())

    def move_api_database(self):
        """Nothing can be explained without it."""
        (self.folder / 'api.db').rename(self.folder / 'moved.db')
        text = self.conf.read_text()
        self.conf.write_text(text.replace('api.db', 'moved.db'))

    def handled(self):
        """Return the ID of the last fault that the state has."""
        found = json.loads(self.state.read_text())['positions']
        [[*_, passed, handled]] = [
            one for one in found if one[:2] == [CELL0, 'fault']
        ]
        return max([passed, *handled])

    def run_container(self, expected):
        """Records on standard output, the state on a volume, a cell hangs."""
        records = self.folder / 'output'
        self.api = sa.create_engine(f'sqlite:///{self.folder}/moved.db')
        self.addCleanup(self.api.dispose)
        listener = self.add_cell_that_hangs()
        program = os.path.join(
            os.path.dirname(sys.executable), 'nova-ext-sched'
        )
        with (
            records.open('wb') as output,
            self.watching(
                # Also behind an option of all commands.
                *(program, '--log-file', str(self.folder / 'messages')),
                *('watch', '--state', str(self.state)),
                output=output,
            ) as process,
        ):
            self.wait(lambda: self.read(records) == expected[-1:])
            self.assertNotEqual(0, self.count_connections(listener))
            # The next turn does not ask the cell again.
            expected.append(self.refuse())
            self.wait(lambda: self.read(records) == expected[-2:])
            self.assertEqual(0, self.count_connections(listener))
            # Nor does the end wait for it: it never answers.
            process.terminate()
            self.assertEqual(0, process.wait(SECONDS))

    def count_connections(self, listener):
        """Return how many came since the last time; they stay open."""
        before = len(self.connections)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.connections.append(listener.accept()[0])
                self.addCleanup(self.connections[-1].close)
        return len(self.connections) - before

    def add_cell_that_hangs(self):
        """Add a cell whose database takes connections and says nothing."""
        self.connections = []
        listener = socket.create_server(('127.0.0.1', 0))
        listener.setblocking(False)
        self.addCleanup(listener.close)
        url = f'mysql+pymysql://nova@127.0.0.1:{listener.getsockname()[1]}/'
        self.add_cell('hangs', uuidutils.generate_uuid(), url)
        return listener
