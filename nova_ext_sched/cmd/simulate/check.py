# SPDX-License-Identifier: Apache-2.0

"""Reading a scenario file, with everything that is wrong with it."""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import itertools
import logging
import types
import typing
import warnings

import jsonschema

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import schema
from nova_ext_sched.cmd.simulate import document
from nova_ext_sched.cmd.simulate import hostnames
from nova_ext_sched.cmd.simulate import scenario
from nova_ext_sched.cmd.simulate import schema as sim_schema

Finding = schema.Finding
Findings = Iterator[Finding]
KeywordErrors = Iterator[schema.KeywordError]
Keywords = Mapping[str, Callable[..., Iterator[jsonschema.ValidationError]]]

#: The most faults that are shown for one file.
MOST_FINDINGS = 100

# What names of these kinds may stand for several, and what those may that
# declare one.
_PATTERNS = ('host', 'server')
_DECLARED_PATTERNS = (*_PATTERNS, 'aggregate')

#: Keys of hosts that no nova-compute reports.
_ROWS = frozenset({'inventories', 'used', 'state', 'compute_node'})

#: The zone of hosts that are in none, unless an option names another.
_DEFAULT_ZONE = 'nova'


def load(file: str) -> dict[str, typing.Any]:
    """Read and check a scenario file.

    What nova alone knows is checked here only where the scenario has other
    faults, so that all are shown together; else a cloud checks it when it has
    loaded nova.

    :param file: the path of the file
    :returns: what :func:`scenario.parse` takes
    :raises exception.ScenarioInvalid: with every fault that was found
    """
    data = document.load(file)
    if any(findings(data)):
        # nova takes seconds to import; it logs and warns meanwhile.
        logging.disable(logging.WARNING)
        try:
            with warnings.catch_warnings(action='ignore'):
                from nova_ext_sched.cmd.simulate import options

                found = itertools.islice(
                    findings(data, options.keywords()), MOST_FINDINGS
                )
                raise exception.ScenarioInvalid(
                    path=file, findings=list(found)
                )
        finally:
            logging.disable(logging.NOTSET)
    return data


def findings(
    data: typing.Any, nova_keywords: Keywords = types.MappingProxyType({})
) -> Findings:
    """Yield each finding in a document.

    Faults of its form, names that it does not declare and what nova does not
    take are found together. How its parts agree is checked where the form is
    right.

    :param nova_keywords: the keywords of the schema that nova alone can check
    """
    for finding in _find(data, nova_keywords):
        match finding.path:
            case ('steps', int(index), *rest):
                # As reports count them.
                path = (f'step {index + 1}', *rest)
                finding = dataclasses.replace(finding, path=path)
        yield finding


def _find(data: typing.Any, nova_keywords: Keywords) -> Findings:
    names: dict[str, set[str]] = collections.defaultdict(set)
    names['project'].add(scenario.DEFAULT_PROJECT)

    def declares(
        validator: object, kind: str, value: object, form: object
    ) -> Findings:
        # A list that is too long is read to its end.
        if len(names[kind]) < hostnames.MAX_NAMES**2:
            names[kind].update(_names(kind, value, _DECLARED_PATTERNS))
        yield from ()

    def declared(
        validator: object, kind: str, value: object, form: object
    ) -> Iterator[jsonschema.ValidationError]:
        for name in _names(kind, value):
            if name not in names[kind]:
                # Suggestions take time: only for those that are shown.
                yield jsonschema.ValidationError(name)

    validator = jsonschema.validators.extend(
        schema.Validator,
        {
            'declares': declares,
            'declared': declared,
            'names': _check_pattern,
            'step': _check_step,
            **nova_keywords,
        },
    )(sim_schema.SCENARIO)
    has_form = True
    for error in validator.iter_errors(data):
        for part in schema.find_parts(error):
            has_form &= part.validator in ('declared', *nova_keywords)
            if part.validator == 'declared':
                yield _describe_undeclared(part, names)
            else:
                yield from schema.describe(part)
    if has_form:
        yield from _contradictions(data, scenario.parse(data))


def _names(
    kind: str, value: typing.Any, patterns: Collection[str] = _PATTERNS
) -> list[str]:
    """Return what a value names; nothing where its form is wrong.

    :param patterns: the kinds whose names may stand for several
    """
    names = [value]
    try:
        if isinstance(value, dict):
            names = scenario.name_servers(value)
        elif kind in patterns:
            names = hostnames.expand(value)
    except (KeyError, TypeError, ValueError):
        return []
    return [name for name in names if isinstance(name, str)]


def _undeclared(
    path: schema.Path, kind: str, name: str, names: Collection[str]
) -> Finding:
    """Return what is wrong with a name of nothing."""
    some = messages.first_few(sorted(names), 8) or 'there is none'
    expected = f'a declared {kind} ({some})'
    if kind == 'server':
        expected = 'a server that an earlier step boots'
    got = schema.show(name) + schema.suggest([name], names)
    return Finding(path, expected, got)


def _describe_undeclared(
    error: jsonschema.ValidationError, names: Mapping[str, Collection[str]]
) -> Finding:
    path = tuple(error.absolute_path)
    if 'propertyNames' in error.absolute_schema_path:
        path = (*path, error.instance)
    kind = error.validator_value
    return _undeclared(path, kind, error.message, names[kind])


def _check_pattern(
    validator: object, _: object, value: object, form: object
) -> KeywordErrors:
    try:
        if isinstance(value, str):
            hostnames.expand(value)
    except ValueError as exc:
        yield schema.KeywordError(
            f'a pattern of at most {hostnames.MAX_NAMES} names such as '
            'compute{01..50}',
            f'{messages.clean(value, 100)}, {exc}',
        )


def _check_step(
    validator: typing.Any,
    steps: dict[str, typing.Any],
    value: typing.Any,
    form: object,
) -> Iterator[jsonschema.ValidationError]:
    if isinstance(value, dict):
        actions = [action for action in steps if action in value]
        if len(actions) == 1:
            yield from validator.descend(value, steps[actions[0]])
        elif actions:
            yield schema.KeywordError('one action', ' and '.join(actions))
        else:
            yield schema.KeywordError(
                f'one action of {", ".join(steps)}',
                schema.show_keys(value) + schema.suggest(value, steps),
            )


def _contradictions(
    data: dict[str, typing.Any], declared: scenario.Scenario
) -> Findings:
    """Yield where the parts of a scenario do not agree."""
    seen = set()
    for index, item in enumerate(data['hosts']):
        path: schema.Path = ('hosts', index)
        if isinstance(item, dict):
            path, item = (*path, 'name'), item['name']
        for name in hostnames.expand(item):
            if name in seen:
                yield Finding(path, 'each host once', schema.show(name))
            seen.add(name)
    zones_of: dict[str, set[str]] = collections.defaultdict(set)
    for aggregate in declared.aggregates:
        for host in aggregate.hosts:
            zones_of[host] |= _zones(aggregate)
            if len(zones_of[host]) > 1:
                zones = ' and '.join(sorted(zones_of[host]))
                yield Finding(
                    ('aggregates', aggregate.name, 'hosts'),
                    'hosts in one availability zone each',
                    messages.clean(f'{host} in {zones}'),
                )
    yield from _check_rows(data, declared)
    yield from _check_steps(declared, seen)


def _check_rows(
    data: dict[str, typing.Any], declared: scenario.Scenario
) -> Findings:
    """Yield what only a host without a nova-compute can have."""
    others = [step for step in declared.steps if step.action != 'boot']
    if declared.independent and others:
        yield Finding(
            ('independent',),
            'true only where each step is a boot',
            messages.clean(others[0]),
        )
    busy = next((step for step in declared.steps if step.needs_compute), None)
    if busy is None:
        return
    found: list[schema.Path] = [
        ('hosts', index, key)
        for index, item in enumerate(data['hosts'])
        if isinstance(item, dict)
        for key in sorted(item.keys() & _ROWS)
    ]
    found += [('servers',)] * bool(declared.servers)
    for path in found:
        yield Finding(
            path,
            'no such key, because a step needs a nova-compute',
            messages.clean(busy),
        )


def _zones(aggregate: scenario.Aggregate) -> set[str]:
    zones = (
        aggregate.availability_zone,
        aggregate.metadata.get('availability_zone'),
    )
    return {zone for zone in zones if zone}


def _check_steps(
    declared: scenario.Scenario, hosts: Collection[str]
) -> Findings:
    """Yield what a step says of servers and zones that cannot be then."""
    default = declared.nova_conf.get('DEFAULT', {}).get(
        'default_availability_zone', _DEFAULT_ZONE
    )
    zones = {str(default)}.union(*map(_zones, declared.aggregates))
    owners = {group.name: group.project for group in declared.server_groups}
    for server in declared.servers:
        path: schema.Path = ('servers', server.name)
        yield from _check_group(path, server.group, server.project, owners)
    #: Whether each server that was booted so far still exists.
    servers = dict.fromkeys((one.name for one in declared.servers), True)
    again = set(servers) if declared.independent else set()
    for index, step in enumerate(declared.steps):
        path = ('steps', index)
        if step.action == 'boot':
            yield from _check_zone(path, step, zones, hosts)
            group = step.arguments.get('group')
            yield from _check_group(path, group, step.project, owners)
        zone = step.arguments.get('set', {}).get('availability_zone')
        if zone:
            zones.add(zone)
        for name in step.servers:
            here = (*path, step.action)
            if step.action == 'boot':
                if name in servers and name not in again:
                    yield Finding(
                        here, 'a name that no server had', schema.show(name)
                    )
                servers[name] = True
            elif not servers.get(name, True):
                yield Finding(
                    here,
                    'a server that still exists',
                    f'{name}, which a step deletes',
                )
            elif step.action == 'delete':
                servers[name] = False


def _check_group(
    path: schema.Path, group: str | None, project: str, owners: typing.Any
) -> Findings:
    """Yield where the server group is one of another project.

    :param owners: the projects of the server groups, by name
    """
    owner = owners.get(group, project)
    if owner != project:
        yield Finding(
            (*path, 'group'),
            f'a server group of the project {messages.clean(project)}',
            messages.clean(f'{group}, of {owner}'),
        )


def _check_zone(
    path: schema.Path,
    step: scenario.Step,
    zones: Collection[str],
    hosts: Collection[str],
) -> Findings:
    # nova's ZONE:HOST:NODE forces the host and the node, each of which may be
    # missing; a simulated host's node has the host's name.
    value = step.arguments.get('availability_zone', '')
    zone, *forced = value.split(':', 2)
    path = (*path, 'availability_zone')
    if zone and zone not in zones:
        yield _undeclared(path, 'availability zone', zone, zones)
    for host in dict.fromkeys(forced):
        if host and host not in hosts:
            yield _undeclared(path, 'host', host, hosts)
