# SPDX-License-Identifier: Apache-2.0

"""The request bodies that create a server group: JSON schemas and faults.

Two forms exist: the one of the specification "Complex Anti-Affinity Policies"
(``policy: {name, rules}``) and the one that nova took up in microversion 2.64
(``policy`` and ``rules`` side by side). Both schemas come from the table of
rules in :mod:`nova_ext_sched.policy.anti_affinity`. ``description`` in a
schema is the expected form in words.
"""

from collections.abc import Callable
from collections.abc import Iterator
import itertools
import typing

import jsonschema

from nova_ext_sched import exception
from nova_ext_sched.policy import anti_affinity

Schema = dict[str, typing.Any]

_NAME = {
    'type': 'string',
    'minLength': 1,
    'maxLength': 255,
    'pattern': r'^\S(.*\S)?$',
    'description': 'a name of 1 to 255 characters, no blank at its ends',
}


def _object(properties: Schema, required: list[str], words: str) -> Schema:
    return {
        'type': 'object',
        'properties': properties,
        'required': required,
        'additionalProperties': False,
        'description': words,
    }


def _policy_name(policies: list[str]) -> Schema:
    return {
        'type': 'string',
        'enum': policies,
        'description': f'one of {", ".join(policies)}',
    }


def _rules(names: tuple[str, ...]) -> Schema:
    rules = [anti_affinity.RULES[name] for name in names]
    schema = _object(
        {
            rule.name: {**rule.schema, 'description': rule.expected}
            for rule in rules
        },
        [],
        f'an object of rules ({", ".join(names) or "the policy has none"})',
    )
    del schema['required']
    return schema


def _one_of(
    branch: Callable[[list[str], tuple[str, ...]], Schema],
) -> list[Schema]:
    """Return a schema for each set of policies that have the same rules."""

    def rules(policy: str) -> tuple[str, ...]:
        return tuple(anti_affinity.rules_of(policy))

    policies = sorted(anti_affinity.POLICIES, key=rules, reverse=True)
    return [
        branch(list(same), names)
        for names, same in itertools.groupby(policies, rules)
    ]


def _nested(policies: list[str], names: tuple[str, ...]) -> Schema:
    properties = {'name': _policy_name(policies)}
    if names:
        properties['rules'] = _rules(names)
        words = 'an object with the keys name and rules'
    else:
        words = (
            f'an object with the key name alone, for {", ".join(policies)} '
            f'have no rules'
        )
    return _object(properties, ['name'], words)


def _flat(policies: list[str], names: tuple[str, ...]) -> Schema:
    return _object(
        {
            'name': _NAME,
            'policy': _policy_name(policies),
            'rules': _rules(names),
        },
        ['name', 'policy'],
        'an object with the keys name, policy and rules',
    )


def _body(server_group: Schema) -> Schema:
    return _object(
        {'server_group': server_group},
        ['server_group'],
        'an object with the key server_group',
    )


#: The body of the specification.
NESTED = _body(
    _object(
        {'name': _NAME, 'policy': {'oneOf': _one_of(_nested)}},
        ['name', 'policy'],
        'an object with the keys name and policy',
    )
)

#: The body of nova since microversion 2.64.
NOVA = _body({'oneOf': _one_of(_flat)})


def validate(body: typing.Any, schema: Schema) -> None:
    """Check a request body.

    :param body: what ``json.loads`` made of it
    :param schema: :data:`NESTED` or :data:`NOVA`
    :raises exception.InvalidValue: one value is wrong
    :raises exception.InvalidValues: several are
    """
    validator = jsonschema.Draft202012Validator(schema)
    errors = validator.iter_errors(body)
    # jsonschema repeats itself: once for each key that is missing.
    faults = {
        str(fault): fault for error in errors for fault in _faults(error)
    }
    if len(faults) > 1:
        raise exception.InvalidValues([faults[key] for key in sorted(faults)])
    for fault in faults.values():
        raise fault


def _faults(error: typing.Any) -> Iterator[exception.InvalidValue]:
    where = error.json_path.removeprefix('$').removeprefix('.') or 'body'
    got = error.instance
    schema = error.schema
    if error.validator == 'oneOf':
        yield from _faults_of_one(error, where)
    elif error.validator == 'required':
        for key in schema['required']:
            if key not in got:
                yield exception.InvalidValue(
                    where=where, expected=f'the key {key}', got=got
                )
    elif error.validator == 'additionalProperties':
        for key in set(got) - set(schema['properties']):
            yield exception.InvalidValue(
                where=f'{where}.{key}',
                expected=f'no such key, but {schema["description"]}',
                got=got[key],
            )
    else:
        yield exception.InvalidValue(
            where=where, expected=schema['description'], got=got
        )


def _faults_of_one(
    error: typing.Any, where: str
) -> Iterator[exception.InvalidValue]:
    # Of the faults of all branches, only those of the branch that is meant
    # help: the one that the policy's name selects.
    branches = error.validator_value
    key = 'policy' if 'policy' in branches[0]['properties'] else 'name'
    meant = 0
    if isinstance(error.instance, dict) and key in error.instance:
        name = error.instance[key]
        enums = [branch['properties'][key]['enum'] for branch in branches]
        matching = [i for i, names in enumerate(enums) if name in names]
        if not matching:
            yield exception.InvalidValue(
                where=f'{where}.{key}',
                expected=f'one of {", ".join(anti_affinity.POLICIES)}',
                got=name,
            )
            return
        (meant,) = matching
    for sub_error in error.context:
        if sub_error.schema_path[0] == meant:
            yield from _faults(sub_error)
