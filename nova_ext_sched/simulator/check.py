# SPDX-License-Identifier: Apache-2.0

"""Reading a scenario file, with everything that is wrong with it."""

from collections.abc import Collection
from collections.abc import Iterator
import itertools
import logging
import re
import typing

import jsonschema
import os_traits

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import hostnames
from nova_ext_sched.simulator import scenario
from nova_ext_sched.simulator import schema

Fault = document.Fault
Faults = Iterator[Fault]
Names = dict[str, Collection[str]]

#: Faults that are told of one file.
MOST_FAULTS = 100

#: The zone of hosts that are in none, unless an option names another.
_DEFAULT_ZONE = 'nova'


def load(file: str) -> dict[str, typing.Any]:
    """Read and check a scenario file.

    What nova alone knows (:mod:`options`) is checked here only where the
    scenario has other faults, so that all are told together; else a cloud
    checks it when it has loaded nova.

    :param file: the path of the file
    :returns: what :func:`scenario.parse` takes
    :raises exception.ScenarioInvalid: with every fault that was found
    """
    data = document.load(file)
    found = list(itertools.islice(faults(data), MOST_FAULTS))
    if found:
        if isinstance(data, dict):
            found += _nova_faults(data)
        raise exception.ScenarioInvalid(path=file, faults=found)
    return data


def _nova_faults(data: dict[str, typing.Any]) -> list[Fault]:
    # nova takes seconds to import, and logs meanwhile.
    logging.disable(logging.WARNING)
    try:
        from nova_ext_sched.simulator import options

        return options.faults(data)
    finally:
        logging.disable(logging.NOTSET)


def faults(data: typing.Any) -> Faults:
    """Yield each fault of a document's form and of its references."""
    names = _declared_names(_dict(data))

    def declared(
        validator: object, kind: str, value: object, form: object
    ) -> Iterator[jsonschema.ValidationError]:
        for name in _expanded(value) if kind == 'host' else [value]:
            if isinstance(name, str) and name not in names[kind]:
                yield jsonschema.ValidationError(name)

    validator = jsonschema.validators.extend(
        jsonschema.Draft202012Validator,
        {'declared': declared},
        type_checker=_TYPES,
    )(schema.SCENARIO, format_checker=_FORMATS)
    for error in validator.iter_errors(data):
        yield from _tell(error, names)
    if isinstance(data, dict):
        yield from _check_hosts(data)
        yield from _check_steps(data, names)


# JSON schema takes 2.0 for an integer; nova does not, nor does Python.
_TYPES = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
    'integer',
    lambda checker, value: (
        isinstance(value, int) and not isinstance(value, bool)
    ),
)
_FORMATS = jsonschema.FormatChecker(formats=())


@_FORMATS.checks('pattern', raises=ValueError)
def _is_pattern(value: object) -> bool:
    return not isinstance(value, str) or bool(hostnames.expand(value))


@_FORMATS.checks('trait')
def _is_trait(value: object) -> bool:
    return (
        not isinstance(value, str)
        or re.fullmatch('CUSTOM_[A-Z0-9_]+', value) is not None
        or value in os_traits.get_traits()
    )


def _tell(error: jsonschema.ValidationError, names: Names) -> Faults:
    """Yield what jsonschema found, in words."""
    path = tuple(error.absolute_path)
    form, got = error.schema, error.instance
    if error.validator == 'additionalProperties':
        known = form['properties']
        for key in (key for key in got if key not in known):
            yield Fault(
                (*path, key),
                'one of the keys ' + ', '.join(known),
                messages.quote(key, 100) + document.suggest([key], known),
            )
    elif error.validator == 'required':
        missing = [key for key in error.validator_value if key not in got]
        # Of several that are missing, jsonschema has an error for each.
        if error.message.startswith(repr(missing[0])):
            yield Fault(path, f'the key {" and ".join(missing)}', _keys(got))
    elif error.validator == 'not':
        yield Fault(
            path,
            form['description'],
            _keys(got) + document.suggest(got, schema.STEPS),
        )
    elif error.validator == 'oneOf' and (nearest := _nearest(error)):
        for part in nearest:
            yield from _tell(part, names)
    elif error.validator == 'declared':
        if 'propertyNames' in error.absolute_schema_path:
            path = (*path, got)
        kind = error.validator_value
        fault = document.undeclared(kind, error.message, names[kind])
        yield Fault(path, *fault)
    elif error.validator == 'format' and error.cause:
        yield Fault(
            path,
            f'a pattern of at most {hostnames.MAX_NAMES} names such as '
            'compute{01..50}',
            f'{messages.quote(got, 100)}, {error.cause}',
        )
    else:
        more = (
            document.suggest([got], (schema.NO_VALID_HOST, schema.REFUSED))
            if error.validator == 'oneOf'
            else ''
        )
        yield Fault(
            path,
            form.get('description', error.message),
            document.show(got) + more,
        )


def _nearest(
    error: jsonschema.ValidationError,
) -> list[jsonschema.ValidationError]:
    """Return what is wrong by the alternative that the value looks like.

    Empty where it looks like none: the alternatives together say it better.
    """
    for index, _ in enumerate(error.validator_value):
        parts = [
            part
            for part in error.context or ()
            if part.schema_path[0] == index
        ]
        if not any(
            part.validator in ('type', 'enum', 'pattern') and not part.path
            for part in parts
        ):
            return parts
    return []


def _keys(value: typing.Any) -> str:
    return messages.first_few(list(value)) or 'no key'


def _dict(value: typing.Any) -> dict[str, typing.Any]:
    return value if isinstance(value, dict) else {}


def _list(value: typing.Any) -> list[typing.Any]:
    return value if isinstance(value, list) else []


def _expanded(value: typing.Any) -> list[str]:
    """Return the names of a pattern or a list; none of what is no pattern."""
    names = []
    for pattern in [value] if isinstance(value, str) else _list(value):
        try:
            names += hostnames.expand(pattern)
        except (TypeError, ValueError):
            continue
    return names


def _declared_hosts(
    data: dict[str, typing.Any],
) -> Iterator[tuple[document.Path, str]]:
    hosts = _list(data.get('hosts'))[: hostnames.MAX_NAMES]
    for index, item in enumerate(hosts):
        path: document.Path = ('hosts', index)
        if isinstance(item, dict):
            path, item = (*path, 'name'), item.get('name')
        for name in _expanded(item):
            yield path, name


def _declared_names(data: dict[str, typing.Any]) -> Names:
    """Return the names that a document declares, by their kind.

    The document may have faults of form: what is of the wrong type declares
    nothing.
    """
    projects = map(str, _list(data.get('projects')))
    return {
        'host': {name for _, name in _declared_hosts(data)},
        'flavor': _dict(data.get('flavors')).keys(),
        'image': _dict(data.get('images')).keys(),
        'aggregate': _dict(data.get('aggregates')).keys(),
        'server group': _dict(data.get('server_groups')).keys(),
        'project': {*projects, scenario.DEFAULT_PROJECT},
    }


def _check_hosts(data: dict[str, typing.Any]) -> Faults:
    """Yield hosts that are declared twice or stand in two zones."""
    seen = set()
    for path, name in _declared_hosts(data):
        if name in seen:
            yield Fault(path, 'each host once', document.show(name))
        seen.add(name)
    zones_of: dict[str, set[str]] = {}
    for name, aggregate in _dict(data.get('aggregates')).items():
        for host in _expanded(_dict(aggregate).get('hosts')):
            zones = zones_of.setdefault(host, set())
            zones |= _zones(aggregate)
            if len(zones) > 1:
                yield Fault(
                    ('aggregates', name, 'hosts'),
                    'hosts in one availability zone each',
                    messages.quote(f'{host} in {" and ".join(sorted(zones))}'),
                )


def _zones(aggregate: typing.Any) -> set[str]:
    aggregate = _dict(aggregate)
    zones = (
        part.get('availability_zone')
        for part in (aggregate, _dict(aggregate.get('metadata')))
    )
    return {str(zone) for zone in zones if zone}


def _check_steps(data: dict[str, typing.Any], names: Names) -> Faults:
    """Yield what a step says of servers and zones that are not there then."""
    default = _dict(_dict(data.get('nova_conf')).get('DEFAULT')).get(
        'default_availability_zone', _DEFAULT_ZONE
    )
    zones = {str(default)}
    for aggregate in _dict(data.get('aggregates')).values():
        zones |= _zones(aggregate)
    #: Whether each server that was booted so far still exists.
    servers: dict[str, bool] = {}
    for index, step in enumerate(_list(data.get('steps'))):
        path = ('steps', index)
        action = schema.action(step)
        if action == 'boot':
            yield from _check_zone(path, step, zones, names)
            yield from _check_boot(path, step, data)
            for name in scenario.booted(step):
                if name in servers:
                    yield Fault(
                        (*path, 'boot'),
                        'a name that no server had',
                        document.show(name),
                    )
                servers[name] = True
        elif action == 'aggregate':
            zones |= _zones({'metadata': step.get('set')})
        elif action:
            for name in _expanded(step[action]):
                if name not in servers:
                    yield Fault(
                        (*path, action),
                        'a server that an earlier step boots',
                        document.show(name)
                        + document.suggest([name], servers),
                    )
                elif not servers[name]:
                    yield Fault(
                        (*path, action),
                        'a server that still exists',
                        f'{name}, which a step deletes',
                    )
                elif action == 'delete':
                    servers[name] = False


def _check_zone(
    path: document.Path,
    step: dict[str, typing.Any],
    zones: Collection[str],
    names: Names,
) -> Faults:
    value = step.get('availability_zone')
    if not isinstance(value, str):
        return
    path = (*path, 'availability_zone')
    # nova's ZONE:HOST:NODE forces the host and the node, each of which may be
    # missing; a simulated host's node has the host's name.
    zone, *forced = value.split(':', 2)
    if zone and zone not in zones:
        yield Fault(
            path, *document.undeclared('availability zone', zone, zones)
        )
    hosts = names['host']
    for host in dict.fromkeys(forced):
        if host and host not in hosts:
            yield Fault(path, *document.undeclared('host', host, hosts))


def _check_boot(
    path: document.Path,
    step: dict[str, typing.Any],
    data: dict[str, typing.Any],
) -> Faults:
    group = step.get('group')
    groups = _dict(data.get('server_groups'))
    if isinstance(group, str) and group in groups:
        project = step.get('project', scenario.DEFAULT_PROJECT)
        owner = _dict(groups[group]).get('project', scenario.DEFAULT_PROJECT)
        if owner != project:
            yield Fault(
                (*path, 'group'),
                f'a server group of the project {messages.quote(project)}',
                messages.quote(f'{group}, of {owner}'),
            )
