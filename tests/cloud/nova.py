# SPDX-License-Identifier: Apache-2.0

"""nova: API, conductors, schedulers, and computes with the fake driver.

Each cell has a database, a virtual host of RabbitMQ, a conductor and
computes. The schedulers can be stopped and started with other options, as an
operator does after a change of nova.conf.
"""

import contextlib
import json

from tests.cloud import cloud
from tests.cloud import configuration
from tests.cloud import service
from tests.cloud import web
from tests.cloud.drivers import fake_compute

#: The computes of the two cells.
CELLS = {
    'cell1': ('compute1', 'compute2', 'compute3'),
    'cell2': ('compute4', 'compute5', 'compute6'),
}

#: Options of nova-scheduler that load the package and turn nothing on.
LOADED = {
    'filter_scheduler': {
        'available_filters': [
            'nova.scheduler.filters.all_filters',
            'nova_ext_sched.filters.all_filters',
        ],
    }
}
#: What nova enables by itself.
ENABLED = (
    'ComputeFilter',
    'ComputeCapabilitiesFilter',
    'ImagePropertiesFilter',
    'ServerGroupAntiAffinityFilter',
    'ServerGroupAffinityFilter',
)
#: Everything of ours on but Blazar's, beside what nova enables.
EVERYTHING = configuration.merge(
    LOADED,
    {
        'filter_scheduler': {
            'enabled_filters': ','.join(
                [
                    *ENABLED,
                    'AggregateInstanceTypeFilter',
                    'IsolatedAggregatesFilter',
                    'FailureDomainFilter',
                ]
            ),
            'weight_classes': (
                'nova.scheduler.weights.all_weighers,'
                'nova_ext_sched.weighers.all_weighers'
            ),
        },
        'nova_ext_sched': {
            'request_filters': (
                'isolate_aggregates,reserved_aggregates,failure_domains'
            ),
            'enable_isolated_aggregate_filtering': 'True',
            'placement_req_required_member_prefix': 'reservation:',
            'placement_req_default_forbidden_member_prefix': 'reservation:',
        },
    },
)


class Nova(service.Service):
    """The compute service; its API runs where keystone does.

    ``variant`` returns a class of fewer or other cells, schedulers, computes.
    """

    name = 'nova'
    packages = ('nova',)
    editable = '[commands]'
    cells = CELLS
    #: Names of the schedulers, and workers of each.
    schedulers = ('scheduler1', 'scheduler2')
    scheduler_workers = 1
    #: Options of the schedulers that start with the cloud; None: none do.
    scheduler_options: dict | None = {}
    #: Variables of their environment.
    scheduler_variables: dict[str, str] = {}
    driver = 'fake.FakeDriver'

    def start(self):
        databases = {
            name: self.cloud.mariadb.create(f'nova_{name}')
            for name in ('api', 'cell0', *self.cells)
        }
        self.databases = databases
        if self.cloud.has('keystone'):
            self.cloud.keystone.create_service_user('nova')
        self.conf = self.write('nova.conf', self.options())
        for name in self.cells:
            self.write(f'{name}.conf', self._cell_options(name))
        self._create_databases()
        self._running = {}
        self._added = []
        self._start_conductors()
        if self.scheduler_options is not None:
            self.start_schedulers(self.scheduler_options)
        self.processes = {
            host: self.start_compute(cell, host)
            for cell, hosts in self.cells.items()
            for host in hosts
        }
        if self.cloud.has('keystone'):
            self.write('api.conf')
            self.run()
            self.cloud.keystone.register(
                'nova', 'compute', f'http://127.0.0.1:{self.port}/v2.1'
            )
        self.cloud.processes.wait(self._computes_are_mapped, 'nova-compute')

    # Configuration.

    def options(self):
        """Return what stands in nova.conf."""
        config = {
            'DEFAULT': {
                'transport_url': self.cloud.rabbitmq.url(),
                'state_path': self.folder,
                'compute_driver': self.driver,
                'my_ip': '127.0.0.1',
                # nova 33 waits that long for its work to end; older ones
                # do not know the option.
                'manager_shutdown_timeout': '0',
                'vif_plugging_is_fatal': 'False',
                'vif_plugging_timeout': '0',
                'report_interval': '3',
                'service_down_time': '20',
            },
            'api_database': {
                'connection': self.databases['api'],
                'max_pool_size': '5',
            },
            'database': {
                'connection': self.databases['cell0'],
                'max_pool_size': '5',
            },
            'compute': {'live_migration_wait_for_vif_plug': 'False'},
            'conductor': {'workers': '1'},
            'scheduler': {'workers': str(self.scheduler_workers)},
            'oslo_concurrency': {'lock_path': self.folder / 'locks'},
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
        return configuration.merge(
            config,
            self.cloud.placement.client_options('nova'),
            self._neighbours(),
        )

    def _neighbours(self):
        """Return the sections of the services that nova calls as a user."""
        if not self.cloud.has('keystone'):
            return {}
        keystone = self.cloud.keystone
        credentials = keystone.credentials('nova')
        region = {'region_name': cloud.REGION}
        config = {
            **keystone.middleware('nova'),
            'api': {'auth_strategy': 'keystone'},
            'wsgi': {
                'api_paste_config': self.prefix / 'etc/nova/api-paste.ini'
            },
            'keystone': {**credentials, **region},
            'service_user': {**credentials, 'send_service_user_token': 'True'},
        }
        if self.cloud.has('glance'):
            config['glance'] = region
        if self.cloud.has('neutron'):
            config['neutron'] = {**credentials, **region}
        if self.cloud.has('cinder'):
            config['cinder'] = {
                **credentials,
                'os_region_name': cloud.REGION,
                'catalog_info': 'volumev3::publicURL',
            }
        return config

    def _cell_options(self, name):
        """Return what a cell's services read after nova.conf."""
        return {
            'DEFAULT': {'transport_url': self.cloud.rabbitmq.url(name)},
            'database': {'connection': self.databases[name]},
        }

    def _cell_conf(self, name):
        return self.folder / f'{name}.conf'

    # Databases.

    def _manage(self, *arguments):
        return self.manage('nova-manage', self.conf, *arguments)

    def _create_databases(self):
        self.fill('nova_api', self.conf, 'nova-manage', 'api_db', 'sync')
        self._manage(
            'cell_v2',
            'map_cell0',
            '--database_connection',
            self.databases['cell0'],
        )
        sync = ('nova-manage', 'db', 'sync', '--local_cell')
        self.fill('nova_cell0', self.conf, *sync)
        for name in self.cells:
            self.fill(
                f'nova_{name}',
                self._cell_conf(name),
                *sync,
                like='nova_cell0',
            )
        for name in self.cells:
            self._manage(
                'cell_v2',
                'create_cell',
                '--name',
                name,
                '--database_connection',
                self.databases[name],
                '--transport-url',
                self.cloud.rabbitmq.url(name),
            )

    # Processes.

    def _start_conductors(self):
        says = 'Starting conductor node'
        self.run_service('nova-conductor', self.conf, says=says)
        for name in self.cells:
            self.run_service(
                'nova-conductor',
                self.conf,
                self._cell_conf(name),
                name=f'nova-conductor-{name}',
                says=says,
            )

    def start_compute(self, cell, host):
        """Start a compute of a cell; return its process."""
        state = self.folder / host
        state.mkdir(exist_ok=True)
        # nova-compute does not start a second time without it.
        (state / 'compute_id').write_text(str(fake_compute.node_uuid(host)))
        conf = self.write(
            f'{host}.conf', {'DEFAULT': {'host': host, 'state_path': state}}
        )
        return self.run_service(
            [self.program('python'), fake_compute.__file__],
            self.conf,
            self._cell_conf(cell),
            conf,
            name=f'nova-compute-{host}',
            says='Starting compute node',
        )

    def add_compute(self, cell, host):
        """Start one more compute; return its process when nova knows it."""
        process = self.start_compute(cell, host)
        self._added.append(host)
        self.cloud.processes.wait(
            self._computes_are_mapped, f'nova-compute-{host}'
        )
        return process

    def run(self):
        """Start the API, on the port that it had."""
        self.process, self.port = web.start(
            self,
            'nova.wsgi.osapi_compute',
            'nova-api-wsgi',
            OS_NOVA_CONFIG_DIR='/',
            OS_NOVA_CONFIG_FILES=';'.join(
                [
                    f'{self.prefix}/etc/nova/api-paste.ini',
                    str(self.conf),
                    str(self.folder / 'api.conf'),
                ]
            ),
        )

    @contextlib.contextmanager
    def api_options(self, *options):
        """Run the API with other options for the length of a ``with``.

        :param options: by group and name, over those of nova.conf
        """
        with self.away():
            self.write('api.conf', *options)
        try:
            yield
        finally:
            with self.away():
                self.write('api.conf')

    def _computes_are_mapped(self):
        count = self.cloud.mariadb.count
        if count('nova_api.host_mappings') < count(
            'placement.resource_providers'
        ):
            self._manage('cell_v2', 'discover_hosts')
        return (
            count('nova_api.host_mappings')
            == count('placement.resource_providers')
            == len(self.hosts) + len(self._added)
        )

    @property
    def hosts(self):
        """The names of the computes."""
        return [host for hosts in self.cells.values() for host in hosts]

    # Schedulers.

    def start_schedulers(self, *options):
        """Start the schedulers, stopping those that run.

        :param options: by group and name, over those of nova.conf
        """
        self.stop_schedulers()
        self.scheduler_conf = self.write(
            'scheduler.conf', self.options(), *options
        )
        for name in self.schedulers:
            (self.cloud.folder / f'{name}.out').unlink(missing_ok=True)
            self.write(
                f'{name}.conf', {'DEFAULT': {'host': name, 'debug': 'True'}}
            )
            self.run_scheduler(name)

    def run_scheduler(self, name):
        """Start one of the schedulers with the options of all."""
        self._running[name] = self.run_service(
            'nova-scheduler',
            self.scheduler_conf,
            self.folder / f'{name}.conf',
            name=name,
            says='Starting scheduler node',
            **self.scheduler_variables,
        )

    def restart_scheduler(self, name, *options):
        """Restart one of the schedulers with options; the log goes on."""
        self.cloud.processes.stop(self._running.pop(name))
        self.scheduler_conf = self.write(
            'scheduler.conf', self.options(), *options
        )
        self.run_scheduler(name)

    def kill_scheduler(self, name):
        """Kill one of the schedulers, as a machine that fails does."""
        self.cloud.processes.kill(self._running.pop(name))

    @property
    def scheduler_processes(self):
        """The processes of the schedulers that run."""
        return list(self._running.values())

    def wait_for_schedulers(self):
        """Wait until every scheduler takes requests.

        :raises RuntimeError: where one has ended, with what it printed
        """
        for name in self.schedulers:
            self.cloud.processes.wait(
                lambda name=name: (
                    'Starting scheduler node' in self.scheduler_log(name)
                ),
                name,
            )

    def stop_schedulers(self):
        while self._running:
            self.cloud.processes.stop(self._running.popitem()[1])

    def scheduler_log(self, *names):
        """Return what schedulers have logged since they started."""
        return '\n'.join(
            path.read_text(errors='replace')
            for name in names or self.schedulers
            if (path := self.cloud.folder / f'{name}.out').exists()
        )

    # Commands of this package.

    def command(self, *arguments, conf=None, user=None, status=0):
        """Run ``nova-ext-sched`` beside the schedulers; return its output.

        :param conf: the nova.conf, where it is not the schedulers'
        :param user: of clouds.yaml, whose credentials it has
        :param status: the exit status that it must have; None is any
        """
        name, *rest = arguments
        return self.cloud.execute(
            [
                self.program('nova-ext-sched'),
                name,
                '--config-file',
                str(conf or self.scheduler_conf),
                *rest,
            ],
            user=user,
            status=status,
        )


def explained_hosts(done):
    """Return the hosts that an answer of explain as JSON leaves."""
    return {one['host'] for one in json.loads(done.stdout)['order']}
