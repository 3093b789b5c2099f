# SPDX-License-Identifier: Apache-2.0

"""Every provider with its traits and aggregates, in few requests.

Placement lists all providers in one request, but has no list of their traits
or aggregates. It can be asked which providers have a trait, or are in an
aggregate, so that the number of requests grows with the number of traits or
aggregates and not of providers. Where that would be more requests, or where
the aggregates are not named (placement does not list aggregates), each
provider is asked, several at once.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from concurrent import futures
import dataclasses
import typing

from nova_ext_sched.objects import request_group
from nova_ext_sched.placement import errors
from nova_ext_sched.placement import values

if typing.TYPE_CHECKING:
    from nova_ext_sched.placement import reading

#: How many requests are under way at once.
WORKERS = 4


@dataclasses.dataclass(frozen=True)
class Listed:
    """A provider with those of its traits and aggregates that were asked."""

    provider: values.ResourceProvider
    traits: frozenset[str]
    aggregates: frozenset[str]


def list_providers(
    client: 'reading.Reader',
    traits: Iterable[str] | None,
    aggregates: Iterable[str] | None,
    workers: int,
) -> list[Listed]:
    """See :meth:`.client.PlacementClient.list_providers`."""
    providers = client.resource_providers()
    uuids = [provider.uuid for provider in providers]
    known = client.traits(names=traits, associated=True)
    wanted = None if aggregates is None else frozenset(aggregates)
    with futures.ThreadPoolExecutor(workers) as pool:
        if len(known) <= len(uuids):
            has = _by_value(
                pool,
                known,
                lambda trait: request_group.RequestGroup(
                    required_traits={trait}
                ),
                client.resource_providers,
            )
        else:
            has = _by_provider(
                pool, uuids, lambda uuid: client.provider_traits(uuid).traits
            )
        if wanted is not None and len(wanted) <= len(uuids):
            member_of = _by_value(
                pool,
                wanted,
                lambda uuid: request_group.RequestGroup(
                    required_aggregates=[[uuid]]
                ),
                client.resource_providers,
            )
        else:
            member_of = _by_provider(
                pool,
                uuids,
                lambda uuid: client.provider_aggregates(uuid).aggregates,
            )
    return [
        Listed(
            provider,
            frozenset(has.get(provider.uuid, ())) & known,
            frozenset(
                aggregate
                for aggregate in member_of.get(provider.uuid, ())
                if wanted is None or aggregate in wanted
            ),
        )
        for provider in providers
    ]


def _by_value(
    pool: futures.Executor,
    asked: Collection[str],
    filters: Callable[[str], request_group.RequestGroup],
    query: Callable[
        [request_group.RequestGroup], list[values.ResourceProvider]
    ],
) -> dict[str, Collection[str]]:
    found: dict[str, set[str]] = {}
    answers = pool.map(lambda value: query(filters(value)), asked)
    for value, providers in zip(asked, answers, strict=True):
        for provider in providers:
            found.setdefault(provider.uuid, set()).add(value)
    return {**found}


def _by_provider(
    pool: futures.Executor,
    uuids: Collection[str],
    query: Callable[[str], frozenset[str]],
) -> dict[str, Collection[str]]:
    def ask(uuid: str) -> frozenset[str]:
        try:
            return query(uuid)
        except errors.NotFound:
            # It was deleted since it was listed: nothing is it any more.
            return frozenset()

    return dict(zip(uuids, pool.map(ask, uuids), strict=True))
