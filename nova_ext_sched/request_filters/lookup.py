# SPDX-License-Identifier: Apache-2.0

"""One select of aggregate metadata a request, shared by the request filters.

The first filter that runs selects what every filter of ours needs for the
request and leaves the others theirs; each takes its part once. A request
spec that is filtered again is therefore selected for again.
"""

from collections.abc import Callable
import typing
import weakref

import nova.conf

from nova_ext_sched import aggregates

CONF = nova.conf.CONF

# Which beginnings of keys a filter needs for a request; none where it is off.
Prefixes = Callable[[typing.Any], tuple[str, ...]]

_prefixes: dict[str, Prefixes] = {}


class _Rows(typing.NamedTuple):
    items: list[aggregates.MetadataItem]
    untaken: dict[str, tuple[str, ...]]
    # Whether every item is for the one filter that selected them.
    alone: bool


# nova has one thread work on a request spec; they go when it goes.
_rows: weakref.WeakKeyDictionary[typing.Any, _Rows] = (
    weakref.WeakKeyDictionary()
)


def declare(name: str, prefixes: Prefixes) -> None:
    """Tell which metadata a request filter needs.

    :param name: the request filter's plugin name
    :param prefixes: called with a nova RequestSpec; it must do no I/O
    """
    _prefixes[name] = prefixes


def take_metadata(
    ctxt: typing.Any, request_spec: typing.Any, name: str
) -> list[aggregates.MetadataItem]:
    """Return the metadata items that a request filter declared.

    :param ctxt: a nova RequestContext
    :param request_spec: a nova RequestSpec
    :param name: the request filter's plugin name
    :raises Exception: as :func:`nova_ext_sched.aggregates.get_metadata`
    """
    rows = _rows.pop(request_spec, None)
    if rows is None or name not in rows.untaken:
        rows = _select(ctxt, request_spec, name)
    mine = rows.untaken.pop(name)
    if rows.untaken:
        _rows[request_spec] = rows
    if rows.alone:
        return rows.items
    return [item for item in rows.items if item[2].startswith(mine)]


def _select(ctxt: typing.Any, request_spec: typing.Any, name: str) -> _Rows:
    untaken = {}
    for consumer, prefixes in sorted(_prefixes.items()):
        if consumer == name or consumer in CONF.nova_ext_sched.request_filters:
            needed = prefixes(request_spec)
            if needed or consumer == name:
                untaken[consumer] = needed
    wanted = dict.fromkeys(
        prefix for needed in untaken.values() for prefix in needed
    )
    items = aggregates.get_metadata(ctxt, tuple(wanted)) if wanted else []
    return _Rows(items, untaken, alone=len(untaken) == 1)
