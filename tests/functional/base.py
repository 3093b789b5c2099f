# SPDX-License-Identifier: Apache-2.0

"""Base of the functional tests: a real nova and a real placement.

nova-api, conductor, scheduler and fake computes in one process, placement on
SQLite (nova.tests.functional), with this package loaded as nova.conf loads
it.
"""

import contextlib
import functools
import time
import typing
import urllib.parse

import fixtures
from nova import context
from nova import objects
import nova.conf
from nova.db.main import api as main_db
from nova.scheduler.client import report

# nova 29 needs os.uname to load it on Python 3.12, and its tests forbid that.
from nova.scheduler.filters import image_props_filter  # noqa: F401
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional import integrated_helpers
from nova.tests.functional.api import client
from oslo_config import fixture as config_fixture
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_ext_sched import conf
from nova_ext_sched import filters
from nova_ext_sched.dryrun.decision import advice
from nova_ext_sched.dryrun.plan import stuck
from nova_ext_sched.queries import sources
from nova_ext_sched.simulator import fixtures as sim_fixtures
from tests.functional import openstackclient
from tests.functional import saved_child
from tests.functional import shared  # noqa: F401

CONF = nova.conf.CONF
#: The actions that move a server to another host.
MOVES = ('evacuate', 'migrate', 'os-migrateLive')


@contextlib.contextmanager
def table_away(engine, table):
    """Take a real table of a database away for a while."""

    def rename(old, new):
        with engine.begin() as connection:
            connection.execute(sa.text(f'ALTER TABLE {old} RENAME TO {new}'))

    rename(table, 'away')
    try:
        yield
    finally:
        rename('away', table)


class Plugin(fixtures.Fixture):
    """Enable the package as nova.conf does, until the fixture ends.

    Use before the scheduler starts.

    :param host_filters: names to add to ``enabled_filters``
    :param options: values of options of ``[nova_ext_sched]``
    """

    def __init__(self, host_filters=(), **options):
        super().__init__()
        self._host_filters = host_filters
        self._options = options

    def _setUp(self):
        conf.register_opts(CONF)
        self.useFixture(sim_fixtures.RequestFilters())
        self.useFixture(
            fixtures.MonkeyPatch('nova_ext_sched.filters._logged', [])
        )
        config = self.useFixture(config_fixture.Config(CONF))
        filter_scheduler = CONF.filter_scheduler
        config.config(
            group='filter_scheduler',
            available_filters=[
                *filter_scheduler.available_filters,
                filters.ALL_FILTERS,
            ],
            enabled_filters=[
                *filter_scheduler.enabled_filters,
                *self._host_filters,
            ],
        )
        config.config(group='nova_ext_sched', **self._options)


class AllTries(fixtures.Fixture):
    """Let commands try every act, until the fixture ends.

    They try acts for a short time of their process. Here nova's services share
    that process: on a busy machine they left it none.
    """

    def _setUp(self):
        bounds = advice.DEFAULT
        self.addCleanup(object.__setattr__, bounds, 'seconds', bounds.seconds)
        for name in ('_SHARE', '_MOST_SECONDS'):
            value = getattr(stuck, name)
            self.useFixture(fixtures.MockPatchObject(stuck, name, value))
        saved_child.lift_limits()


class PluginMixin:
    """Load the package before the services of a nova test class start."""

    #: Names to add to [filter_scheduler] enabled_filters.
    host_filters: typing.ClassVar[tuple[str, ...]] = ()
    #: Options of [nova_ext_sched].
    options: typing.ClassVar[dict[str, object]] = {}
    #: What makes nova.conf.
    plugin: typing.ClassVar[type[fixtures.Fixture]] = Plugin
    #: Of CPUs, memory and disk; None for nova's own.
    allocation_ratio: typing.ClassVar[float | None] = None

    def setUp(self):
        if self.allocation_ratio is not None:
            for name in ('cpu', 'ram', 'disk'):
                option = f'initial_{name}_allocation_ratio'
                self.flags(**{option: self.allocation_ratio})
        # The Fixtures' own set-up resets neither: they are in place before
        # nova's base class starts the services.
        self._plugin = self.plugin(self.host_filters, **self.options)
        self._nova_api = sim_fixtures.NovaApi()
        for fixture in (self._nova_api, self._plugin, AllTries()):
            fixture.setUp()
            self.addCleanup(fixture.cleanUp)
        super().setUp()

    def _clear_attrs(self):
        # nova's cleanup empties the instance; pytest then misses the test
        # method that it had bound there.
        name = self._testMethodName
        method = self.__dict__.get(name)
        super()._clear_attrs()
        if method is not None:
            self.__dict__[name] = method

    def set_service(self, host, **fields):
        """Disable a host's nova-compute, or force it down."""
        [service] = self.admin_api.get_services(
            binary='nova-compute', host=host
        )
        self.admin_api.put_service(service['id'], fields)

    @functools.cached_property
    def _moves_before(self):
        """The migrations that a server had before its last move."""
        return {}

    def _moves_of(self, server):
        found = self.admin_api.api_get('/os-migrations').body['migrations']
        return [one for one in found if one['instance_uuid'] == server['id']]

    def act(self, server, action, status='', **body):
        """Let an administrator act on a server.

        :param status: what to wait for, if anything
        :param body: of the action
        :returns: the server, where there is something to wait for
        """
        if action in MOVES:
            self._moves_before[server['id']] = {
                one['uuid'] for one in self._moves_of(server)
            }
        # nova-api takes no null of this one.
        nothing = {} if action == 'evacuate' else None
        self.admin_api.post_server_action(
            server['id'], {action: body or nothing}
        )
        if status:
            return self._wait_for_state_change(server, status)

    def boot_stopped(self, **server):
        """Boot a server and stop it, so that its move is a cold one."""
        return self.act(self.boot(**server), 'os-stop', 'SHUTOFF')

    def wait_until_idle(self, server):
        """Wait until a server has no task."""
        self._wait_for_server_parameter(
            server, {'OS-EXT-STS:task_state': None}
        )

    def live_migrate(self, server, host=None):
        self.act(server, 'os-migrateLive', host=host, block_migration='auto')

    def reset_state(self, server, state):
        self.act(server, 'os-resetState', state=state)

    def lose(self, host):
        """Stop a host's nova-compute, and tell nova that it is down."""
        self.computes[host].stop()
        self.set_service(host, forced_down=True)

    @functools.cached_property
    def aggregate_ids(self):
        """The IDs of the aggregates that a test has created, by name."""
        return {}

    def aggregate(self, name, hosts=(), zone=None, **metadata):
        """Create an aggregate with hosts and metadata; return its UUID.

        Keys with a colon are given as ``metadata={...}``.
        """
        metadata.update(metadata.pop('metadata', {}))
        created = self.admin_api.post_aggregate(
            {'aggregate': {'name': name, 'availability_zone': zone}}
        )
        self.aggregate_ids[name] = created['id']
        for host in hosts:
            self.add_host(name, host)
        self.set_metadata(name, metadata)
        return created['uuid']

    def add_host(self, name, host):
        """Add a host to an aggregate."""
        self.admin_api.add_host_to_aggregate(self.aggregate_ids[name], host)

    def remove_host(self, name, host):
        """Remove a host from an aggregate."""
        self.admin_api.remove_host_from_aggregate(
            self.aggregate_ids[name], host
        )

    def set_metadata(self, name, metadata):
        """Set items of an aggregate's metadata, remove those that are None."""
        if metadata:
            self.admin_api.post_aggregate_action(
                self.aggregate_ids[name],
                {'set_metadata': {'metadata': metadata}},
            )

    def isolate(self, name, hosts, *traits):
        """Create an isolated aggregate whose hosts carry its traits."""
        uuid = self.aggregate(
            name, hosts, metadata={f'trait:{t}': 'required' for t in traits}
        )
        for host in hosts:
            self.add_traits(host, *traits)
        return uuid

    def add_traits(self, host, *traits):
        """Add traits to a host's provider, creating custom ones."""
        for trait in traits:
            if trait.startswith('CUSTOM_'):
                self._create_trait(trait)
        provider = self._get_provider_uuid_by_host(host)
        self._set_provider_traits(
            provider, sorted({*self._get_provider_traits(provider), *traits})
        )

    def limit(self, host, class_, **fields):
        """Change a host's inventory of a resource class in placement."""
        provider = self._get_provider_uuid_by_host(host)
        url = f'/resource_providers/{provider}/inventories'
        found = self.placement.get(url).body
        found['inventories'].setdefault(class_, {}).update(fields)
        self.placement.put(url, found)

    def allocate(self, name, resources, consumer=None, **since_1_38):
        """Let a consumer hold resources of a provider; return its UUID.

        :param name: of the provider
        :param consumer: nobody's UUID, where none is given
        """
        consumer = consumer or uuidutils.generate_uuid()
        provider = self._get_provider_uuid_by_name(name)
        answer = self.placement.put(
            f'/allocations/{consumer}',
            {
                'allocations': {provider: {'resources': resources}},
                'project_id': self.api.project_id,
                'user_id': self.api.project_id,
                'consumer_generation': None,
                **since_1_38,
            },
            version='1.38' if since_1_38 else '1.28',
        )
        self.assertEqual(204, answer.status, answer.body)
        return consumer

    def host_of(self, server):
        return self.admin_api.get_server(server['id'])['OS-EXT-SRV-ATTR:host']

    def assertNoValidHost(self, **kwargs):
        server = self.boot(expected_state='ERROR', **kwargs)
        self.assertIsNone(server['OS-EXT-SRV-ATTR:host'])
        self.assertIn('No valid host', server['fault']['message'])
        return server

    def use_client(self):
        """Return an OpenStackClient of this cloud's users."""
        return self.useFixture(
            openstackclient.OpenStackClient(
                self.api_fixture.api.base_url,
                {'placement': self.placement.fixture.endpoint},
            )
        )


class CloudTestCase(PluginMixin, integrated_helpers.ProviderUsageBaseTestCase):
    """A cloud with a compute for each host of ``weights``, or of ``started``.

    The scheduler prefers the hosts of greater weight, so that a test can make
    the wrong host the default: a pass then proves that a filter acted.
    """

    compute_driver = 'fake.MediumFakeDriver'
    #: The class of another one, of these tests.
    driver: typing.ClassVar[type | None] = None
    microversion = 'latest'
    weights: typing.ClassVar[dict[str, int]] = {}
    #: Names to add to [filter_scheduler] weight_classes.
    weigher_classes: typing.ClassVar[tuple[str, ...]] = ()
    #: The hosts to start; None for all that have a weight.
    started: typing.ClassVar[tuple[str, ...] | None] = None
    #: The cell of each host that is not in cell1.
    cells: typing.ClassVar[dict[str, str]] = {}

    def setUp(self):
        if self.weights:
            self.useFixture(
                nova_fixtures.HostNameWeigherFixture(weights=self.weights)
            )
        if self.weigher_classes:
            weight_classes = CONF.filter_scheduler.weight_classes
            self.useFixture(
                nova_fixtures.ConfPatcher(
                    group='filter_scheduler',
                    weight_classes=[*weight_classes, *self.weigher_classes],
                )
            )
        if self.driver:
            # nova loads drivers of its own package alone.
            self.compute_driver = f'fake.{self.driver.__name__}'
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova.virt.{self.compute_driver}', self.driver
                )
            )
        super().setUp()
        self.flags(instances=-1, cores=-1, ram=-1, group='quota')
        self.queries = self._record_queries()
        for host in self.weights if self.started is None else self.started:
            self._start_compute(host, cell_name=self.cells.get(host))

    def _record_queries(self):
        """Keep the query string of every request for candidates."""
        queries = []
        get = report.SchedulerReportClient.get

        def recording_get(client, url, *args, **kwargs):
            parts = urllib.parse.urlsplit(url)
            if parts.path == '/allocation_candidates':
                queries.append(urllib.parse.parse_qs(parts.query))
            return get(client, url, *args, **kwargs)

        self.patch(report.SchedulerReportClient, 'get', recording_get)
        return queries

    @property
    def log(self):
        return self.stdlog.logger.output

    @staticmethod
    def api_engine():
        return sources.api_db.context_manager.writer.get_engine()

    def cell_engine(self, name='cell1'):
        with self.cell(name) as cell:
            return main_db.get_engine(context=cell)

    def cell(self, name='cell1'):
        """Return what yields a context of a cell."""
        return context.target_cell(
            context.get_admin_context(), self.cell_mappings[name]
        )

    def execute(self, statement, **values):
        """Write to the database of the first cell."""
        with self.cell_engine().begin() as connection:
            connection.execute(sa.text(statement), values)

    def write_server(self, server, **columns):
        """Write columns of a server's row in the first cell."""
        written = ', '.join(f'{name} = :{name}' for name in columns)
        self.execute(
            f'UPDATE instances SET {written} WHERE uuid = :uuid',
            uuid=server['id'],
            **columns,
        )

    def metadata_away(self):
        """Take the real table of aggregates' metadata away for a while."""
        return table_away(self.api_engine(), 'aggregate_metadata')

    def flavor(
        self, *, name=None, vcpu=1, memory_mb=64, disk=0, **extra_specs
    ):
        """Create a flavor; extra specs with a colon as ``specs={}``."""
        extra_specs.update(extra_specs.pop('specs', {}))
        return self._create_flavor(
            name=name,
            vcpu=vcpu,
            memory_mb=memory_mb,
            disk=disk,
            ephemeral=0,
            extra_spec=extra_specs,
        )

    def create_group(self, limit=None, policy='anti-affinity', name='group'):
        """Create a server group, with a rule where it has a limit.

        :returns: its UUID
        """
        group = {'name': name, 'policy': policy}
        if limit is not None:
            group['rules'] = {'max_server_per_host': limit}
        return self.api.post_server_groups(group)['id']

    def image(self, **properties):
        """Create an image; properties with a colon as ``props={}``."""
        properties.update(properties.pop('props', {}))
        disk_format = properties.pop('disk_format', 'raw')
        return self.glance.create(
            None,
            {
                'name': 'image',
                'status': 'active',
                'container_format': 'raw',
                'disk_format': disk_format,
                'min_ram': 0,
                'min_disk': 0,
                'size': 1,
                'visibility': 'public',
                'properties': properties,
            },
        )['id']

    @functools.cached_property
    def plain_flavor(self):
        return self.flavor()

    @functools.cached_property
    def plain_image(self):
        return self.image()

    def post(self, hints=None, flavor=None, **fields):
        """Ask for servers, and wait for none; return the first."""
        server = self._build_server(
            flavor_id=flavor or self.plain_flavor, networks='none'
        )
        return self.api.post_server(
            {
                'server': {**server, **fields},
                'os:scheduler_hints': hints or {},
            }
        )

    def boot(
        self,
        flavor=None,
        image=None,
        hints=None,
        expected_state='ACTIVE',
        networks='none',
        **kwargs,
    ):
        """Boot a server and return it; the state is waited for."""
        request = {
            'server': self._build_server(
                flavor_id=flavor or self.plain_flavor,
                image_uuid=image or self.plain_image,
                networks=networks,
                **kwargs,
            ),
            'os:scheduler_hints': hints or {},
        }
        # Only an administrator may choose the host.
        api = self.admin_api if {'az', 'host'} & kwargs.keys() else self.api
        server = api.post_server(request)
        # It takes so long, and a look at it costs a tenth of a boot.
        time.sleep(0.25)
        return self._wait_for_state_change(server, expected_state)

    def boot_each_on(self, *hosts, **server):
        """Boot a server on each host; the request forces it there."""
        for host in hosts:
            self.boot(az=f'nova:{host}', **server)

    def rebuild_server(self, server, image, expected_state='ACTIVE'):
        """Rebuild a server and return it; the state is waited for."""
        return self.act(server, 'rebuild', expected_state, imageRef=image)

    def _wait_for_server_parameter(
        self, server, expected_params, max_retries=60, **kwargs
    ):
        # nova's helpers give up after five seconds.
        return super()._wait_for_server_parameter(
            server, expected_params, max(60, max_retries), **kwargs
        )

    def _wait_for_migration_status(self, server, expected_statuses):
        # nova's helper takes a migration that ended before the move too, and
        # the server's task ends before its host is written.
        before = self._moves_before.get(server['id'], ())

        def find():
            statuses = [
                one['status']
                for one in self._moves_of(server)
                if one['uuid'] not in before
            ]
            self.assertTrue({*statuses} & {*expected_statuses}, statuses)

        self._wait_for_assert(find, max_retries=60)

    def _wait_until_deleted(self, server):
        # nova's helper looks twice a second.
        for _ in range(200):
            try:
                self.api.get_server(server['id'])
            except client.OpenStackApiNotFoundException:
                return
            time.sleep(0.1)
        self.fail(f'{server["id"]} is not deleted')

    def boot_from_volume(self, volume, flavor=None):
        """Boot a server from a volume of CinderFixture; return it, ACTIVE."""
        server = self._build_server(
            image_uuid='', flavor_id=flavor or self.flavor(), networks='none'
        )
        server['block_device_mapping_v2'] = [
            {
                'source_type': 'volume',
                'destination_type': 'volume',
                'boot_index': 0,
                'uuid': volume,
            }
        ]
        server = self.api.post_server({'server': server})
        return self._wait_for_state_change(server, 'ACTIVE')

    def wait_for_errors(self, count):
        """Wait until so many servers are there, and all in ERROR.

        For servers that one request creates: the API lists them one by one.
        """
        states = None
        for _ in range(600):
            # nova's fixture of cells may fail a list while many are created.
            with contextlib.suppress(client.OpenStackApiException):
                states = [one['status'] for one in self.api.get_servers()]
            if states == ['ERROR'] * count:
                return
            time.sleep(0.1)
        self.fail(f'expected {count} servers in ERROR, got {states}')

    @staticmethod
    def stored_spec(server):
        """Return the request spec of a server, as nova has stored it."""
        return objects.RequestSpec.get_by_instance_uuid(
            context.get_admin_context(), server['id']
        )

    def assertBootsOn(self, expected, **kwargs):
        server = self.boot(**kwargs)
        self.assertEqual(expected, server['OS-EXT-SRV-ATTR:host'])
        return server

    def assertCannotMigrate(self, server, host=None):
        self.act(server, 'migrate', host=host)
        self._assert_resize_migrate_action_fail(
            server, 'migrate', 'NoValidHost'
        )
