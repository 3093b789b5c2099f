# SPDX-License-Identifier: Apache-2.0

"""Commands as processes, with a database that they may only read.

MariaDB's account has SELECT alone, so that a write would be an error. They
ask a placement of their own, whose log shows what was asked.
"""

import json
import re
import uuid

import sqlalchemy as sa
import testtools

from tests.cloud import configuration
from tests.cloud import nova
from tests.cloud import processes
from tests.deployment import base

PASSWORD = 'Never-Sh0wn'
USER = 'nova_ext_sched_reader'
LOADED = configuration.merge(
    nova.LOADED,
    base.ENABLED,
    {'nova_ext_sched': {'enable_isolated_aggregate_filtering': 'True'}},
)


class ProcessTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(base.Deployment())
        self.port = processes.free_port()
        self.access_log = self.cloud.folder / 'explain-placement.log'
        self.cloud.placement.run_api(
            'explain-placement',
            self.port,
            f'--access-logfile={self.access_log}',
        )

    def _create_reader(self):
        execute = self.cloud.mariadb.execute
        execute(
            f"CREATE USER {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'",
            *(
                f"GRANT SELECT ON nova_{name}.* TO {USER}@'127.0.0.1'"
                for name in ('api', 'cell0', 'cell1')
            ),
            # The cells' accounts are in the API database, or of [database].
            *(
                'UPDATE nova_api.cell_mappings SET database_connection = '
                "'{scheme}://{username}:{password}@{hostname}:{port}/"
                f"nova_{name}' WHERE name = '{name}'"
                for name in ('cell0', 'cell1')
            ),
        )

    def _url(self, name):
        url = sa.engine.make_url(self.cloud.nova.databases[name])
        return url.set(username=USER, password=PASSWORD).render_as_string(
            hide_password=False
        )

    def explain(
        self, *args, command='explain', password=PASSWORD, loaded=LOADED
    ):
        url = {
            name: self._url(name).replace(PASSWORD, password)
            for name in ('api', 'cell1')
        }
        deployed = self.cloud.nova
        conf = deployed.write(
            'explain.conf',
            deployed.options(),
            loaded,
            {
                'DEFAULT': {'log_file': 'explain-must-not-write.log'},
                'api_database': {'connection': url['api']},
                'database': {'connection': url['cell1']},
                'placement': {'endpoint': f'http://127.0.0.1:{self.port}'},
            },
        )
        return deployed.command(command, *args, conf=conf, status=None)

    def test_the_command(self):
        self.cloud.client(
            ['flavor', 'small', 1, {}],
            ['aggregate', 'windows', ['host1'], {'trait:X': 'required'}],
        )
        self._create_reader()
        done = self.explain('--flavor', 'small', '-f', 'json')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual({'host2', 'host3'}, nova.explained_hosts(done))
        self.assertRegex(
            json.loads(done.stdout)['answer']['sentence'],
            r'^2 of 3 hosts can take it\. The scheduler prefers host[23].*\. '
            r'1 is isolated .*windows.*\.$',
        )

        done = self.explain(command='audit')
        self.assertEqual(0, done.returncode, done.stderr)

        # nova.conf needs no line of ours.
        for command, *args in (
            ['explain', '--flavor', 'small'],
            ['audit'],
            ['capacity'],
            ['mend'],
            ['drain', 'host1'],
            ['survive'],
        ):
            done = self.explain(*args, command=command, loaded={})
            self.assertEqual(0, done.returncode, done.stderr)

        # Glance is asked as a user, and there is none.
        done = self.explain('--flavor', 'small', '--image', str(uuid.uuid4()))
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertIn(
            'no usable credentials (set OS_CLOUD or OS_*)', done.stderr
        )

        methods = re.findall(r'"([A-Z]+) /', self.access_log.read_text())
        self.assertEqual({'GET'}, set(methods))

        for args in ([], ['--debug']):
            done = self.explain('--flavor', 'small', *args, password='Wr0ng')
            self.assertEqual(1, done.returncode)
            self.assertIn('Access denied', done.stderr)
            for secret in (PASSWORD, 'Wr0ng'):
                self.assertNotIn(secret, done.stdout + done.stderr)
        self.assertFalse(
            (self.cloud.folder / 'explain-must-not-write.log').exists()
        )
