# SPDX-License-Identifier: Apache-2.0

"""The form of a scenario: ``schema.yaml``, with the form of each action."""

import pathlib
import typing

import yaml

_DEFS = yaml.safe_load(
    pathlib.Path(__file__).with_suffix('.yaml').read_text()
)['$defs']
#: A JSON schema, see the file.
SCENARIO: dict[str, typing.Any] = _DEFS['scenario']
#: The form of a step by its action.
STEPS: dict[str, dict[str, typing.Any]] = {
    action: {
        **form,
        'description': f'a {action} step',
        'properties': {
            **form['properties'],
            **{
                key: form['properties'].get(key, _DEFS['expect'])
                for key in ('expect', 'expect_plain')
            },
        },
        'additionalProperties': False,
    }
    for action, form in _DEFS['steps'].items()
}
_ACTIONS = ', '.join(STEPS)
SCENARIO['properties']['steps']['items'] = {
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
