# SPDX-License-Identifier: Apache-2.0

"""Composes the nova.conf of a simulated cloud, with or without our package."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import importlib.metadata
import typing

import nova.conf
from nova.scheduler import filters as nova_filters
from oslo_config import cfg
from oslo_config import types

from nova_ext_sched import conf
from nova_ext_sched import exception
from nova_ext_sched import filters
from nova_ext_sched import messages
from nova_ext_sched import plugins
from nova_ext_sched import schema
from nova_ext_sched.conf import weighers as weigher_options
from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.simulator import scenario

CONF = nova.conf.CONF

_PACKAGE = 'nova_ext_sched'
_WEIGHER = 'nova_ext_sched.simulator.weigher.PreferredHosts'
#: An option that nova and our package each have, in their own groups.
_ISOLATION = 'enable_isolated_aggregate_filtering'
_LIST = types.List()
# Quotas would end a scenario of many servers before the scheduler is asked.
_UNLIMITED = {
    'quota': dict.fromkeys(
        ('cores', 'instances', 'ram', 'server_groups', 'server_group_members'),
        -1,
    )
}


def compose(declared: scenario.Scenario, plain: bool) -> scenario.Options:
    """Return the options that a cloud runs with, by group.

    If the scenario isolates aggregates, plain nova does so with its own
    request filter, unless ``plain`` of the scenario says otherwise. Quotas
    are unlimited unless the scenario limits them.

    :param declared: the scenario
    :param plain: whether nova runs without our package
    :raises exception.ScenarioInvalid: a filter is not installed
    """
    layers = [_UNLIMITED, declared.nova_conf]
    host_filters = declared.host_filters
    if plain:
        isolates = declared.nova_conf.get(_PACKAGE, {}).get(_ISOLATION)
        if isolates is not None:
            layers.append({'scheduler': {_ISOLATION: isolates}})
        layers.append(declared.plain.get('nova_conf', {}))
        host_filters = declared.plain.get('host_filters', host_filters)
    options: scenario.Options = {}
    for layer in layers:
        for group, values in layer.items():
            for name, value in values.items():
                where, option = change.find_option(group, name)
                options.setdefault(where, {})[option] = value
    default = CONF.filter_scheduler
    lines = {
        'available_filters': [filters.NOVA_FILTERS, filters.ALL_FILTERS],
        'enabled_filters': default.enabled_filters,
        'weight_classes': [
            *default.weight_classes,
            weigher_options.ALL_WEIGHERS,
        ],
    }
    scheduler = options.setdefault('filter_scheduler', {})
    available, enabled, weighers = (
        _LIST(scheduler.get(name, value)) for name, value in lines.items()
    )
    enabled += [name for name in host_filters if name not in enabled]
    ours = importlib.metadata.entry_points(group=plugins.HOST_FILTERS).names
    classes = nova_filters.HostFilterHandler().get_matching_classes(
        _without_ours(available)
    )
    others = {cls.__name__ for cls in classes}
    if plain:
        options.pop(_PACKAGE, None)
        available = _without_ours(available)
        missing = ours - others
        enabled = [name for name in enabled if name not in missing]
    _check_installed(enabled, others | ours, options.get(_PACKAGE, {}))
    if filters.ALL_FILTERS not in available:
        weighers = _without_ours(weighers)
    if declared.prefer:
        weighers.append(_WEIGHER)
    scheduler.update(zip(lines, (available, enabled, weighers), strict=True))
    return options


def _check_installed(
    enabled: Iterable[str], there: set[str], package: Mapping[str, typing.Any]
) -> None:
    """Refuse filters that are not installed.

    :param enabled: names of the enabled host filters
    :param there: names of the installed host filters
    :param package: the options of our package
    :raises exception.ScenarioInvalid: a filter is not installed
    """
    group = plugins.REQUEST_FILTERS
    findings = [
        schema.Finding(
            path,
            f'a {path[-1].replace("_", " ")[:-1]} that is installed',
            schema.show(name) + schema.suggest([name], installed),
        )
        for path, names, installed in (
            (('host_filters',), enabled, there),
            (
                ('nova_conf', _PACKAGE, 'request_filters'),
                _LIST(package.get('request_filters', [])),
                importlib.metadata.entry_points(group=group).names,
            ),
        )
        for name in names
        if name not in installed
    ]
    if findings:
        raise exception.ScenarioInvalid(path='the scenario', findings=findings)


def _without_ours(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.split('.')[0] != _PACKAGE]


def keywords() -> dict[str, typing.Any]:
    """Return the keywords of the schema that only nova's code can check."""
    conf.register_opts(CONF)
    return {'nova_conf': _check_options}


def _check_options(
    validator: object, on: bool, groups: typing.Any, form: object
) -> Iterator[schema.KeywordError]:
    """Yield a fault for each option that nova.conf would not accept."""
    for group, options in _items(groups):
        for option, value in _items(options):
            where, name = change.find_option(group, option)
            section = None if where == 'DEFAULT' else where
            known: Iterable[str] = ()
            try:
                CONF.set_override(name, value, section)
                CONF.clear_override(name, section)
                continue
            except cfg.NoSuchGroupError:
                expected, got = 'a group of nova.conf', messages.clean(group)
                known = CONF
            except cfg.NoSuchOptError:
                expected, got = f'an option of [{group}]', option
                known = CONF[section] if section else CONF
            except ValueError as exc:
                expected = f'a value of its type ({messages.clean(exc)})'
                got = schema.show(value)
            # oslo.config raises these for a list in place of a boolean.
            except (AttributeError, TypeError):
                expected, got = 'a value of its type', schema.show(value)
            yield schema.KeywordError(
                expected,
                got + schema.suggest([got], [*known]),
                (group, option),
            )


def _items(value: typing.Any) -> Iterable[tuple[str, typing.Any]]:
    # The schema reports a value that is no mapping.
    return value.items() if isinstance(value, dict) else ()
