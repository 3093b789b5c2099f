# SPDX-License-Identifier: Apache-2.0

"""The nova.conf of a simulated cloud, with our package and without it."""

from collections.abc import Iterable
from collections.abc import Iterator
import importlib.metadata
import typing

from nova import exception as nova_exception
from nova.api.validation.extra_specs import validators
import nova.conf
from nova.scheduler import filters as nova_filters
from oslo_config import cfg

from nova_ext_sched import conf
from nova_ext_sched import filters
from nova_ext_sched import messages
from nova_ext_sched import plugins
from nova_ext_sched import schema
from nova_ext_sched.cmd.simulate import scenario
from nova_ext_sched.conf import round_robin

CONF = nova.conf.CONF

_PACKAGE = 'nova_ext_sched'
_WEIGHER = 'nova_ext_sched.cmd.simulate.weigher.PreferredHosts'
#: nova and our package have an option of this name, in groups of their own.
_ISOLATION = 'enable_isolated_aggregate_filtering'
_AVAILABLE = ('filter_scheduler', 'available_filters')
#: What options name that has to be installed.
_KINDS = {
    ('filter_scheduler', 'enabled_filters'): 'host filter',
    (_PACKAGE, 'request_filters'): 'request filter',
}

KeywordErrors = Iterator[schema.KeywordError]

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

    Where the scenario isolates aggregates, plain nova does so with its own
    request filter, unless ``plain`` of the scenario says otherwise. Quotas
    are unlimited unless the scenario limits them: they would end a
    scenario of many servers before the scheduler is asked.

    :param declared: the scenario
    :param plain: as nova is without our package
    """
    options: scenario.Options = {
        'quota': dict.fromkeys(
            (
                'cores',
                'instances',
                'ram',
                'server_groups',
                'server_group_members',
            ),
            -1,
        )
    }
    _merge(options, declared.nova_conf)
    host_filters = declared.host_filters
    if plain:
        ours = options.pop(_PACKAGE, {})
        if _ISOLATION in ours:
            _merge(options, {'scheduler': {_ISOLATION: ours[_ISOLATION]}})
        _merge(options, declared.plain.get('nova_conf', {}))
        options.pop(_PACKAGE, None)
        host_filters = declared.plain.get('host_filters', host_filters)
    default = CONF.filter_scheduler
    lines = {
        'available_filters': [filters.NOVA_FILTERS, filters.ALL_FILTERS],
        'enabled_filters': default.enabled_filters,
        'weight_classes': [*default.weight_classes, round_robin.ALL_WEIGHERS],
    }
    scheduler = options.setdefault('filter_scheduler', {})
    available, enabled, weighers = (
        _split(scheduler.get(name, value)) for name, value in lines.items()
    )
    enabled += [name for name in host_filters if name not in enabled]
    if plain:
        available = _without_ours(available)
        missing = _declared(plugins.HOST_FILTERS) - _nova_filters()
        enabled = [name for name in enabled if name not in missing]
    if filters.ALL_FILTERS not in available:
        weighers = _without_ours(weighers)
    if declared.prefer:
        weighers.append(_WEIGHER)
    scheduler.update(zip(lines, (available, enabled, weighers), strict=True))
    return options


def _merge(options: scenario.Options, more: scenario.Options) -> None:
    for group, values in more.items():
        options.setdefault(group, {}).update(values)


def _split(value: typing.Any) -> list[str]:
    if isinstance(value, str):
        # As nova.conf would have it.
        value = [name.strip() for name in value.split(',')]
    names = value if isinstance(value, list) else ()
    return [name for name in names if isinstance(name, str)]


def _without_ours(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.split('.')[0] != _PACKAGE]


def _nova_filters(
    available: Iterable[str] = (filters.NOVA_FILTERS,),
) -> set[str]:
    handler = nova_filters.HostFilterHandler()
    classes = handler.get_matching_classes(list(available))
    return {cls.__name__ for cls in classes}


def _declared(namespace: str) -> set[str]:
    return importlib.metadata.entry_points(group=namespace).names


def keywords() -> dict[str, typing.Any]:
    """Return the keywords of the schema that nova's own code checks.

    ``nova_conf`` comes before ``host_filters`` in the schema: its
    ``available_filters`` add to what is installed.
    """
    conf.register_opts(CONF)
    installed = {
        'host filter': _declared(plugins.HOST_FILTERS) | _nova_filters(),
        'request filter': _declared(plugins.REQUEST_FILTERS),
    }

    def check_installed(
        kind: str, value: typing.Any, path: schema.Path = ()
    ) -> KeywordErrors:
        for name in _split(value):
            if name not in installed[kind]:
                yield schema.KeywordError(
                    f'a {kind} that is installed',
                    schema.show(name)
                    + schema.suggest([name], installed[kind]),
                    path,
                )

    def check_options(groups: typing.Any) -> KeywordErrors:
        for group, values in _items(groups):
            # First what makes the host filters of the others available.
            for option, value in sorted(
                _items(values), key=lambda item: item[0] != _AVAILABLE[1]
            ):
                yield from check_option((group, option), value)

    def check_option(
        path: tuple[str, str], value: typing.Any
    ) -> KeywordErrors:
        if reason := _refused(*path, value):
            yield schema.KeywordError(*reason, path)
        elif path == _AVAILABLE:
            try:
                installed['host filter'] |= _nova_filters(
                    _without_ours(_split(value))
                )
            except (ImportError, ValueError) as exc:
                # oslo.utils appends a traceback.
                cause = str(exc).partition(' ([')[0]
                yield schema.KeywordError(
                    'filters that can be imported', messages.clean(cause), path
                )
        elif kind := _KINDS.get(path):
            yield from check_installed(kind, value, path)

    # As jsonschema calls them.
    return {
        'installed': lambda _, kind, value, form: check_installed(kind, value),
        'nova_conf': lambda _, on, groups, form: check_options(groups),
        'extra_specs': lambda _, on, specs, form: _check_extra_specs(specs),
    }


def _check_extra_specs(specs: typing.Any) -> KeywordErrors:
    for key, value in _items(specs):
        try:
            validators.validate(key, str(value))
        except nova_exception.ValidationError as exc:
            yield schema.KeywordError(
                'what nova-api takes',
                messages.clean(exc.format_message()),
                [key],
            )


def _items(value: typing.Any) -> Iterable[tuple[str, typing.Any]]:
    # The schema says so where it is no mapping.
    return value.items() if isinstance(value, dict) else ()


def _refused(
    group: str, option: str, value: typing.Any
) -> tuple[str, str] | None:
    """Return what is expected in place of an option, and what was got."""
    if (group, option) in BUILT_IN:
        return (
            'an option that the simulator does not set itself',
            messages.clean(option),
        )
    section = None if group == 'DEFAULT' else group
    try:
        CONF.set_override(option, value, section)
        CONF.clear_override(option, section)
    except cfg.NoSuchGroupError:
        known: Iterable[str] = CONF
        expected, got = 'a group of nova.conf', group
    except cfg.NoSuchOptError:
        known = CONF if section is None else CONF[section]
        expected, got = f'an option of [{group}]', option
    except (TypeError, ValueError) as exc:
        said = messages.clean(exc)
        return f'a value of its type ({said})', schema.show(value)
    else:
        return None
    return expected, messages.clean(got) + schema.suggest([got], [*known])
