# SPDX-License-Identifier: Apache-2.0

"""Divides long filters of resource providers into short queries.

uwsgi with its default buffer of 4096 bytes does not refuse every query that
is too long: one of about 2000 to 3600 bytes reaches placement without any
query at all (measured on uwsgi 2.0.30). Placement then lists every provider,
as if no aggregate were forbidden. A query for allocation candidates that lost
its parameters is refused by placement, because it must ask for resources;
for resource providers, a query must never be that long.

A provider must satisfy all filters of a group, and each provider is judged
on its own. So the filters may be divided over several queries:

==========================  ==========================================
the filters are             the providers are
==========================  ==========================================
several constraints         in the answers of both halves
one OR set of aggregates    in the answer of one half or the other
==========================  ==========================================
"""

from collections.abc import Callable
from collections.abc import Sequence
import typing

from nova_ext_sched import objects

#: Bytes that every server passes on whole, with its headers and a token.
SAFE = 1000

Provider = dict[str, typing.Any]
Query = Callable[[objects.RequestGroup], Sequence[Provider]]
# A field of a group and one item of its value.
Constraint = tuple[str, typing.Any]


def list_providers(
    filters: objects.RequestGroup, query: Query
) -> dict[str, Provider]:
    """Return by UUID the providers that meet all of ``filters``.

    :param query: asks placement for the providers that meet a group
    """
    if len(filters.to_querystring()) <= SAFE:
        return {provider['uuid']: provider for provider in query(filters)}
    constraints = _constraints(filters)
    middle = len(constraints) // 2
    if middle:
        first = list_providers(_join(constraints[:middle]), query)
        second = list_providers(_join(constraints[middle:]), query)
        return {uuid: second[uuid] for uuid in second if uuid in first}
    # No other single constraint is that long.
    [(field, aggregates)] = constraints
    middle = len(aggregates) // 2
    halves = aggregates[:middle], aggregates[middle:]
    first, second = (
        list_providers(_join([(field, half)]), query) for half in halves
    )
    return first | second


def _constraints(filters: objects.RequestGroup) -> list[Constraint]:
    found: list[Constraint] = [
        (field, item)
        for field in (
            'required_traits',
            'forbidden_traits',
            'required_aggregates',
            'forbidden_aggregates',
        )
        for item in getattr(filters, field)
    ]
    found += [('resources', item) for item in filters.resources.items()]
    if filters.in_tree is not None:
        found.append(('in_tree', filters.in_tree))
    return found


def _join(constraints: Sequence[Constraint]) -> objects.RequestGroup:
    items: dict[str, list[typing.Any]] = {}
    for field, item in constraints:
        items.setdefault(field, []).append(item)
    return objects.RequestGroup(
        resources=dict(items.get('resources', ())),
        required_traits=set(items.get('required_traits', ())),
        forbidden_traits=set(items.get('forbidden_traits', ())),
        required_aggregates=items.get('required_aggregates', []),
        forbidden_aggregates=set(items.get('forbidden_aggregates', ())),
        in_tree=items.get('in_tree', [None])[0],
    )
