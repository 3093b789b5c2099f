# SPDX-License-Identifier: Apache-2.0

"""Stage 2: the host filters, and the function that nova loads us with."""

from collections.abc import Iterable
from collections.abc import Mapping
import inspect
import typing

import nova.conf
from nova.scheduler import filters as nova_filters
from oslo_log import log as logging

from nova_ext_sched import conf
from nova_ext_sched import messages
from nova_ext_sched import plugins
from nova_ext_sched import request_filters

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

#: What the operator names in ``[filter_scheduler] available_filters``.
ALL_FILTERS = 'nova_ext_sched.filters.all_filters'

Classes = Mapping[str, type[nova_filters.BaseHostFilter]]

# To tell what nova will use, all_filters calls every function that
# available_filters names, itself among them.
_asking = False


def all_filters() -> list[type[nova_filters.BaseHostFilter]]:
    """Load the package into nova-scheduler.

    ``[filter_scheduler] available_filters`` names this function; nova's
    HostManager calls it once when the scheduler starts, which ends where it
    raises. Calling it again changes nothing.

    :returns: the host filters of the namespace ``nova_ext_sched.host_filters``
    :raises nova_ext_sched.exception.PluginError: a plugin cannot be used
    :raises Exception: as :func:`nova_ext_sched.conf.check`
    """
    global _asking
    conf.register_opts(CONF)
    conf.check(CONF)
    host_filters = plugins.load(
        plugins.HOST_FILTERS,
        _not_a_host_filter,
        'a subclass of nova.scheduler.filters.BaseHostFilter whose class '
        "name is the entry point's name",
    )
    request_filters.install(CONF.nova_ext_sched.request_filters)
    if not _asking:
        _asking = True
        try:
            in_use = classes_in_use()
        finally:
            _asking = False
        _log_setup(host_filters, in_use)
    return host_filters


def classes_in_use() -> Classes:
    """Return the host filters that nova-scheduler has, by class name.

    If two classes have the same name, nova takes the one of the later line of
    ``[filter_scheduler] available_filters`` (nova.scheduler.host_manager).

    :raises ImportError: a line names what cannot be imported
    :raises nova.exception.ClassNotFound: a line names what is no filter
    """
    classes = nova_filters.HostFilterHandler().get_matching_classes(
        CONF.filter_scheduler.available_filters
    )
    return {cls.__name__: cls for cls in classes}


def find_shadowed(
    host_filters: Iterable[type[nova_filters.BaseHostFilter]], in_use: Classes
) -> list[str]:
    """Return which of our filters nova replaces by others of the same name.

    :returns: a message for each, with what to do about it
    """
    found = []
    for cls in host_filters:
        other = in_use.get(cls.__name__, cls)
        if other is not cls:
            kept = (
                ' It keeps the rules of server groups too, but is slower.'
                if other.__module__.startswith('nova.')
                else ''
            )
            found.append(
                f'[filter_scheduler] available_filters: expected '
                f'{ALL_FILTERS} as the last line that has {cls.__name__}, '
                f'got a later one. nova uses {_path(other)}.{kept} Move '
                f'{ALL_FILTERS} to the end.'
            )
    return found


def _not_a_host_filter(name: str, plugin: typing.Any) -> str | None:
    if not inspect.isclass(plugin):
        return f'an object of type {type(plugin).__name__}'
    if not issubclass(plugin, nova_filters.BaseHostFilter):
        return f'the class {plugin.__qualname__}'
    if plugin.__name__ != name:
        # nova looks filters up by class name: with two names an operator
        # would enable one filter and read the other in the log.
        return f'the class name {plugin.__name__!r}'
    return None


def _log_setup(
    host_filters: Iterable[type[nova_filters.BaseHostFilter]], in_use: Classes
) -> None:
    enabled = CONF.filter_scheduler.enabled_filters
    ours = CONF.nova_ext_sched
    LOG.info(
        'nova-ext-sched is loaded. Request filters: %(request)s. Host '
        'filters that nova uses: %(used)s; available and not enabled: '
        '%(available)s. Weighers: %(weighers)s. '
        'enable_isolated_aggregate_filtering is %(isolation)s. '
        'Prefixes of reserved aggregates: required %(required)s, forbidden '
        'by default %(forbidden)s.',
        {
            'request': _join(ours.request_filters),
            'used': _join(
                _path(in_use[name]) for name in enabled if name in in_use
            ),
            'available': _join(
                cls.__name__
                for cls in host_filters
                if cls.__name__ not in enabled
            ),
            'weighers': _join(CONF.filter_scheduler.weight_classes),
            'isolation': ours.enable_isolated_aggregate_filtering,
            'required': _join(ours.placement_req_required_member_prefix),
            'forbidden': _join(
                ours.placement_req_default_forbidden_member_prefix
            ),
        },
    )
    for warning in [
        *find_shadowed(host_filters, in_use),
        *conf.contradictions(CONF),
    ]:
        LOG.warning('%s', warning)


def _path(cls: type) -> str:
    return f'{cls.__module__}.{cls.__qualname__}'


def _join(names: Iterable[str]) -> str:
    return ', '.join(map(messages.clean, names)) or 'none'
