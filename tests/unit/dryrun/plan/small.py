# SPDX-License-Identifier: Apache-2.0

"""Clouds of a few servers, of which plans are made without a database.

nova's scheduler and its claims decide in memory, as in a plan. What comes of
it is judged by :class:`Paper`, which knows nothing of them.
"""

import dataclasses
from unittest import mock

import fixtures
from nova import objects
import nova.conf
from nova.scheduler.filters import affinity_filter

from nova_ext_sched import conf
from nova_ext_sched import plan_format
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import servers as cloud_servers
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.plan import departures
from nova_ext_sched.dryrun.plan import drain
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans
from tests.unit.dryrun.cloud import clouds

conf.register_opts(nova.conf.CONF)

LABEL, GROUP = 'LabelFilter', 'anti-affinity'
#: What becomes of a server: how it is moved, and why cold.
KINDS = {
    'live': (movable.LIVE, plan_format.NOT_COLD),
    'stopped': (movable.COLD, plan_format.STOPPED),
    'device': (movable.COLD, plan_format.DEVICE),
}


@dataclasses.dataclass(frozen=True)
class Host:
    """A host, and how often it has 64 MiB."""

    cpus: int = 4
    label: int = 0
    units: int = 100


@dataclasses.dataclass(frozen=True)
class Server:
    """A server; it takes 64 MiB for each CPU unless more is said.

    :ivar label: that of the hosts that it may go to
    :ivar group: a server group, of which a host may hold one server
    :ivar kind: of :data:`KINDS`, ``shelved``, or what its preparation raises
    :ivar then: the same, once a shelved one is unshelved
    """

    host: str
    cpus: int
    label: int = 0
    group: object = 0
    kind: object = 'live'
    then: object = None
    units: int = 0

    @property
    def memory(self):
        return 64 * (self.units or self.cpus)


class LabelFilter(clouds.KnownFilter):
    """Takes servers of the host's label."""

    __module__ = 'nova.x'

    def host_passes(self, host_state, spec_obj):
        return str(host_state.label) == spec_obj.project_id


class Small(fixtures.Fixture):
    """A cloud of the given hosts and servers.

    :param host_filters: in place of labels and nova's anti-affinity
    :ivar cloud: a nova-scheduler's, whose hosts' UUIDs are their names
    :ivar held: what holds hosts besides their servers, plans.Stuck
    :ivar deleted: UUIDs of the servers that are gone meanwhile
    :ivar policy: that of server groups
    """

    def __init__(self, *host_filters):
        self.host_filters = host_filters or (
            LabelFilter(),
            affinity_filter.ServerGroupAntiAffinityFilter(),
        )
        self.held, self.deleted, self.policy = [], set(), GROUP
        self.asked_softly = set()

    def _setUp(self):
        # Of claims that fail.
        self.useFixture(fixtures.FakeLogger('nova'))
        for name, fake in (
            ('nova.scheduler.request_filter.ALL_REQUEST_FILTERS', []),
            (f'{drain.__name__}.read', self._read),
            (f'{movable.__name__}.migrate', self._migrate),
            (f'{cloud_servers.__name__}.Reader.find', lambda *_: None),
            (f'{cloud_servers.__name__}.Reader.read_on', lambda *_: ()),
            (f'{gone.__name__}.find', self._find_gone),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, fake))

    def build(self, hosts, servers):
        """Make the cloud.

        :param hosts: :class:`Host` by name
        :param servers: :class:`Server` by UUID
        """
        self.hosts, self.servers = hosts, servers
        cloud = self.cloud = clouds.Cloud('', self.host_filters)
        cloud.ask_cells = lambda *_: {}
        cloud.services_of = lambda hosts: dict.fromkeys(hosts, '')
        for name, host in hosts.items():
            memory = 64 * host.units
            cloud.add_node(name, name, VCPU=host.cpus, MEMORY_MB=memory)
            state = cloud.states[name]
            state.label = host.label
            state.hypervisor_type, state.hypervisor_version = 'fake', 1
        self.instances = {}
        for uuid, one in servers.items():
            taken = {'VCPU': one.cpus, 'MEMORY_MB': one.memory}
            found = cloud.stand(uuid, one.host, **{one.host: taken})
            self.instances[uuid] = found
        return cloud

    def leaving(self, hosts):
        """Return the servers of hosts as plans name them."""
        return [
            plans.Leaving(uuid, uuid, 'project', one.host, [])
            for uuid, one in self.servers.items()
            if one.host in hosts
        ]

    def _read(self, _, hosts):
        return drain.Occupants(self.leaving(hosts), self.held)

    def _find_gone(self, _, servers, softly=True):
        self.asked_softly.add(softly)
        return self.deleted & {*servers}

    def _migrate(self, reader, uuid, barred=(), stored=None):
        mine = self.servers[uuid]
        if mine.kind == 'shelved':
            then = mine.then
            if then in KINDS:
                then, _ = self._make(uuid, then)
            raise admission.NotMovable('it is shelved', 'unshelve it', then)
        if isinstance(mine.kind, Exception):
            raise mine.kind
        return self._make(uuid, mine.kind)

    def _make(self, uuid, kind):
        mine, instance = self.servers[uuid], self.instances[uuid]
        spec = clouds.make_spec(mine.cpus, project_id=str(mine.label))
        spec.flavor.memory_mb = mine.memory
        method, why = KINDS[kind]
        found = movable.Migration(self.cloud, instance, method, spec, why)
        key = likeness.Key(
            f'{mine.cpus} {mine.memory} {mine.label}', not mine.group
        )
        if mine.group:
            spec.ignore_hosts = [mine.host]
            members = [
                other
                for other, one in self.servers.items()
                if one.group == mine.group
            ]
            spec.instance_group = objects.InstanceGroup(
                uuid=str(mine.group),
                name=f'group {mine.group}',
                policy=self.policy,
                rules={},
                members=members,
                hosts=[self.servers[other].host for other in members],
            )
        return found, key


def prepare(places, mine, key):
    """Prepare a server, as plans do, without nova's databases.

    :param mine: what is to be moved; it gets what it has in common
    :param key: that, a likeness.Key
    """
    leaving = plans.Leaving(mine.uuid, '', '', '', [])
    with (
        mock.patch.object(cloud_servers.Reader, 'read_on', lambda *_: ()),
        mock.patch.object(clouds.Cloud, 'ask_cells', lambda *_: {}),
        mock.patch.object(movable, 'migrate', lambda *_: (mine, key)),
    ):
        departures.prepare(places, [leaving])
    return mine


class Paper:
    """Where servers are, and what refuses them a host.

    :param hosts: see :class:`Small`; ``servers`` too
    :ivar on: the names of the servers' hosts
    """

    def __init__(self, hosts, servers):
        self.hosts, self.servers = hosts, servers
        self.on = {uuid: one.host for uuid, one in servers.items()}

    def find_violated(self, uuid, host=None):
        mine, host = self.servers[uuid], host or self.on[uuid]
        beside = [
            self.servers[other].group
            for other in self.on
            if self.on[other] == host and other != uuid
        ]
        return [LABEL] * (mine.label != self.hosts[host].label) + [GROUP] * (
            bool(mine.group) and mine.group in beside
        )

    def find_refused(self, uuid, host):
        used = sum(
            self.servers[other].cpus
            for other in self.on
            if self.on[other] == host
        )
        is_full = used + self.servers[uuid].cpus > self.hosts[host].cpus
        return [*self.find_violated(uuid, host), *['VCPU'] * is_full]

    def go(self, test, move, barred=()):
        """Make a move; it must be right when its turn comes."""
        test.assertEqual(self.on[move.server], move.host)
        test.assertNotIn(move.expected, {move.host, *barred})
        test.assertEqual([], self.find_refused(move.server, move.expected))
        self.on[move.server] = move.expected
