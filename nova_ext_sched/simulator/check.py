# SPDX-License-Identifier: Apache-2.0

"""Reads a scenario file, and finds all its faults."""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import itertools
import logging
import types
import typing
import warnings

import jsonschema

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import schema
from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import hostnames
from nova_ext_sched.simulator import scenario

Findings = Iterator[schema.Finding]
Errors = Iterator[jsonschema.ValidationError]
Form = Mapping[str, typing.Any]
Keywords = Mapping[str, Callable[..., Errors]]

#: The most faults that are shown for one file.
MOST_FINDINGS = 100

_FORMATS = jsonschema.FormatChecker(formats=())


class _Undeclared(schema.KeywordError):
    """A name that nothing has.

    It makes suggestions only when it is shown, because they take time.
    """

    def __init__(self, kind: str, name: str, known: Collection[str]) -> None:
        super().__init__(kind, name)
        self._known = known

    def say(self) -> tuple[str, str]:
        some = messages.first_few(sorted(self._known), 8) or 'there is none'
        expected = f'a declared {self.message} ({some})'
        if self.message == 'server':
            expected = 'a server that an earlier step boots'
        meant = schema.suggest([self.got], self._known)
        return expected, schema.show(self.got) + meant


def load(file: str) -> dict[str, typing.Any]:
    """Read and check a scenario file.

    What only nova can check is checked here only if the scenario has other
    faults, so that all are shown together; else a cloud checks it when it has
    loaded nova.

    :param file: the path of the file
    :returns: the argument of :func:`scenario.parse`
    :raises exception.ScenarioInvalid: with every fault that was found
    """
    data = document.load(file)
    if any(findings(data)):
        # nova takes seconds to import; it logs and warns meanwhile.
        logging.disable(logging.WARNING)
        try:
            with warnings.catch_warnings(action='ignore'):
                from nova_ext_sched.simulator import options

                check(file, data, options.keywords())
        finally:
            logging.disable(logging.NOTSET)
    return data


def check(path: str, data: typing.Any, keywords: Keywords) -> None:
    """Refuse a scenario that has findings.

    :param path: the name of its file
    :param keywords: see :func:`findings`
    :raises exception.ScenarioInvalid: with the first MOST_FINDINGS
    """
    found = [*itertools.islice(findings(data, keywords), MOST_FINDINGS)]
    if found:
        raise exception.ScenarioInvalid(path=path, findings=found)


# The words for what is expected in place of a name that is taken.
_ONCE = {'host': 'each host once', 'server': 'a name that no server had'}


class _Names:
    """The names of a scenario, gathered while its parts are read.

    Its methods are keywords of the schema.
    """

    def __init__(self) -> None:
        self._there: dict[str, set[str]] = collections.defaultdict(set)
        self._there['project'].add(scenario.DEFAULT_PROJECT)
        # nova's own zone, of hosts that are in no other.
        self._there['availability zone'].add('nova')
        self._deleted: set[str] = set()

    def declares(
        self, _: object, kind: str, value: object, form: Form
    ) -> Errors:
        names = _names(value, form)
        for name in names:
            if kind in _ONCE and name in self._there[kind]:
                path = ['boot'] if isinstance(value, dict) else []
                yield schema.KeywordError(_ONCE[kind], schema.show(name), path)
        # A list that is too long is read to its end.
        if len(self._there[kind]) < hostnames.MAX_NAMES**2:
            self._there[kind].update(names)

    def declared(
        self, _: object, kind: str, value: object, form: Form
    ) -> Errors:
        for name in _names(value, form):
            if name not in self._there[kind]:
                yield _Undeclared(kind, name, self._there[kind])
            elif kind == 'server' and name in self._deleted:
                yield schema.KeywordError(
                    'a server that still exists',
                    messages.clean(f'{name}, which a step deletes'),
                )

    def zone(self, _: object, on: bool, value: object, form: Form) -> Errors:
        # nova's ZONE:HOST:NODE forces the host and the node, each of which
        # may be missing; a simulated host's node has the host's name.
        if not isinstance(value, str):
            return
        name, *forced = value.split(':', 2)
        if name:
            yield from self.declared(None, 'availability zone', name, {})
        for host in filter(None, dict.fromkeys(forced)):
            yield from self.declared(None, 'host', host, {})

    def deletes(
        self, _: object, on: bool, value: object, form: Form
    ) -> Errors:
        self._deleted.update(_names(value, form))
        yield from ()


def findings(
    data: typing.Any, nova_keywords: Keywords = types.MappingProxyType({})
) -> Findings:
    """Yield each finding in a document.

    Faults of its form, names that it does not declare, and options that nova
    does not accept are found together. Only if there are none is it checked
    whether its parts agree.

    :param nova_keywords: the keywords of the schema that nova alone can check
    """
    names = _Names()
    validator = jsonschema.validators.extend(
        schema.Validator,
        {
            'declares': names.declares,
            'declared': names.declared,
            'zone': names.zone,
            'deletes': names.deletes,
            'step': _check_step,
            **nova_keywords,
        },
    )(document.SCENARIO, format_checker=_FORMATS)
    error = None
    for error in validator.iter_errors(data):
        if [*error.path][:1] == ['steps'] and len(error.path) > 1:
            # As reports count them.
            error.path.popleft()
            error.path[0] = f'step {error.path[0] + 1}'
        yield from schema.find([error])
    if error is None:
        yield from _check_zones(scenario.parse(data).aggregates)


def _names(value: typing.Any, form: Form) -> list[str]:
    """Return the names in a value; none if its form is wrong."""
    names = [value]
    try:
        if isinstance(value, dict):
            names = scenario.name_servers(value)
        elif form.get('format') == 'names':
            names = hostnames.expand(value)
    except (KeyError, TypeError, ValueError):
        return []
    return [name for name in names if isinstance(name, str)]


@_FORMATS.checks('names', ValueError)
def _is_pattern(value: object) -> bool:
    return not isinstance(value, str) or bool(hostnames.expand(value))


def _check_step(
    validator: typing.Any, steps: Form, value: typing.Any, form: object
) -> Errors:
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


def _check_zones(aggregates: Iterable[scenario.Aggregate]) -> Findings:
    zone_of: dict[str, str] = {}
    for aggregate in aggregates:
        stated = (
            aggregate.availability_zone,
            aggregate.metadata.get('availability_zone'),
        )
        for host, zone in itertools.product(aggregate.hosts, stated):
            if zone and zone_of.setdefault(host, zone) != zone:
                yield schema.Finding(
                    ('aggregates', aggregate.name, 'hosts'),
                    'hosts in one availability zone each',
                    messages.clean(f'{host} in {zone_of[host]} and {zone}'),
                )
