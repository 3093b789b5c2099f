# SPDX-License-Identifier: Apache-2.0

"""What can be read from placement."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import threading
import typing

from nova_ext_sched import exception
from nova_ext_sched.objects import allocation_candidates_request as acr
from nova_ext_sched.objects import request_group
from nova_ext_sched.placement import errors
from nova_ext_sched.placement import listing
from nova_ext_sched.placement import microversion
from nova_ext_sched.placement import splitting
from nova_ext_sched.placement import transport
from nova_ext_sched.placement import values
from nova_ext_sched.policy import syntax

T = typing.TypeVar('T')
Feature = microversion.Feature


class Reader:
    """The part of the client that changes nothing.

    :param adapter: a keystoneauth1.adapter.Adapter for placement, with its
        retries and credentials
    :param credentials: where the credentials come from, for errors
    """

    def __init__(
        self, adapter: typing.Any, credentials: str = 'the given adapter'
    ) -> None:
        self._transport = transport.Transport(adapter, credentials)
        self._lock = threading.Lock()
        self._range: microversion.Range | None = None

    def microversions(self) -> microversion.Range:
        """Return the microversions that the server has; asked once."""
        with self._lock:
            if self._range is None:
                self._range = self._transport.request('GET', '/', _read_range)
            return self._range

    def allocation_candidates(
        self, request: acr.AllocationCandidatesRequest
    ) -> values.AllocationCandidates:
        """Return the ways to satisfy ``request``."""
        return self._get(
            '/allocation_candidates',
            values.AllocationCandidates.from_json,
            microversion.of_candidates(request),
            request.to_queryparams(),
        )

    def resource_providers(
        self,
        filters: request_group.RequestGroup | None = None,
        name: str | None = None,
    ) -> list[values.ResourceProvider]:
        """Return the resource providers that meet all of the filters.

        Long filters are asked in several queries; see
        :mod:`nova_ext_sched.placement.splitting`.

        :param filters: a group without a suffix. Unlike in a query for
            candidates, each provider is judged alone: its own resources,
            traits and aggregates.
        :param name: the provider's name, exactly
        """
        filters = filters or request_group.RequestGroup()
        if filters.suffix:
            raise exception.InvalidValue(
                where='filters.suffix',
                expected='a request group without a suffix',
                got=filters.suffix,
            )
        features = microversion.of_providers(filters)
        by_name = [] if name is None else [('name', name)]
        found = splitting.ask(
            filters,
            lambda part: self._get(
                '/resource_providers',
                lambda json: [
                    values.ResourceProvider.from_json(provider)
                    for provider in json['resource_providers']
                ],
                features,
                part.to_queryparams() + by_name,
            ),
        )
        return list(found.values())

    def resource_provider(self, uuid: str) -> values.ResourceProvider:
        """Return one resource provider."""
        return self._get(
            provider_path(uuid),
            values.ResourceProvider.from_json,
            {Feature.BASE},
        )

    def list_providers(
        self,
        traits: Iterable[str] | None = None,
        aggregates: Iterable[str] | None = None,
        workers: int = listing.WORKERS,
    ) -> list[listing.Listed]:
        """Return every provider with its traits and aggregates.

        With as few requests as placement allows; the answers are of slightly
        different times. See :mod:`nova_ext_sched.placement.listing`.

        :param traits: those that matter; None for all
        :param aggregates: UUIDs of those that matter; None for all
        :param workers: how many requests are under way at once
        """
        return listing.list_providers(self, traits, aggregates, workers)

    def traits(
        self,
        names: Iterable[str] | None = None,
        associated: bool | None = None,
    ) -> frozenset[str]:
        """Return the traits that placement knows.

        :param names: return those among them alone
        :param associated: True for those that some provider has, False for
            those that none has
        """
        params = []
        if associated is not None:
            params.append(('associated', 'true' if associated else 'false'))
        queries = [params]
        if names is not None:
            queries = [
                [*params, ('name', 'in:' + ','.join(chunk))]
                for chunk in splitting.chunks(
                    syntax.check_trait(name, 'traits') for name in names
                )
            ]
        found: frozenset[str] = frozenset()
        for query in queries:
            found |= self._get(
                '/traits',
                lambda json: frozenset(json['traits']),
                {Feature.TRAITS},
                query,
            )
        return found

    def provider_traits(self, uuid: str) -> values.ProviderTraits:
        """Return the traits of a provider."""
        return self._get(
            provider_path(uuid, 'traits'),
            values.ProviderTraits.from_json,
            {Feature.TRAITS},
        )

    def provider_aggregates(self, uuid: str) -> values.ProviderAggregates:
        """Return the aggregates of a provider."""
        return self._get(
            provider_path(uuid, 'aggregates'),
            values.ProviderAggregates.from_json,
            {Feature.AGGREGATES},
        )

    def provider_inventories(self, uuid: str) -> values.ProviderInventories:
        """Return the inventories of a provider."""
        return self._get(
            provider_path(uuid, 'inventories'),
            values.ProviderInventories.from_json,
            {Feature.BASE},
        )

    def provider_usages(self, uuid: str) -> values.ProviderUsages:
        """Return what is allocated of a provider."""
        return self._get(
            provider_path(uuid, 'usages'),
            values.ProviderUsages.from_json,
            {Feature.BASE},
        )

    def _get(
        self,
        path: str,
        read: Callable[[typing.Any], T],
        features: set[Feature],
        params: Sequence[tuple[str, str]] = (),
    ) -> T:
        return self.send('GET', path, read, features, params)

    def send(
        self,
        method: str,
        path: str,
        read: Callable[[typing.Any], T],
        features: set[Feature],
        params: Sequence[tuple[str, str]] = (),
        json: Mapping[str, typing.Any] | None = None,
    ) -> T:
        """Send a request that the server's microversion can express.

        :param read: gets the decoded JSON of the answer
        :param features: what the request needs
        """
        server = self.microversions()
        if unsupported := server.unsupported(features):
            raise errors.MicroversionUnsupported(
                method=method,
                url=path,
                needed=microversion.show(unsupported[-1].least),
                features=', '.join(
                    f'{feature.words}: {microversion.show(feature.least)}'
                    for feature in unsupported
                ),
                minimum=microversion.show(server.minimum),
                maximum=microversion.show(server.maximum),
            )
        return self._transport.request(
            method,
            path,
            read,
            params,
            json,
            microversion.show(server.usable),
        )


def _read_range(json: typing.Any) -> microversion.Range:
    version = json['versions'][0]
    return microversion.Range(
        microversion.parse(version['min_version']),
        microversion.parse(version['max_version']),
    )


def provider_path(uuid: str, part: str = '') -> str:
    """Return the path of a provider or of a part of it."""
    syntax.check_uuid(uuid, 'resource provider')
    path = f'/resource_providers/{uuid}'
    return f'{path}/{part}' if part else path
