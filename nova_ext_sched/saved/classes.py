# SPDX-License-Identifier: Apache-2.0

"""Filters and weighers that a file names: looked up, never imported.

nova calls a function that ``available_filters`` names. A file is a
stranger's, so that what it names is one of those that nova, this package and
installed entry points provide, or an error.
"""

from collections.abc import Collection
from collections.abc import Iterable
import importlib.metadata
import typing

from nova.scheduler import filters as nova_filters
from nova.scheduler import weights as nova_weights

from nova_ext_sched import exception
from nova_ext_sched import filters
from nova_ext_sched import messages
from nova_ext_sched import plugins
from nova_ext_sched.conf import weighers

Options = dict[str, dict[str, typing.Any]]

_NOVA_WEIGHERS = 'nova.scheduler.weights.all_weighers'


def check(options: Options, without: Collection[str]) -> list[str]:
    """Refuse classes that are not installed; drop those that can be missing.

    :param options: of the file; names of ``without`` are taken out
    :param without: names that an operator gives
    :returns: the names that were dropped
    :raises exception.UsageError: a name is neither installed nor among
        ``without``
    """
    host_filters = _paths(nova_filters.all_filters()) | _paths_of_plugins(
        plugins.HOST_FILTERS
    )
    weigher_paths = _paths(nova_weights.all_weighers()) | _paths_of_plugins(
        plugins.WEIGHERS
    )
    scheduler = options.setdefault('filter_scheduler', {})
    ours = options.get('nova_ext_sched', {})
    scheduler.setdefault('available_filters', [filters.NOVA_FILTERS])
    dropped: list[str] = []

    known = (
        (
            scheduler,
            'available_filters',
            {filters.NOVA_FILTERS, filters.ALL_FILTERS, *host_filters},
        ),
        (
            scheduler,
            'weight_classes',
            {_NOVA_WEIGHERS, weighers.ALL_WEIGHERS, *weigher_paths},
        ),
        (scheduler, 'enabled_filters', {*map(_last, host_filters)}),
        (ours, 'request_filters', _names(plugins.REQUEST_FILTERS)),
        (ours, 'weighers', _names(plugins.WEIGHERS)),
    )
    for section, option, names in known:
        if option in section:
            section[option] = _keep(
                option, section[option], names, without, dropped
            )
    return dropped


def _keep(
    option: str,
    names: typing.Any,
    known: Collection[str],
    without: Collection[str],
    dropped: list[str],
) -> list[str]:
    kept = []
    for name in names if isinstance(names, list) else [names]:
        if name in known:
            kept.append(name)
        elif name in without or _last(str(name)) in without:
            dropped.append(name)
        else:
            shown = messages.clean(name)
            raise exception.UsageError(
                f'{option} of the saved cloud names {shown}, which is not '
                f'installed here. Install it, or answer without it: --without '
                f'{shown}'
            )
    return kept


def _last(path: str) -> str:
    return path.rpartition('.')[2]


def _paths(classes: Iterable[type]) -> set[str]:
    return {f'{cls.__module__}.{cls.__qualname__}' for cls in classes}


def _names(group: str) -> set[str]:
    return {*importlib.metadata.entry_points(group=group).names}


def _paths_of_plugins(group: str) -> set[str]:
    return {
        one.value.replace(':', '.')
        for one in importlib.metadata.entry_points(group=group)
    }
