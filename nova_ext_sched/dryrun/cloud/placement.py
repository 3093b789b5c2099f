# SPDX-License-Identifier: Apache-2.0

"""Asks placement through nova's client, each question once."""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Set
import contextlib
import functools
import inspect
import pickle
import typing
from urllib import parse
import zlib

import cachetools
from keystoneauth1 import exceptions as ks_exc
from nova.scheduler.client import report
import os_traits

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import waiting
from nova_ext_sched.dryrun.cloud import ledger
from nova_ext_sched.dryrun.cloud import query

# The answers of a server to which a query is too long.
_TOO_LONG = (413, 414, 431)

# Characters of a query that every server takes: uwsgi's buffer is the
# smallest. For a longer one a server in front of placement may also close the
# connection, or answer one of these, with a page of its own.
_TAKEN_BY_ALL = 1000
_MAY_BE_TOO_LONG = (400, 500, 502)

# The most allocation requests that are kept, of all answers together. One
# takes some kilobytes with its summary, and in a large cloud an answer has
# thousands.
_MOST_REQUESTS = 10_000

# The most bytes of packed answers. One of 10,000 hosts takes a megabyte, and
# placement several seconds of CPU; each cell asks for the same flavors.
_MOST_PACKED = 64 * 2**20

# Hosts whose trees are asked for one by one. An answer with those of thousands
# of hosts takes as long as some dozens of these.
_ALONE = 40

_CONSUMER_TYPE_VERSION = '1.38'

_ALLOCATIONS = '/allocations/'

# An attribute has the name of the module.
_Ledger = ledger.Ledger
_Body = ledger.Body

# The fields of a summary that are kept. The traits of all hosts would be
# large.
_OF_SUMMARY = ('root_provider_uuid', 'resources')


class PlacementFailed(exception.NovaExtSchedError):
    """Placement did not answer, or not as it should.

    :param query: the query
    :param cause: what came back
    """

    query: str
    cause: str
    #: Whether it may answer later.
    is_away = False

    message = (
        '[placement] in nova.conf: expected an answer to GET {query}, got: '
        '{cause}'
    )


class QueryRefused(PlacementFailed):
    """Placement answers with an error of its own, and takes other queries.

    That is an answer: nova-scheduler gets no other, and finds no host.

    :ivar kind: its name, for tools that count
    """

    kind = 'query refused'

    @property
    def reason(self) -> str:
        """The same in words."""
        return f'placement answers {self.cause}'

    @property
    def detail(self) -> str:
        """Further detail of the reason."""
        return ''


class QueryTooLong(QueryRefused):
    """The server in front of placement does not take a query of this length.

    :ivar cause: the server's text
    """

    kind = 'query length'

    @property
    def reason(self) -> str:
        """The same in words."""
        return (
            f'{len(self.query)} characters are too many for placement or a '
            'server in front of it'
        )

    @property
    def detail(self) -> str:
        """The server's text."""
        return self.cause


class ReportClient(report.SchedulerReportClient):
    """nova's client of placement, which only reads."""

    #: The text with which placement last refused a query.
    refusal = ''

    #: Answers for allocations, as long as a fork is open.
    ledger: _Ledger | None = None

    # Without nova's decorator for retries, which sleeps before the first try
    # too: for no time, but that takes milliseconds on a busy machine. A claim
    # in a fork has no rival, and is never tried again.
    claim_resources = inspect.unwrap(
        report.SchedulerReportClient.claim_resources
    )
    move_allocations = inspect.unwrap(
        report.SchedulerReportClient.move_allocations
    )

    #: Decides whether to ask again while it is away; None for never.
    patience: waiting.Waiting | None = None

    def get(
        self, url: str, *args: typing.Any, **kwargs: typing.Any
    ) -> typing.Any:
        """Ask placement; see :meth:`_get_once`."""
        if self.ledger is not None and url.startswith(_ALLOCATIONS):
            return self.ledger.get(url.removeprefix(_ALLOCATIONS))
        return self._repeat(lambda: self._get_once(url, *args, **kwargs))

    def _repeat(self, question: Callable[[], typing.Any]) -> typing.Any:
        return self.patience.ask(question) if self.patience else question()

    def _get_once(
        self, url: str, *args: typing.Any, **kwargs: typing.Any
    ) -> typing.Any:
        """Ask placement once.

        ===========================================  ======================
        what comes back                              result
        ===========================================  ======================
        200, and placement's own 400                 returned
        413, 414, 431                                :class:`QueryTooLong`
        placement's own error of another status;     :class:`QueryRefused`
        another query is answered
        a closed connection, or a server's own 400,  :class:`QueryTooLong`
        500 or 502; the query is longer than some
        server takes, and another one is answered
        anything else                                :class:`PlacementFailed`
        ===========================================  ======================

        :returns: a response
        :raises PlacementFailed: or one of its kinds
        """
        try:
            response = super().get(url, *args, **kwargs)
        except ks_exc.ClientException as exc:
            closes = isinstance(exc, ks_exc.ConnectFailure)
            raise self._failure(
                QueryTooLong if closes and _is_long(url) else None,
                url,
                messages.say_error(exc),
                waiting.is_away(exc),
            ) from exc
        status = response.status_code
        if status == 200:
            return response
        detail = response.text or response.reason
        failure: type[QueryRefused] | None = None
        try:
            detail = response.json()['errors'][0]['detail']
        except (ValueError, LookupError, TypeError):
            # A server in front of placement may have answered.
            if status in _MAY_BE_TOO_LONG and _is_long(url):
                failure = QueryTooLong
        else:
            # Without the statement that an error of the database ends with.
            detail = ' '.join(detail.partition('[SQL: ')[0].split())
            failure = QueryRefused
        self.refusal = f'{status} {messages.clean(detail.strip())}'
        if status in _TOO_LONG:
            raise QueryTooLong(query=url, cause=self.refusal)
        if status == 400 and failure is QueryRefused:
            return response
        raise self._failure(failure, url, self.refusal, status >= 500)

    def _failure(
        self,
        failure: type[QueryRefused] | None,
        url: str,
        cause: str,
        is_away: bool,
    ) -> PlacementFailed:
        """Return the error to raise for a failed query.

        :param failure: what it is unless placement is away
        :param is_away: whether it may be
        """
        answers = False
        if failure:
            with contextlib.suppress(ks_exc.ClientException):
                # A request that placement's database has to answer too.
                other = super().get('/resource_providers?name=nova-ext-sched')
                answers = other.status_code == 200
        cls = failure if failure and answers else PlacementFailed
        failed = cls(query=url, cause=cause)
        failed.is_away = is_away and cls is PlacementFailed
        return failed

    def read_allocations(self, consumer: str) -> _Body:
        """Return the allocations of a consumer, in a fork too."""
        response = self._repeat(
            lambda: super(ReportClient, self).get(
                f'{_ALLOCATIONS}{consumer}',
                version=report.CONSUMER_GENERATION_VERSION,
            )
        )
        if response.status_code != 200:
            raise PlacementFailed(
                query=f'{_ALLOCATIONS}{consumer}', cause=response.text
            )
        return dict(response.json())

    def put(
        self, url: str, data: _Body, *_: object, **__: object
    ) -> typing.Any:
        """Claim in the ledger of a fork.

        :raises RuntimeError: no fork is open, or nova's own code came to
            write something else
        """
        if self.ledger is None or not url.startswith(_ALLOCATIONS):
            return self.delete(url)
        return self.ledger.put(url.removeprefix(_ALLOCATIONS), data)

    def post(
        self, url: str, data: dict[str, _Body], *_: object, **__: object
    ) -> typing.Any:
        """Move allocations in the ledger of a fork; else as :meth:`put`."""
        if self.ledger is None or url != _ALLOCATIONS.rstrip('/'):
            return self.delete(url)
        return self.ledger.post(data)

    def delete(self, url: str, *_: object, **__: object) -> typing.NoReturn:
        """Refuse to write.

        :raises RuntimeError: always; nova's own code came to write
        """
        raise RuntimeError(
            f'placement: expected only reads, got a write to {url}'
        )


def _is_long(url: str) -> bool:
    return len(url) > _TAKEN_BY_ALL


class Candidates:
    """Allocation candidates as nova-scheduler gets them for a request.

    :param client: a :class:`ReportClient`
    :param resources: the result of :func:`.query.forms`
    :ivar requests: allocation requests, as nova has them
    :ivar summaries: provider summaries, by UUID of the provider
    :ivar refusals: placement's errors in place of an answer
    :ivar is_full: whether ``max_placement_results`` may have cut the answer
    :ivar is_lifted: whether it has hosts that placement's own limit left out
    :ivar queries: the query strings of the requests to placement
    """

    def __init__(
        self, ctxt: typing.Any, client: typing.Any, resources: list[typing.Any]
    ) -> None:
        self.requests: list[typing.Any] = []
        self.summaries: dict[str, typing.Any] = {}
        self.refusals: list[str] = []
        self.is_full = self.is_lifted = False
        self.queries = [form.to_querystring() for form in resources]
        for form in resources:
            requests, summaries, _version = client.get_allocation_candidates(
                ctxt, form
            )
            if requests is None:
                # nova's method logs the reason and does not return it.
                self.refusals.append(client.refusal)
                continue
            self.requests += requests
            self.summaries.update(summaries)
            if form._limit is not None and len(requests) >= form._limit:
                self.is_full = True

    def pack(self) -> bytes:
        """Return the answer in a tenth of its memory."""
        return zlib.compress(pickle.dumps(vars(self)), level=1)

    @classmethod
    def unpack(cls, packed: bytes) -> typing.Self:
        """Return an answer that was packed."""
        answer = cls.__new__(cls)
        vars(answer).update(pickle.loads(zlib.decompress(packed)))
        return answer


class Providers:
    """Asks placement which hosts satisfy a part of a query, once each.

    :param client: a :class:`ReportClient`
    :param supposed: fields of inventories as they would be, by the UUID of
        the provider and the resource class
    """

    def __init__(
        self,
        client: typing.Any,
        supposed: Mapping[str, Mapping[str, Mapping[str, float]]]
        | None = None,
    ) -> None:
        self._client, self._supposed = client, supposed or {}
        self._ask = functools.cache(self._get_roots)
        self._uuids: dict[str, str] = {}
        #: Returns the summaries of all providers that have one unit of a
        #: resource class free, and of those in their trees, by UUID.
        self.get_summaries = functools.cache(self._get_summaries)
        #: Takes a provider's UUID; returns capacity and use of each resource
        #: class, in the form of summaries.
        self.get_inventories = functools.cache(self._get_inventories)
        #: Takes a provider's UUID; returns the inventory of each resource
        #: class as placement stores it, without its use.
        self.get_stored = functools.cache(
            functools.partial(self._read, what='inventories')
        )
        self._get_shared_allocations = functools.cache(self.get_allocations)
        self._answers: dict[tuple[str, ...], Candidates] = {}
        # Those that were kept before.
        self._packed: cachetools.LRUCache[tuple[str, ...], bytes] = (
            cachetools.LRUCache(_MOST_PACKED, getsizeof=len)
        )
        # Hosts whose trees were asked for.
        self._asked_alone: set[str] = set()
        # Capacity and use of each provider in any answer, by UUID.
        self._rooms: dict[str, dict[str, dict[str, typing.Any]]] = {}

    def get_candidates(
        self, ctxt: typing.Any, resources: list[typing.Any]
    ) -> Candidates:
        """Return allocation candidates; equal queries are asked once.

        :param resources: the result of :func:`.query.forms`
        """
        key = query.key_of(resources)
        if key not in self._answers:
            kept = sum(len(one.requests) for one in self._answers.values())
            if kept >= _MOST_REQUESTS:
                self._pack()
            packed = self._packed.get(key)
            answer = (
                Candidates.unpack(packed)
                if packed
                else Candidates(ctxt, self._client, resources)
            )
            self._answers[key] = answer
            self._rooms |= {
                uuid: summary['resources']
                for uuid, summary in answer.summaries.items()
            }
        return self._answers[key]

    def _pack(self) -> None:
        """Pack the answers that are kept, so that they take less memory."""
        for key in self._answers.keys() - self._packed.keys():
            self.keep(key, self._answers[key].pack())
        self._answers = {}

    def keep(self, key: tuple[str, ...], packed: bytes) -> None:
        """Keep a packed answer, unless it is too large.

        :param key: the result of :func:`.query.key_of`
        """
        # Else the cache would raise.
        if len(packed) <= _MOST_PACKED:
            self._packed[key] = packed

    def get_room(self, uuid: str) -> dict[str, dict[str, typing.Any]]:
        """Return a provider's inventory and usage, as an answer has them.

        :returns: ``capacity`` and ``used`` of each resource class
        """
        inventories = self._rooms.get(uuid)
        if inventories is None:
            inventories = self.get_inventories(uuid)
        for name, changed in self._supposed.get(uuid, {}).items():
            stored = {**self.get_stored(uuid)[name], **changed}
            inventories = {
                **inventories,
                name: {
                    **inventories[name],
                    'capacity': ledger.count_capacity(stored),
                },
            }
        return inventories

    def get_held(self, uuid: str) -> dict[str, _Body]:
        """Return the allocations of all consumers on a host.

        For each consumer, they include those on the other providers of the
        tree, and on sharing providers that serve the host.

        :param uuid: UUID of the host's own provider
        """
        of_host = {
            one: self.get_allocations(one) for one in self.get_tree(uuid)
        }
        return ledger.collect(of_host, self._get_shared(uuid))

    def get_shared(self, uuid: str) -> dict[str, _Body]:
        """Return the allocations on the sharing providers that serve a host.

        :param uuid: UUID of the host's own provider
        """
        return ledger.collect(self._get_shared(uuid), {})

    def _get_shared(self, uuid: str) -> dict[str, dict[str, typing.Any]]:
        return {
            one: self._get_shared_allocations(one)
            for one, roots in self.served.items()
            if uuid in roots
        }

    def roots(self, *params: tuple[str, str]) -> set[str]:
        """Return the root providers that satisfy parameters; by default all.

        The root provider of a host is its compute node.
        """
        return {
            uuid for uuid, root in self._ask(*params).items() if uuid == root
        }

    def find_lacking(self, part: query.Part, hosts: set[str]) -> set[str]:
        """Return the hosts that do not satisfy a part.

        :param part: if it forbids, a trait or aggregates (``!in:a,b``)
        :param hosts: UUIDs
        """
        key = 'required' if part.key == 'root_required' else part.key
        if part.forbids:
            return hosts & self.roots((key, part.value[1:]))
        if part.key in ('root_required', 'member_of'):
            return hosts - self.roots((key, part.value))
        # Any provider of the tree may have it, or a sharing one.
        params = [(key, part.value)]
        if part.key == 'group':
            params = part.group
        found = self._ask(*params)
        return hosts.difference(
            found.values(), *(self.served.get(uuid, ()) for uuid in found)
        )

    def find_fitting(self, params: Iterable[tuple[str, str]]) -> Set[str]:
        """Return the providers that satisfy parameters, by UUID."""
        return self._ask(*params).keys()

    def get_givers(
        self, host: str, bounds: Iterable[query.Part] = ()
    ) -> list[str]:
        """Return the providers that can give resources to a host's servers.

        :param host: UUID of the host's own provider
        :param bounds: parts of the query about aggregates and trees, which
            sharing providers must satisfy, too
        :returns: UUIDs: of its own provider, those below it, and the sharing
            ones that serve it
        """
        below = sorted({*self.get_tree(host)} - {host})
        sharing = [
            uuid
            for uuid, roots in self.served.items()
            if host in roots
            and uuid != host
            and all(
                (uuid in self._having(part)) != part.forbids
                for part in bounds
                if part.key in ('member_of', 'in_tree')
            )
        ]
        return [host, *below, *sharing]

    def gives(self, uuid: str, name: str, amount: int) -> bool:
        """Return whether a provider's units allow an amount for one consumer.

        :param name: name of the resource class
        """
        found = self.get_stored(uuid).get(name)
        return found is not None and ledger.fits_units(found, amount)

    def have(self, uuids: Iterable[str], traits: Iterable[query.Part]) -> bool:
        """Return whether providers have traits between them.

        :param traits: parts of the query: a required trait must be on one of
            the providers, a forbidden one on none
        """
        return all(
            self._having(part).isdisjoint(uuids) == part.forbids
            for part in traits
        )

    def summarize(self, uuid: str, host: str) -> dict[str, typing.Any]:
        """Return a provider's summary, as placement's answers have it.

        :param host: UUID of a host to which the provider gives resources
        """
        root = uuid if uuid in self.served else host
        return {'root_provider_uuid': root, 'resources': self.get_room(uuid)}

    def _having(self, part: query.Part) -> Set[str]:
        """Return the providers with a part's trait, resource or aggregate."""
        return self._ask((part.key, part.value.removeprefix('!'))).keys()

    def knows(self, part: query.Part) -> bool:
        """Return whether placement knows the trait that a part requires."""
        if part.forbids or part.key not in ('required', 'root_required'):
            return True
        return bool(self.find_known([part.value]))

    @functools.cached_property
    def served(self) -> dict[str, set[str]]:
        """The root providers that each sharing provider serves, by its UUID.

        They are those in an aggregate with the sharing provider.
        """
        served = {}
        trait = os_traits.MISC_SHARES_VIA_AGGREGATE
        for uuid in self._ask(('required', trait)):
            url = f'/resource_providers/{uuid}/aggregates'
            if aggregates := self._get(url)['aggregates']:
                members = ('member_of', f'in:{",".join(aggregates)}')
                served[uuid] = {*self._ask(members).values()}
        return served

    def find_known(self, traits: Collection[str]) -> set[str]:
        """Return the traits that placement knows among these."""
        url = f'/traits?name=in:{parse.quote(",".join(sorted(traits)))}'
        return {*self._get(url).get('traits', ())}

    def get_traits(self, uuid: str) -> set[str]:
        """Return the traits of a provider itself."""
        return {*self._read(uuid, 'traits')}

    def get_allocations(self, uuid: str) -> dict[str, typing.Any]:
        """Return the allocations of a provider by consumer."""
        return self._read(uuid, 'allocations')

    @functools.cached_property
    def trees(self) -> dict[str, set[str]]:
        """The providers of each host by its UUID, itself among them.

        One question for all hosts, where :meth:`get_tree` asks for one.
        """
        trees = collections.defaultdict[str, set[str]](set)
        for uuid, root in self._ask().items():
            trees[root].add(uuid)
        return trees

    def get_tree(self, uuid: str) -> Collection[str]:
        """Return the providers of a host's tree, with its own.

        One host after the other is asked about, and after some all at once.
        """
        if 'trees' not in vars(self):
            self._asked_alone.add(uuid)
            if len(self._asked_alone) <= _ALONE:
                return self._ask(('in_tree', uuid)).keys()
        return self.trees.get(uuid, frozenset())

    def read_all(self, names: Iterable[str]) -> None:
        """Read the trees and the free amounts of all hosts in a few questions.

        Without it each host is asked about alone when its turn comes. So is a
        provider that has nothing free of these classes.

        :param names: names of resource classes
        """
        unread = set[str]().union(*self.trees.values()) - self._rooms.keys()
        for name in names:
            if not unread:
                break
            summaries = self.get_summaries(name)
            self._rooms |= {
                uuid: summaries[uuid]['resources']
                for uuid in summaries.keys() & unread
            }
            unread -= summaries.keys()

    def get_consumer(self, uuid: str) -> _Body:
        """Return all allocations of a consumer, with its project and user."""
        return self._get(f'{_ALLOCATIONS}{uuid}')

    def get_consumer_type(self, uuid: str) -> str | None:
        """Return the type of a consumer.

        :returns: None if it has no allocation, or placement knows no types
        """
        found = {}
        with contextlib.suppress(QueryRefused):
            found = self._get(f'/allocations/{uuid}', _CONSUMER_TYPE_VERSION)
        return found.get('consumer_type')

    def _get(
        self, url: str, version: str = report.SAME_SUBTREE_VERSION
    ) -> dict[str, typing.Any]:
        """Return the body of a GET; an empty one for status 400."""
        response = self._client.get(url, version=version)
        return response.json() if response.status_code == 200 else {}

    def _read(self, uuid: str, what: str) -> dict[str, typing.Any]:
        """Read inventories, usages or the like of a provider."""
        body = self._get(f'/resource_providers/{uuid}/{what}')
        found: dict[str, typing.Any] = body.get(what, {})
        return found

    def _get_roots(self, *params: tuple[str, str]) -> dict[str, str]:
        """Return the root of each provider that satisfies parameters."""
        # No host has a trait or resource class that placement does not know.
        answer = self._get(f'/resource_providers?{parse.urlencode(params)}')
        # There may be many UUIDs, and they are kept: each text once.
        same = self._uuids.setdefault
        pairs = (
            (one['uuid'], one['root_provider_uuid'])
            for one in answer.get('resource_providers', ())
        )
        return {same(uuid, uuid): same(root, root) for uuid, root in pairs}

    def _get_inventories(self, uuid: str) -> dict[str, dict[str, typing.Any]]:
        inventories = self.get_stored(uuid)
        used = self._read(uuid, 'usages')
        return {
            name: {
                **inventory,
                'capacity': ledger.count_capacity(inventory),
                'used': used.get(name, 0),
            }
            for name, inventory in inventories.items()
        }

    def _get_summaries(self, resource: str) -> dict[str, typing.Any]:
        found = self._get(f'/allocation_candidates?resources={resource}:1')
        return {
            uuid: {key: summary[key] for key in _OF_SUMMARY}
            for uuid, summary in found.get('provider_summaries', {}).items()
        }
