# SPDX-License-Identifier: Apache-2.0

"""The form of a scenario, see ``schema.yaml``."""

import pathlib
import typing

import os_resource_classes
import os_traits
import yaml

_DEFS = yaml.safe_load(
    pathlib.Path(__file__).with_suffix('.yaml').read_text()
)['$defs']
_DEFS['trait']['anyOf'][1]['enum'] = os_traits.get_traits()
_DEFS['resource_class']['anyOf'][1]['enum'] = os_resource_classes.STANDARDS
#: A JSON schema with keywords of our own.
SCENARIO: dict[str, typing.Any] = _DEFS['scenario']
#: The form of a step by its action.
STEPS: dict[str, dict[str, typing.Any]] = _DEFS['steps']

NO_VALID_HOST, REFUSED = _DEFS['expect']['oneOf'][0]['enum']
