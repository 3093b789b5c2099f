# SPDX-License-Identifier: Apache-2.0

"""A cloud in this process: nova and placement as their own tests run them.

nova-api, conductor, scheduler and a compute service for each host are nova's
own, placement is placement's own on SQLite; the hypervisor, Glance, Cinder and
Neutron are nova's fakes (nova.tests.functional, nova.tests.fixtures). The
scenario is checked before, so its objects can be created by nova's object
classes, in a tenth of the time that nova-api takes.
"""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
import http
import logging
import re
import typing

import fixtures
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.api.validation.extra_specs import validators
from nova.compute import flavors
import nova.conf
from nova.scheduler.client import report
from nova.tests.functional import integrated_helpers
from nova.tests.functional.api import client
from nova.tests.unit import fake_requests
from nova.virt import fake
from nova.volume import cinder
import os_traits
from oslo_utils import uuidutils

from nova_ext_sched import conf
from nova_ext_sched import messages
from nova_ext_sched.policy import isolation
from nova_ext_sched.simulator import explanations
from nova_ext_sched.simulator import fixtures as sim_fixtures
from nova_ext_sched.simulator import options
from nova_ext_sched.simulator import scenario
from nova_ext_sched.simulator import weigher

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

#: The image of servers for which a scenario names none.
DEFAULT_IMAGE = 'default'

Body = dict[str, typing.Any]

# Seconds after which nova would take a compute service for dead.
_FOREVER = 2**30

_UUID = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')


class Driver(fake.FakeDriver):
    """nova's fake driver with the capacity of a host.

    nova starts a compute service with ``CONF.host`` set to its host.
    """

    def __init__(self, virtapi: typing.Any, host: scenario.Host) -> None:
        self.vcpus, self.memory_mb = host.vcpus, host.memory_mb
        self.local_gb = host.disk_gb
        super().__init__(virtapi)


class Cloud(integrated_helpers.ProviderUsageBaseTestCase):
    """The cloud that a scenario declares.

    It is a test case, because nova's harness is one, but no test runner runs
    it: ``setUp`` builds the cloud, ``doCleanups`` takes it down.

    :ivar declared: the scenario
    :param plain: run nova without our package
    :param log: gets the log, from its level on
    :ivar explanations: explanations of the requests to its scheduler
    :ivar warnings: our package's warnings
    :ivar progress: called with the name of the phase for each host and
        aggregate that was made, and each server that was placed
    """

    compute_driver = 'fake.FakeDriver'
    microversion = 'latest'

    def __init__(
        self,
        declared: scenario.Scenario,
        plain: bool,
        log: logging.Handler,
        progress: Callable[[str], None],
    ) -> None:
        super().__init__('setUp')
        self.declared = declared
        self._plain = plain
        self._log = log
        self.progress = progress
        self.explanations = explanations.Explanations()
        self.warnings = explanations.Warnings()
        self._clients: dict[str, client.TestOpenStackClient] = {}
        self._volumes: dict[str, Body] = {}
        # UUIDs of hosts' providers, by host; the traits of placement.
        self._providers: dict[str, str] = {}
        self._traits = set(os_traits.get_traits())
        self.aggregate_ids: dict[str, int] = {}
        #: The scenario's names of objects for which nova has UUIDs.
        self.names: dict[str, str] = {}

    def setUp(self) -> None:
        """Start nova and placement, and create the scenario's objects.

        :raises exception.ScenarioInvalid: a filter is not installed
        """
        self._set_up_log()
        # Without nova's default flavors, whose names a scenario may use.
        self._patch(
            'nova.tests.fixtures.DefaultFlavorsFixture', fixtures.Fixture
        )
        self.useFixture(sim_fixtures.NovaApi())
        self.useFixture(sim_fixtures.RequestFilters())
        # Options are registered before the services start.
        conf.register_opts(CONF)
        # With many hosts, or on a busy machine, heartbeats come late.
        self.flags(service_down_time=_FOREVER)
        composed = options.compose(self.declared, self._plain)
        for group, values in composed.items():
            self.flags(group=None if group == 'DEFAULT' else group, **values)
        weigher.PreferredHosts.order = tuple(self.declared.prefer)
        super().setUp()
        if longest := self.declared.placement.get('max_request_line'):
            self._limit_request_line(longest)
        self.useFixture(self.explanations)
        self._make_volumes_of_images()
        self._start_hosts()
        # nova-api sends the scheduler each change of an aggregate by a cast. A
        # cast that comes late would undo later changes.
        host_manager = self.scheduler_service.manager.host_manager
        self._patch(
            'nova.scheduler.rpcapi.SchedulerAPI.update_aggregates',
            lambda _api, _context, changed: host_manager.update_aggregates(
                changed
            ),
        )
        self._make_aggregates()
        host_manager.update_aggregates(self._aggregates())
        self.give_implied_traits()
        self.flavor_ids = {
            flavor.name: _make_flavor(flavor)
            for flavor in self.declared.flavors
        }
        self.image_properties = {DEFAULT_IMAGE: {}, **self.declared.images}
        self.image_ids = {
            name: self._make_image(name, properties)
            for name, properties in self.image_properties.items()
        }
        self.group_ids = {
            group.name: self._make_group(group)
            for group in self.declared.server_groups
        }

    def _set_up_log(self) -> None:
        # nova's StandardLogging formats every DEBUG line and keeps the others
        # in memory.
        self._patch('nova.tests.fixtures.StandardLogging', fixtures.Fixture)
        self._patch('oslo_log.log.setup', lambda *args: None)
        level = self._log.level
        self.useFixture(fixtures.LogHandler(self._log, level=level))
        self.useFixture(
            fixtures.LogHandler(
                self.warnings, 'nova_ext_sched', level, nuke_handlers=False
            )
        )

    def _limit_request_line(self, longest: int) -> None:
        """Act as the web server in front of placement.

        Every web server limits the length of a request line and answers a
        longer one itself.

        :param longest: in bytes, without the end of the line, as gunicorn
            counts
        """
        get = report.SchedulerReportClient.get

        def limited_get(
            client: typing.Any, url: str, *args: typing.Any, **kw: typing.Any
        ) -> typing.Any:
            if len(f'GET {url} HTTP/1.1') <= longest:
                return get(client, url, *args, **kw)
            return fake_requests.FakeResponse(
                http.HTTPStatus.REQUEST_URI_TOO_LONG, 'Request-URI Too Long'
            )

        self._patch(
            'nova.scheduler.client.report.SchedulerReportClient.get',
            limited_get,
        )

    def _patch(self, name: str, replacement: typing.Any) -> None:
        self.useFixture(fixtures.MonkeyPatch(name, replacement))

    def client(self, project: str) -> client.TestOpenStackClient:
        """Return an administrator's client of nova-api in a project."""
        if project not in self._clients:
            self._clients[project] = client.TestOpenStackClient(
                # An administrator by nova's policies.
                'admin',
                self.api_fixture.api.base_url,
                project,
                ['reader', 'member', 'admin'],
            )
            self._clients[project].microversion = self.microversion
        return self._clients[project]

    def readable(self, texts: Iterable[str]) -> list[str]:
        """Return texts with the scenario's names for nova's UUIDs."""
        return [
            _UUID.sub(lambda found: self.names.get(found[0], found[0]), text)
            for text in texts
        ]

    def give_implied_traits(self) -> None:
        """Give providers the traits that isolated aggregates require.

        Traits that a provider has stay; a trait that placement refuses (a
        misspelt one) is left out, as an operator could not set it either.
        """
        if not self.declared.imply_traits:
            return
        for aggregate in self._aggregates():
            traits = [
                trait
                for key, value in aggregate.metadata.items()
                if (trait := isolation.read_item(key, value).trait)
            ]
            for host in aggregate.hosts:
                self._add_traits(host, traits)

    def _add_traits(self, host: str, names: Collection[str]) -> None:
        """Add traits to a provider, without those that placement refuses."""
        if not names:
            return
        for name in set(names) - self._traits:
            if self._create_trait(name).status < http.HTTPStatus.BAD_REQUEST:
                self._traits.add(name)
        uuid = self._providers[host]
        there = set(self._get_provider_traits(uuid))
        if more := self._traits.intersection(names) - there:
            answer = self._set_provider_traits(uuid, sorted(there | more))
            self.assertEqual(http.HTTPStatus.OK, answer.status)

    def domains(self, key: str, hosts: Iterable[str]) -> dict[str, int]:
        """Count hosts by failure domain.

        :param key: the key of aggregates' metadata whose values are domains
        :param hosts: the host of each server
        :returns: the counts by domain; hosts in no domain are under ''
        """
        count: collections.Counter[str] = collections.Counter()
        for host in hosts:
            found = objects.AggregateList.get_by_host(
                nova_context.get_admin_context(), host, key
            )
            count.update({one.metadata[key] for one in found} or {''})
        return dict(count)

    def _aggregates(self) -> typing.Any:
        return objects.AggregateList.get_all(nova_context.get_admin_context())

    def create_volume(self, image: str) -> str:
        """Return the id of a new volume of an image."""
        volume = uuidutils.generate_uuid()
        self._volumes[volume] = {
            'bootable': True,
            # Cinder copies the properties here, and nova-api reads them here.
            'volume_image_metadata': self.image_properties[image],
        }
        return volume

    def _make_volumes_of_images(self) -> None:
        # CinderFixture has put a Mock there, which is called without the API's
        # instance.
        get = cinder.API.get

        def get_volume(
            context: typing.Any, volume_id: str, **kwargs: typing.Any
        ) -> Body:
            volume = get(context, volume_id, **kwargs)
            return volume | self._volumes.get(volume_id, {})

        self._patch('nova.volume.cinder.API.get', staticmethod(get_volume))

    def _start_hosts(self) -> None:
        hosts = {host.name: host for host in self.declared.hosts}
        self._patch(
            'nova.virt.driver.load_compute_driver',
            lambda virtapi, compute_driver=None: Driver(
                virtapi, hosts[CONF.host]
            ),
        )
        for host in hosts.values():
            self._start_compute(host.name)
            uuid = self._get_provider_uuid_by_name(host.name)
            self._providers[host.name], self.names[uuid] = uuid, host.name
            self._add_traits(host.name, host.traits)
            self.progress('Making hosts')

    def _make_aggregates(self) -> None:
        of_host: dict[str, list[str]] = {}
        for declared in self.declared.aggregates:
            zone = declared.availability_zone
            zones = {'availability_zone': zone} if zone else {}
            aggregate = objects.Aggregate(
                nova_context.get_admin_context(),
                name=declared.name,
                metadata=zones | declared.metadata,
            )
            aggregate.create()
            self.aggregate_ids[declared.name] = aggregate.id
            self.names[aggregate.uuid] = declared.name
            for host in declared.hosts:
                aggregate.add_host(host)
                of_host.setdefault(host, []).append(aggregate.uuid)
            self.progress('Making aggregates')
        for host, uuids in of_host.items():
            # The last version that needs no generation of the provider.
            url = f'/resource_providers/{self._providers[host]}/aggregates'
            answer = self.placement.put(url, [*uuids], version='1.18')
            self.assertEqual(http.HTTPStatus.OK, answer.status)

    def _make_image(self, name: str, properties: dict[str, str]) -> str:
        image = {
            **self.glance.image1,
            'id': uuidutils.generate_uuid(),
            'name': name,
            'properties': dict(properties),
        }
        self.names[image['id']] = name
        return self.glance.create(None, image)['id']

    def _make_group(self, declared: scenario.ServerGroup) -> str:
        group = objects.InstanceGroup(
            nova_context.get_admin_context(),
            uuid=uuidutils.generate_uuid(),
            name=declared.name,
            policy=declared.policy,
            rules=declared.rules or {},
            user_id='admin',
            project_id=declared.project,
        )
        group.create()
        self.names[group.uuid] = declared.name
        return group.uuid


def _make_flavor(declared: scenario.Flavor) -> str:
    """Make a flavor, as nova-api does below microversion 2.86.

    From 2.86 on nova-api refuses some extra specs; a warning names them.
    """
    faults = []
    for key, value in declared.extra_specs.items():
        try:
            validators.validate(key, value)
        except nova_exception.ValidationError as exc:
            faults.append(messages.clean(exc.format_message()))
    for fault in faults:
        LOG.warning(
            'Flavor %(flavor)s: nova-api accepts its extra spec only '
            'below microversion 2.86: %(reason)s',
            {'flavor': messages.quoted(declared.name), 'reason': fault},
        )
    flavor = flavors.create(
        declared.name,
        declared.memory_mb,
        declared.vcpus,
        declared.disk_gb,
    )
    flavor.extra_specs = declared.extra_specs
    flavor.save()
    return flavor.flavorid
