# SPDX-License-Identifier: Apache-2.0

"""Small clouds: hosts in memory, and a placement that nova's client asks."""

import collections
import dataclasses
import types
from unittest import mock
from urllib import parse

from nova import context
from nova import objects
from nova.scheduler import filters
from nova.scheduler import weights
from nova.scheduler.weights import ram
import os_traits

from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.dryrun.cloud import mirror
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import snapshot
from tests.unit.dryrun.cloud import test_snapshot
from tests.unit.request_filters import base

#: A context of the cell.
CCTXT = context.RequestContext(is_admin=True, overwrite=False)
SHARES = os_traits.MISC_SHARES_VIA_AGGREGATE


@dataclasses.dataclass
class Provider:
    """A resource provider: of each resource class its total.

    :ivar limits: what else its inventories have: ``max_unit`` and the like
    """

    inventory: dict
    root: str
    traits: set = dataclasses.field(default_factory=set)
    limits: dict = dataclasses.field(default_factory=dict)

    def count(self, name):
        """Return its capacity of a resource class."""
        left = self.inventory.get(name, 0) - self.limits.get('reserved', 0)
        return int(left * self.limits.get('allocation_ratio', 1))


class Placement:
    """Placement's answers; tests/functional holds them against its own.

    :ivar held: what consumers have, by provider
    :ivar members: the providers of aggregates; any other has all
    :ivar bound: how many candidates there are at most, whoever asks
    :ivar refused: what it refuses is a query with such a text
    :ivar asked: the URLs
    """

    def __init__(self):
        self.providers = {}
        self.held = {}
        self.members = {}
        self.bound, self.refused = 1000, ''
        self.asked = []

    def add(self, uuid, root=None, traits=(), **inventory):
        self.providers[uuid] = Provider(inventory, root or uuid, {*traits})

    def hold(self, consumer, **allocations):
        """Let a consumer have what it has of providers."""
        self.held[consumer] = allocations

    def used(self, uuid):
        found = collections.Counter()
        for allocations in self.held.values():
            found.update(allocations.get(uuid, {}))
        return found

    # What nova's client calls.

    def get(self, url, microversion=None, global_request_id=None):
        self.asked.append(url)
        path, _, text = url.partition('?')
        first, *rest = path.strip('/').split('/')
        if self.refused and self.refused in url:
            errors = {'errors': [{'detail': 'no way'}]}
            return types.SimpleNamespace(
                status_code=400, text='no way', json=lambda: errors
            )
        body = getattr(self, f'_{first}')(parse.parse_qsl(text), *rest)
        return types.SimpleNamespace(status_code=200, json=lambda: body)

    def _allocations(self, _, consumer):
        held = self.held.get(consumer)
        if held is None:
            return {'allocations': {}}
        return {
            'allocations': {
                provider: {'generation': 7, 'resources': dict(resources)}
                for provider, resources in held.items()
            },
            'consumer_generation': 1,
            'project_id': 'project',
            'user_id': 'user',
        }

    def _traits(self, params):
        names = params[0][1].removeprefix('in:').split(',')
        has = {name for one in self.providers.values() for name in one.traits}
        return {'traits': [{'name': name} for name in names if name in has]}

    def _resource_providers(self, params, uuid=None, part=None):
        if uuid is None:
            found = [
                {'uuid': name, 'root_provider_uuid': one.root}
                for name, one in self.providers.items()
                if all(self._has(name, *param) for param in params)
            ]
            return {'resource_providers': found}
        if part == 'aggregates':
            mine = [one for one in self.members if uuid in self.members[one]]
            return {'aggregates': mine if self.members else ['all']}
        one, common = self.providers[uuid], {'consumer_generation': 1}
        known = {'reserved': 0, 'allocation_ratio': 1.0}
        known |= {'min_unit': 1, 'step_size': 1}
        inventories = {
            name: {**known, 'total': total, 'max_unit': total} | one.limits
            for name, total in one.inventory.items()
        }
        return {
            'inventories': inventories,
            'usages': self.used(uuid),
            'traits': sorted(one.traits),
            'allocations': {
                consumer: {**common, 'resources': allocations[uuid]}
                for consumer, allocations in self.held.items()
                if uuid in allocations
            },
        }

    def _has(self, uuid, key, value):
        one = self.providers[uuid]
        if key == 'in_tree':
            return one.root == value
        if key == 'resources':
            name, _, amount = value.partition(':')
            free = one.count(name) - self.used(uuid)[name]
            return free >= int(amount)
        if key == 'required':
            return value in one.traits
        names = value.removeprefix('!').removeprefix('in:').split(',')
        return key == 'member_of' and any(
            uuid in self.members.get(name, self.providers) for name in names
        )

    def _allocation_candidates(self, params):
        asked = dict(params)
        if 'resources' not in asked:
            # Nobody gives anything of numbered groups.
            return {'allocation_requests': [], 'provider_summaries': {}}
        resources = (one.split(':') for one in asked['resources'].split(','))
        amounts = {name: int(amount) for name, amount in resources}
        found = {}
        for uuid, one in self.providers.items():
            keys = 'required', 'root_required'
            traits = ','.join(asked.get(key, '') for key in keys).split(',')
            if (
                one.root != uuid
                or SHARES in one.traits
                or asked.get('in_tree', uuid) != uuid
                or any(
                    (name.strip('!') in one.traits) == name.startswith('!')
                    for name in filter(None, traits)
                )
            ):
                continue
            others = () if 'in_tree' in asked else self.providers
            gives = {}
            for name, amount in amounts.items():
                for by in (uuid, *others):
                    free = self.providers[by].count(name)
                    if amount <= free - self.used(by)[name] and (
                        by == uuid or SHARES in self.providers[by].traits
                    ):
                        gives.setdefault(by, {})[name] = amount
                        break
            if sum(map(len, gives.values())) == len(amounts):
                found[uuid] = make_request(**gives)
        if 'in_tree' not in asked:
            most = min(int(asked.get('limit', 1000)), self.bound)
            found = dict([*found.items()][:most])
        requests = [*found.values()]
        named = {uuid for one in requests for uuid in one['allocations']}
        summaries = {uuid: self._summarize(uuid) for uuid in sorted(named)}
        return {
            'allocation_requests': requests,
            'provider_summaries': summaries,
        }

    def _summarize(self, uuid):
        one, used = self.providers[uuid], self.used(uuid)
        has = {name: (one.count(name), used[name]) for name in one.inventory}
        return {'root_provider_uuid': one.root, **make_summary(**has)}


def make_request(**allocations):
    """Return an allocation request: of each provider what it gives."""
    gives = {by: {'resources': given} for by, given in allocations.items()}
    return {'allocations': gives, 'mappings': {'': [*gives]}}


def make_summary(**resources):
    """Return a provider's summary: of each class what it has and uses."""
    words = 'capacity', 'used'
    said = {n: dict(zip(words, resources[n], strict=True)) for n in resources}
    return {'resources': said}


class AtMostFilter(filters.BaseHostFilter):
    """Takes at most so many servers on a host; knows whom it was asked about.

    Nobody knows what it reads.
    """

    def __init__(self, most=9):
        self.most, self.asked = most, []

    def host_passes(self, host_state, spec_obj):
        self.asked.append(host_state.uuid)
        return host_state.num_instances < self.most


class KnownFilter(AtMostFilter):
    """The same as one of nova's."""

    __module__ = 'nova.x'


class Cloud(snapshot.Snapshot):
    """Hosts by the letters of their names, each with one node and four CPUs.

    nova's filters judge, and its weigher of free memory orders.
    """

    def __init__(self, hosts='abc', host_filters=()):
        vars(self).update(vars(test_snapshot.make_manager()))
        self.server = Placement()
        self.open_fork, self.versions, self.doubts = None, {}, []
        self.client = object.__new__(mirror.MirroringClient)
        self.client._client = self.server
        self.providers = placement.Providers(self.client)
        self.aggregates_copy = change.copy_aggregates(())
        self.states, self.nodes = {}, {}
        self._contexts = {'cell1': CCTXT}
        self.read_at = test_snapshot.timeutils.utcnow()
        self._read_by_cell = {'cell1': snapshot._CellHosts([], [], {})}
        for host in hosts:
            self.add_node(host)
        self.enabled_filters = [*host_filters]
        self.filter_handler = filters.HostFilterHandler()
        self.filter_cls_map, self.aggs_by_id = {}, {}
        self.filter_obj_map = {}
        self.weighers = [ram.RAMWeigher()]
        self.weight_handler = weights.HostWeightHandler()
        self.under_way, self.unmapped = {}, set()

    def add_node(self, uuid, host=None, **inventory):
        state = test_snapshot.make_state(uuid)
        state.host = host or state.host
        self.states[uuid] = state
        names = state.host, state.nodename
        self.nodes[uuid] = snapshot.Node(*names, state.cell_uuid)
        node = objects.ComputeNode(uuid=uuid)
        node.host, node.hypervisor_hostname = names
        self._read_by_cell['cell1'].computes.append(node)
        self.server.add(uuid, **{'VCPU': 4, 'MEMORY_MB': 999, **inventory})

    def stand(self, server, on, **more):
        """Let a server stand on a host, and return the nova Instance."""
        state, instance = self.states[on], objects.Instance(CCTXT, uuid=server)
        state.num_instances += 1
        state.instances[server] = instance
        self.server.hold(server, **{on: {'VCPU': 1, 'MEMORY_MB': 64}, **more})
        return types.SimpleNamespace(
            uuid=server,
            host=state.host,
            node=state.nodename,
            numa_topology=None,
            info_cache=None,
            vcpu_model=None,
            pci_devices=[],
            pci_requests=types.SimpleNamespace(requests=[]),
        )

    def find_target(self, host, **allocations):
        """Return a HostState as the filters leave it, with a candidate."""
        [state] = self.get_host_states_by_uuids(None, [host], None)
        one = {host: {'VCPU': 1, 'MEMORY_MB': 64}, **allocations}
        state.allocation_candidates = [make_request(**one)]
        return state

    def describe(self):
        """Return all that a fork may change."""
        return {
            uuid: (
                sorted(state.instances),
                state.num_instances,
                state.free_ram_mb,
                self.versions.get(uuid, 0),
                id(state),
            )
            for uuid, state in self.states.items()
        }


def stub(hosts, **known):
    """Return what stands for a snapshot where a test says what is known of it.

    :param hosts: their names, by the UUIDs of their nodes
    """
    nodes = {n: snapshot.Node(one, one, 'cell') for n, one in hosts.items()}
    known = {'nodes': nodes, 'silent_cells': {}, **known}
    return mock.Mock(spec=snapshot.Snapshot, **known)


def make_spec(vcpus=1, **fields):
    """Return a nova RequestSpec of one small server."""
    flavor = base.flavor(extra_specs={})
    flavor.vcpus, flavor.memory_mb = vcpus, 64 * vcpus
    absent = 'availability_zone', 'instance_group', 'numa_topology'
    values = {
        **dict.fromkeys((*absent, 'pci_requests')),
        'flavor': flavor,
        'num_instances': 1,
        'instance_uuid': 'server',
        'ignore_hosts': [],
        'user_id': 'user',
    }
    return base.request_spec(**values | fields)
