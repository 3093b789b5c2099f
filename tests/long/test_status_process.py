# SPDX-License-Identifier: Apache-2.0

"""``nova-ext-sched-status`` as the process that it is, with a nova.conf."""

import json
import os
import re
import shlex
import subprocess
import sys

import fixtures
from nova.db.api import models
from oslotest import base as test_base
import sqlalchemy as sa

from tests import documentation
from tests import samples
from tests.functional import test_status
from tests.functional.placement import servers

OSPROFILER = {
    '__init__': '',
    'sqlalchemy': '',
    'web': 'def get_trace_id_headers(): return {}',
    'profiler': 'def trace_cls(*args, **kwargs): return lambda cls: cls',
    'opts': """
from oslo_config import cfg
def set_defaults(conf, **kwargs):
    conf.register_opt(cfg.BoolOpt('enabled', default=False), group='profiler')
""",
}


class CommandTest(test_base.BaseTestCase):
    """The console script in a process of its own, with a nova.conf."""

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.database = f'sqlite:///{self.folder}/api.db'
        self.engine = sa.create_engine(self.database)
        self.addCleanup(self.engine.dispose)
        models.BASE.metadata.create_all(self.engine)
        self.placement = 'http://127.0.0.1:1/placement'

    def write_conf(self, more='', enabled='ComputeFilter'):
        path = os.path.join(self.folder, 'nova.conf')
        with open(path, 'w') as stream:
            stream.write(
                '[DEFAULT]\ntransport_url = fake://\n'
                f'[api_database]\nconnection = {self.database}\n'
                '[placement]\nauth_type = admin_token\ntoken = admin\n'
                f'endpoint = {self.placement}\nconnect_retries = 0\n'
                '[filter_scheduler]\n'
                f'available_filters = {test_status.NOVA}\n'
                f'available_filters = {test_status.OURS}\n'
                f'enabled_filters = {enabled}\n'
                f'{more}\n'
            )
        return path

    def run_script(self, *arguments, **conf):
        """Run the command with a nova.conf, named at the end."""
        return self.run_command(
            *arguments, f'--config-file={self.write_conf(**conf)}'
        )

    def run_command(self, *arguments):
        return subprocess.run(
            [servers.script('nova-ext-sched-status'), *arguments],
            capture_output=True,
            text=True,
            timeout=120,
        )

    def run_page(self, line, more):
        """Run lines of a shell where the documentation's reader is."""
        home = os.path.join(self.folder, '.nova')
        os.makedirs(home, exist_ok=True)
        os.replace(self.write_conf(more), os.path.join(home, 'nova.conf'))
        # systemd is not there: what it is asked is printed.
        done = subprocess.run(
            ['bash', '-c', f'systemctl() {{ echo "systemctl $*"; }}\n{line}'],
            env=os.environ
            | {
                'HOME': self.folder,
                'PATH': f'{os.path.dirname(sys.executable)}:'
                + os.environ['PATH'],
                # As an operator has it; eventlet's stand above no table.
                'PYTHONWARNINGS': '',
            },
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual('', done.stderr)
        return done

    @samples.compares('cli/status/failure.txt', 'admin/runbook/status.txt')
    def test_the_script_of_the_page(self):
        if test_status.run_check('Release of nova')[0] != test_status.SUCCESS:
            self.skipTest('this nova lets members write its hints')
        self.placement = self.useFixture(servers.Placement('gunicorn')).url
        [script] = [
            block.text
            for block in documentation.blocks('bash')
            if 'systemctl restart' in block.text
        ]
        option = 'enable_isolated_aggregate_filtering'
        fine = self.run_page(script, '')
        self.assertEqual(0, fine.returncode, fine.stdout)
        self.assertEqual(11, fine.stdout.count('Result: Success'))
        self.assertIn('\nsystemctl restart nova-scheduler\n', fine.stdout)

        warning = self.run_page(script, f'[nova_ext_sched]\n{option} = True')
        self.assertEqual(0, warning.returncode, warning.stdout)
        self.assertEqual(10, warning.stdout.count('Result: Success'))
        self.assertRegex(
            warning.stdout, r'Check: Host filters +\|\n\| Result: Warning'
        )
        self.assertNotIn('systemctl', warning.stdout)

        failure = self.run_page(
            script,
            '[nova_ext_sched]\nenable_isolated_agregate_filtering = True',
        )
        self.assertEqual(1, failure.returncode, failure.stdout)
        self.assertNotIn('systemctl', failure.stdout)
        table, said = failure.stdout.rsplit('+\n', 1)
        self.assertEqual(1, said.count('\n'))
        command = 'nova-ext-sched-status upgrade check'
        samples.check(
            self, 'cli/status/failure.txt', f'$ {command}\n{table}+\n'
        )
        grep = "grep -B 1 -A 4 'Result: Failure'"
        found = subprocess.run(
            shlex.split(grep),
            input=f'{table}+\n',
            capture_output=True,
            text=True,
        )
        samples.check(
            self,
            'admin/runbook/status.txt',
            f'$ {command} | {grep}\n{found.stdout}',
        )

    def test_no_nova_conf(self):
        if os.path.exists('/etc/nova'):
            self.skipTest('there is a configuration of nova here')
        done = self.run_command('upgrade', 'check', '--json')
        self.assertEqual(2, done.returncode, done.stdout + done.stderr)
        checks = {
            check['check']: check['details']
            for check in json.loads(done.stdout)['checks']
        }
        self.assertIn(
            'Expected the nova.conf of nova-scheduler, got none',
            checks['Configuration files'],
        )

    def test_another_service_than_placement(self):
        server = servers.Server(
            [sys.executable, '-m', 'http.server', '{port}'], {}
        )
        self.placement = self.useFixture(server).url
        done = self.run_script('upgrade', 'check')
        self.assertEqual(2, done.returncode, done.stdout + done.stderr)
        # The width of the table depends on the address.
        text = re.sub(r'\s*\|\n\|\s*', ' ', done.stdout)
        self.assertIn('does not answer like placement', text)
        self.assertIn('Check [placement] of nova.conf', text)
        self.assertNotIn('Traceback', done.stdout + done.stderr)

    def test_a_slip_stops_the_scheduler_in_the_same_words(self):
        lines = '[nova-ext-sched]\nenable_isolated_aggregate_filtering = True'
        words = (
            'nova.conf: expected the section [nova_ext_sched] (if another '
            'package reads [nova-ext-sched], add an empty header '
            '[nova_ext_sched]), got '
            "'[nova-ext-sched]'"
        )
        done = self.run_script('upgrade', 'check', '--json', more=lines)
        self.assertEqual(2, done.returncode, done.stdout + done.stderr)
        checks = json.loads(done.stdout)['checks']
        self.assertIn(words, [check['details'] for check in checks])

        scheduler = subprocess.run(
            [
                servers.script('nova-scheduler'),
                '--config-file',
                self.write_conf(lines),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        self.assertNotEqual(0, scheduler.returncode)
        self.assertIn(words, scheduler.stdout)

    def test_where_osprofiler_is_installed(self):
        # As nova meets osprofiler: its options are read where the database
        # is set up, and registered by nova.config.parse_args alone.
        osprofiler = os.path.join(self.folder, 'osprofiler')
        os.mkdir(osprofiler)
        for name, code in OSPROFILER.items():
            with open(os.path.join(osprofiler, f'{name}.py'), 'w') as stream:
                stream.write(code)
        self.useFixture(
            fixtures.EnvironmentVariable('PYTHONPATH', self.folder)
        )
        done = self.run_script('upgrade', 'check')
        self.assertEqual(2, done.returncode, done.stdout + done.stderr)
        self.assertIn('Check: API database', done.stdout)

    def test_an_empty_number(self):
        """oslo.config takes it; nothing of ours is loaded, and it is read."""
        path = self.write_conf('[nova_ext_sched]\nmax_forbidden_aggregates =')
        with open(path) as stream:
            text = stream.read()
        with open(path, 'w') as stream:
            stream.write(text.replace(test_status.OURS, test_status.NOVA))
        done = self.run_command(f'--config-file={path}', 'upgrade', 'check')
        self.assertEqual(255, done.returncode, done.stdout + done.stderr)
        self.assertEqual(
            'nova-ext-sched-status: [nova_ext_sched] max_forbidden_aggregates:'
            ' expected a number, got an empty value\n',
            done.stderr,
        )
