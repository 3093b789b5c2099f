# SPDX-License-Identifier: Apache-2.0

"""Real servers on loopback, each in processes of its own."""

import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import fixtures
from placement.db.sqlalchemy import models
import sqlalchemy as sa

# placement takes the token for the user's name; "admin" may do everything.
NO_AUTH = '[api]\nauth_strategy = noauth2'

# Seconds that a server may take to answer for the first time.
_START = 60


def missing(*modules):
    """Return why a test that needs the modules is skipped, None if not."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            return f'{module} is not installed'
    return None


def script(name):
    """Return the path of a command of this Python environment."""
    return os.path.join(os.path.dirname(sys.executable), name)


def free_port():
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return sock.getsockname()[1]


class Server(fixtures.Fixture):
    """A command that serves HTTP; ends with its children.

    :param command: words; ``{port}`` stands for the port
    :param path: what answers below 400 when the server is ready
    """

    def __init__(self, command, env, path='/'):
        super().__init__()
        self._command = command
        self._env = env
        self._path = path

    def _setUp(self):
        self.port = free_port()
        self.url = f'http://127.0.0.1:{self.port}'
        home = self.useFixture(fixtures.TempDir()).path
        self.log = os.path.join(home, 'log')
        with open(self.log, 'w') as log:
            self._process = subprocess.Popen(
                [word.format(port=self.port) for word in self._command],
                # gunicorn keeps a socket below it.
                env=os.environ | self._env | {'HOME': home},
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        self.addCleanup(self._stop)
        self._wait()

    def _wait(self):
        end = time.monotonic() + _START
        while time.monotonic() < end and self._process.poll() is None:
            try:
                with urllib.request.urlopen(
                    self.url + self._path, timeout=_START
                ):
                    return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        with open(self.log) as log:
            raise RuntimeError(
                f'{self._command[0]} did not start: {log.read()[-2000:]}'
            )

    def _stop(self):
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Placement(fixtures.Fixture):
    """placement under a WSGI server with its default limits.

    One process, by their defaults; SQLite fails where two writers meet.

    :param server: ``gunicorn`` or ``uwsgi``
    :param connection: URL of an empty database; SQLite where it is None
    :param workers: processes of gunicorn
    :param conf: the lines of placement.conf about authentication
    :param policy: lines of placement's policy.yaml
    """

    def __init__(
        self, server, conf=NO_AUTH, policy='', connection=None, workers=None
    ):
        super().__init__()
        self._connection = connection
        self._workers = workers
        self._server = server
        self._conf = conf
        self._policy = policy

    def _setUp(self):
        directory = self.useFixture(fixtures.TempDir()).path
        connection = self._connection or f'sqlite:///{directory}/placement.db'
        policy = os.path.join(directory, 'policy.yaml')
        with open(policy, 'w') as policy_file:
            policy_file.write(self._policy)
        conf = os.path.join(directory, 'placement.conf')
        with open(conf, 'w') as conf_file:
            conf_file.write(
                '[placement_database]\n'
                f'connection = {connection}\n'
                '[oslo_policy]\n'
                f'policy_file = {policy}\n'
                f'{self._conf}\n'
            )
        env = {'OS_PLACEMENT_CONFIG_DIR': directory}
        if self._workers is not None:
            env['WEB_CONCURRENCY'] = str(self._workers)
        if self._connection is None and self._workers is None:
            # Sooner done than placement-manage is.
            engine = sa.create_engine(connection)
            models.BASE.metadata.create_all(engine)
            engine.dispose()
        else:
            sync = ['placement-manage', '--config-file', conf, 'db', 'sync']
            # placement writes the standard traits and resource classes when
            # it starts. Of two workers that do so at once, SQLite stops one,
            # and gunicorn then ends the other.
            for command in (
                [script(sync[0]), *sync[1:]],
                [sys.executable, '-c', 'import placement.wsgi.api'],
            ):
                subprocess.run(
                    command,
                    env=os.environ | env,
                    check=True,
                    capture_output=True,
                    timeout=120,
                )
        self.process = self.useFixture(Server(_COMMANDS[self._server], env))
        self.url = self.process.url


def gunicorn(application):
    return [
        sys.executable,
        '-m',
        'gunicorn',
        '--bind',
        '127.0.0.1:{port}',
        application,
    ]


def uwsgi(application):
    return [
        script('uwsgi'),
        '--http-socket',
        '127.0.0.1:{port}',
        '--master',
        '--die-on-term',
        # It closes each connection, whatever it says.
        '--add-header',
        'Connection: close',
        '--home',
        sys.prefix,
        '--module',
        application,
    ]


_COMMANDS = {
    'gunicorn': gunicorn('placement.wsgi.api:application'),
    'uwsgi': uwsgi('placement.wsgi.api:application'),
}
