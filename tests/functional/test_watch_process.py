# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched watch`` as a process, with signals."""

import contextlib
import json
import os
import pathlib
import signal
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

from tests.functional.placement import servers

SECONDS = 90
CELL0 = '00000000-0000-0000-0000-000000000000'


class ProcessTest(testtools.TestCase):
    """A cloud of databases alone: nova wrote there, and is away."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.records = self.folder / 'records'
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
        api = sa.create_engine(f'sqlite:///{self.folder}/api.db')
        self.addCleanup(api.dispose)
        api_models.BASE.metadata.create_all(api)
        with orm.Session(api) as session, session.begin():
            session.add(
                api_models.CellMapping(
                    uuid=CELL0,
                    name='cell0',
                    transport_url='none:///',
                    database_connection=self.cell0,
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

    def read(self):
        if not self.records.exists():
            return []
        lines = self.records.read_text().splitlines()
        return [json.loads(line)['server'] for line in lines]

    def metrics(self):
        url = f'http://127.0.0.1:{self.port}/metrics'
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()

    @contextlib.contextmanager
    def watching(self):
        with (self.folder / 'log').open('ab') as log:
            process = subprocess.Popen(
                [
                    os.path.join(
                        os.path.dirname(sys.executable), 'nova-ext-sched'
                    ),
                    'watch',
                    '--config-file',
                    str(self.conf),
                    '--interval',
                    '0.2',
                    '--records',
                    str(self.records),
                    '--metrics-port',
                    str(self.port),
                ],
                stdout=log,
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

    def test_signals(self):
        state = pathlib.Path(f'{self.records}.state')
        with self.watching() as process:
            self.wait(state.exists)
            expected = [self.refuse()]
            self.wait(lambda: self.read() == expected)
            self.assertIn('nova_ext_sched_refusals_total', self.metrics())
            # SIGHUP: the same process, which reads nova.conf anew.
            process.send_signal(signal.SIGHUP)
            expected.append(self.refuse())
            self.wait(lambda: self.read() == expected)
            self.assertIsNone(process.poll())
            process.terminate()
            self.assertEqual(0, process.wait(SECONDS))
        # What was refused in between is recorded after the next start, and
        # a kill repeats nothing.
        expected.append(self.refuse())
        with self.watching() as process:
            self.wait(lambda: self.read() == expected)
            process.kill()
        expected.append(self.refuse())
        with self.watching():
            self.wait(lambda: self.read() == expected)
