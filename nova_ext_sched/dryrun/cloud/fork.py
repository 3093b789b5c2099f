# SPDX-License-Identifier: Apache-2.0

"""Supposes servers that come, move or are evacuated.

``with cloud.fork() as future:`` is the one way to suppose anything. As long as
the block runs, the cloud answers as it would then; afterwards it is as before.
Forks are a stack in one thread: the last one ends first. One that is a trial
ends with :meth:`Fork.keep` where it succeeds: the fork before it goes on with
what happened.

*nova's own code claims.* Its report client makes the allocations, which the
:mod:`.ledger` answers; the host state that the filters left is consumed by
nova's own method, with the limits that they set. What nova has no code for in
the scheduler, a server that leaves, is :func:`.claims.leave`.

Placement is asked about the cloud as it is: it knows nothing of a fork. Of its
candidates the ledger leaves out those that the fork has filled. Those that the
fork opens are found on hosts that servers left:

=======================================  ==================================
a host that servers left                 it is a candidate
=======================================  ==================================
is in placement's answer                 it is one already; others of its
                                         providers may give more
satisfies every constraint of the query  if each amount is left on one provider
but the amounts                          of its tree, or on one that it shares,
                                         whose inventory gives such an amount
lacks a constraint                       no
any; the request has numbered groups     if placement would give all of these
                                         groups now, and the rest is left as
                                         above; whether they are there only
                                         since servers left is not known
=======================================  ==================================

For these hosts the choice that placement would make is made here, of what is
in no numbered group: each resource class comes from one provider, the host's
own first; each required trait is on one of the providers chosen, a forbidden
one on none.
"""

import collections
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

# The resources of a request without a numbered group.
_NO_GROUPS: claims.Request = {'allocations': {}, 'mappings': {}}

# Numbers for states of hosts: no two states ever have the same.
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

    :ivar before: the fork that this one goes on from; None for the cloud
    :ivar moved: the host of each server that came or moved, by its UUID
    :ivar placed: the UUID of its compute node, and what it has there
    :ivar touched: UUIDs of the hosts that changed in this fork
    :ivar vacated: UUIDs of the hosts that servers left
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
        # Vacated hosts where another provider, too, may give something.
        self._several: set[str] = set(before._several) if before else set()
        self.placed: collections.ChainMap[str, tuple[str, claims.Taken]] = (
            before.placed.new_child() if before else collections.ChainMap()
        )
        # State and version of hosts as they were before.
        self._states: dict[str, tuple[typing.Any, int]] = {}
        # The places where servers count, by their UUIDs.
        self._places: collections.ChainMap[str, sources.Places] = (
            before._places.new_child() if before else collections.ChainMap()
        )
        self._known: dict[str, ledger.Body] = {}
        self._held: set[str] = set(before._held) if before else set()
        # The consumer of the next migration; each ends before the next one.
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
        """Pass the state of this fork to the one below it.

        To be called last, in the block of a fork on top of another.
        """
        before = self.before
        assert before is not None, 'expected a fork on top of another'
        self._is_kept = True
        before._states = self._states | before._states
        before.moved.update(self.moved.maps[0])
        before.vacated, before._several = self.vacated, self._several
        before.placed.update(self.placed.maps[0])
        before._places.update(self._places.maps[0])
        before._held = self._held
        before._known |= self._known
        for consumer in before.ledger.take_over(self.ledger):
            # What placement said of the consumer holds no longer.
            before._known.pop(consumer, None)

    @property
    def places(self) -> Mapping[str, sources.Places]:
        """The hosts on which servers that came or moved count, by UUID."""
        return self._places

    @property
    def touched(self) -> Iterable[str]:
        """UUIDs of the hosts that this fork has changed."""
        return self._states.keys()

    # What may happen.

    def come(
        self, uuid: str, spec_obj: typing.Any, target: typing.Any
    ) -> bool:
        """Build a new server on a host.

        :param uuid: of the server
        :param spec_obj: its nova RequestSpec
        :param target: the nova HostState that the filters left, with its
            allocation candidates
        :returns: False where nova's claim fails; nothing has changed then
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

        It keeps what it holds of that host, until nova-compute starts there.

        :param node: UUID of the compute node that failed, so that what all
            its servers hold is read at once; None where it has none
        :returns: as :meth:`come`; the other parameters too
        """
        self._read_held(node)
        # A server that came in a fork leaves the host that it went to.
        source = node or self.placed.get(uuid, ('',))[0]
        known = self._find_instance(uuid, [source], target.cell_uuid)
        return self._claim(uuid, spec_obj, target, known)

    def allocate(
        self, uuid: str, spec_obj: typing.Any, request: claims.Request
    ) -> bool:
        """Claim a new server in placement alone.

        :param request: one of its allocation candidates
        :returns: as :meth:`come`; the other parameters too
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
        """Migrate a server, live or cold, to the end; perhaps once more.

        As nova: its allocations are the migration's, it takes what it needs
        at the destination, and only then leaves its host.

        :param node: UUID of the compute node where it is in the cloud
        :param taken: its resources there
        :returns: as :meth:`come`; the other parameters too
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

        :param uuid: of the server; the others as of :meth:`move`
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
        """Remove allocations from placement that no server holds any more.

        :param node: UUID of the compute node that has more room then
        """
        client = self._cloud.client
        self._read_held(node)
        held = client.get_allocs_for_consumer(self._ctxt, consumer)
        if allocations := held['allocations']:
            client.delete_allocation_for_instance(self._ctxt, consumer)
            # The host is another than before, for those who kept an answer.
            self._own(node)
            self._note_vacated(node, allocations)

    def enlarge(self, node: str) -> None:
        """Note that a host has more room than placement knows.

        :param node: UUID of its compute node
        """
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

        :param freed: as of :meth:`_note_vacated`
        """
        claims.leave(self._own(node), spec_obj, uuid, taken)
        self._note_vacated(node, freed)

    def _note_vacated(self, host: str, freed: Iterable[str]) -> None:
        """Note the hosts that have more room than before.

        :param host: UUID of the one that a server left
        :param freed: UUIDs of providers that it has nothing of any more
        """
        providers = self._cloud.providers
        sharing = (providers.served.get(uuid, set()) for uuid in freed)
        vacated = {host}.union(*sharing) & self._cloud.states.keys()
        self.vacated |= vacated
        self._several |= {
            uuid for uuid in vacated if len(providers.get_givers(uuid)) > 1
        }

    def count_under_way(self) -> None:
        """Count servers that migrate on both hosts, until that has ended.

        nova's own filters do not see the destination (LP 1821755).
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
        """Return the nova Instance of a server that is there.

        :param nodes: UUIDs of the compute nodes that may have it
        :param cell: UUID of the cell whose database has it otherwise
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

        Candidates that the fork filled are among them.

        :param resources: the result of :func:`.query.forms`
        """
        providers = self._cloud.providers
        answer = providers.get_candidates(ctxt, resources)
        hidden = self.find_other(answer.summaries)
        if not hidden:
            return answer
        answered = query.by_provider(answer.requests)
        opened = [
            (uuid, request)
            for uuid, requests in self.open(
                resources, hidden, answered
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

    def find_other(self, known: Mapping[str, object]) -> set[str]:
        """Return hosts whose room for a request is not known yet.

        :param known: what is known, by the hosts' UUIDs
        """
        return self.vacated - known.keys() | self._several

    def find_unknown(self, resources: Iterable[typing.Any]) -> set[str]:
        """Return hosts that servers left whose candidates are unknown.

        Placement's answer may have some of theirs.

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
        :returns: they, and of each host that is full now the resource classes
            that it has too little of
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
        # nova reads from the summaries which hosts there are.
        fitting.summaries = {
            uuid: summary
            for uuid, summary in offered.summaries.items()
            if uuid not in full
        }
        return fitting, full

    def has_moved(self, group: typing.Any) -> bool:
        """Return whether members of a nova InstanceGroup are elsewhere now.

        :param group: None where there is none
        """
        return bool(group) and not self._places.keys().isdisjoint(
            group.members
        )

    def correct_group(self, group: typing.Any) -> None:
        """Update a nova InstanceGroup with its members' present hosts.

        :param group: None where there is none
        """
        if not self.has_moved(group):
            return
        group.hosts = [
            state.host
            for state in self._cloud.states.values()
            if not state.instances.keys().isdisjoint(group.members)
        ]

    def open(
        self,
        resources: Iterable[typing.Any],
        hosts: Iterable[str],
        answered: Mapping[str, Sequence[claims.Request]],
    ) -> dict[str, list[claims.Request]]:
        """Return the requests that hosts left by servers might satisfy.

        :param resources: the result of :func:`.query.forms`
        :param hosts: UUIDs
        :param answered: the allocation requests that placement's answer has
            of hosts, by UUID
        :returns: for each of the hosts these, and then others
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
        """Note what consumers hold of a host, so that placement is not asked.

        :param node: UUID of its compute node
        :param held: as :meth:`.placement.Providers.get_held` returned
        """
        self._held.add(node)
        self._known |= held

    def _read_held(self, node: str | None) -> None:
        """Read the allocations of all servers of a compute node at once."""
        if node is not None and node not in self._held:
            self.tell_held(node, self._cloud.providers.get_held(node))

    def _own(self, uuid: str) -> typing.Any:
        """Return the state of a host for this fork alone, to change it."""
        states, versions = self._cloud.states, self._cloud.versions
        if uuid not in self._states:
            self._states[uuid] = states[uuid], versions.get(uuid, 0)
            states[uuid] = claims.copy_state(states[uuid])
        versions[uuid] = next(_VERSIONS)
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
        """Yield hosts with an allocation request that placement may make now.

        :param form: a nova ResourceRequest
        :param hosts: UUIDs of hosts that servers left
        """
        numbered = self._ask_numbered(form)
        providers = self._cloud.providers
        amounts = query.get_unnumbered(form)
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
        :returns: by the hosts' UUIDs; an empty one where there are no groups
        """
        if not form.get_num_of_suffixed_groups():
            return collections.defaultdict(lambda: [_NO_GROUPS])
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
    """Return an allocation request that asks for all of two."""
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

    :param chosen: the UUID of the provider of each of the amounts
    """
    allocations: dict[str, typing.Any] = {}
    for uuid, (name, amount) in zip(chosen, amounts.items(), strict=True):
        given = allocations.setdefault(uuid, {'resources': {}})
        given['resources'][name] = amount
    return {'allocations': allocations, 'mappings': {'': [*allocations]}}
