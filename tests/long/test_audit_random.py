# SPDX-License-Identifier: Apache-2.0

"""Random clouds with violations made on purpose: found are exactly those.

Servers boot while no policy is on, on forced hosts. Then aggregates get their
metadata, hosts move between them, and the policies are turned on. What must be
found is computed from what nova-api says, by definitions written out here.

NOVA_EXT_SCHED_TEST_AUDITS is the number of clouds, 1 by default.
"""

import collections
import os
import random

import ddt

from tests.functional import audits
from tests.functional import explain

MIGRATE = ('--operation', 'migrate', '-f', 'json')
CASES = int(os.environ.get('NOVA_EXT_SCHED_TEST_AUDITS', '1'))
HOSTS = [f'host{i}' for i in range(5)]
# Nothing stands there at first: for every server there is a host to go to.
ASYLUMS = {
    'spare0': {},
    'spare1': {},
    'reserved': {'reservation:a': '1', 'reservation:b': '1'},
    'fast': {'ssd': 'true'},
}
TRAITS = ['CUSTOM_A', 'CUSTOM_B']

FLAVORS = [
    {},
    {},
    {'trait:CUSTOM_A': 'required'},
    {'trait:CUSTOM_A': 'required', 'trait:CUSTOM_B': 'required'},
    {'reservation:a': 'x'},
    {'reservation:a': 'x', 'reservation:b': 'x'},
    {'ssd': 'true'},
    {'aggregate_instance_extra_specs:ssd': '<or> false <or> ~'},
    {'ssd': '!'},
    {'ssd': '*'},
]
METADATA = [
    {},
    {'trait:CUSTOM_A': 'required'},
    {'trait:CUSTOM_A': 'required', 'trait:CUSTOM_B': 'required'},
    {'reservation:a': '1'},
    {'reservation:a': '1', 'reservation:b': '1'},
    {'reservation:b': '1', 'filter_tenant_id': 'f00d' * 8},
    {'ssd': 'true'},
    {'ssd': 'false'},
    {'ssd': 'true', 'force_metadata_check': 'true'},
]


def isolated(specs, aggregates):
    """DESIGN: forbidden unless the request requires every trait."""
    return any(
        key.startswith('trait:') and specs.get(key) != 'required'
        for metadata in aggregates
        for key in metadata
    )


def misplaced(specs, aggregates, project):
    """In an aggregate of each key; else out of every reserved one."""
    wanted = {key for key in specs if key.startswith('reservation:')}
    if not wanted:
        return any(
            key.startswith('reservation:')
            for metadata in aggregates
            for key in metadata
        )
    return not all(
        any(
            key in metadata
            and metadata.get('filter_tenant_id', project) == project
            for metadata in aggregates
        )
        for key in wanted
    )


def mismatched(specs, aggregates):
    """The key ssd alone, by what each expression of FLAVORS accepts."""
    expression = specs.get('ssd') or specs.get(
        'aggregate_instance_extra_specs:ssd'
    )
    offered = {m['ssd'] for m in aggregates if 'ssd' in m} or {None}
    accepted = {
        None: {'true', 'false', None},
        'true': {'true'},
        '<or> false <or> ~': {'false', None},
        '!': {None},
        '*': {'true', 'false'},
    }[expression]
    if expression == '!' and offered != {None}:
        return True
    if not offered & accepted:
        return True
    # A flavor without the key has it absent, which a forced value refuses.
    has = accepted if expression else {None}
    return any(
        metadata['ssd'] not in has
        for metadata in aggregates
        if 'force_metadata_check' in metadata
    )


class CloudMixin:
    """A random cloud, and what violates a policy in it."""

    weights = {host: 1 for host in (*HOSTS, *ASYLUMS)}
    options = {}

    def setUp(self):
        super().setUp()
        # nova-compute would refuse a group's servers on a forced host.
        self.flags(disable_group_policy_check_upcall=True, group='workarounds')

    def make_cloud(self, rng):
        for host in self.weights:
            self.add_traits(host, *TRAITS)
        flavors = [self.flavor(specs=dict(specs)) for specs in FLAVORS]
        image = self.image()
        self.limits = {}
        for limit in (1, 2):
            self.limits[self.create_group(limit)] = limit
        plain = flavors[0]
        servers = [(group, plain) for group in self.limits for _ in range(3)]
        servers += [(None, rng.choice(flavors)) for _ in range(6)]
        for group, flavor in servers:
            self.boot(
                flavor=flavor,
                image=image,
                az=f'nova:{rng.choice(HOSTS)}',
                hints={'group': group} if group else {},
            )
        for number in range(4):
            self.aggregate(
                f'aggregate{number}', rng.sample(HOSTS, rng.randrange(1, 4))
            )
        for name, number in list(self.aggregate_ids.items()):
            self.set_metadata(name, rng.choice(METADATA))
            hosts = self.aggregate_of(number)['hosts']
            out = rng.choice(hosts)
            into = rng.choice([h for h in HOSTS if h not in hosts])
            for action, host in (('remove', out), ('add', into)):
                self.admin_api.post_aggregate_action(
                    number, {f'{action}_host': {'host': host}}
                )

        for host, metadata in ASYLUMS.items():
            if metadata:
                self.aggregate(host, [host], metadata=metadata)

    def aggregate_of(self, number):
        return self.admin_api.api_get(f'/os-aggregates/{number}').body[
            'aggregate'
        ]

    def violations(self):
        """Return what nova-api's answers amount to."""
        aggregates = [
            self.aggregate_of(number) for number in self.aggregate_ids.values()
        ]
        servers = self.admin_api.get_servers(detail=True)
        groups = {
            member: group['id']
            for group in self.api.get_server_groups()
            for member in group['members']
        }
        members = collections.Counter(
            (groups.get(server['id']), server['OS-EXT-SRV-ATTR:host'])
            for server in servers
        )
        found = set()
        for server in servers:
            host = server['OS-EXT-SRV-ATTR:host']
            specs = server['flavor']['extra_specs']
            mine = [a['metadata'] for a in aggregates if host in a['hosts']]
            judged = {
                'isolation': isolated(specs, mine),
                'reservation': misplaced(specs, mine, server['tenant_id']),
                'aggregate-instance-type': mismatched(specs, mine),
                'anti-affinity': server['id'] in groups
                and members[groups[server['id']], host]
                > self.limits[groups[server['id']]],
            }
            found |= {
                (server['id'], host, policy)
                for policy, violated in judged.items()
                if violated
            }
        return sorted(found)


@ddt.ddt
class RandomCloudTestCase(CloudMixin, audits.AuditTestCase):
    def move_all(self):
        """Move what is found as explain says; return what is found then."""
        moved = True
        while moved:
            moved = False
            for uuid, host, _ in self.found():
                if self.host_of({'id': uuid}) != host:
                    continue
                answer = explain.run('--server', uuid, *MIGRATE)
                if answer.order:
                    self.move(uuid, answer.order[0])
                    moved = True
        return self.found()

    def move(self, uuid, host):
        server = {'id': uuid}
        self.act(server, 'migrate', 'VERIFY_RESIZE', host=host)
        self.assertEqual(host, self.host_of(server))
        self.act(server, 'confirmResize', 'ACTIVE')

    @ddt.data(*range(CASES))
    def test_found_then_moved(self, seed):
        self.make_cloud(random.Random(seed))
        self.flags(group='nova_ext_sched', **audits.AuditTestCase.options)
        expected = self.violations()
        self.assertNotEqual([], expected)
        self.assertEqual(expected, self.found())
        self.assertEqual([], self.move_all())
        self.assertEqual([], self.violations())
