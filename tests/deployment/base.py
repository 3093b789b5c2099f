# SPDX-License-Identifier: Apache-2.0

"""nova's services without nova-api: tests send requests to the scheduler.

Placement, conductors, nova-scheduler with two workers and computes with the
fake driver are processes of their own (``tests.cloud``), with the programs of
the environment that the tests run in. Requests go to the scheduler over RPC,
as conductor sends them.
"""

import contextlib
import json
import pathlib
import subprocess
import sys

from tests.cloud import cloud
from tests.cloud import configuration
from tests.cloud import environments
from tests.cloud import forms
from tests.cloud import nova
from tests.cloud import processes

HOSTS = ('host1', 'host2', 'host3')
WAIT_SECONDS = processes.WAIT_SECONDS
STARTED = 'Starting scheduler node'
CLIENT = pathlib.Path(__file__).with_name('client.py')
ENABLED = {
    'filter_scheduler': {
        'enabled_filters': (
            'ComputeFilter,IsolatedAggregatesFilter,'
            'ServerGroupAntiAffinityFilter'
        )
    }
}


#: The client removes servers without their nova-compute (client.py), which
#: sees it the next time it counts what it has.
OFTEN = {'DEFAULT': {'update_resources_interval': '10'}}


class Deployment(cloud.Cloud):
    """The processes; a test starts nova-scheduler with options of its own.

    :param hosts: names of the computes to start
    :param schedulers: number of processes of nova-scheduler
    :param options: of nova.conf besides, by group and name
    """

    def __init__(self, hosts=HOSTS, schedulers=1, options=None):
        deployed = nova.Nova.variant(
            cells={'cell1': tuple(hosts)},
            schedulers=tuple(
                f'scheduler{number}' for number in range(1, schedulers + 1)
            ),
            scheduler_workers=2,
            scheduler_options=None,
            driver='fake.MediumFakeDriver',
        )
        super().__init__(
            (*forms.SCHEDULING, deployed),
            programs=lambda class_: environments.here(),
            # Conductor looks for the filter of a group's policy.
            options={
                'nova.conf': configuration.merge(ENABLED, OFTEN, options or {})
            },
        )
        self.hosts = hosts

    def start_scheduler(self, options, filters=True):
        """Start nova-scheduler.

        :param options: values by (group, name), over those of nova.conf
        :param filters: whether our line stands in available_filters
        """
        self.nova.start_schedulers(
            ENABLED, nova.LOADED if filters else {}, self._group(options)
        )

    @staticmethod
    def _group(options):
        grouped = {}
        for (group, name), value in options.items():
            grouped.setdefault(group, {})[name] = value
        return grouped

    @contextlib.contextmanager
    def scheduler(self, options, filters=True):
        """Run nova-scheduler for the length of a ``with`` statement."""
        self.start_scheduler(options, filters)
        try:
            self.nova.wait_for_schedulers()
            yield
        finally:
            self.nova.stop_schedulers()

    def restart_scheduler(self, name, options, filters=True):
        """Restart one scheduler; the others keep the options that they read.

        The parameters are those of :meth:`start_scheduler`.
        """
        before = self.nova.scheduler_log(name).count(STARTED)
        loaded = nova.LOADED if filters else {}
        self.nova.restart_scheduler(
            name, ENABLED, loaded, self._group(options)
        )
        self.processes.wait(
            lambda: self.nova.scheduler_log(name).count(STARTED) > before, name
        )

    def log(self):
        """Return what nova-scheduler has logged since it started."""
        return self.nova.scheduler_log()

    def client(self, *calls):
        """Make calls in a process with nova.conf; return their answers.

        :param calls: lists of a name of the client and its arguments
        """
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', CLIENT, self.nova.conf],
            input=json.dumps(calls),
            capture_output=True,
            text=True,
            env=self.processes.environment(),
            timeout=WAIT_SECONDS,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-4000:])
        return json.loads(done.stdout.splitlines()[-1])

    @contextlib.contextmanager
    def without_table(self, table):
        """Take a table of the API database away for a while."""
        rename = 'RENAME TABLE nova_api.{} TO nova_api.{}'
        self.mariadb.execute(rename.format(table, 'away'))
        try:
            yield
        finally:
            self.mariadb.execute(rename.format('away', table))
