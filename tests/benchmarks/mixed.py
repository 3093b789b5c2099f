# SPDX-License-Identifier: Apache-2.0

"""A cloud as clouds are: some servers of each kind, on hosts of many_hosts.

=======  ==================================================================
of 100   servers
=======  ==================================================================
5        are in server groups: 2 anti-affinity with ``max_server_per_host``,
         1 soft-anti-affinity, 2 soft-affinity
5        have a PCI alias
10       have a NUMA topology: 6 one cell, 2 two cells, 2 dedicated CPUs
10       are on volumes: 5 of the image that was booted, 5 of another volume,
         which nova knows no image of
2        have a scheduler hint
68       have one of 20 flavors, and nothing else
=======  ==================================================================

Each host has 20, copy0 has 60. Every host has two NUMA cells and PCI devices,
of which as much is taken as one server of each kind takes.

With NOVA_EXT_SCHED_TEST_STRANDED=1 the 2 soft-affinity ones are affinity: nova
moves no server of such a group.
"""

import collections
import itertools
import json
import os
import random

from nova import objects
from nova.tests.fixtures import cinder
from nova.virt import fake
import sqlalchemy as sa

from tests.benchmarks import many_hosts
from tests.benchmarks import process
from tests.benchmarks import rows
from tests.benchmarks import standing
from tests.functional import explain_driver
from tests.functional.placement import servers

FLAVORS = 20
SERVERS = 20
SERVERS_OF_COPY0 = 60
STRANDED = bool(os.environ.get('NOVA_EXT_SCHED_TEST_STRANDED'))
#: Their servers stand in pairs.
TOGETHER = 'affinity' if STRANDED else 'soft-affinity'
#: Of 100 servers; what is not plain.
SHARES = {
    'anti-affinity': 2,
    'soft-anti-affinity': 1,
    TOGETHER: 2,
    'pci': 5,
    'numa': 6,
    'numa2': 2,
    'dedicated': 2,
    'volume-image': 5,
    'volume': 5,
    'hint': 2,
}
#: Servers of a group, by its policy.
MEMBERS = {'anti-affinity': 10, 'soft-anti-affinity': 10, TOGETHER: 2}
DEVICES = 8

FILTERS = (
    'ComputeFilter',
    'ComputeCapabilitiesFilter',
    'ImagePropertiesFilter',
    'ServerGroupAntiAffinityFilter',
    'ServerGroupAffinityFilter',
    'DifferentHostFilter',
    'NUMATopologyFilter',
    'PciPassthroughFilter',
    'IsolatedAggregatesFilter',
    'AggregateInstanceTypeFilter',
    'FailureDomainFilter',
)
ALIAS = json.dumps(
    {
        'vendor_id': '8086',
        'product_id': '1533',
        'device_type': 'type-PCI',
        'name': 'nic',
    }
)
#: placement's numbers of the resource classes, and what nova calls their use.
CLASSES = {
    0: ('vcpus', 'vcpus_used', None),
    1: ('memory_mb', 'memory_mb_used', 'free_ram_mb'),
    2: ('local_gb', 'local_gb_used', 'free_disk_gb'),
}
# What nova-compute writes of a compute node when servers come.
_USED = (
    'vcpus_used',
    'memory_mb_used',
    'local_gb_used',
    'free_ram_mb',
    'free_disk_gb',
    'running_vms',
    'numa_topology',
    'pci_stats',
)


class Driver(fake.MediumFakeDriver):
    """Hosts with NUMA cells, dedicated CPUs, and PCI devices."""

    _cell = explain_driver.Driver._cell
    _device = explain_driver.Driver._device

    def get_available_resource(self, nodename):
        found = super().get_available_resource(nodename)
        cells = [self._cell(number) for number in (0, 1)]
        for cell in cells:
            first, *others = sorted(cell.cpuset)
            cell.cpuset, cell.pcpuset = {first}, set(others)
        found['numa_topology'] = objects.NUMATopology(cells=cells)._to_json()
        found['pci_passthrough_devices'] = json.dumps(
            [self._device(slot) for slot in range(1, DEVICES + 1)]
        )
        return found

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        super().update_provider_tree(provider_tree, nodename, allocations)
        inventory = provider_tree.data(nodename).inventory
        pinned = inventory['VCPU'] | {'total': 8, 'max_unit': 8}
        pinned |= {'allocation_ratio': 1.0}
        provider_tree.update_inventory(nodename, {**inventory, 'PCPU': pinned})


class MixedTestCase(many_hosts.ManyHostsTestCase):
    """The cloud, and commands in processes of their own.

    :cvar most: how many servers a host has at most, but for copy0
    :ivar plain: UUIDs of the plain flavors
    :ivar flavors: of the others, by kind
    :ivar kinds: of what kind each server is, by UUID
    :ivar standing: the number of servers of each host
    :ivar isolated: of those, on the hosts of aggregate rack1
    :ivar seconds: of CPU that drain, survive and maintain may take
    :ivar mib: of memory that maintain may take, and each other command; 1,430
        are 1.5 GB
    :ivar processes: runs commands
    """

    driver = Driver
    most = SERVERS
    hosts = int(os.environ.get('NOVA_EXT_SCHED_TEST_HOSTS', '300'))
    # nova-conductor looks for those of soft groups.
    weigher_classes = many_hosts.ManyHostsTestCase.weight_classes
    host_filters = (
        'DifferentHostFilter',
        'NUMATopologyFilter',
        'PciPassthroughFilter',
    )

    def setUp(self):
        self.flags(initial_cpu_allocation_ratio=16.0)
        self.flags(
            device_spec=[json.dumps({'vendor_id': '8086'})],
            alias=[ALIAS],
            group='pci',
        )
        super().setUp()
        self.flags(server_groups=-1, group='quota')
        self._groups = self._create_groups()
        originals = self._boot_kinds()
        self._take_as_much()
        self._copy(originals)
        self.processes = self._start_processes()

    def _create_groups(self):
        """Return the UUIDs of the groups by policy, the first one first."""
        number = SERVERS_OF_COPY0 + self.most * (self.hosts - 1)
        groups = {}
        for policy, members in MEMBERS.items():
            count = number * SHARES[policy] // (100 * members) + 2
            limit = 2 if policy == 'anti-affinity' else None
            groups[policy] = [
                self.create_group(limit, policy) for _ in range(count)
            ]
        return groups

    def _boot_kinds(self):
        """Boot a server of each kind; return their UUIDs by kind."""
        self.plain = [
            self.flavor(**self.size(number)) for number in range(FLAVORS)
        ]
        self.flavors = {
            'pci': self.flavor(specs={'pci_passthrough:alias': 'nic:1'}),
            'numa': self.flavor(specs={'hw:numa_nodes': 1}),
            'numa2': self.flavor(vcpu=2, specs={'hw:numa_nodes': 2}),
            'dedicated': self.flavor(specs={'hw:cpu_policy': 'dedicated'}),
        }
        found = {
            f'plain{number}': self._boot(flavor=flavor)
            for number, flavor in enumerate(self.plain)
        }
        for kind, flavor in self.flavors.items():
            found[kind] = self._boot(flavor=flavor)
        for policy, [group, *_] in self._groups.items():
            found[policy] = self._boot(hints={'group': group})
        found['hint'] = self._boot(hints={'different_host': self.servers[0]})
        found['volume'] = self._boot_from_volume(
            source_type='volume', uuid=cinder.CinderFixture.IMAGE_BACKED_VOL
        )
        found['volume-image'] = self._boot_from_volume(
            source_type='image', uuid=self.plain_image, volume_size=1
        )
        return found

    def _boot(self, **server):
        """Boot a server on the real host, and return its UUID."""
        return self.boot(host='host0', **server)['id']

    def _boot_from_volume(self, **disk):
        server = self._build_server(
            image_uuid='',
            flavor_id=self.plain_flavor,
            networks='none',
            host='host0',
        )
        server['block_device_mapping_v2'] = [
            {'destination_type': 'volume', 'boot_index': 0, **disk}
        ]
        server = self.admin_api.post_server({'server': server})
        return self._wait_for_state_change(server, 'ACTIVE')['id']

    def _take_as_much(self):
        """Let each copy have in use what the real host has."""
        self._run_periodics()
        found = self.table('nova_cell1.compute_nodes')
        [row] = rows.read(*found, host='host0')
        engine, table = found
        with engine.begin() as connection:
            connection.execute(
                sa.update(table).values({name: row[name] for name in _USED})
            )

    def size(self, number):
        """Return what the plain flavor of a number has."""
        return {'memory_mb': 64 + number}

    def take(self, host, names):
        """Return the kinds of the servers of a host.

        :param names: an endless iterator of kinds
        """
        number = SERVERS_OF_COPY0 if host == 0 else SERVERS
        return itertools.islice(names, number)

    def _copy(self, originals):
        kinds = [*originals]
        places, names = [], []
        members = collections.Counter()
        plain = itertools.cycle(range(FLAVORS))
        dealt = (
            kind or f'plain{next(plain)}' for kind in itertools.cycle(deal())
        )
        for host in range(self.hosts):
            for name in self.take(host, dealt):
                group = None
                if name in MEMBERS:
                    first, *groups = self._groups[name]
                    group = first, groups[members[name] // MEMBERS[name]]
                    members[name] += 1
                places.append(standing.Place(kinds.index(name), host, group))
                names.append(name)
        copies = standing.copy(self, [*originals.values()], places)
        self.kinds = dict(zip(copies, names, strict=True))
        self.kinds |= {uuid: name for name, uuid in originals.items()}
        self.standing = collections.Counter(
            f'copy{place.host}' for place in places
        )
        self.isolated = sum(
            self.standing[f'copy{host}']
            for host in range(1, self.hosts, many_hosts.RACKS)
        )
        # One more is of ManyHostsTestCase.
        self.standing['host0'] = len(originals) + 1
        self.seconds = (10, 60, 180) if self.hosts <= 300 else (60, 720, 2400)
        self.mib = (350, 350) if self.hosts <= 300 else (1430, 953)

    def read_room(self):
        """Return what each copy has of resource classes, and what is in use.

        :returns: both by the ID of the provider and placement's number of the
            class
        """
        room = {
            (row['resource_provider_id'], row['resource_class_id']): int(
                (row['total'] - row['reserved']) * row['allocation_ratio']
            )
            for row in rows.read(*self.table('placement.inventories'))
        }
        used = collections.Counter()
        for row in rows.read(*self.table('placement.allocations')):
            key = row['resource_provider_id'], row['resource_class_id']
            used[key] += row['used']
        return room, used

    def count_use(self):
        """Let nova have the same in use of each copy as placement."""
        _, used = self.read_room()
        providers = rows.read_ids(*self.table('placement.resource_providers'))
        engine, computes = self.table('nova_cell1.compute_nodes')
        [node] = rows.read(engine, computes, host='host0')
        with engine.begin() as connection:
            for uuid in self.uuids:
                values = {}
                for class_, (total, use, free) in CLASSES.items():
                    values[use] = used[providers[uuid], class_]
                    if free:
                        values[free] = node[total] - values[use]
                connection.execute(
                    sa.update(computes)
                    .where(computes.c.uuid == uuid)
                    .values(values)
                )

    def _start_processes(self, backend='sqlite'):
        server = self.useFixture(
            servers.Server(
                [
                    *servers.gunicorn('volumes:application'),
                    '--pythonpath',
                    os.path.dirname(__file__),
                ],
                {'NOVA_EXT_SCHED_TEST_IMAGE': self.plain_image},
            )
        )
        return self.useFixture(
            process.Processes(
                self,
                filters=FILTERS,
                backend=backend,
                lines=(
                    'placement_req_required_member_prefix = reservation:\n'
                    'placement_req_default_forbidden_member_prefix = '
                    'reservation:\n'
                    f'[pci]\nalias = {ALIAS}\n'
                    '[cinder]\nauth_type = admin_token\ntoken = admin\n'
                    f'endpoint = {server.url}/v3/project\n'
                ),
            )
        )


def deal():
    """Return the kinds of 100 servers, in no order; None for a plain one.

    The pair comes first, so that one host has it.
    """
    kinds = [
        kind
        for kind, share in SHARES.items()
        for _ in range(share)
        if kind != TOGETHER
    ]
    pair = [TOGETHER] * SHARES[TOGETHER]
    kinds += [None] * (100 - len(pair) - len(kinds))
    random.Random(7).shuffle(kinds)
    return pair + kinds
