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

CONF = nova.conf.CONF

NOVA_FILTERS = 'nova.scheduler.filters.all_filters'
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

# What Python and oslo.config say of a value of the wrong type, and what they
# expect.
_FORMS = {
    'invalid literal for int()': 'an integer',
    'int() argument must': 'an integer',
    'could not convert string to float': 'a number',
    'float() argument must': 'a number',
    'Unexpected boolean value': 'true or false',
}

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
    if plain:
        package = options.pop(_PACKAGE, {})
        if _ISOLATION in package:
            options.setdefault('scheduler', {})[_ISOLATION] = package[
                _ISOLATION
            ]
        _merge(options, declared.plain.get('nova_conf', {}))
        options.pop(_PACKAGE, None)
    scheduler = options.setdefault('filter_scheduler', {})
    default = CONF.filter_scheduler
    available = _split(
        scheduler.get('available_filters', [NOVA_FILTERS, filters.ALL_FILTERS])
    )
    enabled = _split(scheduler.get('enabled_filters', default.enabled_filters))
    host_filters = declared.host_filters
    if plain:
        host_filters = declared.plain.get('host_filters', host_filters)
    enabled += [name for name in host_filters if name not in enabled]
    if plain:
        available = [
            name for name in available if name.split('.')[0] != _PACKAGE
        ]
        ours = _declared(plugins.HOST_FILTERS) - _nova_filters()
        enabled = [name for name in enabled if name not in ours]
    scheduler['available_filters'] = available
    scheduler['enabled_filters'] = enabled
    if declared.prefer:
        weighers = scheduler.get('weight_classes', default.weight_classes)
        scheduler['weight_classes'] = [*_split(weighers), _WEIGHER]
    return options


def _merge(options: scenario.Options, more: scenario.Options) -> None:
    for group, values in more.items():
        options.setdefault(group, {}).update(values)


def _split(value: typing.Any) -> list[str]:
    if isinstance(value, str):
        # As nova.conf would have it.
        return [name.strip() for name in value.split(',')]
    return list(value)


def _nova_filters(available: Iterable[str] = (NOVA_FILTERS,)) -> set[str]:
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
        validator: object,
        kind: str,
        value: typing.Any,
        form: object,
        path: schema.Path = (),
    ) -> KeywordErrors:
        known = installed[kind]
        for index, name in _names(value):
            if name not in known:
                yield schema.KeywordError(
                    f'a {kind} that is installed',
                    schema.show(name) + schema.suggest([name], known),
                    (*path, *index),
                )

    def check_options(
        validator: object, _: object, groups: typing.Any, form: object
    ) -> KeywordErrors:
        if not isinstance(groups, dict):
            return
        for group, values in groups.items():
            if not _is_group(group):
                yield schema.KeywordError(
                    'an option group of nova.conf',
                    messages.clean(group) + schema.suggest([group], CONF),
                    [group],
                )
            elif isinstance(values, dict):
                # First what makes the host filters of the others available.
                for option, value in sorted(
                    values.items(), key=lambda item: item[0] != _AVAILABLE[1]
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
                    name
                    for _, name in _names(value)
                    if name.split('.')[0] != _PACKAGE
                )
            except (ImportError, ValueError) as exc:
                # oslo.utils appends a traceback.
                cause = str(exc).partition(' ([')[0]
                yield schema.KeywordError(
                    'filters that can be imported',
                    messages.clean(cause),
                    path,
                )
        elif kind := _KINDS.get(path):
            yield from check_installed(None, kind, value, None, path)

    return {
        'installed': check_installed,
        'nova_conf': check_options,
        'extra_specs': _check_extra_specs,
    }


def _check_extra_specs(
    validator: object, _: object, specs: typing.Any, form: object
) -> KeywordErrors:
    for key, value in specs.items() if isinstance(specs, dict) else ():
        try:
            validators.validate(key, str(value))
        except nova_exception.ValidationError as exc:
            yield schema.KeywordError(
                'what nova-api takes',
                messages.clean(exc.format_message()),
                [key],
            )


def _names(value: typing.Any) -> list[tuple[schema.Path, str]]:
    """Return names of a list, with their place in it, or of a string."""
    if isinstance(value, str):
        return [((), name) for name in _split(value) if name]
    return [
        ((index,), name)
        for index, name in enumerate(value if isinstance(value, list) else ())
        if isinstance(name, str)
    ]


def _is_group(name: str) -> bool:
    # An option of [DEFAULT] is an attribute just as a group is.
    return name == 'DEFAULT' or isinstance(
        getattr(CONF, name, None), cfg.ConfigOpts.GroupAttr
    )


def _refused(
    group: str, option: str, value: typing.Any
) -> tuple[str, str] | None:
    if (group, option) in BUILT_IN:
        return (
            'an option that the simulator does not set itself',
            messages.clean(option),
        )
    section = None if group == 'DEFAULT' else group
    options = CONF if section is None else CONF[section]
    try:
        CONF.set_override(option, value, section)
    except cfg.NoSuchOptError:
        return (
            f'an option of [{group}]',
            messages.clean(option) + schema.suggest([option], options),
        )
    except (TypeError, ValueError) as exc:
        return _expected(exc), schema.show(value)
    CONF.clear_override(option, section)
    return None


def _expected(exc: Exception) -> str:
    """Return what an option takes, given why it did not take a value."""
    said = str(exc)
    for beginning, form in _FORMS.items():
        if said.startswith(beginning):
            return form
    return f'a value that the option takes ({messages.clean(said)})'
