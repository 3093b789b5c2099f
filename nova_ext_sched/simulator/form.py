# SPDX-License-Identifier: Apache-2.0

"""Where a scenario is not of its form: what JSON schema finds, in words."""

from collections.abc import Iterator
import typing

import jsonschema

from nova_ext_sched import exception
from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import schema


def _is_integer(checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# JSON schema takes 2.0 for an integer; nova does not, nor does Python.
_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        'integer', _is_integer
    ),
)


def faults(doc: document.Document) -> Iterator[exception.ScenarioFault]:
    """Yield each place where the document is not of the form of a scenario."""
    yield from _check(doc, (), schema.SCENARIO, doc.data)
    steps = doc.data.get('steps') if isinstance(doc.data, dict) else None
    if not isinstance(steps, list):
        return
    for index, step in enumerate(steps):
        if not isinstance(step, dict):
            continue
        name = schema.action(step)
        if name is None:
            yield doc.fault(
                ('steps', index),
                'one of the keys ' + ', '.join(schema.STEPS),
                _keys(step),
            )
            continue
        yield from _check(doc, ('steps', index), schema.STEPS[name], step)


def _check(
    doc: document.Document,
    at: document.Path,
    form: schema.Schema,
    value: object,
) -> Iterator[exception.ScenarioFault]:
    for error in _Validator(form).iter_errors(value):
        yield from _told(doc, at, error)


def _told(
    doc: document.Document,
    at: document.Path,
    error: jsonschema.ValidationError,
) -> Iterator[exception.ScenarioFault]:
    path = (*at, *error.absolute_path)
    if error.validator == 'additionalProperties':
        known = error.schema['properties']
        for key in error.instance:
            if key not in known:
                yield doc.fault(
                    (*path, key),
                    'one of the keys ' + ', '.join(known),
                    document.Words(key),
                )
    elif error.validator == 'required':
        missing = [
            key for key in error.validator_value if key not in error.instance
        ]
        yield doc.fault(
            path, f'the key {" and ".join(missing)}', _keys(error.instance)
        )
    elif error.validator == 'oneOf' and (nearest := _nearest(error)):
        for part in nearest:
            yield from _told(doc, at, part)
    elif error.validator == 'propertyNames' or 'propertyNames' in (
        error.absolute_schema_path
    ):
        yield doc.fault(path, 'a name', error.instance)
    else:
        expected = error.schema.get('description', error.message)
        yield doc.fault(path, expected, error.instance)


def _nearest(
    error: jsonschema.ValidationError,
) -> list[jsonschema.ValidationError]:
    """Return what is wrong by the one alternative of the value's type.

    Empty where the value is of the type of none, or is not a container: the
    alternatives together say it better then.
    """
    if not isinstance(error.instance, dict | list):
        return []
    wanted = 'object' if isinstance(error.instance, dict) else 'array'
    for index, alternative in enumerate(error.schema['oneOf']):
        if alternative.get('type') == wanted:
            return [
                part
                for part in error.context or ()
                if part.schema_path[0] == index
            ]
    return []


def _keys(value: typing.Any) -> document.Words:
    return document.Words(', '.join(map(str, value)) or 'no key')
