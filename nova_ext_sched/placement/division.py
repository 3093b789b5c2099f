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
the halves are of           the providers are
==========================  ==========================================
several constraints         in the answers of both halves
one OR set of aggregates    in the answer of one half or the other
==========================  ==========================================
"""

from collections.abc import Callable
import typing
from urllib import parse

#: Bytes that every server passes on whole, with its headers and a token.
SAFE = 1000

Params = list[tuple[str, str]]
Providers = dict[str, dict[str, typing.Any]]


def list_providers(
    params: Params, query: Callable[[Params], Providers]
) -> Providers:
    """Return by UUID the providers that meet all filters.

    :param params: parameters of a request group without a suffix
    :param query: asks placement, for the same
    """
    if len(parse.urlencode(params)) <= SAFE:
        return query(params)
    first, second = (list_providers(half, query) for half in _halve(params))
    if len(params) == 1 and params[0][1].startswith('in:'):
        return first | second
    return {uuid: second[uuid] for uuid in second if uuid in first}


def _halve(params: Params) -> tuple[Params, Params]:
    middle = len(params) // 2
    if middle:
        return params[:middle], params[middle:]
    [(key, value)] = params
    prefix = next(p for p in ('in:', '!in:', '') if value.startswith(p))
    items = value.removeprefix(prefix).split(',')
    middle = len(items) // 2
    return (
        [(key, prefix + ','.join(items[:middle]))],
        [(key, prefix + ','.join(items[middle:]))],
    )
