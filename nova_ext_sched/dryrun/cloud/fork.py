# SPDX-License-Identifier: Apache-2.0

"""Supposes servers that come, move or are evacuated.

``with cloud.fork() as future:`` is the one way to suppose anything. As long as
the block runs, the cloud answers as it would then; afterwards it is as before.
Forks are a stack in one thread: the last one ends first. A fork opened as a
trial calls :meth:`Fork.keep` if it succeeds, and the fork before it takes over
its changes.

*nova's own code claims.* Its report client makes the allocations, which the
:mod:`.ledger` answers; nova's own method consumes the host state that passed
the filters, with the limits that they set. The scheduler has no code for a
server that leaves: :func:`.claims.leave` does that.

Placement is asked about the cloud as it is: it knows nothing of a fork. The
ledger drops candidates that no longer fit. Candidates that become possible
are sought on vacated hosts:

=======================================  ==================================
a vacated host                           whether it becomes a candidate
=======================================  ==================================
is in placement's answer                 yes, already; others of its providers
                                         may add candidates
satisfies every constraint of the query  if for each amount one provider of its
but the amounts                          tree, or one that it shares, has that
                                         free and gives it to one consumer
lacks a constraint                       no
any, for a request with numbered groups  if placement offers all these groups
                                         now, and the rest is free as above;
                                         groups that only the fork has freed
                                         are not found
=======================================  ==================================

For these hosts the choice that placement would make is made here, of what is
in no numbered group: each resource class comes from one provider, the host's
own first; each required trait is on one of the providers chosen, a forbidden
one on none.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import copy
import itertools
import typing

from nova import objects
from nova.scheduler import utils
from nova.scheduler.client import report
from oslo_utils import uuidutils

from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import ledger
from nova_ext_sched.dryrun.cloud import mirror
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.queries import sources

# The most candidates of one host: it bounds the time.
_MOST_CHOICES = 100

# The part of an allocation request for numbered groups, if there are none.
_NO_NUMBERED: claims.Request = {'allocations': {}, 'mappings': {}}

# Version numbers of host states. No two states ever have the same.
_VERSIONS = itertools.count(1)


class Cloud(typing.Protocol):
    """The parts of a cloud that a fork replaces while it is open.

    :class:`.snapshot.Snapshot` has it, and describes it.
    """

    @property
    def client(self) -> mirror.MirroringClient:
        """nova's client of placement, on the ledger of the open fork."""

    @property
    def providers(self) -> placement.Providers:
        """Placement's answers."""

    @property
    def states(self) -> dict[str, typing.Any]:
        """The nova HostStates by UUID, which a fork replaces."""

    @property
    def versions(self) -> dict[str, int]:
        """See :class:`.snapshot.Snapshot`."""

    @property
    def nodes_by_server(self) -> Mapping[str, Collection[str]]:
        """The compute nodes that have a server without a fork."""

    @property
    def under_way(self) -> dict[str, set[str]]:
        """The hosts between which servers migrate, by their UUIDs."""

    @property
    def aggregates_copy(self) -> typing.Any:
        """The aggregates in memory, for :func:`.change.used`."""

    def nodes_of(self, host: str) -> Sequence[str]:
        """Return the UUIDs of the compute nodes of a host."""

    def context_of(self, cell: str) -> typing.Any:
        """Return a context for lazy-loading from a cell's database.

        :param cell: its UUID
        """


class Fork:
    """A supposed cloud, on top of the real one or of another fork.

    :ivar before: the fork below, which was opened before this one; None if
        there is none
    :ivar moved: by UUID of each server that came or moved, its host's name
    :ivar placed: by UUID of each server that came or moved, its compute node's
        UUID and the resources that it has there
    :ivar touched: UUIDs of the hosts that changed in this fork
    :ivar all_touched: UUIDs of those that changed in this fork, or in one
        before it
    :ivar version: a number for all states and claims; where it is equal,
        nothing has changed between. 0 as long as nothing has at all
    :ivar vacated: UUIDs of the hosts that have more room than before
    """

    def __init__(self, cloud: Cloud, before: 'Fork | None') -> None:
        self._cloud = cloud
        self._ctxt = process.context()
        self.before = before
        # Chains, because a copy for each trial would be as large as all moves
        # before it.
        self.moved: collections.ChainMap[str, str] = (
            before.moved.new_child() if before else collections.ChainMap()
        )
        self.vacated: set[str] = set(before.vacated) if before else set()
        self.all_touched: set[str] = (
            set(before.all_touched) if before else set()
        )
        self.version: int = before.version if before else 0
        # Vacated hosts with more than one provider that can give resources.
        self._with_several_givers: set[str] = (
            set(before._with_several_givers) if before else set()
        )
        self.placed: collections.ChainMap[str, tuple[str, claims.Taken]] = (
            before.placed.new_child() if before else collections.ChainMap()
        )
        # States and versions of the hosts before this fork changed them.
        self._states: dict[str, tuple[typing.Any, int]] = {}
        # Names of the hosts on which each server is counted, by server UUID.
        self._places: collections.ChainMap[str, sources.Places] = (
            before._places.new_child() if before else collections.ChainMap()
        )
        # Allocations by consumer, as they are without a fork.
        self._known: dict[str, ledger.Body] = {}
        # Compute nodes of which all allocations were read.
        self._held: set[str] = set(before._held) if before else set()
        # Consumer UUID of every migration: each ends before the next begins.
        self._migration: str = (
            before._migration if before else uuidutils.generate_uuid()
        )
        self._known[self._migration] = ledger.NOTHING
        self._is_kept = False
        self.ledger: ledger.Ledger = ledger.Ledger(
            self._read,
            cloud.providers.get_room,
            cloud.providers.get_stored,
            before.ledger if before else None,
        )

    @contextlib.contextmanager
    def used(self) -> Iterator['Fork']:
        """Make the cloud answer by this fork while the block runs."""
        client = self._cloud.client
        before = client.ledger
        client.ledger = self.ledger
        try:
            with change.used(self._cloud.aggregates_copy, self._places):
                yield self
        finally:
            client.ledger = before
            if not self._is_kept:
                for uuid, (state, version) in self._states.items():
                    self._cloud.states[uuid] = state
                    self._cloud.versions[uuid] = version

    def keep(self) -> None:
        """Pass the changes of this fork to the one before it.

        To be called last, in the block of a fork on top of another.
        """
        before = self.before
        assert before is not None, 'expected a fork on top of another'
        self._is_kept = True
        before._states = self._states | before._states
        before.all_touched, before.version = self.all_touched, self.version
        before.moved.update(self.moved.maps[0])
        before.vacated, before._with_several_givers = (
            self.vacated,
            self._with_several_givers,
        )
        before.placed.update(self.placed.maps[0])
        before._places.update(self._places.maps[0])
        before._held = self._held
        before._known |= self._known
        for consumer in before.ledger.take_over(self.ledger):
            # The ledger has other allocations of the consumer now.
            before._known.pop(consumer, None)

    @property
    def places(self) -> Mapping[str, sources.Places]:
        """Names of the hosts on which servers are counted, by server UUID.

        Only servers that came, moved or left, or are migrating, are included.
        """
        return self._places

    @property
    def touched(self) -> Iterable[str]:
        """UUIDs of the hosts that this fork has changed."""
        return self._states.keys()

    def copy_states(self) -> dict[str, typing.Any]:
        """Copy the nova HostStates, by UUID, as they are now.

        A later claim changes the states that this fork owns, so these are
        copied; of any other it makes one of its own first.
        """
        states = self._cloud.states
        owned = {
            uuid: claims.copy_state(states[uuid]) for uuid in self._states
        }
        return {**states, **owned}

    # What may happen.

    def come(
        self, uuid: str, spec_obj: typing.Any, target: typing.Any
    ) -> bool:
        """Build a new server on a host.

        :param uuid: UUID of the server
        :param spec_obj: its nova RequestSpec
        :param target: the nova HostState that passed the filters, with its
            allocation candidates
        :returns: False if nova's claim fails; nothing has changed then
        """
        self._known[uuid] = ledger.NOTHING
        cctxt = self._cloud.context_of(target.cell_uuid)
        instance = claims.Coming(cctxt, uuid, spec_obj.image)
        return self._claim(uuid, spec_obj, target, instance)

    def evacuate(
        self,
        uuid: str,
        spec_obj: typing.Any,
        target: typing.Any,
        node: str | None,
    ) -> bool:
        """Evacuate a server of a failed host to another.

        As in nova, its allocations on the failed host stay, until
        nova-compute starts there again. Other parameters: see :meth:`come`.

        :param node: UUID of the failed compute node; None if the server has
            none in the cloud as it is
        :returns: as :meth:`come`
        """
        # The allocations of all servers of the node at once.
        self._read_held(node)
        # A server that came in a fork leaves the host that it went to.
        source = node or self.placed.get(uuid, ('',))[0]
        known = self._find_instance(uuid, [source], target.cell_uuid)
        return self._claim(uuid, spec_obj, target, known)

    def allocate(
        self, uuid: str, spec_obj: typing.Any, request: claims.Request
    ) -> bool:
        """Claim a new server's resources in placement alone.

        Other parameters: see :meth:`come`.

        :param request: one of the server's allocation candidates
        :returns: as :meth:`come`
        """
        self._known[uuid] = ledger.NOTHING
        return self._allocate(uuid, spec_obj, request)

    def _allocate(
        self, uuid: str, spec_obj: typing.Any, request: claims.Request
    ) -> bool:
        is_claimed: bool = utils.claim_resources(
            self._ctxt,
            self._cloud.client,
            spec_obj,
            uuid,
            request,
            allocation_request_version=report.SAME_SUBTREE_VERSION,
        )
        self.version = next(_VERSIONS)
        return is_claimed

    def _claim(
        self,
        uuid: str,
        spec_obj: typing.Any,
        target: typing.Any,
        instance: typing.Any,
    ) -> bool:
        request = target.allocation_candidates[0]
        if not self._allocate(uuid, spec_obj, request):
            return False
        if spec_obj.instance_group is not None:
            # A copy, because the server becomes a member where it goes.
            spec_obj = spec_obj.obj_clone()
        taken = self._own(target.uuid)
        taken.limits = target.limits
        got = claims.consume(taken, spec_obj, request, uuid)
        taken.limits = {}
        # The servers of a nova-compute count for each of its nodes (ironic).
        for node in self._cloud.nodes_of(target.host):
            self._own(node).instances[uuid] = instance
        self.moved[uuid] = target.host
        self.placed[uuid] = target.uuid, got
        self._places[uuid] = frozenset((target.host,))
        return True

    def move(
        self,
        uuid: str,
        spec_obj: typing.Any,
        target: typing.Any,
        node: str,
        taken: claims.Taken,
    ) -> bool:
        """Complete a live or cold migration of a server.

        As in nova, the migration takes over the allocations, the server claims
        the destination, and then frees its host. It may have moved in this
        fork before. Other parameters: see :meth:`come`.

        :param node: UUID of the compute node where the server is in the cloud
            as it is
        :param taken: the server's resources there
        :returns: as :meth:`come`
        """
        client = self._cloud.client
        source, taken = self.placed.get(uuid, (node, taken))
        host = self._cloud.states[source].host
        known = self._find_instance(uuid, [source], target.cell_uuid)
        self._read_held(source)
        migration = self._migration
        held = client.get_allocs_for_consumer(self._ctxt, uuid)['allocations']
        if held and not client.move_allocations(self._ctxt, uuid, migration):
            return False
        if not self._claim(uuid, spec_obj, target, known):
            if held:
                client.move_allocations(self._ctxt, migration, uuid)
            return False
        client.delete_allocation_for_instance(
            self._ctxt, migration, consumer_type='migration'
        )
        given = target.allocation_candidates[0]['allocations']
        self._free(source, uuid, spec_obj, taken, held.keys() - given.keys())
        for node in self._cloud.nodes_of(host) if host != target.host else ():
            self._own(node).instances.pop(uuid, None)
        return True

    def leave(
        self, uuid: str, spec_obj: typing.Any, node: str, taken: claims.Taken
    ) -> None:
        """Remove a server, as if it had never been.

        :param uuid: UUID of the server; other parameters: see :meth:`move`
        """
        client = self._cloud.client
        source, taken = self.placed.get(uuid, (node, taken))
        self._read_held(source)
        held = client.get_allocs_for_consumer(self._ctxt, uuid)['allocations']
        client.delete_allocation_for_instance(self._ctxt, uuid)
        self._free(source, uuid, spec_obj, taken, held)
        for one in self._cloud.nodes_of(self._cloud.states[source].host):
            self._own(one).instances.pop(uuid, None)
        self._places[uuid] = frozenset()

    def free(self, consumer: str, node: str) -> None:
        """Remove the allocations of a consumer that is no server.

        :param consumer: its UUID
        :param node: UUID of the compute node that has more room then
        """
        client = self._cloud.client
        self._read_held(node)
        held = client.get_allocs_for_consumer(self._ctxt, consumer)
        if allocations := held['allocations']:
            client.delete_allocation_for_instance(self._ctxt, consumer)
            # For a new version, with which kept answers about it expire.
            self._own(node)
            self._note_vacated(node, allocations)

    def enlarge(self, node: str) -> None:
        """Note that a host has more room than placement knows.

        :param node: UUID of its compute node
        """
        # For a new version.
        self._own(node)
        self._note_vacated(node, ())

    def _free(
        self,
        node: str,
        uuid: str,
        spec_obj: typing.Any,
        taken: claims.Taken,
        freed: Iterable[str],
    ) -> None:
        """Give back the resources of a server that has left a compute node.

        :param freed: see :meth:`_note_vacated`
        """
        claims.leave(self._own(node), spec_obj, uuid, taken)
        self._note_vacated(node, freed)

    def _note_vacated(self, host: str, freed: Iterable[str]) -> None:
        """Note the hosts that have more room than before.

        :param host: UUID of the host that a server left
        :param freed: UUIDs of providers on which the server holds nothing any
            more
        """
        providers = self._cloud.providers
        sharing = (providers.served.get(uuid, set()) for uuid in freed)
        vacated = {host}.union(*sharing) & self._cloud.states.keys()
        self.vacated |= vacated
        self._with_several_givers |= {
            uuid for uuid in vacated if len(providers.get_givers(uuid)) > 1
        }

    def count_under_way(self) -> None:
        """Count each server that is migrating on both its hosts.

        nova's filters see it on the source only (LP 1821755).
        """
        for uuid, hosts in self._cloud.under_way.items():
            self._places[uuid] = frozenset(hosts)
            states = self._cloud.states
            nodes = [
                one for host in hosts for one in self._cloud.nodes_of(host)
            ]
            for node in nodes:
                if uuid not in states[node].instances:
                    self._own(node).instances[uuid] = self._find_instance(
                        uuid, nodes, states[node].cell_uuid
                    )

    def _find_instance(
        self, uuid: str, nodes: Iterable[str], cell: str
    ) -> typing.Any:
        """Return a server's nova Instance from a HostState.

        If none has it, return a new one that loads its fields from the cell.

        :param nodes: UUIDs of the compute nodes whose states may have it
        :param cell: UUID of the cell
        """
        states = self._cloud.states
        for node in nodes:
            if node in states and uuid in states[node].instances:
                return states[node].instances[uuid]
        return objects.Instance(self._cloud.context_of(cell), uuid=uuid)

    # What the scheduler's code asks.

    def get_candidates(
        self, ctxt: typing.Any, resources: list[typing.Any]
    ) -> placement.Candidates:
        """Return placement's candidates, and those that the fork opened.

        Candidates that no longer fit are included.

        :param resources: the result of :func:`.query.forms`
        """
        providers = self._cloud.providers
        answer = providers.get_candidates(ctxt, resources)
        openable = self.find_openable(answer.summaries)
        if not openable:
            return answer
        answered = query.by_provider(answer.requests)
        opened = [
            (uuid, request)
            for uuid, requests in self.open(
                resources, openable, answered
            ).items()
            for request in requests[len(answered[uuid]) :]
            if not self.ledger.find_lacking(request)
        ]
        extended = copy.copy(answer)
        extended.requests = [*answer.requests, *(one for _, one in opened)]
        extended.summaries = dict(answer.summaries)
        for uuid, request in opened:
            for one in request['allocations'].keys() - extended.summaries:
                extended.summaries[one] = providers.summarize(one, uuid)
        return extended

    def find_openable(self, known: Mapping[str, object]) -> set[str]:
        """Return vacated hosts that may have candidates beyond the known ones.

        A known host may, if it has several givers.

        :param known: the hosts with known candidates, by UUID
        """
        return (self.vacated - known.keys()) | self._with_several_givers

    def find_unknown(self, resources: Iterable[typing.Any]) -> set[str]:
        """Return the vacated hosts whose candidates cannot all be known.

        These are all vacated hosts if the request has numbered groups, and
        else none. Placement's answer may have some of their candidates.

        :param resources: the result of :func:`.query.forms`
        :returns: UUIDs
        """
        has_groups = any(one.get_num_of_suffixed_groups() for one in resources)
        return {*self.vacated} if has_groups else set()

    def leave_out_full(
        self, offered: placement.Candidates
    ) -> tuple[placement.Candidates, dict[str, list[str]]]:
        """Return the candidates that fit into the room of the fork.

        :param offered: the result of :meth:`get_candidates`
        :returns: the fitting candidates; and, by UUID of each provider that is
            in none of these, the resource classes that its last candidate
            lacks
        """
        fitting = copy.copy(offered)
        short = [self.ledger.find_lacking(one) for one in offered.requests]
        requests = list(zip(offered.requests, short, strict=True))
        fitting.requests = [one for one, names in requests if not names]
        remaining = query.by_provider(fitting.requests)
        full = {
            uuid: names
            for one, names in requests
            for uuid in one['allocations']
            if uuid not in remaining
        }
        # nova takes the hosts from the summaries.
        fitting.summaries = {
            uuid: summary
            for uuid, summary in offered.summaries.items()
            if uuid not in full
        }
        return fitting, full

    def has_moved(self, group: typing.Any) -> bool:
        """Return whether the fork counts a group's members on other hosts.

        :param group: None if there is none
        """
        return bool(group) and not self._places.keys().isdisjoint(
            group.members
        )

    def correct_group(self, group: typing.Any) -> None:
        """Update a nova InstanceGroup with its members' present hosts.

        :param group: the nova InstanceGroup, or None
        """
        if not self.has_moved(group):
            return
        states = self._cloud.states
        group.hosts = sorted(
            states[node].host
            for node in self.find_nodes(group.members)
            if not states[node].instances.keys().isdisjoint(group.members)
        )

    def find_nodes(self, servers: Iterable[str]) -> set[str]:
        """Return all compute nodes that may have some servers, and a few more.

        Of a large cloud, few: those that have them without a fork, and all
        that changed.
        """
        known = self._cloud.nodes_by_server
        return self.all_touched.union(*(known.get(one, ()) for one in servers))

    def open(
        self,
        resources: Iterable[typing.Any],
        hosts: Iterable[str],
        answered: Mapping[str, Sequence[claims.Request]],
    ) -> dict[str, list[claims.Request]]:
        """Return the allocation requests that vacated hosts may satisfy.

        :param resources: the result of :func:`.query.forms`
        :param hosts: UUIDs of the hosts
        :param answered: the allocation requests of placement's answer, by the
            hosts' UUIDs
        :returns: by UUID of each host, those of placement's answer first, then
            those that the fork may make possible
        """
        requests = {uuid: [*answered.get(uuid, ())] for uuid in hosts}
        for form in resources:
            for uuid, request in self._find_opened(form, {*requests}):
                if all(
                    request['allocations'] != one['allocations']
                    for one in requests[uuid]
                ):
                    requests[uuid].append(request)
        return requests

    def tell_held(self, node: str, held: Mapping[str, ledger.Body]) -> None:
        """Note the allocations on a host, so that placement is not asked.

        :param node: UUID of the host's compute node
        :param held: the result of :meth:`.placement.Providers.get_held`
        """
        self._held.add(node)
        self._known |= held

    def _read_held(self, node: str | None) -> None:
        """Read the allocations of all servers of a compute node at once."""
        if node is not None and node not in self._held:
            self.tell_held(node, self._cloud.providers.get_held(node))

    def _own(self, uuid: str) -> typing.Any:
        """Return this fork's own copy of a host's state, to be changed.

        Each call gives the state a new version.
        """
        states, versions = self._cloud.states, self._cloud.versions
        if uuid not in self._states:
            self._states[uuid] = states[uuid], versions.get(uuid, 0)
            states[uuid] = claims.copy_state(states[uuid])
            self.all_touched.add(uuid)
        self.version = versions[uuid] = next(_VERSIONS)
        return states[uuid]

    def _read(self, consumer: str) -> ledger.Body:
        if consumer not in self._known:
            if self.before:
                return self.before._read(consumer)
            self._known[consumer] = self._cloud.client.read_allocations(
                consumer
            )
        return self._known[consumer]

    def _find_opened(
        self, form: typing.Any, hosts: set[str]
    ) -> Iterator[tuple[str, claims.Request]]:
        """Yield hosts with an allocation request that placement would make.

        It would if the fork were the cloud and there is room: that is not
        looked at here.

        :param form: a nova ResourceRequest
        :param hosts: UUIDs of vacated hosts
        """
        numbered = self._ask_numbered(form)
        providers = self._cloud.providers
        amounts = query.get_unnumbered(form)
        # What the providers of a request must have between them, and what
        # each host, and each provider that it shares, must satisfy.
        traits, bounds = [], []
        for part in query.split(form.to_querystring()):
            if part.key == 'required':
                traits.append(part)
            elif part.key != 'resources':
                bounds.append(part)
                hosts = hosts - providers.find_lacking(part, hosts)
        for uuid in sorted(hosts):
            if not numbered[uuid]:
                continue
            givers = providers.get_givers(uuid, bounds)
            choices = (
                [one for one in givers if providers.gives(one, name, amount)]
                for name, amount in amounts.items()
            )
            for chosen in itertools.islice(
                itertools.product(*choices), _MOST_CHOICES
            ):
                if providers.have(chosen, traits):
                    request = _make_request(chosen, amounts)
                    for other in numbered[uuid]:
                        merged = _merge(request, other)
                        if all(
                            providers.gives(*key, amount)
                            for key, amount in ledger.amounts(
                                merged['allocations']
                            )
                        ):
                            yield uuid, merged

    def _ask_numbered(
        self, form: typing.Any
    ) -> Mapping[str, Sequence[claims.Request]]:
        """Ask placement for the numbered groups of a request.

        :param form: a nova ResourceRequest
        :returns: allocation requests by the hosts' UUIDs; for a request
            without numbered groups, one empty request for any host
        """
        if not form.get_num_of_suffixed_groups():
            return collections.defaultdict(lambda: [_NO_NUMBERED])
        given = collections.defaultdict[str, list[claims.Request]](list)
        if numbered := query.keep_numbered(form):
            answer = self._cloud.providers.get_candidates(
                self._ctxt, [numbered]
            )
            for request in answer.requests:
                root, *others = {
                    answer.summaries[uuid]['root_provider_uuid']
                    for uuid in request['allocations']
                }
                if not others and len(given[root]) < _MOST_CHOICES:
                    given[root].append(request)
        return given


def _merge(request: claims.Request, other: claims.Request) -> claims.Request:
    """Merge two allocation requests into one."""
    amounts = collections.defaultdict[str, collections.Counter[str]](
        collections.Counter
    )
    for part in (request, other):
        for uuid, given in part['allocations'].items():
            amounts[uuid].update(given['resources'])
    return {
        'allocations': {
            uuid: {'resources': dict(given)} for uuid, given in amounts.items()
        },
        'mappings': {**other['mappings'], **request['mappings']},
    }


def _make_request(
    chosen: Iterable[str], amounts: Mapping[str, int]
) -> claims.Request:
    """Return an allocation request.

    :param chosen: UUIDs of the providers, in the order of the amounts
    """
    allocations: dict[str, typing.Any] = {}
    for uuid, (name, amount) in zip(chosen, amounts.items(), strict=True):
        given = allocations.setdefault(uuid, {'resources': {}})
        given['resources'][name] = amount
    return {'allocations': allocations, 'mappings': {'': [*allocations]}}
