# SPDX-License-Identifier: Apache-2.0

"""Stage 1: request filters turn policy into the query to placement."""

from collections.abc import Sequence
import inspect
import typing

from nova.scheduler import request_filter as nova_request_filter

from nova_ext_sched import plugins


def install(names: Sequence[str]) -> None:
    """Append request filters to nova's list, each once, in this order.

    :raises nova_ext_sched.exception.PluginError: a plugin cannot be used;
        nova's list is then as it was
    """
    filters = plugins.load(
        plugins.REQUEST_FILTERS,
        _not_a_request_filter,
        'a function (ctxt, request_spec) -> bool',
        names,
    )
    for fn in filters:
        if fn not in nova_request_filter.ALL_REQUEST_FILTERS:
            nova_request_filter.ALL_REQUEST_FILTERS.append(fn)


def _not_a_request_filter(name: str, plugin: typing.Any) -> str | None:
    if inspect.isclass(plugin):
        return f'the class {plugin.__qualname__}'
    if not callable(plugin):
        return f'an object of type {type(plugin).__name__}'
    try:
        inspect.signature(plugin).bind('ctxt', 'request_spec')
    except TypeError:
        return f'a function {inspect.signature(plugin)}'
    return None
