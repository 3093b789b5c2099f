# SPDX-License-Identifier: Apache-2.0

"""A deployment of separate processes on this machine's loopback address.

MariaDB and RabbitMQ must run; placement stands under gunicorn with its
default limits. nova-conductor, nova-scheduler with two workers and computes
with the fake driver are processes of their own, with a nova.conf as an
operator writes it. There is no nova-api: requests go to the scheduler over
RPC, as conductor sends them.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import fixtures
import sqlalchemy as sa
import testtools

from tests import databases

RABBIT = os.environ.get(
    'NOVA_EXT_SCHED_TEST_RABBIT', 'rabbit://guest:guest@127.0.0.1:5672/'
)
HOSTS = ('host1', 'host2', 'host3')
WAIT_SECONDS = 240
CLIENT = pathlib.Path(__file__).with_name('client.py')


def program(name):
    """Return the path of a console script of this environment."""
    path = shutil.which(name, path=os.path.dirname(sys.executable))
    if path is None:
        raise testtools.TestCase.skipException(f'{name} is not installed')
    return path


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


class Deployment(fixtures.Fixture):
    """The processes; a test starts nova-scheduler with options of its own.

    :param hosts: names of the computes to start
    """

    def __init__(self, hosts=HOSTS):
        super().__init__()
        self.hosts = hosts

    def _setUp(self):
        self._require_rabbit()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.databases = {
            name: self.useFixture(databases.Database('mysql')).url
            for name in ('api', 'cell0', 'cell1', 'placement')
        }
        self.port = free_port()
        self._start_placement()
        self._write(self._nova_conf(), 'nova.conf')
        for command in (
            ['api_db', 'sync'],
            [
                'cell_v2',
                'map_cell0',
                '--database_connection',
                self.databases['cell0'],
            ],
            ['db', 'sync'],
            ['cell_v2', 'create_cell', '--name', 'cell1'],
        ):
            self._manage('nova-manage', 'nova.conf', *command)
        self._start('nova-conductor', 'nova.conf')
        for host in self.hosts:
            self._start_compute(host)
        self._wait(self._computes_are_mapped, 'the computes')

    # What a test uses.

    def start_scheduler(self, options, filters=True):
        """Start nova-scheduler; return a context manager that stops it.

        :param options: values by (group, name), over those of nova.conf
        :param filters: whether our line stands in available_filters
        """
        config = self._nova_conf()
        if filters:
            config['filter_scheduler']['available_filters'].append(
                'nova_ext_sched.filters.all_filters'
            )
        for (group, name), value in options.items():
            config.setdefault(group, {})[name] = value
        self._write(config, 'scheduler.conf')
        self.scheduler_log = self.directory / 'nova-scheduler.log'
        self.scheduler_log.unlink(missing_ok=True)
        return self._start('nova-scheduler', 'scheduler.conf')

    @contextlib.contextmanager
    def scheduler(self, options, filters=True):
        """Run nova-scheduler for the length of a ``with`` statement."""
        process = self.start_scheduler(options, filters)
        try:
            self._wait(
                lambda: 'Starting scheduler node' in self.log(),
                'nova-scheduler',
            )
            yield
        finally:
            self._stop(process)

    def log(self):
        if not self.scheduler_log.exists():
            return ''
        return self.scheduler_log.read_text(errors='replace')

    def client(self, *calls):
        """Make calls in a process with nova.conf; return their answers.

        :param calls: lists of a name of the client and its arguments
        """
        done = subprocess.run(
            [
                sys.executable,
                '-W',
                'ignore',
                str(CLIENT),
                str(self.directory / 'nova.conf'),
            ],
            input=json.dumps(calls),
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-4000:])
        return json.loads(done.stdout.splitlines()[-1])

    @contextlib.contextmanager
    def without_table(self, table):
        """Take a table of the API database away for a while."""
        engine = sa.create_engine(self.databases['api'])
        self.addCleanup(engine.dispose)
        with engine.begin() as connection:
            connection.execute(sa.text(f'RENAME TABLE {table} TO away'))
        try:
            yield
        finally:
            with engine.begin() as connection:
                connection.execute(sa.text(f'RENAME TABLE away TO {table}'))

    # How it is built.

    @staticmethod
    def _require_rabbit():
        address = RABBIT.rpartition('@')[2].strip('/').split(':')
        try:
            socket.create_connection((address[0], int(address[1])), 2).close()
        except OSError as exc:
            raise testtools.TestCase.skipException(
                f'no RabbitMQ server: {exc}'
            ) from exc

    def _nova_conf(self):
        return {
            'DEFAULT': {
                'transport_url': RABBIT,
                'state_path': str(self.directory / 'state'),
                # A name of its own keeps other runs' messages out.
                'control_exchange': self.directory.name,
                'compute_driver': 'fake.MediumFakeDriver',
                'log_dir': str(self.directory),
                # nova 33 waits that long for its work to end; older ones
                # do not know the option.
                'manager_shutdown_timeout': '0',
                'debug': 'True',
            },
            'api_database': {'connection': self.databases['api']},
            'database': {'connection': self.databases['cell1']},
            'oslo_concurrency': {'lock_path': str(self.directory / 'locks')},
            'placement': {
                'auth_type': 'admin_token',
                'endpoint': f'http://127.0.0.1:{self.port}',
                'token': 'admin',
                'region_name': '',
            },
            'scheduler': {'workers': '2'},
            'filter_scheduler': {
                'available_filters': ['nova.scheduler.filters.all_filters'],
                'enabled_filters': (
                    'ComputeFilter,IsolatedAggregatesFilter,'
                    'ServerGroupAntiAffinityFilter'
                ),
            },
            'conductor': {'workers': '1'},
            'quota': {
                name: '-1'
                for name in (
                    'instances',
                    'cores',
                    'ram',
                    'server_groups',
                    'server_group_members',
                )
            },
        }

    def _write(self, config, name):
        """Write options by group; a list is an option given several times."""
        lines = []
        for group, options in config.items():
            lines.append(f'[{group}]')
            for option, value in options.items():
                values = value if isinstance(value, list) else [value]
                lines.extend(f'{option} = {item}' for item in values)
        (self.directory / name).write_text('\n'.join(lines) + '\n')

    def _run_environment(self):
        return {**os.environ, 'PYTHONWARNINGS': 'ignore'}

    def _manage(self, script, conf, *arguments):
        subprocess.run(
            [
                program(script),
                '--config-file',
                str(self.directory / conf),
                *arguments,
            ],
            check=True,
            capture_output=True,
            timeout=WAIT_SECONDS * 2,
            env=self._run_environment(),
        )

    def _start(self, script, *confs, arguments=(), **environment):
        files = [
            part
            for conf in confs
            for part in ('--config-file', str(self.directory / conf))
        ]
        with (self.directory / f'{script}.out').open('ab') as output:
            process = subprocess.Popen(
                [program(script), *files, *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**self._run_environment(), **environment},
                start_new_session=True,
            )
        self.addCleanup(self._stop, process)
        return process

    @staticmethod
    def _stop(process):
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start_placement(self):
        config = {
            'api': {'auth_strategy': 'noauth2'},
            'placement_database': {'connection': self.databases['placement']},
        }
        self._write(config, 'placement.conf')
        # Two workers that sync the database at their start would race.
        self._manage('placement-manage', 'placement.conf', 'db', 'sync')
        self._start(
            'gunicorn',
            arguments=[
                '--workers=2',
                f'--bind=127.0.0.1:{self.port}',
                'placement.wsgi.api:application',
            ],
            OS_PLACEMENT_CONFIG_DIR=str(self.directory),
        )
        self._wait(self._placement_answers, 'placement')

    def _placement_answers(self):
        try:
            url = f'http://127.0.0.1:{self.port}/'
            return urllib.request.urlopen(url, timeout=5).status == 200
        except (urllib.error.URLError, OSError):
            return False

    def _start_compute(self, host):
        state = self.directory / host
        state.mkdir()
        config = {
            'DEFAULT': {
                'host': host,
                'state_path': str(state),
                'log_dir': str(state),
            }
        }
        self._write(config, f'{host}.conf')
        self._start('nova-compute', 'nova.conf', f'{host}.conf')

    def _computes_are_mapped(self):
        self._manage('nova-manage', 'nova.conf', 'cell_v2', 'discover_hosts')
        engine = sa.create_engine(self.databases['api'])
        try:
            with engine.connect() as connection:
                count = connection.execute(
                    sa.text('SELECT COUNT(*) FROM host_mappings')
                ).scalar()
        finally:
            engine.dispose()
        return count == len(self.hosts)

    def _wait(self, condition, what):
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                outputs = '\n'.join(
                    f'{path.name}: {path.read_text(errors="replace")[-2000:]}'
                    for path in sorted(self.directory.rglob('*.out'))
                )
                raise TimeoutError(f'{what} did not start:\n{outputs}')
            time.sleep(1)
