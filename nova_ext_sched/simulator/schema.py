# SPDX-License-Identifier: Apache-2.0

"""The form of a scenario: ``schema.yaml``, with the form of each action."""

import pathlib
import typing

import yaml

#: A JSON schema, see the file.
SCENARIO: dict[str, typing.Any] = yaml.safe_load(
    pathlib.Path(__file__).with_suffix('.yaml').read_text()
)
_DEFS = SCENARIO['$defs']
#: The form of a step by its action.
STEPS: dict[str, dict[str, typing.Any]] = {
    action: {
        **form,
        'properties': {
            'expect': _DEFS['expect'],
            'expect_plain': _DEFS['expect'],
            **form['properties'],
        },
        'additionalProperties': False,
    }
    for action, form in _DEFS.pop('steps').items()
}
_ACTIONS = ', '.join(STEPS)
_DEFS['scenario']['properties']['steps']['items'] = {
    'type': 'object',
    'description': f'a mapping with one of the keys {_ACTIONS}',
    'if': {'oneOf': [{'required': [action]} for action in STEPS]},
    'then': {'dependentSchemas': STEPS},
    'else': {
        'not': {'type': 'object'},
        'description': f'one of the keys {_ACTIONS}',
    },
}

NO_VALID_HOST, REFUSED = _DEFS['expect']['oneOf'][0]['enum']

#: The numbers of servers that one step may boot.
COUNTS = range(1, STEPS['boot']['properties']['count']['maximum'] + 1)


def action(step: typing.Any) -> str | None:
    """Return the action of a step, or None where it has not just one."""
    if not isinstance(step, dict):
        return None
    actions = [name for name in STEPS if name in step]
    return actions[0] if len(actions) == 1 else None
