# SPDX-License-Identifier: Apache-2.0

"""Stage 2, the host filters, and the door through which nova loads us all."""

import inspect
import typing

import nova.conf
from nova.scheduler import filters as nova_filters
from oslo_log import log as logging

from nova_ext_sched import conf
from nova_ext_sched import plugins
from nova_ext_sched import request_filters

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


def all_filters() -> list[type[nova_filters.BaseHostFilter]]:
    """Load the package into nova-scheduler.

    ``[filter_scheduler] available_filters`` names this function; nova's
    HostManager calls it once when the scheduler starts. Calling it again
    changes nothing.

    :returns: the host filters of the namespace ``nova_ext_sched.host_filters``
    :raises nova_ext_sched.exception.PluginError: a plugin cannot be used; the
        scheduler then does not start
    :raises oslo_config.cfg.ConfigFileValueError: the value of an option of
        ours is not of its form; likewise
    """
    conf.register_opts(CONF)
    conf.check(CONF)
    host_filters = plugins.load(
        plugins.HOST_FILTERS,
        _not_a_host_filter,
        'a subclass of nova.scheduler.filters.BaseHostFilter whose class '
        "name is the entry point's name",
    )
    request_filters.install(CONF.nova_ext_sched.request_filters)
    _log_what_is_active(host_filters)
    return host_filters


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


def _log_what_is_active(
    host_filters: list[type[nova_filters.BaseHostFilter]],
) -> None:
    enabled = set(CONF.filter_scheduler.enabled_filters)
    names = [cls.__name__ for cls in host_filters]
    ours = CONF.nova_ext_sched
    LOG.info(
        'nova-ext-sched is loaded. Request filters: %(request)s. Host '
        'filters enabled: %(enabled)s; available and not enabled: '
        '%(available)s. enable_isolated_aggregate_filtering is %(isolation)s. '
        'Prefixes of reserved aggregates: required %(required)s, forbidden '
        'by default %(forbidden)s.',
        {
            'request': ', '.join(ours.request_filters) or 'none',
            'enabled': ', '.join(n for n in names if n in enabled) or 'none',
            'available': ', '.join(n for n in names if n not in enabled)
            or 'none',
            'isolation': ours.enable_isolated_aggregate_filtering,
            'required': ', '.join(ours.placement_req_required_member_prefix)
            or 'none',
            'forbidden': ', '.join(
                ours.placement_req_default_forbidden_member_prefix
            )
            or 'none',
        },
    )
    for warning in conf.contradictions(CONF):
        LOG.warning('%s', warning)
