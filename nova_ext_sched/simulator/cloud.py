# SPDX-License-Identifier: Apache-2.0

"""A cloud in this process: nova and placement as their own tests run them.

nova-api, conductor, scheduler and a compute service for each host are nova's
own, placement is placement's own on SQLite; the hypervisor, Glance, Cinder
and Neutron are nova's fakes (nova.tests.functional, nova.tests.fixtures).
"""

from collections.abc import Callable
import typing
import unittest

import fixtures
from nova.tests.functional import integrated_helpers
from nova.tests.functional.api import client
from oslo_utils import uuidutils

from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import driver
from nova_ext_sched.simulator import fixtures as sim_fixtures
from nova_ext_sched.simulator import options
from nova_ext_sched.simulator import scenario
from nova_ext_sched.simulator import traits
from nova_ext_sched.simulator import weigher

#: The image of servers that name none.
DEFAULT_IMAGE = 'default'

# As nova's own user of that name, which its policies know.
_ADMIN = 'admin'
_ADMIN_ROLES = ['reader', 'member', 'admin']


class Refused(Exception):
    """nova-api or placement does not take a part of the scenario.

    :param path: the part
    :param cause: what it said
    """

    def __init__(self, path: document.Path, cause: str) -> None:
        super().__init__(path, cause)
        self.path = path
        self.cause = cause


class Cloud(integrated_helpers.ProviderUsageBaseTestCase):
    """The cloud that a scenario declares.

    A test case, because nova's harness is one: :func:`run` runs it outside
    of a test runner.

    :param declared: the scenario
    :param plain: run nova without our package
    :param log: where the log goes
    :param body: what to do with the cloud once it stands
    :param progress: called with the number of hosts that are up
    """

    compute_driver = 'fake.FakeDriver'
    microversion = 'latest'

    def __init__(
        self,
        declared: scenario.Scenario,
        plain: bool,
        log: sim_fixtures.Logging,
        body: Callable[['Cloud'], None],
        progress: Callable[[int], None],
    ) -> None:
        super().__init__('test_scenario')
        self._declared = declared
        self._plain = plain
        self._log = log
        self._body = body
        self._progress = progress

    def setUp(self) -> None:
        """Start nova and placement; hosts and the rest follow."""
        for name, replacement in (
            ('StandardLogging', lambda: self._log),
            # Their names are for the scenario to use.
            ('DefaultFlavorsFixture', fixtures.Fixture),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova.tests.fixtures.{name}', replacement
                )
            )
        self.useFixture(sim_fixtures.ApiPaste())
        self.useFixture(
            sim_fixtures.NovaConf(options.compose(self._declared, self._plain))
        )
        weigher.PreferredHosts.order = self._declared.prefer
        super().setUp()

    def test_scenario(self) -> None:
        """Build the cloud and do what it is for."""
        self._clients: dict[str, client.TestOpenStackClient] = {}
        self.volumes = self.useFixture(sim_fixtures.VolumeImages())
        self._traits = traits.Traits(self.placement)
        self._start_hosts()
        self.aggregate_ids: dict[str, int] = {}
        for aggregate in self._declared.aggregates:
            self._create_declared_aggregate(aggregate)
        self.imply_traits()
        self.flavor_ids = {
            flavor.name: self._create_declared_flavor(flavor)
            for flavor in self._declared.flavors
        }
        self.image_properties = {
            DEFAULT_IMAGE: {},
            **self._declared.images,
        }
        self.image_ids = {
            name: self._create_declared_image(name, properties)
            for name, properties in self.image_properties.items()
        }
        self.group_ids = {
            group.name: self._create_declared_group(group)
            for group in self._declared.server_groups
        }
        self._body(self)

    def client(self, project: str) -> client.TestOpenStackClient:
        """Return an administrator's client of nova-api in a project."""
        if project not in self._clients:
            self._clients[project] = client.TestOpenStackClient(
                _ADMIN, self.api_fixture.base_url, project, _ADMIN_ROLES
            )
            self._clients[project].microversion = self.microversion
        return self._clients[project]

    def imply_traits(self) -> None:
        """Give providers the traits that isolating aggregates require.

        Traits that a provider has stay; a trait that placement does not take
        (a misspelt one) is left out, as an operator could not set it either.
        """
        if not self._declared.imply_traits:
            return
        aggregates = self.admin_api.api_get('/os-aggregates').body
        for host, names in traits.implied(aggregates['aggregates']).items():
            self._traits.add(host, names)

    def scheduler_aggregate(self, name: str) -> typing.Any:
        """Return the scheduler's own copy of an aggregate."""
        return self.scheduler_service.manager.host_manager.aggs_by_id.get(
            self.aggregate_ids[name]
        )

    def _start_hosts(self) -> None:
        driver.Driver.capacities = {
            host.name: (host.vcpus, host.memory_mb, host.disk_gb)
            for host in self._declared.hosts
        }
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.virt.driver.load_compute_driver',
                lambda virtapi, compute_driver=None: driver.Driver(virtapi),
            )
        )
        for number, host in enumerate(self._declared.hosts, 1):
            self._start_compute(host.name)
            self._traits.add(host.name, host.traits)
            self._progress(number)

    def _create_declared_aggregate(
        self, aggregate: scenario.Aggregate
    ) -> None:
        path = ('aggregates', aggregate.name)
        created = self._asked(
            path,
            '/os-aggregates',
            aggregate={
                'name': aggregate.name,
                'availability_zone': aggregate.availability_zone,
            },
        )['aggregate']
        self.aggregate_ids[aggregate.name] = created['id']
        action = f'/os-aggregates/{created["id"]}/action'
        for host in aggregate.hosts:
            self._asked((*path, 'hosts'), action, add_host={'host': host})
        if aggregate.metadata:
            self._asked(
                (*path, 'metadata'),
                action,
                set_metadata={'metadata': aggregate.metadata},
            )

    def _create_declared_flavor(self, flavor: scenario.Flavor) -> str:
        path = ('flavors', flavor.name)
        created = self._asked(
            path,
            '/flavors',
            flavor={
                'name': flavor.name,
                'vcpus': flavor.vcpus,
                'ram': flavor.memory_mb,
                'disk': flavor.disk_gb,
            },
        )['flavor']
        if flavor.extra_specs:
            self._asked(
                (*path, 'extra_specs'),
                f'/flavors/{created["id"]}/os-extra_specs',
                extra_specs=flavor.extra_specs,
            )
        return created['id']

    def _create_declared_image(
        self, name: str, properties: dict[str, str]
    ) -> str:
        image_id = uuidutils.generate_uuid()
        self.glance.create(
            None,
            {
                **self.glance.image1,
                'id': image_id,
                'name': name,
                'properties': dict(properties),
            },
        )
        return image_id

    def _create_declared_group(self, group: scenario.ServerGroup) -> str:
        body: dict[str, typing.Any] = {
            'name': group.name,
            'policy': group.policy,
        }
        if group.rules is not None:
            body['rules'] = group.rules
        return self._asked(
            ('server_groups', group.name),
            '/os-server-groups',
            project=group.project,
            server_group=body,
        )['server_group']['id']

    def _asked(
        self,
        path: document.Path,
        url: str,
        project: str = scenario.DEFAULT_PROJECT,
        **body: typing.Any,
    ) -> dict[str, typing.Any]:
        try:
            return self.client(project).api_post(url, body).body
        except client.OpenStackApiException as exc:
            raise Refused(path, api_message(exc)) from exc


def api_message(exc: client.OpenStackApiException) -> str:
    """Return the sentence that nova-api answered an error with."""
    if exc.response is None:
        return str(exc)
    try:
        (fault,) = exc.response.json().values()
        return f'{exc.response.status_code}: {fault["message"]}'
    except (ValueError, TypeError, KeyError):
        return f'{exc.response.status_code}: {exc.response.text}'


def run(cloud: Cloud) -> None:
    """Run a cloud's body outside of a test runner, and take it down again.

    :raises Exception: what building the cloud or its body raised
    """
    raised: list[BaseException] = []
    # A test result keeps no more than the text of an exception.
    cloud.addOnException(lambda exc_info: raised.append(exc_info[1]))
    cloud.run(unittest.TestResult())
    if raised:
        raise raised[0]
