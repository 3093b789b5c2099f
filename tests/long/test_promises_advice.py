# SPDX-License-Identifier: Apache-2.0

"""The promise of advice: a request that fails, what helps, and it boots.

A row is a request that no host takes. It has the first cause and the first
act that explain says. The act is done by its command, or by what its words say
where it has none, and nova then makes the server.
"""

import datetime
import functools

from nova import context as nova_context
from nova import objects
from nova.cmd import manage
from oslo_utils import timeutils

from tests.functional import advice
from tests.functional import base
from tests.functional import explain

TRAIT = 'CUSTOM_WINDOWS'
SCOPE = 'aggregate_instance_extra_specs:'


class AdvisedCloud(advice.RowsMixin):
    """With our policies: three hosts of 10 CPUs, 8 GiB and 1 TiB."""

    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    host_filters = (
        'IsolatedAggregatesFilter',
        'AggregateInstanceTypeFilter',
        'AggregateMultiTenancyIsolation',
        'NumInstancesFilter',
        'IoOpsFilter',
        'SameHostFilter',
        'DifferentHostFilter',
        'JsonFilter',
        'SimpleCIDRAffinityFilter',
        'IsolatedHostsFilter',
        'AggregateImagePropertiesIsolation',
        'FailureDomainFilter',
    )
    options = {
        **explain.OPTIONS,
        'request_filters': [
            *explain.OPTIONS['request_filters'],
            'failure_domains',
        ],
    }
    allocation_ratio = 1.0
    HOSTS = tuple(weights)

    @functools.cached_property
    def plain_flavor(self):
        return self.flavor(name='plain')

    def disable(self, *hosts, **reason):
        for host in hosts:
            self.set_service(host, status='disabled', **reason)

    def fill(self, *hosts, **flavor):
        """Boot a server on each host; return the first."""
        flavor = self.flavor(**flavor)
        found = [self.boot(az=f'nova:{one}', flavor=flavor) for one in hosts]
        return found[0]


class ServiceRowsTestCase(AdvisedCloud, base.CloudTestCase):
    """Services that are away."""

    def row_disabled(self):
        """Hosts that an operator has disabled."""
        self.disable(*self.HOSTS)
        self.check(
            '3 are disabled',
            'enable host1, host2, host3, if meant to take servers again',
            kind='policy',
        )

    def row_disabled_itself(self):
        """A nova-compute that disabled itself."""
        self.disable(*self.HOSTS)
        self.disable('host2', disabled_reason='AUTO: failed to build')
        self.check(
            '3 are disabled',
            'enable host2, where nova-compute disabled itself',
        )

    def row_being_emptied(self):
        """Hosts that a plan of ours empties."""
        self.disable(
            *self.HOSTS,
            disabled_reason='nova-ext-sched: being emptied, by the plan',
        )
        self.check('3 are disabled', None)

    def row_forced_down(self):
        """Hosts that are forced down."""
        for host in self.HOSTS:
            self.set_service(host, forced_down=True)
        self.check(
            '3 are down',
            'evacuate host1, host2, host3, or lift the forced state when it '
            'is known to be well',
            kind='policy',
        )

    def row_down(self):
        """Hosts that have not been heard of."""

        def be_heard(ago):
            # As nova-compute writes it every ten seconds.
            seen = timeutils.utcnow() - datetime.timedelta(seconds=ago)
            self.execute(
                'UPDATE services SET last_seen_up = :seen, updated_at = :seen '
                "WHERE binary = 'nova-compute'",
                seen=seen,
            )

        be_heard(3600)
        self.undone.append(lambda: be_heard(0))
        self.check(
            '3 are down',
            'start nova-compute on host1, host2, host3',
            do=lambda: be_heard(0),
        )

    def row_disabled_in_placement(self):
        """Hosts that placement has as disabled, and nova as enabled."""
        for host in self.HOSTS:
            self.add_traits(host, 'COMPUTE_STATUS_DISABLED')

        self.check(
            '3 are enabled in nova, but disabled in placement (trait '
            'COMPUTE_STATUS_DISABLED): restart nova-compute there',
            'restart nova-compute on host1, host2, host3',
        )

    def row_not_mapped(self):
        """Hosts that no cell mapping has."""
        self.disable('host2', 'host3')
        ctxt = nova_context.get_admin_context()
        objects.HostMapping.get_by_host(ctxt, 'host1').destroy()
        with self.cell() as cell:
            node = objects.ComputeNode.get_by_host_and_nodename(
                cell, 'host1', 'host1'
            )
            node.mapped = 0
            node.save()
        self.undone.append(lambda: manage.CellV2Commands().discover_hosts())
        self.check('2 are disabled', 'run nova-manage cell_v2 discover_hosts')


class RoomRowsTestCase(AdvisedCloud, base.CloudTestCase):
    """Hosts without room."""

    def row_full_of_cpus(self):
        """All CPUs are used."""
        self.fill(*self.HOSTS, vcpu=9)
        self.check(
            '3 are full (VCPU)',
            'free 1 VCPU on one of host1, host2, host3',
            flavor=self.flavor(vcpu=2),
        )

    def row_full_of_memory(self):
        """All memory is used."""
        self.fill(*self.HOSTS, memory_mb=7000)
        self.check(
            '3 are full (MEMORY_MB)',
            'free 320 MEMORY_MB on one of host1, host2, host3',
            flavor=self.flavor(memory_mb=1000),
        )

    def row_full_of_disk(self):
        """All disk is used."""
        self.fill(*self.HOSTS, disk=1000)
        self.check(
            '3 are full (DISK_GB)',
            'free 22 DISK_GB on one of host1, host2, host3',
            flavor=self.flavor(disk=50),
        )

    def row_full_of_both(self):
        """CPUs and memory are used up: the usual full cloud."""
        self.fill(*self.HOSTS, vcpu=9, memory_mb=7500)
        self.check(
            '3 are full (MEMORY_MB, VCPU)',
            'free 820 MEMORY_MB, 1 VCPU on one of host1, host2, host3',
            flavor=self.flavor(vcpu=2, memory_mb=1000),
        )

    def row_one_more_host(self):
        """A full cloud of one host gets another one."""
        self.fill(*self.HOSTS, vcpu=10)
        self.check(
            '3 are full (VCPU)',
            'free 1 VCPU on one of host1, host2, host3',
            'add a host like host1',
            which=1,
        )

    def row_move_makes_room(self):
        """Room is split over hosts, and a move puts it together."""
        small = self.flavor(vcpu=4)
        for host in self.HOSTS:
            self.boot(az=f'nova:{host}', flavor=small)
        self.check(
            '3 are full (VCPU)',
            'free 1 VCPU on one of host1, host2, host3',
            flavor=self.flavor(vcpu=7),
        )

    def row_too_small(self):
        """No host is large enough."""
        self.check(
            '3 are too small (VCPU)',
            'ask for flavor plain',
            flavor=self.flavor(vcpu=11),
        )

    def row_reserved_amount(self):
        """Hosts are too small by what is reserved."""
        for host in self.HOSTS:
            self.limit(host, 'MEMORY_MB', reserved=4000)
        self.check(
            '3 are too small by what reserved_host_memory_mb keeps back',
            'ask for flavor plain',
            flavor=self.flavor(memory_mb=6000),
        )

    def row_max_unit(self):
        """No server may have as much."""
        for host in self.HOSTS:
            self.limit(host, 'VCPU', max_unit=2)
        self.check(
            '3 are too small (VCPU)',
            'ask for flavor plain',
            flavor=self.flavor(vcpu=4),
        )

    def row_step_size(self):
        """No server may have such an amount."""
        for host in self.HOSTS:
            self.limit(host, 'VCPU', step_size=2)
        self.check(
            '3 cannot give one server such an amount (VCPU)',
            None,
            flavor=self.flavor(vcpu=3),
        )

    def row_leaked(self):
        """An allocation that nobody has fills a host."""
        self.disable('host2', 'host3')
        self.allocate('host1', {'VCPU': 10})
        self.check(
            '2 are disabled',
            'delete the leaked allocations on host1',
        )

    def row_no_class(self):
        """No host has a resource class."""
        self.placement.put('/resource_classes/CUSTOM_LICENSE', {})
        self.check(
            '3 have no CUSTOM_LICENSE',
            None,
            flavor=self.flavor(specs={'resources:CUSTOM_LICENSE': '1'}),
        )

    def row_two_in_the_way(self):
        """Two servers are in the way of a large one, on each host."""
        five = self.flavor(vcpu=5)
        servers = [
            self.boot(az=f'nova:{host}', flavor=five)
            for host in self.HOSTS
            for _ in range(2)
        ]

        def do():
            for one in servers[:2]:
                self._delete_server(one)

        self.check(
            '3 are full (VCPU)',
            'free 10 VCPU on one of host1, host2, host3',
            flavor=self.flavor(vcpu=10),
            do=do,
        )

    def row_smaller_flavor(self):
        """A smaller flavor would fit."""
        self.fill(*self.HOSTS, name='small', vcpu=5)
        self.check(
            '3 are full (VCPU)',
            'free 1 VCPU on one of host1, host2, host3',
            'add a host like host1',
            'ask for flavor small',
            which=2,
            flavor=self.flavor(vcpu=6),
        )


class ZoneRowsTestCase(AdvisedCloud, base.CloudTestCase):
    """Zones, and hosts that are asked for."""

    def row_zone_full(self):
        """The zone is full, and a host in none is free."""
        self.aggregate('z', ['host1'], zone='west')
        self.boot(az='west:host1', flavor=self.flavor(vcpu=10))
        self.check(
            '2 are not in the availability zone west',
            'ask for no availability zone',
            az='west',
        )

    def row_other_zone(self):
        """The zone is full, and another one is free."""
        self.aggregate('z', ['host1'], zone='west')
        self.aggregate('o', ['host2', 'host3'], zone='east')
        self.boot(az='west:host1', flavor=self.flavor(vcpu=10))
        self.check(
            '2 are not in the availability zone west',
            'ask for no availability zone',
            az='west',
        )

    def row_default_zone(self):
        """nova-api gives each server the zone, which is full."""
        self.aggregate('z', ['host1'], zone='west')
        self.boot(az='west:host1', flavor=self.flavor(vcpu=10))
        self.option(None, default_schedule_zone='west')
        self.check(
            '2 are not in the availability zone west', 'free 1 VCPU on host1'
        )

    def row_down_zone(self):
        """The hosts of the zone are forced down."""
        self.aggregate('z', ['host1'], zone='west')
        self.set_service('host1', forced_down=True)
        self.check(
            '2 are not in the availability zone west',
            'ask for no availability zone',
            az='west',
        )

    def row_into_zone(self):
        """The zone is full, and a free host can be put into it."""
        self.aggregate('z', ['host1'], zone='west')
        self.boot(az='west:host1', flavor=self.flavor(vcpu=10))
        self.disable('host3')
        self.check(
            '1 is not in the availability zone west',
            'ask for no availability zone',
            'free 1 VCPU on host1',
            'add a host like host1',
            'put host2 into z',
            which=3,
            kind='policy',
            az='west',
        )

    def row_forced_host(self):
        """The forced host is full."""
        self.fill('host1', vcpu=10)
        self.check(
            '1 is full (VCPU)',
            'ask for no host',
            az='nova:host1',
        )

    def row_forced_room(self):
        """A move makes room on the forced host."""
        self.fill('host1', vcpu=10)
        self.check(
            '1 is full (VCPU)',
            'ask for no host',
            'free 1 VCPU on host1',
            which=1,
            az='nova:host1',
        )

    def row_requested_room(self):
        """A move makes room on the requested host."""
        self.fill('host1', vcpu=10)
        self.check(
            '1 is full (VCPU)',
            'ask for no host',
            'free 1 VCPU on host1',
            which=1,
            host='host1',
        )

    def row_requested_host(self):
        """The requested host is full."""
        self.fill('host1', vcpu=10)
        self.check(
            '1 is full (VCPU)',
            'ask for no host',
            host='host1',
        )

    def row_requested_disabled(self):
        """The requested host is disabled."""
        self.disable('host1')
        self.check(
            '1 is disabled',
            'ask for no host',
            host='host1',
        )


class AggregateRowsTestCase(AdvisedCloud, base.CloudTestCase):
    """Aggregates that close hosts."""

    def row_isolated(self):
        """All hosts are isolated."""
        self.isolate('windows', self.HOSTS, TRAIT)
        self.check(
            '3 are isolated',
            'take host1, host2, host3 out of windows',
            kind='policy',
        )

    def row_isolated_twice(self):
        """Hosts are in two isolated aggregates."""
        self.isolate('-x', self.HOSTS, TRAIT)
        self.isolate('$(touch x)', self.HOSTS, 'CUSTOM_B')
        self.check(
            '3 are isolated',
            'take host1, host2, host3 out of $(touch x), -x',
            kind='policy',
        )

    def _full_and_small(self):
        """Fill host1, and let the others take one CPU of a server."""
        self.fill('host1', vcpu=10)
        self.isolate('windows', ['host1'], TRAIT)
        for host in self.HOSTS[1:]:
            self.limit(host, 'VCPU', max_unit=1)

    def row_isolated_and_full(self):
        """A host is isolated, and full besides; others are too small."""
        self._full_and_small()
        self.check(
            '2 are too small (VCPU)',
            'take host1 out of windows, and free 2 VCPU on host1',
            kind='policy',
            # No other flavor is like it.
            flavor=self.flavor(vcpu=2, specs={'quota:cpu_shares': '9'}),
        )

    def row_isolated_and_smaller(self):
        """The same, and a smaller flavor helps alone."""
        self._full_and_small()
        self.check(
            '2 are too small (VCPU)',
            'ask for flavor plain',
            flavor=self.flavor(vcpu=2),
        )

    def row_different_causes(self):
        """Hosts are refused for different causes: most hosts come first."""
        self.isolate('windows', ['host1'], TRAIT)
        self.aggregate(
            'mine', ['host2', 'host3'], metadata={'reservation:a': 'x'}
        )
        self.check(
            '2 are reserved',
            'take host2, host3 out of mine',
            'take host1 out of windows',
            kind='policy',
        )

    def row_reserved_twice(self):
        """Hosts are in two reserved aggregates."""
        for key in 'ab':
            self.aggregate(
                f'for {key}',
                self.HOSTS,
                metadata={f'reservation:{key}': 'x'},
            )
        self.check(
            '3 are reserved',
            'take host1, host2, host3 out of for a, for b',
            kind='policy',
        )

    def row_no_such_key(self):
        """No aggregate has the key of the flavor."""
        self.check(
            'reserved_aggregates of nova_ext_sched ends the request: no '
            f'aggregate that project {self.api.project_id} may use has the '
            'metadata key reservation:a. no aggregate has the metadata key '
            'reservation:a, which the request of project '
            f'{self.api.project_id} requires.',
            None,
            flavor=self.flavor(specs={'reservation:a': 'x'}),
        )

    def row_reserved(self):
        """All hosts are reserved."""
        self.aggregate('mine', self.HOSTS, metadata={'reservation:a': 'x'})
        self.check(
            '3 are reserved',
            'take host1, host2, host3 out of mine',
            kind='policy',
        )

    def row_reserved_full(self):
        """The reserved hosts are full."""
        self.aggregate('mine', ['host1'], metadata={'reservation:a': 'x'})
        self.fill('host1', vcpu=10, specs={'reservation:a': 'x'})
        self.check(
            '2 are in none of the aggregates mine',
            'free 1 VCPU on host1',
            flavor=self.flavor(specs={'reservation:a': 'x'}),
        )

    def row_reserved_empty(self):
        """The reserved aggregate has no host."""
        self.aggregate('mine', [], metadata={'reservation:a': 'x'})
        self.check(
            '3 are in none of the aggregates mine',
            'put host1, host2, host3 into mine',
            kind='policy',
            flavor=self.flavor(specs={'reservation:a': 'x'}),
        )

    def row_tenant(self):
        """All hosts are for another project."""
        self.aggregate('theirs', self.HOSTS, filter_tenant_id='other')
        self.check(
            '3 are for other projects',
            'take host1, host2, host3 out of theirs',
            kind='policy',
        )

    def row_tenant_full(self):
        """The aggregate of the project is full."""
        self.option('scheduler', limit_tenants_to_placement_aggregate=True)
        self.fill('host1', vcpu=10)
        self.aggregate('m', ['host1'], filter_tenant_id=self.api.project_id)
        self.check(
            '2 are in none of the aggregates m',
            'free 1 VCPU on host1',
        )

    def row_not_mirrored(self):
        """Placement does not know who is in the zone."""
        self.aggregate('z', ['host1'], zone='west')
        self._clear_aggregates('host1')
        self.disable('host2', 'host3')
        self.check(
            '1 is in availability zone west in nova, but not in placement: '
            'run nova-manage placement sync_aggregates',
            'run nova-manage placement sync_aggregates',
            az='west',
        )

    def _clear_aggregates(self, host, *uuids):
        url = f'/resource_providers/{self.providers[host]}/aggregates'
        read = self.placement.get(url, version='1.19').body
        self.placement.put(
            url, {**read, 'aggregates': [*uuids]}, version='1.19'
        )

    def row_left_in_placement(self):
        """Placement has hosts in an isolated aggregate that they left."""
        self.isolate('windows', ['host1'], TRAIT)
        [one] = self.admin_api.api_get('/os-aggregates').body['aggregates']
        uuid = one['uuid']
        self.remove_host('windows', 'host1')
        for host in self.HOSTS:
            self._clear_aggregates(host, uuid)
        self.check(
            '3 are isolated in placement, but in no such aggregate in nova: '
            'use openstack resource provider aggregate set',
            'use openstack resource provider aggregate set',
            do=lambda: self._clear_aggregates('host1'),
        )

    def row_language(self):
        """The flavor wants what no host has."""
        self.aggregate('gold', [], level='gold')
        self.check(
            '3 have aggregates that do not match the flavor',
            'put host1, host2, host3 into gold',
            kind='policy',
            flavor=self.flavor(level='gold'),
        )

    def row_language_without_key(self):
        """The flavor wants a key that no aggregate has."""
        self.check(
            '3 have aggregates that do not match the flavor',
            None,
            flavor=self.flavor(level='gold'),
        )

    def row_language_value(self):
        """All hosts have another value of the key."""
        self.aggregate('silver', self.HOSTS, level='silver')
        self.aggregate('gold', [], level='gold')
        self.check(
            '3 have aggregates that do not match the flavor',
            'put host1, host2, host3 into gold',
            kind='policy',
            flavor=self.flavor(level='gold'),
        )

    def row_image_isolation(self):
        """The aggregate wants another property of the image."""
        self.aggregate('linux', self.HOSTS, os_distro='ubuntu')
        self.check(
            '3 are refused by AggregateImagePropertiesIsolation',
            'ask for an image without the property os_distro',
            'take host1, host2, host3 out of linux',
            image=self.image(os_distro='windows'),
        )


class TraitRowsTestCase(AdvisedCloud, base.CloudTestCase):
    """Traits."""

    def row_trait(self):
        """No host has a trait that people give."""
        self._create_trait(TRAIT)
        self.check(
            f'3 lack the trait {TRAIT}',
            f'give host1, host2, host3 the trait {TRAIT}',
            kind='policy',
            flavor=self.flavor(specs={f'trait:{TRAIT}': 'required'}),
        )

    def row_trait_and_disabled(self):
        """The same, and a nova-compute disabled itself besides."""
        self._create_trait(TRAIT)
        for host in self.HOSTS:
            self.disable(host, disabled_reason='AUTO: failed to build')
        self.check(
            '3 are disabled',
            'enable host1, host2, host3, where nova-compute disabled itself, '
            f'and give host1, host2, host3 the trait {TRAIT}',
            kind='policy',
            flavor=self.flavor(specs={f'trait:{TRAIT}': 'required'}),
        )

    def row_unknown_trait(self):
        """Placement does not know the trait."""
        self.check(
            '3 lack the trait CUSTOM_UNKNOWN, which placement does not know',
            'give host1, host2, host3 the trait CUSTOM_UNKNOWN',
            kind='policy',
            flavor=self.flavor(specs={'trait:CUSTOM_UNKNOWN': 'required'}),
        )

    def row_forbidden_trait(self):
        """All hosts have a trait that the flavor forbids."""
        for host in self.HOSTS:
            self.add_traits(host, TRAIT)
        self.check(
            f'3 have the forbidden trait {TRAIT}',
            f'take the trait {TRAIT} from host1, host2, host3',
            kind='policy',
            flavor=self.flavor(specs={f'trait:{TRAIT}': 'forbidden'}),
        )

    def row_reported_trait(self):
        """No host has a trait that its driver reports."""
        self.check(
            '3 lack the trait HW_CPU_X86_AVX',
            None,
            flavor=self.flavor(specs={'trait:HW_CPU_X86_AVX': 'required'}),
        )

    def row_image_type(self):
        """No host takes the image's disk format."""
        self.option('scheduler', query_placement_for_image_type_support=True)
        self.check(
            '3 take no image of disk format vhd',
            'ask for an image of another disk format',
            image=self.image(disk_format='vhd'),
        )


class GroupRowsTestCase(AdvisedCloud, base.CloudTestCase):
    """Server groups."""

    def row_anti_affinity(self):
        """Each host has a server of the group, and one could go elsewhere."""
        group = self.create_group(2)
        hints = {'group': group}
        for host in ('host1', 'host1', 'host2'):
            self.boot(hints=hints, az=f'nova:{host}')
        self.disable('host3')
        self.fill('host2', vcpu=2)
        self.check(
            '1 is disabled',
            'move a server of the group away from host1',
            hints=hints,
            flavor=self.flavor(vcpu=8),
        )

    def row_anti_affinity_full(self):
        """Each host has a server of the group."""
        hints = {'group': self.create_group()}
        for host in self.HOSTS:
            self.boot(hints=hints, az=f'nova:{host}')
        self.check(
            '3 are full for the server group',
            'add a host like host1',
            'ask with another server group, of max_server_per_host 2',
            'ask without the server group',
            hints=hints,
        )

    def row_affinity_full(self):
        """The host of the group is full."""
        hints = {'group': self.create_group(policy='affinity')}
        self.boot(hints=hints, az='nova:host1')
        self.fill('host1', vcpu=9)
        self.check(
            '2 are not where the server group is',
            'free 1 VCPU on host1',
            'ask without the server group',
            hints=hints,
        )

    def row_affinity_disabled(self):
        """The host of the group is disabled."""
        hints = {'group': self.create_group(policy='affinity')}
        self.boot(hints=hints, az='nova:host1')
        self.disable('host1')
        self.check(
            '2 are not where the server group is',
            'ask without the server group',
            hints=hints,
        )

    def _racks(self, **racks):
        for rack, hosts in racks.items():
            self.aggregate(rack, hosts, metadata={'failure_domain': rack})

    def row_domains_full(self):
        """Each failure domain has a server of the group."""
        self.option('nova_ext_sched', max_server_per_failure_domain=1)
        self._racks(a=['host1', 'host2'], b=['host3'])
        hints = {'group': self.create_group()}
        for _ in range(2):
            self.boot(hints=hints)
        self.check(
            '3 are in a full failure domain',
            'add a failure domain, with a host like host2',
            'ask without the server group',
            'raise [nova_ext_sched] max_server_per_failure_domain in '
            'nova.conf to 2',
            hints=hints,
        )

    def row_no_domain(self):
        """No host is in a failure domain."""
        self.option('nova_ext_sched', max_server_per_failure_domain=1)
        self._racks(a=[])
        hints = {'group': self.create_group()}
        self.check(
            '3 are in no failure domain',
            'put host1, host2, host3 into a',
            kind='policy',
            hints=hints,
        )


class HintRowsTestCase(AdvisedCloud, base.CloudTestCase):
    """Numbers, hints and images."""

    def row_many_servers(self):
        """Hosts hold as many servers as one may."""
        self.option('filter_scheduler', max_instances_per_host=1)
        self.fill(*self.HOSTS)
        self.check(
            '3 are refused by NumInstancesFilter',
            'raise [filter_scheduler] max_instances_per_host in nova.conf '
            'to 2',
            kind='policy',
        )

    def row_busy(self):
        """Hosts have as many tasks as one may."""
        self.option('filter_scheduler', max_io_ops_per_host=0)
        self.check(
            '3 are refused by IoOpsFilter',
            'raise [filter_scheduler] max_io_ops_per_host in nova.conf to 1',
            kind='policy',
        )

    def row_same_host(self):
        """The host of the hint is disabled."""
        server = self.fill('host1')
        self.disable('host1')
        self.check(
            '2 are refused by SameHostFilter',
            'ask without the hint same_host',
            hints={'same_host': server['id']},
        )

    def row_different_host(self):
        """The only host that is left is the one of the hint."""
        server = self.fill('host1')
        self.disable('host2', 'host3')
        self.check(
            '2 are disabled',
            'ask without the hint different_host',
            hints={'different_host': server['id']},
        )

    def row_address(self):
        """No host is near the address of the hint."""
        hints = {'build_near_host_ip': '10.9.9.9', 'cidr': '/30'}
        self.check(
            '3 are refused by SimpleCIDRAffinityFilter',
            'ask without the hint build_near_host_ip',
            hints=hints,
        )

    def row_query(self):
        """No host is what the hint asks for."""
        self.check(
            '3 are refused by JsonFilter',
            'ask without the hint query',
            hints={'query': '[">=", "$free_ram_mb", 100000]'},
        )

    def row_isolated_image(self):
        """The image is for isolated hosts, and there is none."""
        image = self.image()
        self.option(
            'filter_scheduler', isolated_images=[image], isolated_hosts=[]
        )
        self.check('3 are refused by IsolatedHostsFilter', None, image=image)

    def row_architecture(self):
        """The image is of another architecture."""
        self.check(
            '3 are refused by ImagePropertiesFilter',
            'ask for an image without the property hw_architecture',
            image=self.image(hw_architecture='ppc64le'),
        )

    def row_cut_off(self):
        """Placement's answer is cut before a host that would take it."""
        self.option('scheduler', max_placement_results=1)
        # Which one placement names first depends on the whole question.
        self.fill(*explain.read(*self.arguments()).order)
        self.option('filter_scheduler', max_instances_per_host=1)
        self.check(
            '2 are cut off by max_placement_results (1)',
            'raise [scheduler] max_placement_results in nova.conf to 3',
            kind='policy',
        )

    def row_capabilities(self):
        """The flavor wants what no nova-compute reports."""
        self.check(
            '3 are refused by ComputeCapabilitiesFilter',
            None,
            flavor=self.flavor(specs={'capabilities:hypervisor_type': 'xen'}),
        )


class AmountRowsTestCase(AdvisedCloud, base.CloudTestCase):
    """Metadata of aggregates, and amounts that nova-compute reports."""

    host_filters = (
        'AggregateNumInstancesFilter',
        'AggregateInstanceTypeFilter',
    )

    def row_limit(self):
        """An aggregate allows no more servers on a host."""
        self.aggregate('small', self.HOSTS, max_instances_per_host='1')
        for host in self.HOSTS:
            self.boot(az=f'nova:{host}')
        self.check(
            '3 are refused by AggregateNumInstancesFilter',
            'set max_instances_per_host=2 on aggregate small',
            kind='policy',
        )

    def row_language(self):
        """The flavor wants another value, and no aggregate has that."""
        self.aggregate('silver', self.HOSTS, level='silver')
        self.check(
            '3 have aggregates that do not match the flavor',
            'set level=gold on aggregate silver',
            kind='policy',
            flavor=self.flavor(level='gold'),
        )

    def row_ratio(self):
        """All CPUs are used, and each may be used more often."""
        self.fill(*self.HOSTS, vcpu=9)
        self.check(
            '3 are full (VCPU)',
            'free 2 VCPU on one of host1, host2, host3',
            'add a host like host1',
            'ask for flavor plain',
            'raise cpu_allocation_ratio to 1.2 on host1',
            which=3,
            kind='policy',
            flavor=self.flavor(vcpu=3),
        )

    def row_reserved(self):
        """Hosts are too small by what nova-compute keeps back."""
        self.configure(reserved_host_memory_mb=4000)
        self.check(
            '3 are too small by what reserved_host_memory_mb keeps back',
            'ask for flavor plain',
            'lower reserved_host_memory_mb to 2192 on host1',
            which=1,
            kind='policy',
            flavor=self.flavor(memory_mb=6000),
        )
