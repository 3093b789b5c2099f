# SPDX-License-Identifier: Apache-2.0

"""Stage 2: the host filters, and the function that nova loads us with."""

from collections.abc import Iterable
from collections.abc import Mapping

import nova.conf
from nova.scheduler import filters as nova_filters
from nova.scheduler import request_filter as nova_request_filter
from nova.scheduler import weights
from oslo_log import log as logging

from nova_ext_sched import conf
from nova_ext_sched import messages
from nova_ext_sched import plugins
from nova_ext_sched import request_filters
from nova_ext_sched.filters import base
from nova_ext_sched.policy import declaration
from nova_ext_sched.queries import host_managers

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

#: What the operator names in ``[filter_scheduler] available_filters``.
ALL_FILTERS = 'nova_ext_sched.filters.all_filters'
NOVA_FILTERS = 'nova.scheduler.filters.all_filters'

Classes = Mapping[str, type[nova_filters.BaseHostFilter]]

# To tell what nova will use, all_filters calls every function that
# available_filters names, itself among them.
_asking = False

# What was last logged of the set-up. A tool makes a host manager for each
# request that it looks at, and each calls all_filters.
_logged: list[str] = []


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
    host_managers.remember()
    conf.register_opts(CONF)
    host_filters = plugins.load_classes(
        plugins.HOST_FILTERS, nova_filters.BaseHostFilter
    )
    if not _asking:
        _asking = True
        try:
            in_use = classes_in_use()
            # As nova next. Only then is it known which options others have.
            weights.HostWeightHandler().get_matching_classes(
                CONF.filter_scheduler.weight_classes
            )
        finally:
            _asking = False
        conf.check(CONF)
        request_filters.install(CONF.nova_ext_sched.request_filters)
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


def declared_policies(
    host_filters: Iterable[type[nova_filters.BaseHostFilter]],
) -> list[declaration.Policy]:
    """Return every policy of host filters, request filters and weighers.

    What is enabled comes first, in the order in which the scheduler runs it.
    A filter that declares no policy is one by itself; nova's request filters
    and weighers that declare none are none.

    :param host_filters: classes
    """
    rank = {
        name: number
        for number, name in enumerate(CONF.filter_scheduler.enabled_filters)
    }
    ranked = sorted(
        host_filters, key=lambda cls: rank.get(cls.__name__, len(rank))
    )
    policies = [one for cls in ranked for one in base.policies_of(cls)]
    for fn in nova_request_filter.ALL_REQUEST_FILTERS:
        if fn.__module__.startswith('nova.'):
            continue
        name = fn.__name__
        if declared := getattr(fn, 'policies', ()):
            policies += declared
        elif name not in [one.request_filter for one in policies]:
            policies.append(declaration.undeclared(request_filter=name))
    for cls in weights.HostWeightHandler().get_matching_classes(
        CONF.filter_scheduler.weight_classes
    ):
        policies += getattr(cls, 'policies', ())
    return list(dict.fromkeys(policies))


def find_contradictions(
    host_filters: Iterable[type[nova_filters.BaseHostFilter]], in_use: Classes
) -> list[str]:
    """Return the contradictions among the filters that nova.conf names.

    :param host_filters: the classes that :func:`all_filters` returned
    :returns: a message for each, with what to do about it
    """
    contradictions = []
    for cls in host_filters:
        # nova may replace ours by another of the same name.
        other = in_use.get(cls.__name__, cls)
        if other is not cls:
            kept = (
                ' It keeps the rules of server groups too, but is slower.'
                if other.__module__.startswith('nova.')
                else ''
            )
            contradictions.append(
                f'[filter_scheduler] available_filters: expected '
                f'{ALL_FILTERS} as the last line that has {cls.__name__}, '
                f'got a later one. nova uses {_path(other)}.{kept} Move '
                f'{ALL_FILTERS} to the end.'
            )
    for policy in declared_policies(host_filters):
        contradictions += policy.contradictions(CONF)
    return contradictions


def _log_setup(
    host_filters: Iterable[type[nova_filters.BaseHostFilter]], in_use: Classes
) -> None:
    global _logged
    on, off = [], []
    for policy in declared_policies(host_filters):
        if policy.is_on(CONF):
            on.append(f'{policy.name} ({", ".join(policy.stages(CONF))})')
        else:
            off.append(policy.name)
    others = [
        f'{_path(in_use[cls.__name__])} in place of ours'
        for cls in host_filters
        if cls.__name__ in CONF.filter_scheduler.enabled_filters
        and in_use[cls.__name__] is not cls
    ]
    replaced = f' nova uses {_join(others)}.' if others else ''
    loaded = (
        f'nova-ext-sched is loaded. Policies that are on: {_join(on)}. Off: '
        f'{_join(off)}. Weighers: '
        f'{_join(CONF.filter_scheduler.weight_classes)}.{replaced}'
    )
    warnings = [
        *find_contradictions(host_filters, in_use),
        *conf.contradictions(CONF),
    ]
    if _logged == (_logged := [loaded, *warnings]):
        return
    LOG.info('%s', loaded)
    for warning in warnings:
        LOG.warning('%s', warning)


def _path(cls: type) -> str:
    return f'{cls.__module__}.{cls.__qualname__}'


def _join(names: Iterable[str]) -> str:
    return ', '.join(map(messages.clean, names)) or 'none'
