# SPDX-License-Identifier: Apache-2.0

"""Clouds of a few servers, of which plans are made without a database.

nova's scheduler and its claims decide in memory, as in a plan. What is made of
it by a command's function is read by :func:`read`, in words of our own, and
judged by :class:`Paper`, which knows nothing of plans.
"""

import collections
import contextlib
import dataclasses
import datetime
import logging
import re
import types
from unittest import mock

import fixtures
from nova import exception as nova_exception
from nova import objects
from nova.compute import power_state
import nova.conf
from nova.scheduler.filters import affinity_filter
from oslo_serialization import jsonutils
from oslo_utils import timeutils
import testtools

from nova_ext_sched import conf
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import servers as cloud_servers
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.decision import server as decision_server
from nova_ext_sched.dryrun.plan import drain
from nova_ext_sched.dryrun.plan import hold
from nova_ext_sched.dryrun.plan import maintain
from nova_ext_sched.dryrun.plan import mend
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import survive
from nova_ext_sched.policy import act
from nova_ext_sched.policy import declaration
from tests.unit.dryrun.cloud import clouds

conf.register_opts(nova.conf.CONF)

LABEL, GROUP = 'LabelFilter', 'anti-affinity'
# A host or a server: its name and CPUs; where they are, label, group and kind.
_WORD = re.compile(r'(\w+)=(\d+)(?:/(\d+))?(?:\+(\w+))?(?::(\w+))?')
# Of servers that do not run as others the power state.
# What nova moves live.
_LIVE = ('live', 'paused')
_POWER = {'stopped': 'SHUTDOWN', 'crashed': 'CRASHED', 'pending': 'NOSTATE'}


@dataclasses.dataclass(frozen=True)
class Host:
    """A host, and how often it has 64 MiB.

    :ivar ram: MiB that nova's weigher sees; where it is equal, the first is
        the best
    """

    cpus: int = 4
    label: int = 0
    units: int = 100
    ram: int = 100_000


@dataclasses.dataclass(frozen=True)
class Server:
    """A server; it takes 64 MiB for each CPU unless more is said.

    :ivar label: that of the hosts that it may go to
    :ivar group: a server group, of which a host may hold one server
    :ivar kind: live, stopped, crashed, device, unlike, pending or shelved; or
        an admission.NotMovable
    :ivar problem: what its request raises when it is made
    :ivar first: its restart priority, of the flavor
    """

    host: str
    cpus: int
    label: int = 0
    group: object = 0
    kind: object = 'live'
    units: int = 0
    disk: int = 0
    hints: object = None
    problem: object = None
    first: str = ''

    @property
    def memory(self):
        return 64 * (self.units or self.cpus)


def parse(text):
    """Return the hosts and servers of a cloud, by name.

    :param text: of each host it and its servers: ``h1=9/1 a=2/1+group b=1``
    """
    hosts, servers = {}, {}
    for part in text.split(';'):
        found = [_WORD.fullmatch(word).groups('') for word in part.split()]
        (host, cpus, label, *_), *standing = found
        hosts[host] = Host(int(cpus), int(label or 0))
        for name, cpus, label, group, kind in standing:
            place = host, int(cpus), int(label or 0)
            servers[name] = Server(*place, group, kind or 'live')
    return hosts, servers


def find_likeness(kind, instance, text, find=likeness.of_request):
    """Find it by all but the UUID: any word of a request may have an a."""
    stub = types.SimpleNamespace(**{**vars(instance), 'uuid': 'a UUID'})
    return find(kind, stub, text)


class LabelFilter(clouds.KnownFilter):
    """Takes so many servers, of the host's label."""

    __module__ = 'nova.x'
    policies = (
        declaration.Policy(
            name=LABEL,
            refuses=f'are refused by {LABEL}',
            host_filter=LABEL,
            acts=(act.Act(act.REPAIR, 'label {hosts}'),),
        ),
    )

    def host_passes(self, host_state, spec_obj):
        passes = super().host_passes(host_state, spec_obj)
        return passes and str(host_state.label) == spec_obj.project_id


class Filter(clouds.KnownFilter):
    """One of nova's, as far as is known; it takes a server if so is said.

    :param passes: says that, of a nova HostState and a nova RequestSpec
    """

    __module__ = 'nova.x'

    def __init__(self, passes):
        super().__init__(99)
        takes = super().host_passes
        self.host_passes = lambda *asked: takes(*asked) and passes(*asked)


class Unknown(Filter):
    """Nobody knows what it reads."""

    __module__ = __name__


class Small(fixtures.Fixture):
    """A cloud of the given hosts and servers.

    :param host_filters: beside labels
    :ivar cloud: a nova-scheduler's, whose hosts' UUIDs are their names, as
        those of servers are
    :ivar filter: of labels; it knows which hosts it was asked about
    :ivar request_filters: nova's, a list
    :ivar held: what holds hosts besides their servers: of each its server and
        its host
    :ivar deleted: the servers that are gone meanwhile
    :ivar deleting: those whose deletion has not ended, and whether it is stuck
    :ivar now_on: the hosts to which servers were moved meanwhile
    :ivar policy: that of server groups
    :ivar change: is called with a cloud before a plan is made
    """

    def __init__(self, *host_filters):
        self.host_filters = host_filters or (
            affinity_filter.ServerGroupAntiAffinityFilter(),
            affinity_filter.DifferentHostFilter(),
        )
        self.filter, self.request_filters = LabelFilter(99), []
        self.held, self.deleted, self.policy = [], set(), GROUP
        self.deleting, self.now_on = {}, {}
        self.asked_softly, self.change = set(), lambda cloud: None

    def _setUp(self):
        # Of claims that fail.
        self.useFixture(fixtures.FakeLogger('nova', logging.ERROR))
        reader = f'{cloud_servers.__name__}.Reader'
        scheduler = 'nova.scheduler.request_filter'
        for name, fake in (
            (f'{scheduler}.ALL_REQUEST_FILTERS', self.request_filters),
            ('nova.objects.Service.get_by_compute_host', self._find_service),
            (f'{drain.__name__}.read', self._read),
            (f'{decision_server.__name__}.Server', self._make_server),
            (f'{admission.__name__}.ask', self._ask),
            (f'{likeness.__name__}.of_request', find_likeness),
            (f'{reader}.count', lambda _: {'cell1': self.counts}),
            (f'{reader}.find', lambda _, uuid: self._store(uuid)),
            (f'{reader}.read_on', self._read_on),
            (f'{gone.__name__}.look', self._find_gone),
            (f'{request.__name__}.get_image', mock.Mock()),
            (f'{request.__name__}.get_flavor', self._get_flavor),
            (f'{request.__name__}.build', lambda *_: self.coming(*_)),
            (f'{request.__name__}.set_up_group', mock.Mock()),
            # There are no other ones.
            ('nova.objects.FlavorList.get_all', lambda *_, **__: []),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, fake))

    def build(self, described):
        """Make a cloud.

        :param described: as of :func:`parse`, or what it returned
        """
        if isinstance(described, str):
            described = parse(described)
        self.hosts, self.servers = hosts, servers = described
        host_filters = (self.filter, *self.host_filters)
        cloud = self.cloud = clouds.Cloud('', host_filters)
        at = collections.Counter(one.host for one in servers.values())
        self.counts, self.sizes = at, []
        cloud.ask_cells = lambda select, *_: {
            cloud_servers.select_sizes: {'cell1': self.sizes},
            cloud_servers.select_shares: {'cell1': set()},
        }.get(select, {})
        cloud.services_of = lambda hosts: dict.fromkeys(hosts, '')
        cloud.aggregates_of = lambda host: []
        cloud.target_cell = lambda *_: contextlib.nullcontext(clouds.CCTXT)
        for name, host in hosts.items():
            memory = 64 * host.units
            cloud.add_node(name, name, VCPU=host.cpus, MEMORY_MB=memory)
            state = cloud.states[name]
            state.label, state.free_ram_mb = host.label, host.ram
            state.hypervisor_type, state.hypervisor_version = 'fake', 1
            state.service['disabled'] = False
        self.instances = {}
        for uuid, one in servers.items():
            self.instances[uuid] = self._stand(uuid, one)
        self.change(cloud)
        return cloud

    def mend(self, described):
        """Return the plan that mends what is found on paper."""
        cloud = self.build(described)
        paper = Paper(self.hosts, self.servers)
        found = []
        for uuid, one in self.servers.items():
            violated = [(name, 'why') for name in paper.find_violated(uuid)]
            known = uuid, uuid, 'p', cloud.states[one.host], None
            if violated:
                found.append(policies.Standing(*known, violated=violated))
        auditing = types.SimpleNamespace(
            cloud=cloud,
            policies=paper,
            count=lambda: len(found),
            judge=lambda advance: found,
        )
        return read(mend.make(auditing))

    def drain(self, described, *names, **more):
        """Return the plan after which hosts are empty."""
        advance = mock.Mock()
        made = drain.make(self.build(described), {*names}, advance, **more)
        # After the total, each of which something is known, once.
        number = len(self._list(names))
        assert 1 + number == advance.call_count, advance.mock_calls
        return read(made)

    def survive(self, described, *flavors, **more):
        """Return what comes of failures.

        :param flavors: the CPUs of servers that may come
        """
        cloud = self.build(described)
        return read(survive.make(cloud, flavors, **more))

    def hold(self, described, how='full', **more):
        """Return the hosts to keep free.

        :param described: see :meth:`build`
        """
        return read(hold.make(self.build(described), how, **more))

    def maintain(self, described, *args, **more):
        """Return the rounds after which each host was empty once."""
        cloud = self.build(described)
        return read(maintain.make(cloud, {*self.hosts}, *args, **more))

    def coming(self, _, cloud, wanted, flavor, image):
        """Return the nova RequestSpec of a server that may come."""
        return clouds.make_spec(int(flavor.name), project_id='0')

    def _get_flavor(self, _, cpus):
        return types.SimpleNamespace(flavorid='1', name=cpus)

    def _stand(self, uuid, one):
        taken = {'VCPU': one.cpus, 'MEMORY_MB': one.memory}
        found = self.cloud.stand(uuid, one.host, **{one.host: taken})
        size = (uuid, uuid, 'p', one.host, found.node, one.cpus, one.memory, 0)
        self.sizes.append(cloud_servers.Size(*size))
        state = _POWER.get(f'{one.kind}', 'RUNNING')
        vars(found).update(
            display_name=uuid,
            project_id='p',
            deleted=False,
            vm_state='active' if one.kind == 'live' else f'{one.kind}',
            power_state=getattr(power_state, state),
            task_state=None,
            locked=False,
            launched_at=datetime.datetime(2025, 1, 1),
            updated_at=timeutils.utcnow(),
            image_ref='',
            system_metadata={},
            get_network_info=list,
        )
        found.pci_requests.requests += ['nic'] * (one.kind == 'device')
        return found

    def make_spec(self, uuid):
        """Return the nova RequestSpec of a server."""
        mine = self.servers[uuid]
        named = {'project_id': str(mine.label), 'instance_uuid': uuid}
        hints = mine.hints or {}
        spec = clouds.make_spec(mine.cpus, scheduler_hints=hints, **named)
        spec.flavor.memory_mb = mine.memory
        spec.flavor.root_gb = mine.disk
        if mine.first:
            spec.flavor.extra_specs = {
                'instanceha:restart_priority': mine.first
            }
        if mine.kind in ('device', 'unlike'):
            spec.flavor.name = mine.kind
        if mine.group:
            found = self.servers.items()
            members = [uuid for uuid, one in found if one.group == mine.group]
            spec.instance_group = objects.InstanceGroup(
                uuid=str(mine.group),
                name=f'group {mine.group}',
                policy=self.policy,
                policies=[self.policy],
                rules={},
                members=members,
                hosts=[self.servers[other].host for other in members],
            )
        return spec

    # What stands for nova's databases, and for what is made of their rows.

    def _read(self, _, hosts):
        described = [
            plans.make_leaving(self.instances[uuid], self.servers[uuid].host)
            for uuid in self._list(hosts)
        ]
        why = [], 'why', 'state', ''
        held = [
            plans.Stuck(uuid, uuid, 'p', on, *why) for uuid, on in self.held
        ]
        return drain.Occupants(described, held)

    def _list(self, hosts):
        return [u for u, one in self.servers.items() if one.host in hosts]

    def _read_on(self, _, cell, hosts, wanted=None, attrs=()):
        return [self._store(uuid) for uuid in wanted or self._list(hosts)]

    def _store(self, uuid):
        text = jsonutils.dumps(self.make_spec(uuid).obj_to_primitive())
        cell = self.cloud.cells['cell1']
        return cloud_servers.Stored(uuid, self.instances[uuid], cell, text)

    def _find_service(self, *args):
        raise nova_exception.ComputeHostNotFound(host=args[-1])

    def _find_gone(self, _, servers, softly=True):
        self.asked_softly.add(softly)
        there = {*servers} - self.deleted
        on = {uuid: one.host for uuid, one in self.servers.items()}
        on |= self.now_on
        return gone.Changed(
            self.deleted & {*servers},
            {uuid: self.deleting[uuid] for uuid in there & {*self.deleting}},
            {uuid: on[uuid] for uuid in there & on.keys()},
        )

    def _ask(self, operation, _, instance):
        kind = self.servers[instance.uuid].kind
        if isinstance(kind, Exception):
            raise kind
        is_live = operation == 'live-migrate' and kind not in _LIVE
        if is_live or kind == 'shelved':
            helps = 'unshelve it' if kind == 'shelved' else ''
            raise admission.NotMovable(
                f'it is {kind}', helps, may_run=kind == 'pending'
            )

    def _make_server(self, reader, uuid, stored=None):
        """Return what stands for a server of decision.server."""

        def make(operation):
            if problem := self.servers[uuid].problem:
                raise problem
            # By it a request filter knows it.
            made.spec_obj.user_id = operation

        read = clouds.CCTXT, self.instances[uuid]
        made = types.SimpleNamespace(
            spec_obj=self.make_spec(uuid),
            cell='cell1',
            read=lambda: contextlib.nullcontext(read),
            live_migrate=lambda: make('live'),
            migrate=lambda: make('cold'),
            evacuate=lambda: make('evacuate'),
        )
        return made


class TestCase(testtools.TestCase):
    """Tests on a small cloud.

    :ivar small: see :class:`Small`
    """

    def setUp(self):
        super().setUp()
        self.small = self.useFixture(Small())


class Paper:
    """Where servers are, and what refuses them a host; policies, too.

    :param hosts: see :class:`Small`; ``servers`` too
    :ivar at: the names of the servers' hosts
    """

    on = (LABEL, GROUP)

    def __init__(self, hosts, servers):
        self.hosts, self.servers = hosts, servers
        self.at = {uuid: one.host for uuid, one in servers.items()}

    def counts_group(self, policy):
        return policy == GROUP

    def judge(self, server):
        # What stands beside it is what policies are shown.
        beside = server.host_state.instances
        at = dict.fromkeys(beside, server.host) | {server.uuid: server.host}
        for policy in self.find_violated(server.uuid, at=at):
            yield policy, 'why'

    def find_violated(self, uuid, host=None, at=None):
        mine, at = self.servers[uuid], at or self.at
        host = host or at[uuid]
        beside = {
            self.servers[other].group
            for other in at
            if at[other] == host and other != uuid
        }
        is_near = mine.group and mine.group in beside
        is_other = mine.label != self.hosts[host].label
        return [LABEL] * is_other + [GROUP] * bool(is_near)

    def find_refused(self, uuid, host):
        there = [other for other in self.at if self.at[other] == host]
        used = sum(self.servers[one].cpus for one in (uuid, *there))
        is_full = used > self.hosts[host].cpus
        return self.find_violated(uuid, host) + ['VCPU'] * is_full

    def go(self, test, move, barred=()):
        """Make a move; it must be right when its turn comes."""
        test.assertEqual(self.at[move.uuid], move.at)
        test.assertNotIn(move.expected, {move.at, *barred})
        test.assertEqual([], self.find_refused(move.uuid, move.expected))
        self.at[move.uuid] = move.expected


# What plans have, field by field, in the tests' own words.
_LEAVING = 'uuid name project at violated'
_PLAN = (
    'moves stuck mended closer gone moved empty stays open services last '
    'crowded seconds remarks'
)
_WORDS = {
    plans.Leaving: _LEAVING,
    plans.Move: f'{_LEAVING} to expected how batch why needed paused '
    'lacks newer turn new',
    plans.Stuck: f'{_LEAVING} said cause helps of_cause then',
    plans.Group: 'uuid name hosts before racks racks_before',
    plans.Plan: _PLAN,
    plans.Room: f'{_PLAN} flavor wanted fit on said never helps',
    plans.Hold: f'{_PLAN} how mark held alone kept kinds lost price commands',
    plans.Held: 'on servers replaces marked',
    plans.Alone: 'on name said',
    plans.NotSaved: 'kind said',
    plans.Price: 'id name servers',
    plans.Round: 'on moves closer',
    plans.NotEmptied: 'on stuck lost',
    plans.Rounds: 'rounds kept gone services built seconds remarks',
    plans.Failure: 'name on moves stuck last causes enabled',
    plans.Cause: 'cause name number',
    plans.Crowded: 'host servers next weigher',
    plans.FlavorRoom: 'id name fit is_more may_come worse said cause',
    plans.Outcome: 'failed spares gone remarks faults services topology '
    'lacking',
}


def read(found):
    """Return what a command's function made, in the words above."""
    if isinstance(found, list):
        return [*map(read, found)]
    if type(found) not in _WORDS:
        return found
    words = _WORDS[type(found)].split()
    fields = [one.name for one in dataclasses.fields(found)]
    values = (read(getattr(found, field)) for field in fields)
    return types.SimpleNamespace(**dict(zip(words, values, strict=True)))


def name(servers):
    """Return their UUIDs, one after the other."""
    return ' '.join(one.uuid for one in servers)


def say(servers):
    """Return where servers go, or why they do not, one after the other."""
    return ' '.join(
        f'{one.uuid}:{getattr(one, "expected", "") or one.cause}'
        for one in servers
    )


def say_rounds(found):
    """Return the hosts of each round, one after the other."""
    return ' '.join(''.join(one.on) for one in found.rounds)
