# SPDX-License-Identifier: Apache-2.0

"""Loading of filters from stevedore namespaces, all or nothing.

stevedore's managers log and skip what fails to load, and their duplicate
resolver misses duplicates that are not adjacent. A scheduler that silently
runs without its isolation is worse than none. So every fault is an error here
that names the plugin, the namespace and the cause.
"""

import collections
from collections.abc import Callable
from collections.abc import Sequence
import typing

from stevedore import named

from nova_ext_sched import exception

HOST_FILTERS = 'nova_ext_sched.host_filters'
REQUEST_FILTERS = 'nova_ext_sched.request_filters'


def load(
    namespace: str,
    check: Callable[[str, typing.Any], str | None],
    expected: str,
    names: Sequence[str] | None = None,
) -> list[typing.Any]:
    """Load plugins of one namespace.

    :param namespace: a stevedore namespace
    :param check: called with the name and the plugin; returns None if the
        plugin is of the right kind, else what it is instead
    :param expected: the kind that the namespace promises, in words
    :param names: the plugins to load, in this order; None for all that the
        namespace has, in the order of their names
    :returns: the loaded plugins in order
    :raises exception.PluginNotFound: a name that no distribution declares
    :raises exception.PluginAmbiguous: a name that two entry points declare
    :raises exception.PluginLoadFailed: an import that fails
    :raises exception.PluginInvalid: a plugin that ``check`` refuses
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
            raise exception.PluginNotFound(
                namespace=namespace, name=name, available=sorted(declared)
            )
        if len(declared[name]) > 1:
            raise exception.PluginAmbiguous(
                namespace=namespace,
                name=name,
                candidates=sorted(ep.value for ep in declared[name]),
            )

    def load_failed(
        manager: typing.Any, entry_point: typing.Any, error: Exception
    ) -> None:
        raise exception.PluginLoadFailed(
            namespace=namespace,
            name=entry_point.name,
            target=entry_point.value,
            cause=f'{type(error).__name__}: {error}',
        ) from error

    extensions = named.NamedExtensionManager(
        namespace,
        names=names,
        name_order=True,
        on_load_failure_callback=load_failed,
    ).extensions
    for extension in extensions:
        got = check(extension.name, extension.plugin)
        if got is not None:
            raise exception.PluginInvalid(
                namespace=namespace,
                name=extension.name,
                target=extension.entry_point.value,
                expected=expected,
                got=got,
            )
    return [extension.plugin for extension in extensions]
