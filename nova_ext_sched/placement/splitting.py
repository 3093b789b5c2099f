# SPDX-License-Identifier: Apache-2.0

"""Long filters of resource providers in several short queries.

uwsgi with its default buffer of 4096 bytes does not refuse every query that
is too long: one of about 2000 to 3600 bytes reaches placement without any
query at all (measured on uwsgi 2.0.30). Placement then lists every provider,
as if no aggregate were forbidden. A query for allocation candidates that lost
its parameters is refused by placement, because it must ask for resources;
for resource providers a query must never be that long.

The filters of a group are a conjunction, in which each provider is judged
alone. So they may be divided over several queries:

==========================  ==========================================
the filters are             the providers are
==========================  ==========================================
several constraints         in the answers of both halves
one OR set of aggregates    in the answer of one half or the other
==========================  ==========================================
"""

from collections.abc import Callable
from collections.abc import Iterable

from nova_ext_sched.objects import request_group
from nova_ext_sched.placement import values

#: Bytes that every server passes on whole, with its headers and a token.
SAFE = 1000

Providers = dict[str, values.ResourceProvider]
Query = Callable[[request_group.RequestGroup], list[values.ResourceProvider]]


def ask(filters: request_group.RequestGroup, query: Query) -> Providers:
    """Return by UUID the providers that meet all of ``filters``.

    :param query: asks placement for the providers that meet a group
    """
    if len(filters.to_querystring()) <= SAFE:
        return {provider.uuid: provider for provider in query(filters)}
    constraints = _constraints(filters)
    if len(constraints) > 1:
        middle = len(constraints) // 2
        first = ask(_join(constraints[:middle]), query)
        second = ask(_join(constraints[middle:]), query)
        return {
            uuid: provider
            for uuid, provider in second.items()
            if uuid in first
        }
    # No other single constraint is that long.
    (aggregates,) = filters.required_aggregates
    middle = len(aggregates) // 2
    return {
        **ask(_member_of(aggregates[:middle]), query),
        **ask(_member_of(aggregates[middle:]), query),
    }


def chunks(names: Iterable[str]) -> Iterable[list[str]]:
    """Yield names, sorted and each once, by as many as one query may list."""
    chunk: list[str] = []
    size = 0
    for name in sorted(set(names)):
        if chunk and size + len(name) > SAFE:
            yield chunk
            chunk, size = [], 0
        chunk.append(name)
        # The comma is encoded.
        size += len(name) + 3
    if chunk:
        yield chunk


def _member_of(aggregates: list[str]) -> request_group.RequestGroup:
    return request_group.RequestGroup(required_aggregates=[aggregates])


def _constraints(
    filters: request_group.RequestGroup,
) -> list[request_group.RequestGroup]:
    make = request_group.RequestGroup
    constraints = [
        *(make(resources={n: a}) for n, a in filters.resources.items()),
        *(make(required_traits={trait}) for trait in filters.required_traits),
        *(make(forbidden_traits={t}) for t in filters.forbidden_traits),
        *(_member_of(uuids) for uuids in filters.required_aggregates),
        *(
            make(forbidden_aggregates={uuid})
            for uuid in filters.forbidden_aggregates
        ),
    ]
    if filters.in_tree is not None:
        constraints.append(make(in_tree=filters.in_tree))
    return constraints


def _join(
    constraints: list[request_group.RequestGroup],
) -> request_group.RequestGroup:
    joined = request_group.RequestGroup()
    for constraint in constraints:
        joined.resources.update(constraint.resources)
        joined.required_traits |= constraint.required_traits
        joined.forbidden_traits |= constraint.forbidden_traits
        joined.required_aggregates.extend(constraint.required_aggregates)
        joined.forbidden_aggregates |= constraint.forbidden_aggregates
        joined.in_tree = joined.in_tree or constraint.in_tree
    return joined
