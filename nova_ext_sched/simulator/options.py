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
from nova_ext_sched import messages
from nova_ext_sched import plugins
from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import scenario

CONF = nova.conf.CONF

NOVA_FILTERS = 'nova.scheduler.filters.all_filters'
ALL_FILTERS = 'nova_ext_sched.filters.all_filters'
_PACKAGE = 'nova_ext_sched'
_AVAILABLE = ('nova_conf', 'filter_scheduler', 'available_filters')
_ENABLED = ('nova_conf', 'filter_scheduler', 'enabled_filters')
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
    return _split(values.get(option, default))


def _split(value: typing.Any) -> list[str]:
    if isinstance(value, str):
        # As nova.conf would have it.
        return [name.strip() for name in value.split(',')]
    return list(value)


def _filters_that_nova_lacks() -> set[str]:
    return _declared(plugins.HOST_FILTERS) - _nova_filters()


def _nova_filters(available: Iterable[str] = (NOVA_FILTERS,)) -> set[str]:
    handler = nova_filters.HostFilterHandler()
    classes = handler.get_matching_classes(list(available))
    return {cls.__name__ for cls in classes}


def _declared(namespace: str) -> set[str]:
    return importlib.metadata.entry_points(group=namespace).names


def faults(data: dict[str, typing.Any]) -> list[document.Fault]:
    """Return what nova would not take, from nova's own code.

    The document may have faults of form as well: what is of the wrong type
    is passed over.

    :param data: a scenario document
    """
    conf.register_opts(CONF)
    found: list[document.Fault] = []
    host_filters = _declared(plugins.HOST_FILTERS) | _nova_filters()
    for path in (), ('plain',):
        part = _get(data, *path)
        found += _unusable(part, path)
        # Plain nova has the options of the whole as well.
        available = _names(_get(part, *_AVAILABLE))
        try:
            host_filters |= _nova_filters(
                name for _, name in available if name.split('.')[0] != _PACKAGE
            )
        except (ImportError, ValueError) as exc:
            found.append(
                document.Fault(
                    (*path, *_AVAILABLE),
                    'filters that can be imported',
                    # oslo.utils appends a traceback.
                    messages.quote(str(exc).partition(' ([')[0]),
                )
            )
        for place, kind, known in (
            (('host_filters',), 'host filter', host_filters),
            (_ENABLED, 'host filter', host_filters),
            (
                ('nova_conf', _PACKAGE, 'request_filters'),
                'request filter',
                _declared(plugins.REQUEST_FILTERS),
            ),
        ):
            found += [
                document.Fault(
                    (*path, *place, *index),
                    f'a {kind} that is installed',
                    document.show(name) + document.suggest([name], known),
                )
                for index, name in _names(_get(part, *place))
                if name not in known
            ]
    for name, flavor in _items(data, 'flavors'):
        for key, value in _items(flavor, 'extra_specs'):
            try:
                validators.validate(key, str(value))
            except nova_exception.ValidationError as exc:
                found.append(
                    document.Fault(
                        ('flavors', name, 'extra_specs', key),
                        'what nova-api takes',
                        messages.quote(exc.format_message()),
                    )
                )
    return found


def _get(data: typing.Any, *path: str) -> typing.Any:
    """Return what stands at a path; an empty mapping for nothing."""
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict | list | str) else {}


def _names(value: typing.Any) -> list[tuple[document.Path, str]]:
    """Return names of a list, with their place in it, or of a string."""
    if isinstance(value, str):
        return [((), name) for name in _split(value) if name]
    return [
        ((index,), name)
        for index, name in enumerate(value)
        if isinstance(name, str)
    ]


def _items(data: typing.Any, *path: str) -> list[tuple[str, typing.Any]]:
    found = _get(data, *path)
    return list(found.items()) if isinstance(found, dict) else []


def _unusable(
    part: typing.Any, path: document.Path
) -> Iterator[document.Fault]:
    """Yield what nova's configuration does not take."""
    for group, values in _items(part, 'nova_conf'):
        here = (*path, 'nova_conf', group)
        if not _is_group(group) and isinstance(values, dict):
            yield document.Fault(
                here,
                'an option group of nova.conf',
                messages.quote(group) + document.suggest([group], CONF),
            )
            continue
        for option, value in _items(values):
            if (group, option) in BUILT_IN:
                yield document.Fault(
                    (*here, option),
                    'an option that the simulator does not set itself',
                    messages.quote(option),
                )
            elif reason := _refused(group, option, value):
                yield document.Fault((*here, option), *reason)


def _is_group(name: str) -> bool:
    # An option of [DEFAULT] is an attribute just as a group is.
    return name == 'DEFAULT' or isinstance(
        getattr(CONF, name, None), cfg.ConfigOpts.GroupAttr
    )


def _refused(
    group: str, option: str, value: typing.Any
) -> tuple[str, str] | None:
    section = None if group == 'DEFAULT' else group
    options = CONF if section is None else CONF[section]
    try:
        CONF.set_override(option, _written(value), section)
    except cfg.NoSuchOptError:
        return (
            f'an option of [{group}]',
            messages.quote(option) + document.suggest([option], options),
        )
    except (TypeError, ValueError) as exc:
        return f"the option's type ({exc})", document.show(value)
    used = getattr(options, option)
    CONF.clear_override(option, section)
    if isinstance(value, bool) and used is not value:
        # YAML takes on and no for booleans; the text is lost by now.
        return 'a string (quote it)', document.show(value)
    return None
