# SPDX-License-Identifier: Apache-2.0

"""openstack scheduler explain says what nova-scheduler then does.

Random clouds and random requests: the command is run, the same request is
made of nova-api, and the hosts that the scheduler gets from placement and
those that its host filters leave are held against the command's numbers.
"""

import collections
import random

import ddt
import nova.conf
from nova.tests.functional.api import client
from oslo_utils import uuidutils

from tests.functional import explain

CONF = nova.conf.CONF

HOSTS = tuple(f'host{i}' for i in range(1, 9))
TRAITS = ('HW_CPU_X86_VMX', 'HW_CPU_X86_SGX', 'CUSTOM_LICENSED_WINDOWS')
REQ = 'required'
FAST = {'trait:CUSTOM_FAST': REQ}
ZONES = ('az1', 'az2')
PREFIX = 'reservation:'
CASES = 50
# A cloud serves this many requests before it is changed.
REQUESTS = 10


@ddt.ddt
class ProofTestCase(explain.ExplainTestCase):
    """Four times fifty cases."""

    weights = {host: 1 for host in HOSTS}
    host_filters = ('IsolatedAggregatesFilter', 'AggregateInstanceTypeFilter')
    options = {
        'enable_isolated_aggregate_filtering': True,
        'placement_req_required_member_prefix': ['reservation:'],
        'placement_req_default_forbidden_member_prefix': ['reservation:'],
        'member_sources': ['flavor', 'hint'],
        'member_project_keys': ['owner'],
    }

    def setUp(self):
        self.flags(
            limit_tenants_to_placement_aggregate=True, group='scheduler'
        )
        self.flags(cores=-1, ram=-1, instances=-1, group='quota')
        super().setUp()
        self.record_scheduler()
        for trait in TRAITS:
            if trait.startswith('CUSTOM_'):
                self._create_trait(trait)
        self.providers = {
            host: self._get_provider_uuid_by_host(host) for host in HOSTS
        }
        self.own_traits = {
            host: self._get_provider_traits(uuid)
            for host, uuid in self.providers.items()
        }
        self.consumers = {}
        self.group_members = []
        self.add_nested_and_sharing()
        self.isolated = {
            name: self.aggregate(name) for name in ('iso1', 'iso2', 'iso3')
        }
        self.zone_aggregates = {
            zone: self.aggregate(zone, zone=zone) for zone in ZONES
        }
        for name in ('tenant', 'reserved1', 'reserved2'):
            self.aggregate(name)
        self.members = {name: set() for name in self.aggregate_ids}

    @ddt.data(1, 2, 3, 4)
    def test_numbers_are_those_of_the_scheduler(self, seed):
        rand = random.Random(seed)
        outcomes = collections.Counter()
        while outcomes.total() < CASES:
            if outcomes.total() % REQUESTS == 0:
                self.change_cloud(rand)
            found = self.check(rand, outcomes.total() % 5 == 0)
            outcomes[found] += found is not None
        # Neither nearly every request nor nearly none found a host.
        self.assertGreaterEqual(
            min(outcomes[True], outcomes[False]), CASES // 25
        )

    def scheduler_conf(self):
        ours = CONF.nova_ext_sched
        return self.nova_conf(
            scheduler={'limit_tenants_to_placement_aggregate': True},
            filter_scheduler={
                'enabled_filters': CONF.filter_scheduler.enabled_filters
            },
            nova_ext_sched={
                'enable_isolated_aggregate_filtering': True,
                'forbid_by_trait': ours.forbid_by_trait,
                'placement_req_required_member_prefix': PREFIX,
                'placement_req_default_forbidden_member_prefix': PREFIX,
                'member_sources': 'flavor,hint',
                'member_project_keys': 'owner',
            },
        )

    def add_nested_and_sharing(self):
        """Two hosts have an FPGA, one has a slow one; some share a pool."""
        for name in ('CUSTOM_FPGA', 'CUSTOM_SHARED'):
            self.create_resource_class(name)
        self._create_trait('CUSTOM_FAST')
        for host, traits in (
            ('host1', ['CUSTOM_FAST']),
            ('host2', ['CUSTOM_FAST']),
            ('host3', []),
        ):
            self.create_provider(
                f'{host}_fpga',
                self.providers[host],
                {'CUSTOM_FPGA': 2},
                traits,
            )
        self.pool = self.create_provider(
            'pool',
            inventories={'CUSTOM_SHARED': 100},
            traits=['MISC_SHARES_VIA_AGGREGATE'],
        )

    def check(self, rand, named):
        arguments, server = self.random_request(rand)
        conf = self.scheduler_conf()
        rows = self.explain(*arguments, '--nova-conf', conf)
        # The names of the hosts too, in some of the cases for time's sake.
        hosts = named and self.explain(
            *arguments, '--nova-conf', conf, '--hosts'
        )
        self.scheduled.clear()
        try:
            created = self.boot_or_fail(*server)
        except client.OpenStackApiException as exc:
            # No host of the zone is enabled: nova-api does not schedule.
            self.assertIn('availability zone is not available', str(exc))
            return None
        from_placement, left = (
            self.scheduled[0] if self.scheduled else (set(), set())
        )
        detail = (
            f'{arguments} {server} {rows} {self.scheduled} '
            f'{self.queries[-1:]} {open(conf).read()}'
        )
        (whole,) = [
            row['Left']
            for row in rows
            if row['Constraint'] == 'all of the above together'
        ]
        self.assertEqual(
            (len(from_placement), len(left)), (whole, rows[-1]['Left']), detail
        )
        self.assertEqual(
            len(HOSTS), rows[-1]['Left'] + sum(r['Removed'] for r in rows)
        )
        if named:
            stages = {row['Host']: row['Stage'] for row in hosts}
            told = (
                {h for h in stages if stages[h] in ('', 'host filter')},
                {h for h in stages if stages[h] == ''},
            )
            self.assertEqual((from_placement, left), told, detail)
        found = self.host_of(created) is not None
        # On a forced host nova-compute has the last word about the group.
        body, hints = server
        forced = ':' in body.get('availability_zone', '')
        if not (forced and 'group' in hints):
            self.assertEqual(bool(left), found, detail)
        self.delete(created)
        return found

    def random_request(self, rand):
        """Return a command's arguments and the body of the same server."""
        specs = {}
        for trait in TRAITS:
            wanted = rand.choice(('required', 'forbidden', *[None] * 8))
            if wanted:
                specs[f'trait:{trait}'] = wanted
        specs |= rand.choice(
            (
                *[{}] * 12,
                {'resources:VCPU': '2'},
                {'resources:DISK_GB': '0'},
                {'resources:CUSTOM_FPGA': '1'},
                {'resources:CUSTOM_FPGA': '1', **FAST},
                {'resources1:CUSTOM_FPGA': '1', 'trait1:CUSTOM_FAST': REQ},
                {'resources:CUSTOM_SHARED': '1'},
                {'trait:CUSTOM_UNKNOWN_TO_PLACEMENT': 'required'},
            )
        )
        if rand.random() < 0.08:
            specs[PREFIX + rand.choice('12')] = 'yes'
        disk = rand.choice((*[None] * 6, 'ssd', '!', '<or> hdd <or> ~', '*'))
        if disk:
            specs['disk'] = disk
        flavor = self._create_flavor(
            memory_mb=rand.choice((64, 64, 512, 4096, 8000)),
            vcpu=rand.choice((1, 1, 2, 8)),
            disk=rand.choice((0, 1, 10)),
            ephemeral=rand.choice((0, 0, 5)),
            swap=rand.choice((0, 0, 1500)),
            extra_spec=specs,
        )
        image = self.image(
            props={
                f'trait:{trait}': 'required'
                for trait in TRAITS
                if rand.random() < 0.1
            }
        )
        arguments = ['--flavor', flavor, '--image', image]
        # The functional API takes the project from a header.
        arguments += ['--project', self.api.project_id]
        server = {'flavorRef': flavor, 'imageRef': image}
        hints = {}
        where = rand.choice(('', '', '', '', 'zone', 'zone', 'host', 'forced'))
        if where == 'zone':
            zone = rand.choice((*ZONES, 'nova'))
            arguments += ['--availability-zone', zone]
            server['availability_zone'] = zone
        elif where == 'host':
            host = rand.choice(HOSTS)
            arguments += ['--requested-host', host]
            server['host'] = host
        elif where == 'forced':
            host = rand.choice(HOSTS)
            # A zone that does not hold the host would leave none.
            arguments += ['--availability-zone', f'nova:{host}']
            server['availability_zone'] = f'nova:{host}'
        if rand.random() < 0.05:
            reserved = rand.choice('123')
            arguments += ['--hint', f'reservation={reserved}']
            hints['reservation'] = reserved
        if rand.random() < 0.3:
            arguments += ['--server-group', self.group_id]
            hints['group'] = self.group_id
        return arguments, (server, hints)

    def random_group(self, rand):
        """Return a server group with members on some of the hosts."""
        limit = rand.choice((1, 2))
        group = self.admin_api.post_server_groups(
            {
                'name': f'group{rand.random()}',
                'policy': 'anti-affinity',
                'rules': {'max_server_per_host': limit},
            }
        )
        for _ in range(rand.randrange(4)):
            self.group_members.append(
                self.boot_or_fail(
                    {
                        'flavorRef': self.flavor(),
                        'imageRef': self.image(),
                    },
                    {'group': group['id']},
                )
            )
        return group['id']

    def change_cloud(self, rand):
        self.delete(*self.group_members)
        self.group_members.clear()
        for name, members in list(self.members.items()):
            self.change_members(rand, name, members)
        for name in self.isolated:
            wanted = rand.sample(TRAITS, rand.choice((0, 0, 0, 1, 2)))
            self.set_metadata(
                name,
                {
                    f'trait:{trait}': 'required' if trait in wanted else None
                    for trait in TRAITS
                },
            )
            force = rand.random() < 0.2
            disks = {
                'disk': rand.choice((None, 'ssd', 'hdd')),
                'force_metadata_check': 'true' if force else None,
            }
            self.set_metadata(name, disks)
        self.change_reservations(rand)
        self.set_metadata(
            'tenant',
            {
                'filter_tenant_id': self.api.project_id
                if rand.random() < 0.2
                else None
            },
        )
        for host, uuid in self.providers.items():
            self._set_provider_traits(
                uuid,
                sorted(
                    {*self.own_traits[host]}
                    | {t for t in TRAITS if rand.random() < 0.5}
                ),
            )
            self.use_up(rand, uuid)
        self.unmirror(rand)
        self.set_provider_aggregates(
            self.pool, [rand.choice(list(self.zone_aggregates.values()))]
        )
        self.change_services(rand)
        self.group_id = self.random_group(rand)
        self.flags(
            forbid_by_trait=rand.choice(([], [], [TRAITS[2]])),
            group='nova_ext_sched',
        )

    def change_reservations(self, rand):
        for name, number in (('reserved1', '1'), ('reserved2', '2')):
            project = rand.choice((None, self.api.project_id, 'other'))
            self.set_metadata(
                name,
                {
                    f'{PREFIX}{number}': rand.choice((None, 'yes', 'yes')),
                    'owner': project,
                },
            )

    def change_members(self, rand, name, members):
        share = 0.15 if name.startswith('reserved') else 0.35
        wanted = {host for host in HOSTS if rand.random() < share}
        if name in ZONES:
            # A host is in one zone.
            other = ZONES[1 - ZONES.index(name)]
            wanted -= self.members[other]
        for host in sorted(members - wanted):
            self.admin_api.remove_host_from_aggregate(
                self.aggregate_ids[name], host
            )
        for host in sorted(wanted - members):
            self.admin_api.add_host_to_aggregate(
                self.aggregate_ids[name], host
            )
        self.members[name] = wanted

    def use_up(self, rand, provider):
        """Leave some of the host to other consumers."""
        # One allocation can have at most 10 of a host's 40 VCPU.
        vcpus, memory = rand.choice((0, 0, 9)), rand.choice((0, 0, 1800))
        amounts = {'VCPU': vcpus, 'MEMORY_MB': memory}
        for number in range(4):
            consumer = self.consumers.setdefault(
                (provider, number), uuidutils.generate_uuid()
            )
            self.allocate(
                consumer, provider, {k: v for k, v in amounts.items() if v}
            )

    def unmirror(self, rand):
        """Let placement and nova disagree about one host's aggregates."""
        if rand.random() < 0.3:
            self.set_provider_aggregates(
                self.providers[rand.choice(HOSTS)], []
            )

    def change_services(self, rand):
        for host in HOSTS:
            service = self.computes[host]
            disabled = rand.random() < 0.1
            self.admin_api.put_service(
                service.service_ref.uuid,
                {
                    'status': 'disabled' if disabled else 'enabled',
                    'forced_down': rand.random() < 0.1,
                },
            )
