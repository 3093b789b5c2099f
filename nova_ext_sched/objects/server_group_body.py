# SPDX-License-Identifier: Apache-2.0

"""The request bodies that create a server group: JSON schemas and faults.

Two forms exist: the one of the specification "Complex Anti-Affinity Policies"
(``policy: {name, rules}``) and the one that nova took up in microversion 2.64
(``policy`` and ``rules`` side by side). Both schemas come from the table of
rules in :mod:`nova_ext_sched.policy.anti_affinity`; the descriptions are for
:mod:`nova_ext_sched.schema`.
"""

from collections.abc import Callable
import itertools
import typing
import unicodedata

import jsonschema

from nova_ext_sched import exception
from nova_ext_sched import schema
from nova_ext_sched.policy import anti_affinity

Schema = dict[str, typing.Any]

_FORMATS = jsonschema.FormatChecker(formats=())

# nova.api.validation.parameter_types.name
_NAME = {
    'type': 'string',
    'format': 'name',
    'minLength': 1,
    'maxLength': 255,
    'description': 'a name of 1 to 255 printable characters below U+FFFF, '
    'without blanks at its ends',
}


@_FORMATS.checks('name')
def _is_name(text: typing.Any) -> bool:
    """Return whether nova accepts the text as a name.

    As nova.api.validation.parameter_types.valid_name_regex, which alone lets
    a line break pass at the end. What is no string is for ``type`` to refuse.
    """
    if not isinstance(text, str) or not text:
        return True
    categories = [unicodedata.category(char) for char in text]
    return (
        max(text) < '\uffff'
        and not any(name[0] == 'C' for name in categories)
        and not {'Zl', 'Zp'}.intersection(categories)
        and 'Zs' not in (categories[0], categories[-1])
    )


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
    rules_schema = _object(
        {
            rule.name: {**rule.schema, 'description': rule.expected}
            for rule in rules
        },
        [],
        f'an object of rules ({", ".join(names) or "the policy has none"})',
    )
    del rules_schema['required']
    return rules_schema


def _alternatives(
    branch: Callable[[list[str], tuple[str, ...]], Schema],
) -> list[Schema]:
    """Return a schema for each set of policies that have the same rules."""

    def rules(policy: str) -> tuple[str, ...]:
        return tuple(anti_affinity.get_rules(policy))

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
            f'an object with only the key name, because '
            f'{", ".join(policies)} have no rules'
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
        {'name': _NAME, 'policy': {'oneOf': _alternatives(_nested)}},
        ['name', 'policy'],
        'an object with the keys name and policy',
    )
)

#: The body of nova since microversion 2.64.
NOVA = _body({'oneOf': _alternatives(_flat)})


def validate(body: typing.Any, kind: Schema) -> None:
    """Check a request body.

    :param body: what ``json.loads`` made of it
    :param kind: :data:`NESTED` or :data:`NOVA`
    :raises exception.InvalidValue: one value is wrong
    :raises exception.InvalidValues: several are
    """
    validator = jsonschema.Draft202012Validator(kind, format_checker=_FORMATS)
    faults = [
        exception.InvalidValue(where=path or 'body', expected=form, got=got)
        for path, form, got in schema.find_faults(validator.iter_errors(body))
    ]
    if len(faults) > 1:
        raise exception.InvalidValues(faults)
    for fault in faults:
        raise fault
