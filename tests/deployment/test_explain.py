# SPDX-License-Identifier: Apache-2.0

"""``nova-ext-sched explain`` as a process, with a database it may only read.

MariaDB's account has SELECT alone, so that a write would be an error. The
command asks a placement of its own, whose log shows what was asked.
"""

import json
import re
import socket
import subprocess
import uuid

import sqlalchemy as sa
import testtools

from tests import databases
from tests.deployment import base

PASSWORD = 'Never-Sh0wn'
USER = 'nova_ext_sched_reader'


class ProcessTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(base.Deployment())
        self.server = sa.create_engine(
            databases.SERVERS['mysql'], isolation_level='AUTOCOMMIT'
        )
        self.addCleanup(self.server.dispose)
        self._create_reader()
        self.port = base.free_port()
        self._start_placement()

    def _create_reader(self):
        self._execute(
            f"CREATE OR REPLACE USER {USER}@'127.0.0.1' "
            f"IDENTIFIED BY '{PASSWORD}'"
        )
        self.addCleanup(self._execute, f"DROP USER {USER}@'127.0.0.1'")
        for name in ('api', 'cell0', 'cell1'):
            database = sa.make_url(self.cloud.databases[name]).database
            self._execute(
                f"GRANT SELECT ON {database}.* TO {USER}@'127.0.0.1'"
            )
        # The cells' addresses stand in the API database.
        api = sa.make_url(self.cloud.databases['api']).database
        for name in ('cell0', 'cell1'):
            self._execute(
                f'UPDATE {api}.cell_mappings SET database_connection = '
                f"'{self._url(name)}' WHERE name = '{name}'"
            )

    def _execute(self, statement):
        with self.server.connect() as connection:
            connection.execute(sa.text(statement))

    def _url(self, name):
        url = sa.make_url(self.cloud.databases[name])
        return url.set(username=USER, password=PASSWORD).render_as_string(
            hide_password=False
        )

    def _start_placement(self):
        log = self.cloud.directory / 'explain-placement.log'
        self.cloud._start(
            'gunicorn',
            arguments=[
                f'--bind=127.0.0.1:{self.port}',
                f'--access-logfile={log}',
                'placement.wsgi.api:application',
            ],
            OS_PLACEMENT_CONFIG_DIR=str(self.cloud.directory),
        )
        self.access_log = log
        self.cloud._wait(
            lambda: log.exists() and self._is_listening(), 'placement'
        )

    def _is_listening(self):
        with socket.socket() as client:
            return client.connect_ex(('127.0.0.1', self.port)) == 0

    def explain(self, *args, password=PASSWORD):
        config = self.cloud._nova_conf()
        config['filter_scheduler']['available_filters'].append(
            'nova_ext_sched.filters.all_filters'
        )
        config['nova_ext_sched'] = {
            'enable_isolated_aggregate_filtering': 'True'
        }
        for group, name in (('api_database', 'api'), ('database', 'cell1')):
            config[group]['connection'] = self._url(name).replace(
                PASSWORD, password
            )
        config['placement']['endpoint'] = f'http://127.0.0.1:{self.port}'
        config['DEFAULT']['log_file'] = 'explain-must-not-write.log'
        self.cloud._write(config, 'explain.conf')
        return subprocess.run(
            [
                base.program('nova-ext-sched'),
                'explain',
                '--config-file',
                str(self.cloud.directory / 'explain.conf'),
                *args,
            ],
            capture_output=True,
            text=True,
            timeout=base.WAIT_SECONDS,
            env=self.cloud._run_environment(),
        )

    def test_the_command(self):
        self.cloud.client(
            ['flavor', 'small', 1, {}],
            ['flavor', 'large', 99, {}],
            ['aggregate', 'windows', ['host1'], {'trait:X': 'required'}],
        )
        done = self.explain('--flavor', 'small', '-f', 'json')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(
            {'host2', 'host3'},
            {
                row['Constraint']
                for row in json.loads(done.stdout)
                if row['Stage'] == 'weight'
            },
        )
        self.assertRegex(
            done.stderr,
            r'^2 of 3 hosts: 1 is isolated by aggregate windows \(trait X\)\. '
            r'The scheduler prefers host[23]\.\n$',
        )

        done = self.explain('--flavor', 'large', '-f', 'csv')
        self.assertEqual(3, done.returncode, done.stderr)
        self.assertIn('2 lack VCPU', done.stderr)

        done = self.explain('--flavor', 'absent')
        self.assertEqual((2, ''), (done.returncode, done.stdout))

        # Glance is asked as a user, and there is none.
        done = self.explain('--flavor', 'small', '--image', str(uuid.uuid4()))
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertIn('OS_AUTH_URL', done.stderr)

        methods = re.findall(r'"([A-Z]+) /', self.access_log.read_text())
        self.assertEqual({'GET'}, set(methods))

        for args in ([], ['--debug']):
            done = self.explain('--flavor', 'small', *args, password='Wr0ng')
            self.assertEqual(1, done.returncode)
            self.assertIn('Access denied', done.stderr)
            for secret in (PASSWORD, 'Wr0ng'):
                self.assertNotIn(secret, done.stdout + done.stderr)
        self.assertFalse(
            (self.cloud.directory / 'explain-must-not-write.log').exists()
        )
