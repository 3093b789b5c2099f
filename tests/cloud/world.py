# SPDX-License-Identifier: Apache-2.0

"""Aggregates, flavors, images and a network for the tests of the policies."""

import concurrent.futures
import contextlib
import functools
import threading
import time

from keystoneauth1 import exceptions as auth_exceptions
from openstack import exceptions
import requests

from tests.cloud import base
from tests.cloud import nova
from tests.cloud import oracle
from tests.cloud import processes

TRAIT = 'CUSTOM_WINDOWS'
WINDOWS = {f'trait:{TRAIT}': 'required'}
SSD = 'aggregate_instance_extra_specs:ssd'

#: Extra specs by flavor; there is a larger one of each, for resizes.
FLAVORS = {
    'plain': {},
    'windows': WINDOWS,
    'lease': {'reservation:lease': 'true'},
    'ssd': {SSD: 'true'},
    'no-ssd': {SSD: '!'},
}
#: Properties by image; all but the first are the same to plain flavors.
IMAGES = {'linux': {}, 'debian': {}, 'windows-image': WINDOWS}
#: Flavor, image and user of the servers of a cloud that is filled.
FILLING = (
    ('windows', 'linux', 'member'),
    ('plain', 'windows-image', 'other'),
    ('lease', 'linux', 'member'),
    ('ssd', 'linux', 'member'),
)
#: The hosts of each rack are of two cells.
RACKS = {
    f'rack-{number}': oracle.Aggregate(
        (f'compute{number}', f'compute{number + 3}'),
        {'failure_domain': f'rack-{number}'},
    )
    for number in (1, 2, 3)
}
#: The API of placement that knows generations of resource providers.
PLACEMENT = {'OpenStack-API-Version': 'placement 1.19'}
ACTIVE_SECONDS = processes.WAIT_SECONDS
#: An action: nova chooses the host.
LIVE = {'os-migrateLive': {'host': None, 'block_migration': 'auto'}}
#: What a user may be told while a service is away.
TOLD = (
    exceptions.SDKException,
    auth_exceptions.ClientException,
    requests.RequestException,
)


class World:
    """What the administrator has made, and what users do in it.

    :param cloud: a ``Cloud`` of the whole form
    :param closed: with aggregates that close hosts; else every host takes
        every server
    """

    def __init__(self, cloud, closed=True):
        self.cloud = cloud
        self.hosts = cloud.nova.hosts
        self.cell_of = {
            host: cell
            for cell, hosts in cloud.nova.cells.items()
            for host in hosts
        }
        self.users = {
            name: cloud.connect(name) for name in ('admin', 'member', 'other')
        }
        self.admin = self.users['admin']
        self.admin.compute.default_microversion = '2.90'
        self.projects = {
            name: user.current_project_id for name, user in self.users.items()
        }
        self.image_ids = {}
        self.flavor_ids = {}
        self.lease = {
            'reservation:lease': 'true',
            'filter_tenant_id': self.projects['member'],
        }
        closing = {
            'windows': oracle.Aggregate(('compute1', 'compute2'), WINDOWS),
            'lease': oracle.Aggregate(('compute4',), self.lease),
            'fast': oracle.Aggregate(('compute6',), {'ssd': 'true'}),
            **RACKS,
        }
        self.aggregates = closing if closed else {}

    def create(self):
        """Create everything, as an administrator does."""
        for name, extra_specs in FLAVORS.items():
            self.create_flavor(name, 64, extra_specs)
            self.create_flavor(f'{name}-large', 128, extra_specs)
        for name, properties in IMAGES.items():
            create_image(self.admin, name, properties)
        self.create_network()
        self.create_aggregates()

    def create_flavor(self, name, ram, extra_specs=None):
        """Create a flavor; return it."""
        compute = self.admin.compute
        flavor = compute.create_flavor(name=name, ram=ram, vcpus=1, disk=1)
        if extra_specs:
            compute.create_flavor_extra_specs(flavor, extra_specs)
        return flavor

    def create_network(self):
        """Create the network that all servers are on."""
        create_network(self.admin, 'network', '10.0.0.0/16')

    def create_aggregates(self):
        """Create the aggregates, and the traits of those that isolate."""
        for name, aggregate in self.aggregates.items():
            self._create_aggregate(name, aggregate)
        if 'windows' in self.aggregates:
            self.cloud.execute(
                'openstack aggregate isolation sync windows', user='admin'
            )

    def _create_aggregate(self, name, aggregate):
        compute = self.admin.compute
        created = compute.create_aggregate(name=name)
        compute.set_aggregate_metadata(created, aggregate.metadata)
        for host in aggregate.hosts:
            compute.add_host_to_aggregate(created, host)

    @property
    def racks(self):
        """The name of each host's rack."""
        return {
            host: name
            for name, aggregate in self.aggregates.items()
            if name.startswith('rack')
            for host in aggregate.hosts
        }

    def fill(self):
        """Create everything, and servers, of which one is misplaced."""
        self.create()
        if self.cloud.has('blazar'):
            self.cloud.blazar.take('compute5')
        for flavor, image, user in FILLING:
            self._must_boot(flavor, image, user)
        self._must_boot('plain', 'linux', 'admin', host='compute3')
        # The licence is extended to a host that has a plain server, and
        # nobody gives the host the trait.
        windows = self.admin.compute.find_aggregate('windows')
        self.admin.compute.add_host_to_aggregate(windows, 'compute3')

    def _must_boot(self, *arguments, **body):
        for server in self.boot(*arguments, **body):
            if server.status != 'ACTIVE':
                raise RuntimeError(f'{arguments}: {server.fault}')

    @functools.cached_property
    def network(self):
        return self.admin.network.find_network('network').id

    def image(self, name):
        """Return the UUID of an image; it is asked for once."""
        if name not in self.image_ids:
            self.image_ids[name] = self.admin.image.find_image(
                name, ignore_missing=False
            ).id
        return self.image_ids[name]

    def flavor(self, name):
        """Return the UUID of a flavor; it is asked for once."""
        if name not in self.flavor_ids:
            self.flavor_ids[name] = self.admin.compute.find_flavor(
                name, ignore_missing=False
            ).id
        return self.flavor_ids[name]

    def allowed(self, flavor, image, user='member'):
        """Return the hosts where the oracle lets a server stand."""
        request = oracle.Request(
            FLAVORS[flavor.removesuffix('-large')],
            IMAGES[image],
            self.projects[user],
        )
        return oracle.hosts(request, self.aggregates.values(), self.hosts)

    def set_service(self, host, **body):
        """Change the service of a host's nova-compute.

        :param body: what os-services takes: ``status``, ``forced_down``
        """
        compute = self.admin.compute
        (service,) = compute.services(binary='nova-compute', host=host)
        answer = compute.put(
            f'/os-services/{service.id}', json=body, microversion='2.53'
        )
        exceptions.raise_from_response(answer)

    def enable(self, hosts):
        """Let these hosts alone take new servers."""
        for service in self.admin.compute.services(binary='nova-compute'):
            status = 'enabled' if service.host in hosts else 'disabled'
            if service.status != status:
                self.set_service(service.host, status=status)

    # What users do.

    def boot(self, flavor, image='linux', user='member', **body):
        """Create servers; wait for their end; return them as admin sees."""
        connection = self.users[user]
        headers = {'X-OpenStack-Nova-API-Version': '2.90'}
        hints = body.pop('hints', None)
        server = {
            'name': f'{flavor}-{image}',
            'flavorRef': self.flavor(flavor),
            'networks': [{'uuid': self.network}],
            **body,
        }
        if image:
            server.setdefault('imageRef', self.image(image))
        server.setdefault('return_reservation_id', True)
        request = {'server': server}
        if hints:
            request['os:scheduler_hints'] = hints
        answer = connection.compute.post(
            '/servers', json=request, headers=headers
        )
        exceptions.raise_from_response(answer)
        reservation = answer.json()['reservation_id']
        found = self._list(reservation)
        return [self.wait(server['id']) for server in found]

    def create_group(self, user='member', **body):
        """Create a server group; return its UUID."""
        answer = self.users[user].compute.post(
            '/os-server-groups',
            json={'server_group': {'name': 'group', **body}},
            headers={'X-OpenStack-Nova-API-Version': '2.90'},
        )
        exceptions.raise_from_response(answer)
        return answer.json()['server_group']['id']

    def volume(self, image):
        """Return what of a request boots from a new volume of an image."""
        return {
            'block_device_mapping_v2': [
                {
                    'boot_index': 0,
                    'uuid': self.image(image),
                    'source_type': 'image',
                    'destination_type': 'volume',
                    'volume_size': 1,
                    'delete_on_termination': True,
                }
            ]
        }

    @contextlib.contextmanager
    def stream(self, seconds=1, told=(), most=None):
        """Create a member's plain servers until the block ends.

        :param seconds: from an answer to the next request
        :param told: what the member may be told instead of an answer
        :param most: how many the member keeps: the oldest are deleted
        :returns: when each server was asked for, by its UUID, or None where
            it was deleted; it grows
        """
        asked, failed = {}, []
        # A connection of its own: a member whose token is from before.
        member = self.cloud.connect('member')
        body = {
            'name': 'stream',
            'flavorRef': self.flavor('plain'),
            'imageRef': self.image('linux'),
            'networks': [{'uuid': self.network}],
        }

        def create(stop):
            while not stop.wait(seconds):
                with contextlib.suppress(*told):
                    began = time.time()
                    answer = member.compute.post(
                        '/servers',
                        json={'server': body},
                        # Whoever is told of faults does not wait for long.
                        timeout=15 if told else None,
                    )
                    exceptions.raise_from_response(answer)
                    asked[answer.json()['server']['id']] = began
                    kept = [server for server in asked if asked[server]]
                    if most and len(kept) > most:
                        asked[kept[0]] = None
                        member.compute.delete_server(kept[0])

        def create_or_fail(stop):
            try:
                create(stop)
            except Exception as exc:
                failed.append(exc)

        with beside(create_or_fail):
            yield asked
        if failed:
            raise failed[0]

    def settled(self, seconds=60):
        """Return all servers when none is being built any more.

        A server whose message was lost stays in BUILD: it stands nowhere.
        """
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(*TOLD):
                servers = list(self.admin.compute.servers(all_projects=True))
                building = [
                    found for found in servers if found.status == 'BUILD'
                ]
                if not building or time.monotonic() > deadline:
                    return servers
            time.sleep(1)

    def _list(self, reservation):
        answer = self.admin.compute.get(
            f'/servers?all_tenants=1&reservation_id={reservation}'
        )
        exceptions.raise_from_response(answer)
        return answer.json()['servers']

    def wait(self, server, done=None, seconds=ACTIVE_SECONDS):
        """Wait until no task runs; return the server as admin sees it."""
        deadline = time.monotonic() + seconds
        while True:
            found = self.show(server)
            if (
                done(found)
                if done
                else found.task_state is None
                and (found.status not in ('BUILD', 'REBUILD', 'RESIZE'))
            ):
                return found
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f'{found.status}, {found.task_state}: {found.fault}'
                )
            time.sleep(0.5)

    def show(self, server):
        return self.admin.compute.get_server(server)

    def act(self, server, body, user='admin', microversion='2.90'):
        """Ask nova-api for an action of a server; return its answer."""
        return self.users[user].compute.post(
            f'/servers/{server}/action',
            json=body,
            headers={'X-OpenStack-Nova-API-Version': microversion},
        )

    def delete(self, *servers):
        """Delete servers and wait until nova does not know them."""
        delete_servers(self.admin, servers)


class WorldTestCase(base.CloudTestCase):
    """Runs in a world that is made once, with every policy on."""

    #: As of a ``World``.
    closed = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cloud = cls.standing()
        cloud.nova.start_schedulers(nova.EVERYTHING)
        cloud.nova.wait_for_schedulers()
        cls.world = World(cloud, cls.closed)
        cls.addClassCleanup(remove_everything, cls.world.admin)
        cls.world.create()


@contextlib.contextmanager
def beside(work):
    """Let something go on in a thread until the block ends.

    :param work: it takes the event that is set then
    """
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def create_image(admin, name, properties=None):
    """Create an image that every project may use; return it.

    :param admin: a connection of an administrator
    """
    return admin.create_image(
        name,
        data=b'nothing',
        disk_format='raw',
        container_format='bare',
        visibility='public',
        wait=True,
        meta=properties or {},
    )


def create_network(admin, name, cidr):
    """Create a network that every project may use, with a subnet."""
    network = admin.network.create_network(name=name, is_shared=True)
    admin.network.create_subnet(network_id=network.id, ip_version=4, cidr=cidr)


def wake_neutron(admin):
    """Ask neutron's workers for something, after their start.

    Each fails for a list of ports, and so nova-api for a server, before it
    had another request.
    """
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for _ in range(2):
            list(pool.map(lambda _: [*admin.network.networks()], range(6)))


def delete_servers(admin, servers=None):
    """Delete servers and wait until nova does not know them.

    :param admin: a connection of an administrator
    :param servers: their UUIDs; None means all
    """
    if servers is None:
        servers = [found.id for found in admin.compute.servers(all_projects=1)]
    for server in servers:
        admin.compute.delete_server(server)
    deadline = time.monotonic() + ACTIVE_SECONDS
    for server in servers:
        while admin.compute.find_server(server) is not None:
            if time.monotonic() > deadline:
                raise TimeoutError(f'server {server} is not deleted')
            time.sleep(0.5)


def change_traits(admin, change):
    """Change the custom traits of the resource providers.

    :param admin: a connection of an administrator
    :param change: returns those that a provider of that name is to have
    """
    for provider in admin.placement.resource_providers():
        url = f'/resource_providers/{provider.id}/traits'
        while True:
            found = admin.placement.get(url, headers=PLACEMENT).json()
            wanted = [
                name
                for name in found['traits']
                if not name.startswith('CUSTOM_')
            ] + change(provider.name)
            if sorted(wanted) == sorted(found['traits']):
                break
            answer = admin.placement.put(
                url, json={**found, 'traits': wanted}, headers=PLACEMENT
            )
            # nova-compute may have changed the provider meanwhile.
            if answer.status_code != 409:
                exceptions.raise_from_response(answer)


def remove_traits(admin):
    """Remove all custom traits, from the resource providers first."""
    change_traits(admin, lambda _provider: [])
    url = '/traits?name=startswith:CUSTOM_'
    for name in admin.placement.get(url, headers=PLACEMENT).json()['traits']:
        exceptions.raise_from_response(
            admin.placement.delete(f'/traits/{name}', headers=PLACEMENT)
        )


def remove_servers_and_aggregates(admin):
    """Remove servers, server groups, aggregates and custom traits."""
    compute = admin.compute
    delete_servers(admin)
    for group in compute.server_groups(all_projects=True):
        compute.delete_server_group(group)
    for aggregate in compute.aggregates():
        for host in aggregate.hosts or ():
            compute.remove_host_from_aggregate(aggregate, host)
        compute.delete_aggregate(aggregate)
    remove_traits(admin)


def remove_everything(admin):
    """Remove what users and administrators make, whoever made it."""
    compute = admin.compute
    remove_servers_and_aggregates(admin)
    for flavor in compute.flavors(is_public=None):
        compute.delete_flavor(flavor)
    if admin.has_service('image'):
        for image in admin.image.images():
            admin.image.delete_image(image)
    if admin.has_service('network'):
        for network in admin.network.networks():
            for port in admin.network.ports(network_id=network.id):
                admin.network.delete_port(port)
            admin.network.delete_network(network)
