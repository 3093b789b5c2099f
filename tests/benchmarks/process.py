# SPDX-License-Identifier: Apache-2.0

"""A command in a process of its own, on copies of a test's databases.

placement has a process of its own too, as in a cloud: what the command takes
is the command's alone.
"""

import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time
import typing

import fixtures
from nova.db.api import models as api_models
from nova.db.main import models
from placement.db.sqlalchemy import models as placement_models
import sqlalchemy as sa

from tests import databases
from tests.benchmarks import counted
from tests.functional.placement import servers

# Those of other databases are a cell's.
_METADATA = {
    'nova_api': api_models.BASE.metadata,
    'placement': placement_models.BASE.metadata,
}
#: nova's own, by default, and ours.
FILTERS = (
    'ComputeFilter',
    'ComputeCapabilitiesFilter',
    'ImagePropertiesFilter',
    'ServerGroupAntiAffinityFilter',
    'ServerGroupAffinityFilter',
    'IsolatedAggregatesFilter',
    'AggregateInstanceTypeFilter',
    'FailureDomainFilter',
)

# Runs a command and writes down what it took. Where a large process starts it,
# the kernel counts what that one held.
_MEASURE = """
import json, resource, subprocess, sys
status = subprocess.run(sys.argv[2:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], 'w') as file:
    json.dump([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024], file)
sys.exit(status)
"""


class Answer(typing.NamedTuple):
    """What a command wrote and took.

    :ivar seconds: from its start to its end
    :ivar cpu: seconds of processor time
    :ivar memory: the most that it held, in MiB
    :ivar selects: how often it asked a database
    :ivar gets: how often it asked placement
    :ivar acts: seconds of processor time for what would help
    """

    out: str
    err: str
    status: int
    seconds: float
    cpu: float
    memory: float
    selects: int
    gets: int
    acts: float

    def __str__(self):
        return (
            f'{self.seconds:.1f} s, {self.cpu:.1f} s of CPU, '
            f'{self.memory:.0f} MiB, {self.selects} selects, '
            f'{self.gets} of placement'
        )


def run(*arguments, python=sys.executable, without_acts=False):
    """Run ``nova-ext-sched`` and return its answer.

    :param python: of the environment whose ``nova-ext-sched`` runs
    :param without_acts: whether it looks for no act that helps
    """
    environment = dict(os.environ)
    if without_acts:
        environment[counted.WITHOUT_ACTS] = '1'
    if python != sys.executable:
        # It has a package of its own.
        environment.pop('PYTHONPATH', None)
    with (
        tempfile.NamedTemporaryFile() as taken,
        tempfile.NamedTemporaryFile() as asked,
    ):
        begin = time.monotonic()
        done = subprocess.run(
            [
                sys.executable,
                '-c',
                _MEASURE,
                taken.name,
                python,
                pathlib.Path(__file__).with_name('counted.py'),
                asked.name,
                *arguments,
            ],
            capture_output=True,
            text=True,
            env=environment,
        )
        seconds = time.monotonic() - begin
        return Answer(
            done.stdout,
            done.stderr,
            done.returncode,
            seconds,
            *json.load(taken),
            *json.load(asked),
        )


class Processes(fixtures.Fixture):
    """Runs commands beside the nova of a test.

    :param test: a ManyHostsTestCase
    :param filters: the enabled host filters
    :param lines: more of nova.conf's section nova_ext_sched
    :param backend: where the copies are, as of :mod:`tests.databases`
    :ivar engines: of the copies, by name, if they are on a server
    """

    def __init__(self, test, *, filters=FILTERS, lines='', backend='sqlite'):
        super().__init__()
        self._backend = backend
        self.engines = {}
        self._test = test
        self._filters = filters
        self._lines = lines

    def _setUp(self):
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        api = self._copy('nova_api')
        placement = self._copy('placement')
        cells = {
            name: self._copy(f'nova_{name}')
            for name in self._test.cell_mappings
        }
        engine = sa.create_engine(api)
        mapping = api_models.CellMapping.__table__
        with engine.begin() as connection:
            for name, url in cells.items():
                connection.execute(
                    sa.update(mapping)
                    .where(mapping.c.name == name)
                    .values(database_connection=url, transport_url='none:///')
                )
        engine.dispose()
        (self.folder / 'placement.conf').write_text(
            f'[placement_database]\nconnection = {placement}\n'
            f'{servers.NO_AUTH}\n'
        )
        server = self.useFixture(
            servers.Server(
                servers.gunicorn('placement.wsgi.api:application'),
                {'OS_PLACEMENT_CONFIG_DIR': str(self.folder)},
            )
        )
        (self.folder / 'nova.conf').write_text(
            f'[DEFAULT]\nstate_path = {self.folder}\n'
            'transport_url = fake:/\nservice_down_time = 86400\n'
            f'[api_database]\nconnection = {api}\n'
            f'[database]\nconnection = {cells["cell0"]}\n'
            '[placement]\nauth_type = admin_token\ntoken = admin\n'
            f'endpoint = {server.url}\nregion_name =\n'
            '[filter_scheduler]\n'
            'available_filters = nova.scheduler.filters.all_filters\n'
            'available_filters = nova_ext_sched.filters.all_filters\n'
            f'enabled_filters = {",".join(self._filters)}\n'
            f'[scheduler]\nmax_placement_results = {2 * self._test.hosts}\n'
            '[nova_ext_sched]\n'
            f'enable_isolated_aggregate_filtering = True\n{self._lines}'
        )

    def run(self, *arguments, **how):
        """Run ``nova-ext-sched`` and return its answer.

        :param how: as :func:`run` takes it
        """
        return run(
            arguments[0],
            '--config-file',
            self.folder / 'nova.conf',
            *arguments[1:],
            **how,
        )

    def _copy(self, name):
        if self._backend != 'sqlite':
            database = self.useFixture(databases.Database(self._backend))
            database.fill(
                self._test.engine(name),
                _METADATA.get(name, models.BASE.metadata),
            )
            self.engines[name] = database.engine
            return database.url
        path = self.folder / f'{name}.db'
        connection = self._test.engine(name).raw_connection()
        target = sqlite3.connect(path)
        connection.driver_connection.backup(target)
        # Else it reads all servers to find some by their UUIDs: it takes the
        # index of those that are not deleted.
        target.execute('ANALYZE')
        target.commit()
        target.close()
        connection.close()
        return f'sqlite:///{path}'
