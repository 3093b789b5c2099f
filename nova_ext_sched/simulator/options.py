# SPDX-License-Identifier: Apache-2.0

"""The nova.conf of a simulated cloud, with our package and without it."""

from collections.abc import Iterator
import importlib.metadata
import typing

import nova.conf
from nova.scheduler import filters as nova_filters
from oslo_config import cfg

from nova_ext_sched import conf
from nova_ext_sched import plugins
from nova_ext_sched.simulator import scenario

CONF = nova.conf.CONF

NOVA_FILTERS = 'nova.scheduler.filters.all_filters'
ALL_FILTERS = 'nova_ext_sched.filters.all_filters'
_PACKAGE = 'nova_ext_sched'
_WEIGHER = 'nova_ext_sched.simulator.weigher.PreferredHosts'

# What the simulated cloud is built from; a scenario that changes these would
# leave it.
BUILT_IN = {
    ('DEFAULT', 'compute_driver'),
    ('DEFAULT', 'host'),
    ('DEFAULT', 'transport_url'),
    ('api_database', 'connection'),
    ('database', 'connection'),
    ('wsgi', 'api_paste_config'),
}


def compose(declared: scenario.Scenario, plain: bool) -> scenario.Options:
    """Return the options that a cloud runs with, by group.

    Quotas are unlimited unless the scenario limits them: they would end a
    scenario of many servers before the scheduler is asked.

    :param declared: the scenario
    :param plain: as nova is without our package
    """
    options: scenario.Options = {
        'quota': {
            'cores': -1,
            'instances': -1,
            'ram': -1,
            'server_groups': -1,
            'server_group_members': -1,
        },
    }
    _merge(options, declared.nova_conf)
    host_filters = declared.host_filters
    if plain:
        _merge(options, declared.plain_nova_conf)
        if declared.plain_host_filters is not None:
            host_filters = declared.plain_host_filters
        options.pop(_PACKAGE, None)
    scheduler = options.setdefault('filter_scheduler', {})
    available = _listed(
        scheduler, 'available_filters', [NOVA_FILTERS, ALL_FILTERS]
    )
    enabled = _listed(
        scheduler,
        'enabled_filters',
        CONF.filter_scheduler.enabled_filters,
    )
    enabled += [name for name in host_filters if name not in enabled]
    if plain:
        available = [
            name for name in available if name.split('.')[0] != _PACKAGE
        ]
        ours = _filters_that_nova_lacks()
        enabled = [name for name in enabled if name not in ours]
    if declared.prefer:
        scheduler['weight_classes'] = [
            *_listed(
                scheduler,
                'weight_classes',
                CONF.filter_scheduler.weight_classes,
            ),
            _WEIGHER,
        ]
    scheduler['available_filters'] = available
    scheduler['enabled_filters'] = enabled
    return options


def _merge(options: scenario.Options, more: scenario.Options) -> None:
    for group, values in more.items():
        options.setdefault(group, {}).update(
            (option, _written(value)) for option, value in values.items()
        )


def _written(value: typing.Any) -> typing.Any:
    """Return a value as nova.conf would have it.

    oslo.config's types take strings and values of their own type: a number
    for a boolean option would raise what no caller expects, and a boolean
    passes for a number.
    """
    if isinstance(value, list):
        return [_written(item) for item in value]
    return str(value)


def _listed(
    values: dict[str, typing.Any], option: str, default: list[str]
) -> list[str]:
    value = values.get(option, default)
    if isinstance(value, str):
        # As nova.conf would have it.
        return [name.strip() for name in value.split(',')]
    return list(value)


def _filters_that_nova_lacks() -> set[str]:
    declared = {
        entry.name
        for entry in importlib.metadata.entry_points(
            group=plugins.HOST_FILTERS
        )
    }
    return declared - {cls.__name__ for cls in nova_filters.all_filters()}


def unusable(
    options: scenario.Options,
) -> Iterator[tuple[str, str | None, str, typing.Any]]:
    """Yield what nova's configuration does not take.

    :returns: group, option (None where the group is at fault), what is
        expected, and what was got
    """
    conf.register_opts(CONF)
    for group, values in options.items():
        if not _is_group(group):
            yield group, None, 'an option group of nova.conf', group
            continue
        for option, value in values.items():
            if (group, option) in BUILT_IN:
                yield (
                    group,
                    option,
                    'an option that the simulator does not set itself',
                    option,
                )
            elif reason := _refused(group, option, value):
                yield (group, option, *reason)


def _is_group(name: str) -> bool:
    # An option of [DEFAULT] is an attribute just as a group is.
    return name == 'DEFAULT' or isinstance(
        getattr(CONF, name, None), cfg.ConfigOpts.GroupAttr
    )


def _refused(
    group: str, option: str, value: typing.Any
) -> tuple[str, typing.Any] | None:
    section = None if group == 'DEFAULT' else group
    try:
        CONF.set_override(option, _written(value), section)
    except cfg.NoSuchOptError:
        return f'an option of [{group}]', option
    except (TypeError, ValueError) as exc:
        return f"the option's type ({exc})", value
    taken = getattr(CONF if section is None else CONF[section], option)
    CONF.clear_override(option, section)
    if isinstance(value, bool) and taken is not value:
        # YAML takes on and no for booleans; the text is lost by now.
        return 'a string (quote it)', value
    return None
