# SPDX-License-Identifier: Apache-2.0

"""A cloud in this process: nova and placement as their own tests run them.

nova-api, conductor, scheduler and a compute service for each host are nova's
own, placement is placement's own on SQLite; where no step needs it, a host has
rows in place of a compute service (:mod:`.rows`); the hypervisor, Glance,
Cinder and Neutron are nova's fakes (nova.tests.functional,
nova.tests.fixtures).
"""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import logging
import re
import typing

import fixtures
from nova import context as nova_context
from nova import objects
import nova.conf
from nova.tests.functional import integrated_helpers
from nova.tests.functional.api import client
from nova.virt import fake
from nova.volume import cinder
import os_traits
from oslo_config import fixture as config_fixture
from oslo_utils import uuidutils

from nova_ext_sched import conf
from nova_ext_sched import exception
from nova_ext_sched import schema
from nova_ext_sched.cmd.simulate import explanations
from nova_ext_sched.cmd.simulate import fixtures as sim_fixtures
from nova_ext_sched.cmd.simulate import options
from nova_ext_sched.cmd.simulate import rows
from nova_ext_sched.cmd.simulate import scenario
from nova_ext_sched.cmd.simulate import weigher
from nova_ext_sched.policy import isolation

CONF = nova.conf.CONF

#: The image of servers that name none.
DEFAULT_IMAGE = 'default'

Body = dict[str, typing.Any]

_UUID = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')


class _Driver(fake.FakeDriver):
    """nova's fake driver with the capacity of a host.

    nova starts a compute service with ``CONF.host`` set to its host.
    """

    def __init__(self, virtapi: typing.Any, host: scenario.Host) -> None:
        self.vcpus, self.memory_mb = host.vcpus, host.memory_mb
        self.local_gb = host.disk_gb
        super().__init__(virtapi)


class Cloud(integrated_helpers.ProviderUsageBaseTestCase):
    """The cloud that a scenario declares.

    A test case, because nova's harness is one, but none that a test runner
    runs: ``setUp`` builds the cloud, ``doCleanups`` takes it down.

    :param declared: the scenario
    :param plain: run nova without our package
    :param log: where the log goes, from this handler's level on
    :ivar explanations: of the requests that its scheduler gets
    :ivar warnings: of our package
    :ivar rows: makes and moves what has no nova-compute; None where each host
        has one
    :ivar server_ids: of the servers that stand before the first step
    :param progress: called with what is made when a host or an aggregate is
        there
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
        self._declared = declared
        self._plain = plain
        self._log = log
        self._progress = progress
        self.explanations = explanations.Explanations()
        self.warnings = explanations.Warnings()
        self._clients: dict[str, client.TestOpenStackClient] = {}
        self._volume_images: dict[str, str] = {}
        self.rows: typing.Any = None
        # Those that have traits.
        self._hosts: set[str] = set()
        self._known_traits = set(os_traits.get_traits())
        #: What the scenario calls what nova has UUIDs for.
        self.names: dict[str, str] = {}

    def setUp(self) -> None:
        """Start nova and placement, and make what the scenario declares.

        :raises exception.ScenarioInvalid: nova-api does not take a part of it
        """
        self._set_up_log()
        # The names of flavors are for the scenario to use.
        self._patch(
            'nova.tests.fixtures.DefaultFlavorsFixture', fixtures.Fixture
        )
        self.useFixture(sim_fixtures.NovaApi())
        self.useFixture(sim_fixtures.RequestFilters())
        # Before the services start.
        conf.register_opts(CONF)
        config = self.useFixture(config_fixture.Config(CONF))
        composed = options.compose(self._declared, self._plain)
        for group, values in composed.items():
            config.config(
                group=None if group == 'DEFAULT' else group, **values
            )
        if not self._declared.needs_compute:
            config.config(service_down_time=rows.FOREVER)
        weigher.PreferredHosts.order = tuple(self._declared.prefer)
        super().setUp()
        if longest := self._declared.placement.get('max_request_line'):
            self.useFixture(sim_fixtures.RequestLineLimit(longest))
        self.useFixture(self.explanations)
        self._make_volumes_of_images()
        self._start_hosts()
        # nova-api tells the scheduler of each change of an aggregate by a
        # cast. One that comes late would undo those after it.
        host_manager = self.scheduler_service.manager.host_manager
        self._patch(
            'nova.scheduler.rpcapi.SchedulerAPI.update_aggregates',
            lambda _api, _context, changed: host_manager.update_aggregates(
                changed
            ),
        )
        self.aggregate_ids = {
            aggregate.name: self._create_declared_aggregate(aggregate)
            for aggregate in self._declared.aggregates
        }
        if self.rows is not None:
            self.rows.add_to_aggregates(
                {
                    self.aggregate_ids[aggregate.name]: aggregate.hosts
                    for aggregate in self._declared.aggregates
                }
            )
        self.imply_traits()
        self.flavor_ids = {
            flavor.name: self._create_declared_flavor(flavor)
            for flavor in self._declared.flavors
        }
        self.image_properties = {DEFAULT_IMAGE: {}, **self._declared.images}
        self.image_ids = {
            name: self._create_declared_image(name, properties)
            for name, properties in self.image_properties.items()
        }
        self.group_ids = {
            group.name: self._create_declared_group(group)
            for group in self._declared.server_groups
        }
        self.server_ids = self._add_declared_servers()

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

    def _patch(self, name: str, replacement: typing.Any) -> None:
        self.useFixture(fixtures.MonkeyPatch(name, replacement))

    def client(self, project: str) -> client.TestOpenStackClient:
        """Return an administrator's client of nova-api in a project."""
        if project not in self._clients:
            self._clients[project] = client.TestOpenStackClient(
                # A user that nova's policies know.
                'admin',
                self.api_fixture.base_url,
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

    def imply_traits(self) -> None:
        """Give providers the traits that isolated aggregates require.

        Traits that a provider has stay; a trait that placement does not take
        (a misspelt one) is left out, as an operator could not set it either.
        """
        if not self._declared.imply_traits:
            return
        implied = collections.defaultdict(set)
        for aggregate in self._aggregates():
            for key, value in aggregate['metadata'].items():
                if trait := isolation.read_item(key, value).trait:
                    for host in aggregate['hosts']:
                        implied[host].add(trait)
        for host, names in implied.items():
            self._add_traits(host, names)

    def domains(self, key: str, hosts: Iterable[str]) -> dict[str, int]:
        """Count hosts by failure domain.

        :param key: the key of aggregates' metadata whose values are domains
        :param hosts: the host of each server
        :returns: by domain; '' stands for no domain
        """
        count: collections.Counter[str] = collections.Counter()
        aggregates = self._aggregates()
        for host in hosts:
            count.update(
                {
                    aggregate['metadata'][key]
                    for aggregate in aggregates
                    if host in aggregate['hosts']
                    and key in aggregate['metadata']
                }
                or {''}
            )
        return dict(count)

    def _aggregates(self) -> list[Body]:
        return self.admin_api.api_get('/os-aggregates').body['aggregates']

    def create_volume(self, image: str) -> str:
        """Return the id of a new volume of an image."""
        volume = uuidutils.generate_uuid()
        self._volume_images[volume] = image
        return volume

    def _make_volumes_of_images(self) -> None:
        # CinderFixture put a Mock there, which is not given the instance.
        get = cinder.API.get

        def get_volume(
            context: typing.Any, volume_id: str, **kwargs: typing.Any
        ) -> Body:
            volume = get(context, volume_id, **kwargs)
            if image := self._volume_images.get(volume_id):
                volume['bootable'] = True
                # Cinder copies them, and nova-api reads them there.
                volume['volume_image_metadata'] = self.image_properties[image]
            return volume

        self._patch('nova.volume.cinder.API.get', staticmethod(get_volume))

    def _start_hosts(self) -> None:
        hosts = {host.name: host for host in self._declared.hosts}
        if self._declared.needs_compute:
            self._patch(
                'nova.virt.driver.load_compute_driver',
                lambda virtapi, compute_driver=None: _Driver(
                    virtapi, hosts[CONF.host]
                ),
            )
        else:
            self.rows = self.useFixture(
                rows.Rows(
                    self.cell_mappings['cell1'],
                    self.placement,
                    self.scheduler_service.manager.host_manager,
                    lambda host: _Driver(None, host),
                )
            )
        for host in hosts.values():
            traits = set(host.traits)
            if self.rows is None:
                self._start_compute(host.name)
            else:
                reported = self.rows.add_host(host)
                # A list with one that nova-compute reports has all of them.
                if not any(name.startswith('COMPUTE_') for name in traits):
                    traits |= reported
            self._add_traits(host.name, traits)
            self._progress('Making hosts')
        if self.rows is not None:
            self.rows.report(self._declared.hosts)

    def _add_traits(self, host: str, traits: Collection[str]) -> None:
        for trait in set(traits) - self._known_traits:
            if self._create_trait(trait).status in (201, 204):
                self._known_traits.add(trait)
        if self.rows is not None and host not in self._hosts:
            providers = self.rows.providers
            self._hosts.add(host)
            self.names[providers.uuids[host]] = host
            providers.set_traits(host, self._known_traits.intersection(traits))
            return
        (found,) = self.placement.get(f'/resource_providers?name={host}').body[
            'resource_providers'
        ]
        provider = found['uuid']
        self.names[provider] = host
        present = set(self._get_provider_traits(provider))
        wanted = self._known_traits.intersection(traits)
        if not wanted <= present:
            self._set_provider_traits(provider, sorted(present | wanted))

    def _create_declared_aggregate(self, aggregate: scenario.Aggregate) -> int:
        path = ('aggregates', aggregate.name)
        zone = aggregate.availability_zone
        created = self._create(
            path,
            '/os-aggregates',
            aggregate={'name': aggregate.name, 'availability_zone': zone},
        )
        url = f'/os-aggregates/{created["id"]}/action'
        if self.rows is None:
            for host in aggregate.hosts:
                self._create((*path, 'hosts'), url, add_host={'host': host})
        if metadata := aggregate.metadata:
            body = {'metadata': metadata}
            self._create((*path, 'metadata'), url, set_metadata=body)
        self._progress('Making aggregates')
        return created['id']

    def _create_declared_flavor(self, flavor: scenario.Flavor) -> str:
        path = ('flavors', flavor.name)
        created = self._create(
            path,
            '/flavors',
            flavor={
                'name': flavor.name,
                'vcpus': flavor.vcpus,
                'ram': flavor.memory_mb,
                'disk': flavor.disk_gb,
                'OS-FLV-EXT-DATA:ephemeral': flavor.ephemeral_gb,
                'swap': flavor.swap_mb,
            },
        )
        if specs := flavor.extra_specs:
            # nova-api takes a tenth of a second for each one that has been
            # checked with its own code before (options.keywords).
            made = objects.Flavor.get_by_flavor_id(
                nova_context.get_admin_context(), created['id']
            )
            made.extra_specs = specs
            made.save()
        return created['id']

    def _create_declared_image(
        self, name: str, properties: dict[str, str]
    ) -> str:
        image = {
            **self.glance.image1,
            'id': uuidutils.generate_uuid(),
            'name': name,
            'properties': dict(properties),
        }
        self.names[image['id']] = name
        return self.glance.create(None, image)['id']

    def _create_declared_group(self, group: scenario.ServerGroup) -> str:
        if group.uuid is not None:
            # nova-api would give it another one.
            objects.InstanceGroup(
                nova_context.get_admin_context(),
                uuid=group.uuid,
                name=group.name,
                policy=group.policy,
                rules=group.rules or {},
                user_id='admin',
                project_id=group.project,
            ).create()
            self.names[group.uuid] = group.name
            return group.uuid
        rules = {} if group.rules is None else {'rules': group.rules}
        return self._create(
            ('server_groups', group.name),
            '/os-server-groups',
            project=group.project,
            server_group={'name': group.name, 'policy': group.policy, **rules},
        )['id']

    @property
    def server_groups(self) -> dict[str, str]:
        """The group of each server that stands at first and is in one."""
        return {
            server.name: server.group
            for server in self._declared.servers
            if server.group is not None
        }

    @contextlib.contextmanager
    def without(self, names: Collection[str]) -> Iterator[None]:
        """Take servers away that stand at first, and put them back after."""
        away = [one for one in self._declared.servers if one.name in names]
        groups = {
            group: objects.InstanceGroup.get_by_uuid(
                nova_context.get_admin_context(), self.group_ids[group]
            ).members
            for group in {server.group for server in away if server.group}
        }
        for server in away:
            self.rows.take(self.server_ids[server.name])
        uuids = {self.server_ids[server.name] for server in away}
        for group, members in groups.items():
            self.rows.set_members(
                self.group_ids[group], [u for u in members if u not in uuids]
            )
        yield
        for server in away:
            self.rows.put(self.server_ids[server.name], server.host)
        for group, members in groups.items():
            self.rows.set_members(self.group_ids[group], members)

    def _add_declared_servers(self) -> dict[str, str]:
        if not self._declared.servers:
            return {}
        found: dict[str, str] = self.rows.add_servers(
            self._declared.servers, self.flavor_ids, self.group_ids
        )
        self.names |= {uuid: name for name, uuid in found.items()}
        return found

    def _create(
        self,
        path: schema.Path,
        url: str,
        project: str = scenario.DEFAULT_PROJECT,
        **body: Body,
    ) -> Body:
        """Ask nova-api for a part of the scenario, and learn its name."""
        try:
            answer = self.client(project).api_post(url, body).body
        except client.OpenStackApiException as exc:
            finding = schema.Finding(
                path, 'what nova-api takes', api_message(exc)
            )
            raise exception.ScenarioInvalid(
                path='the scenario', findings=[finding]
            ) from exc
        (created,) = answer.values()
        if 'name' in created and 'id' in created:
            # Of an aggregate, messages have the UUID.
            uuid = created.get('uuid', created['id'])
            self.names[uuid] = created['name']
        return created


def api_message(exc: client.OpenStackApiException) -> str:
    """Return the sentence that nova-api answered an error with."""
    if exc.response is None:
        return str(exc)
    try:
        (fault,) = exc.response.json().values()
        return f'{exc.response.status_code}: {fault["message"]}'
    except (ValueError, TypeError, KeyError):
        return f'{exc.response.status_code}: {exc.response.text}'
