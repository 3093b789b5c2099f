# SPDX-License-Identifier: Apache-2.0

"""A cloud of users, and the simulator on its export, say the same.

What a cloud of one process shows of it is in ``tests/functional``.
"""

import base64
from concurrent import futures
import json
import os
import pathlib
import re
import time

from nova import objects
import yaml

from nova_ext_sched.cmd.export import anonymous
from nova_ext_sched.cmd.export import unsaid
from nova_ext_sched.cmd.simulate import scenario
from tests import round_trips
from tests import samples
from tests.cloud import capacity
from tests.cloud import configuration
from tests.cloud import nova
from tests.cloud import world

HALF = capacity.HALF_A_HOST_MB
TIER = 'aggregate_instance_extra_specs:tier'
#: Memory, CPUs and extra specs.
FLAVORS = {
    'half': (HALF, 1, {}),
    'half-windows': (HALF, 1, world.WINDOWS),
    'wide': (64, 9000, {}),
    'nothing': (64, 1, {'reservation:nothing': 'true'}),
    'tier': (64, 1, {TIER: '>= 4'}),
    'tiers': (64, 1, {TIER: '<or> 2 <or> 5'}),
}
SCHEDULING = configuration.merge(
    nova.EVERYTHING,
    {
        'filter_scheduler': {
            'enabled_filters': nova.EVERYTHING['filter_scheduler'][
                'enabled_filters'
            ]
            + ',SameHostFilter,DifferentHostFilter,JsonFilter'
        }
    },
)
#: Aggregates beside those of every world: metadata, zone and hosts.
AGGREGATES = {
    'zone': ({}, 'far', ('compute2', 'compute5')),
    'tier-4': ({'tier': '4'}, None, ('compute3',)),
    'tier-5': ({'tier': '5'}, None, ('compute6',)),
}
#: Rules of server groups of the administrator's project.
GROUPS = {
    'web': {'policy': 'anti-affinity', 'rules': {'max_server_per_host': 2}},
    'single': {'policy': 'anti-affinity'},
    'soft': {'policy': 'soft-anti-affinity'},
}
#: Servers that stand: host, number, flavor, image and group. No two of the
#: hosts that one request may have are alike then.
STANDING = (
    ('compute1', 1, 'windows', 'linux', None),
    ('compute2', 2, 'plain', 'windows-image', None),
    ('compute3', 2, 'plain', 'linux', None),
    ('compute3', 2, 'plain', 'linux', 'web'),
    ('compute3', 1, 'plain', 'linux', 'single'),
    ('compute3', 1, 'plain', 'linux', 'soft'),
    ('compute5', 1, 'half', 'linux', None),
    ('compute5', 1, 'plain', 'linux', 'web'),
    ('compute5', 1, 'plain', 'linux', 'single'),
    ('compute6', 9, 'plain', 'linux', None),
    ('compute6', 1, 'plain', 'linux', 'single'),
)


def export(cloud, *arguments):
    """Export a cloud; return what was done.

    nova-compute counts a server among those that it builds until it looks
    again, within a minute: explain before that and export after it would
    differ.
    """
    while True:
        done = cloud.nova.command('export', *arguments, user='admin')
        if 'io_workload' not in done.stdout:
            return done
        time.sleep(5)


def by_aggregates(data):
    """Return a scenario whose hosts and projects go by their aggregates.

    nova has hosts in the order in which their computes started first, and
    projects in that of their UUIDs. An anonymous file numbers them so.
    """
    of_name = {name: [] for name in data['projects']}
    for aggregate, one in data['aggregates'].items():
        for host in one['hosts']:
            of_name.setdefault(host, []).append(aggregate)
        if project := one['metadata'].get('filter_tenant_id'):
            of_name[project].append(aggregate)
    renamed = json.loads(
        re.sub(
            r'"((?:host|project)-\d+)"',
            lambda match: json.dumps('+'.join(of_name[match[1]])),
            json.dumps(data),
        )
    )
    renamed['projects'].sort()
    renamed['hosts'].sort(key=lambda host: host['name'])
    for aggregate in renamed['aggregates'].values():
        aggregate['hosts'].sort()
    return renamed


def racks(group, **hints):
    """Return fields of a request that asks for racks."""
    return {'group': group, 'hints': hints}


#: Requests by kind. ``WEB`` is a server of the group ``web``.
LICENSED = {'image': 'windows-image'}
QUERY = '["and", [">=", "$free_ram_mb", 500000], ["<", "$num_instances", 9]]'
REQUESTS = {
    'plain': (
        ('plain', {}),
        ('plain-large', {}),
        ('half', {}),
        ('wide', {}),
    ),
    'isolated image': (
        ('plain', LICENSED),
        ('half', LICENSED),
        ('no-ssd', LICENSED),
        ('ssd', LICENSED),
    ),
    'isolated flavor': (
        ('windows', {}),
        ('windows-large', {'user': 'other'}),
        ('half-windows', {}),
        ('windows', LICENSED),
    ),
    'reserved aggregate': (
        ('lease', {}),
        ('lease-large', {}),
        ('lease', {'user': 'other'}),
        ('nothing', {}),
    ),
    'group': (
        ('plain', {'group': 'web'}),
        ('half', {'group': 'web'}),
        ('plain', {'group': 'single'}),
        ('windows', {'group': 'single'}),
    ),
    'racks': (
        ('plain', racks('soft', different_failure_domain='1')),
        ('plain', racks('soft', max_server_per_failure_domain='2')),
        ('plain', racks('web', max_server_per_failure_domain='1')),
        ('plain', racks('soft', max_server_per_failure_domain='no')),
    ),
    'zone': (
        ('plain', {'availability_zone': 'far'}),
        ('windows', {'availability_zone': 'far'}),
        ('half', {'availability_zone': 'nova'}),
        ('plain', {'availability_zone': 'nova:compute6', 'user': 'admin'}),
    ),
    'hint': (
        ('plain', {'hints': {'same_host': 'WEB'}}),
        ('plain', {'hints': {'different_host': 'WEB'}}),
        ('half', {'hints': {'different_host': 'WEB'}}),
        ('plain', {'hints': {'query': QUERY}}),
    ),
    'volume': (
        ('plain', {'volume': True}),
        ('plain', {'volume': True, **LICENSED}),
        ('half', {'volume': True}),
        ('lease', {'volume': True, 'user': 'other'}),
    ),
    'flavor and aggregate': (
        ('ssd', {}),
        ('no-ssd', {}),
        ('tier', {}),
        ('tiers', {}),
    ),
}
#: The page's cloud: flavor, user, host, and whether it is of the group.
EXAMPLE = configuration.merge(
    nova.EVERYTHING,
    {'nova_ext_sched': {'enable_isolated_aggregate_filtering': 'False'}},
)
EXAMPLE_SERVERS = (
    ('windows', 'member', 'compute1', False),
    ('windows', 'member', 'compute2', False),
    ('plain', 'member', 'compute1', False),
    ('plain', 'other', 'compute2', False),
    ('plain', 'other', 'compute3', False),
    ('no-ssd', 'other', 'compute3', False),
    ('lease', 'member', 'compute4', False),
    ('lease', 'member', 'compute4', False),
    ('ssd', 'other', 'compute6', False),
    ('ssd-large', 'other', 'compute6', False),
    ('plain', 'member', 'compute2', True),
    ('plain', 'member', 'compute2', True),
)
SHIPPED = (
    pathlib.Path(scenario.__file__)
    .with_name('scenarios')
    .joinpath('exported_cloud.yaml')
)
#: What of a thing of the cloud is a name, a UUID or an address.
FIELDS = ('id', 'name', 'uuid', 'host_ip', 'url', 'cidr', 'mac_address')
#: Names that administrators gave to other things.
WORDS = (world.TRAIT, 'ssd', 'tier', 'lease')


class ExampleTestCase(world.WorldTestCase):
    """The scenario that the package ships: no aggregate is isolated yet."""

    maxDiff = None

    @samples.compares('tools/export/export.txt')
    def test_the_page(self):
        nova_ = self.cloud.nova
        self.addCleanup(nova_.wait_for_schedulers)
        self.addCleanup(nova_.start_schedulers, nova.EVERYTHING)
        nova_.start_schedulers(EXAMPLE)
        nova_.wait_for_schedulers()
        group = self.world.create_group(name='web', policy='affinity')
        for flavor, user, host, grouped in EXAMPLE_SERVERS:
            self.world.enable([host])
            hints = {'group': group} if grouped else None
            (server,) = self.world.boot(flavor, user=user, hints=hints)
            self.assertEqual('ACTIVE', server.status, server.fault)
        self.world.enable({*self.world.hosts} - {'compute5'})
        self.addCleanup(self.world.enable, self.world.hosts)
        arguments = ['--anonymous', '--requests', str(len(EXAMPLE_SERVERS))]
        done = export(self.cloud, *arguments)
        if os.environ.get('NOVA_EXT_SCHED_TEST_WRITE'):
            SHIPPED.write_text(done.stdout)
        self.assertEqual(
            by_aggregates(round_trips.read(self, SHIPPED.read_text())),
            by_aggregates(round_trips.read(self, done.stdout)),
        )
        samples.check(
            self,
            'tools/export/export.txt',
            f'$ nova-ext-sched export {" ".join(arguments)} > cloud.yaml\n'
            + done.stderr,
        )


class ExportTestCase(world.WorldTestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # As the command does.
        objects.register_all()
        cloud, of = cls.world.cloud, cls.world
        cls.addClassCleanup(cloud.nova.wait_for_schedulers)
        cls.addClassCleanup(cloud.nova.start_schedulers, nova.EVERYTHING)
        cloud.nova.start_schedulers(SCHEDULING)
        cloud.nova.wait_for_schedulers()
        for name, (ram, vcpus, specs) in FLAVORS.items():
            of.create_flavor(name, ram, specs, vcpus)
        for name, (metadata, zone, hosts) in AGGREGATES.items():
            created = of.admin.compute.create_aggregate(
                name=name, availability_zone=zone
            )
            if metadata:
                of.admin.compute.set_aggregate_metadata(created, metadata)
            for host in hosts:
                of.admin.compute.add_host_to_aggregate(created, host)
        for host, state in (
            ('compute8', {'status': 'disabled'}),
            ('compute9', {'forced_down': True}),
        ):
            cloud.nova.add_compute('cell1', host)
            cls.addClassCleanup(cloud.nova.remove_compute, host)
            of.set_service(host, **state)
        cls.groups = {
            name: of.create_group('admin', name=name, **rules)
            for name, rules in GROUPS.items()
        }
        cls.members = {}
        for host, number, flavor, image, group in STANDING:
            body = {'hints': {'group': cls.groups[group]}} if group else {}
            for server in of.boot(
                flavor,
                image,
                'admin',
                host=host,
                min_count=number,
                max_count=number,
                **body,
            ):
                if server.status != 'ACTIVE':
                    raise RuntimeError(f'{host}, {flavor}: {server.fault}')
                cls.members[group] = server.id
        of.boot('lease', min_count=3, max_count=3)
        of.boot('plain', None, 'admin', host='compute6', **of.volume('linux'))

    def export(self, *arguments):
        """Export the cloud; return the text and the document."""
        done = export(self.cloud, *arguments)
        return done.stdout, round_trips.read(self, done.stdout)

    def explain(self, flavor, fields):
        """Return what explain says of a request."""
        arguments = [
            '--flavor',
            flavor,
            '--image',
            self.world.image(fields.get('image', 'linux')),
            '--project',
            self.world.projects[self.user(fields)],
        ]
        if fields.get('volume'):
            arguments.append('--boot-from-volume')
        if zone := fields.get('availability_zone'):
            arguments += ['--availability-zone', zone]
        if group := fields.get('group'):
            arguments += ['--server-group', self.groups.get(group, group)]
        for key, value in self.hints(fields).items():
            arguments += ['--hint', f'{key}={value}']
        done = self.cloud.nova.command(
            'explain', *arguments, '-f', 'json', user='admin', status=None
        )
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return json.loads(done.stdout)

    def user(self, fields):
        # A group is for its project.
        return fields.get('user', 'admin' if 'group' in fields else 'member')

    def hints(self, fields):
        return {
            key: value.replace('WEB', self.members['web'])
            for key, value in fields.get('hints', {}).items()
        }

    def step(self, flavor, fields):
        """Return a request as a boot step."""
        step = {
            'flavor': flavor,
            'image': 'linux',
            **fields,
            'project': self.world.projects[self.user(fields)],
            'hints': self.hints(fields),
        }
        step.pop('user', None)
        return step

    def test_same_hosts_and_first_choice(self):
        """Of forty requests of ten kinds, with the names and without."""
        requests = [one for kind in REQUESTS.values() for one in kind]
        self.assertEqual((10, 40), (len(REQUESTS), len(requests)))
        _, data = self.export()
        with futures.ThreadPoolExecutor(2) as users:
            expected = list(
                users.map(lambda one: self.explain(*one), requests)
            )
        # Some find hosts of several, some none.
        finding = [len(one['order']) for one in expected]
        self.assertLess(25, sum(map(bool, finding)), finding)
        self.assertLess(15, sum(one > 1 for one in finding), finding)
        self.assertLess(5, finding.count(0), finding)
        round_trips.add_steps(data, [self.step(*one) for one in requests])
        round_trips.compare(self, expected, data, {})
        renamed, words = anonymous.rename(data, unsaid.Unsaid())
        renamed = round_trips.read(self, yaml.dump(renamed))
        round_trips.compare(self, expected, renamed, words)

    def test_what_is_anonymous(self):
        """It is the export with words for names, and has no name."""
        _, data = self.export('--requests', '200')
        text, without = self.export('--requests', '200', '--anonymous')
        self.assertEqual(
            anonymous.rename(data, unsaid.Unsaid())[0],
            without,
        )
        self.assertEqual(8, len(without['hosts']))
        self.assertLess(20, len(without['steps']))
        names = self.names()
        self.assertLess(100, len(names))
        self.assertEqual(
            [],
            [
                name
                for name in names
                if re.search(rf'(?<![\w-]){re.escape(name)}(?![\w-])', text)
            ],
        )

    def names(self):
        """Return the names, UUIDs and addresses of the cloud."""
        admin = self.world.admin
        compute, network = admin.compute, admin.network
        ports = [*network.ports()]
        found = [
            getattr(one, field, None)
            for one in (
                *compute.servers(all_projects=True),
                *compute.flavors(is_public=None),
                *compute.aggregates(),
                *compute.server_groups(all_projects=True),
                *compute.hypervisors(details=True),
                *admin.image.images(),
                *admin.identity.projects(),
                *admin.identity.endpoints(),
                *network.networks(),
                *network.subnets(),
                *ports,
                *admin.block_storage.volumes(all_projects=True),
                *admin.placement.resource_providers(),
            )
            for field in FIELDS
        ]
        found += [ip['ip_address'] for one in ports for ip in one.fixed_ips]
        found += [one.id for one in admin.identity.users()]
        found += [one.host for one in compute.services()]
        found += [zone for _, zone, _ in AGGREGATES.values()]
        # No number, which stands for itself.
        return {
            name
            for name in (*found, *WORDS)
            if name and not str(name).isdigit()
        }

    def test_hostile_tenant(self):
        """What a member can write loads, and changes no answer."""
        nasty = "!!python/object:os.system ['x'] \"& *id001 {1..3}: #"
        secret = 'nothing-of-a-guest'
        admin = self.world.admin
        group = self.world.create_group(
            name=nasty,
            policy='anti-affinity',
            rules={'max_server_per_host': 2},
        )
        self.addCleanup(admin.compute.delete_server_group, group)
        image = self.world.users['member'].create_image(
            'a\x07\n\u202e' * 40,
            data=b'nothing',
            disk_format='raw',
            container_format='bare',
            wait=True,
            meta={
                'hw_machine_type': nasty + '\x1b[2J',
                'os_distro': 'x' * 255,
                secret: secret,
            },
        )
        self.addCleanup(admin.image.delete_image, image.id)
        (server,) = self.world.boot(
            'plain',
            None,
            imageRef=image.id,
            name=nasty,
            metadata={
                f'{secret}-{number}': secret * 14 for number in range(128)
            },
            user_data=base64.b64encode(secret.encode() * 1500).decode(),
            hints={
                'group': group,
                nasty: nasty,
                'long': secret * 1500,
                'many': [str(number) for number in range(300)],
                'reservation': "=HYPERLINK('x')",
            },
        )
        self.addCleanup(self.world.delete, server.id)
        self.assertEqual('ACTIVE', server.status, server.fault)
        fields = {'group': group, 'user': 'member'}
        expected = self.explain('plain', fields)
        for arguments in ((), ('--anonymous',)):
            text, data = self.export('--requests', '1', *arguments)
            self.assertNotIn(secret, text)
            self.assertTrue(all(c.isprintable() or c == '\n' for c in text))
            self.assertIn(
                '#   1 scheduler hint of more than 255 characters\n', text
            )
            (step,) = data['steps']
            if not arguments:
                self.assertEqual(
                    (server.id, nasty), (step['boot'], step['hints'][nasty])
                )
                data['steps'].append(
                    self.step('plain', {**fields, 'boot': 'new'})
                )
                data['steps'][1].pop('image')
                round_trips.compare(self, [None, expected], data, {})
