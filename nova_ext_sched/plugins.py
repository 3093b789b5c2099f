# SPDX-License-Identifier: Apache-2.0

"""Loading of filters and weighers from stevedore namespaces, all or nothing.

stevedore's managers log and skip what fails to load, and their duplicate
resolver misses duplicates that are not adjacent. A scheduler that silently
runs without its isolation is worse than none. So every fault is an error here
that names the plugin, the namespace and the cause.
"""

import collections
from collections.abc import Callable
from collections.abc import Sequence
import functools
import inspect
import typing

from stevedore import named

from nova_ext_sched import exception

HOST_FILTERS = 'nova_ext_sched.host_filters'
REQUEST_FILTERS = 'nova_ext_sched.request_filters'
WEIGHERS = 'nova_ext_sched.weighers'

Check = Callable[[str, typing.Any], str | None]


def load(
    namespace: str,
    check: Check,
    expected: str,
    names: Sequence[str] | None = None,
) -> list[typing.Any]:
    """Load plugins of one namespace.

    :param check: called with the name and the plugin; returns None if the
        plugin is of the right kind, else what it is instead
    :param expected: the kind that the namespace promises
    :param names: the plugins to load, in this order; None for all that the
        namespace has, in the order of their names
    :raises exception.PluginError: no distribution declares a name, or two
        entry points do; an import fails; ``check`` refuses a plugin
    """
    # A manager that is asked for no name reads the declarations and imports
    # nothing.
    declared = collections.defaultdict(list)
    for entry_point in named.NamedExtensionManager(
        namespace, names=[]
    ).list_entry_points():
        declared[entry_point.name].append(entry_point)
    if names is None:
        names = sorted(declared)

    for name in names:
        if name not in declared:
            raise exception.PluginError(
                f'plugin {name!r} is not in the namespace {namespace}: '
                f'expected one of {sorted(declared)}'
            )
        if len(declared[name]) > 1:
            raise exception.PluginError(
                f'plugin {name!r} is ambiguous in the namespace {namespace}: '
                f'expected one entry point of that name, got '
                f'{sorted(one.value for one in declared[name])}'
            )
    plugins = []
    for name in names:
        (entry_point,) = declared[name]
        target = entry_point.value
        try:
            plugin = entry_point.load()
        except Exception as exc:
            raise exception.PluginError(
                f'plugin {name!r} ({target}) of the namespace {namespace} '
                f'cannot be loaded: {type(exc).__name__}: {exc}'
            ) from exc
        if (got := check(name, plugin)) is not None:
            raise exception.PluginError(
                f'plugin {name!r} ({target}) of the namespace {namespace} is '
                f'of the wrong kind: expected {expected}, got {got}'
            )
        plugins.append(plugin)
    return plugins


def load_classes(
    namespace: str, base: type, names: Sequence[str] | None = None
) -> list[typing.Any]:
    """Load plugins that are subclasses with the names of their entry points.

    nova knows filters and weighers by class name. With two names an operator
    would enable one and read the other in the log.

    :param names: as of :func:`load`
    :raises exception.PluginError: as :func:`load`
    """
    return load(
        namespace,
        functools.partial(_not_a_class, base),
        f'a subclass of {base.__module__}.{base.__name__} whose class name is '
        "the entry point's name",
        names,
    )


def _not_a_class(base: type, name: str, plugin: typing.Any) -> str | None:
    if not inspect.isclass(plugin):
        return f'an object of type {type(plugin).__name__}'
    if not issubclass(plugin, base):
        return f'the class {plugin.__qualname__}'
    if plugin.__name__ != name:
        return f'the class name {plugin.__name__!r}'
    return None
