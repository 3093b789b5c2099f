# SPDX-License-Identifier: Apache-2.0

"""The request bodies that create a server group: JSON schemas and faults.

Two forms exist: the one of the specification "Complex Anti-Affinity Policies"
(``policy: {name, rules}``) and the one that nova took up in microversion 2.64
(``policy`` and ``rules`` side by side). The descriptions are for
:mod:`nova_ext_sched.schema`.
"""

import typing
import unicodedata

import jsonschema

from nova_ext_sched import exception
from nova_ext_sched import schema
from nova_ext_sched.policy import anti_affinity

Schema = dict[str, typing.Any]

_FORMATS = jsonschema.FormatChecker(formats=())


@_FORMATS.checks('name')
def _is_name(text: typing.Any) -> bool:
    """Return whether nova accepts the text as a name.

    As nova.api.validation.parameter_types.valid_name_regex, which alone lets
    a line break pass at the end. What is no string is for ``type`` to refuse.
    """
    if not isinstance(text, str) or not text:
        return True
    return (
        max(text) < '\uffff'
        and text == text.strip()
        and all(
            char.isprintable() or unicodedata.category(char) == 'Zs'
            for char in text
        )
    )


def _object(
    words: str, required: list[str], why: str = '', /, **properties: Schema
) -> Schema:
    return {
        'type': 'object',
        'properties': properties,
        'required': required,
        'additionalProperties': False,
        'description': words,
        **({'$comment': why} if why else {}),
    }


# nova.api.validation.parameter_types.name
_NAME = {
    'type': 'string',
    'format': 'name',
    'minLength': 1,
    'maxLength': 255,
    'description': 'a name of 1 to 255 printable characters below U+FFFF, '
    'without blanks at its ends',
}
_WITH_RULES = {'type': 'string', 'enum': [anti_affinity.POLICY]}
_OTHERS = [
    name for name in anti_affinity.POLICIES if name != anti_affinity.POLICY
]
_WITHOUT_RULES = {'type': 'string', 'enum': _OTHERS}
_RULES = _object(
    'an object of rules (max_server_per_host)',
    [],
    # What nova.api.validation.parameter_types.positive_integer accepts:
    # digits in a string too.
    max_server_per_host={
        'type': ['integer', 'string'],
        'minimum': 1,
        'pattern': '^0*[1-9][0-9]*$',
        'description': 'an integer, 1 or more',
    },
)
_WHY_NONE = f'{", ".join(_OTHERS)} have no rules'
_NO_RULES = _object('an object without rules', [], _WHY_NONE)

_NESTED_POLICY = [
    _object(
        'an object with the keys name and rules',
        ['name'],
        name=_WITH_RULES,
        rules=_RULES,
    ),
    _object(
        'an object with the key name', ['name'], _WHY_NONE, name=_WITHOUT_RULES
    ),
]


def _either(words: str, alternatives: list[Schema]) -> Schema:
    return {'oneOf': alternatives, 'description': words}


def _flat(**name: Schema) -> Schema:
    words = f'an object with the keys {", ".join((*name, "policy", "rules"))}'
    return _either(
        words,
        [
            _object(
                words, [*name, 'policy'], **name, policy=policy, rules=rules
            )
            for policy, rules in (
                (_WITH_RULES, _RULES),
                (_WITHOUT_RULES, _NO_RULES),
            )
        ],
    )


def _body(server_group: Schema) -> Schema:
    return _object(
        'an object with the key server_group',
        ['server_group'],
        server_group=server_group,
    )


#: The body of the specification.
NESTED = _body(
    _object(
        'an object with the keys name and policy',
        ['name', 'policy'],
        name=_NAME,
        policy=_either(
            'an object with the keys name and rules', _NESTED_POLICY
        ),
    )
)

#: The body of nova since microversion 2.64.
NOVA = _body(_flat(name=_NAME))

#: Policy and rules alone.
POLICY = _flat()


def validate(body: typing.Any, kind: Schema) -> None:
    """Check a request body.

    :param body: what ``json.loads`` made of it
    :param kind: :data:`NESTED`, :data:`NOVA` or :data:`POLICY`
    :raises exception.InvalidValues: one value or several are wrong
    """
    # Later drafts take 3.0 for an integer.
    validator = jsonschema.Draft4Validator(kind, format_checker=_FORMATS)
    faults = [
        exception.InvalidValue(
            where=schema.format_path(fault.path) or 'body',
            expected=fault.expected,
            got=fault.value,
        )
        for fault in schema.find_faults(validator.iter_errors(body))
    ]
    if faults:
        raise exception.InvalidValues(faults)
