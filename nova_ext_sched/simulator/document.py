# SPDX-License-Identifier: Apache-2.0

"""Reads a scenario's YAML: bounded, each text as it was written.

YAML 1.1 takes 010 for 8, 12:30 for 750, 1.10 for 1.1 and no for false. Most of
what a scenario states becomes a string in the cloud, which would then not be
the one that was written. So everything is read as strings, except values that
are integers or booleans in the schema (``schema.yaml``).
"""

from collections.abc import Iterator
import itertools
import pathlib
import re
import typing

import os_traits
import yaml

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import schema

_DEFS = yaml.safe_load(
    pathlib.Path(__file__).with_name('schema.yaml').read_text()
)['$defs']
_DEFS['trait']['anyOf'][1]['enum'] = os_traits.get_traits()
#: A JSON schema with keywords of our own.
SCENARIO: dict[str, typing.Any] = _DEFS['scenario']
#: The form of a step by its action.
STEPS: dict[str, dict[str, typing.Any]] = _DEFS['steps']
#: The expectations that are words: no valid host, refused by nova.
NO_VALID_HOST_WORDS, REFUSED_WORDS = _DEFS['expect']['oneOf'][0]['enum']

#: Bounds of a file; the largest scenarios have a hundredth of them.
MAX_BYTES = 1 << 20
MAX_VALUES = 50_000

_TAGS = {f'tag:yaml.org,2002:{kind}' for kind in ('str', 'seq', 'map')}
_INTEGER = re.compile(r'0|-?[1-9][0-9]{,17}')
_BOOLEANS = {'true': True, 'True': True, 'false': False, 'False': False}


def load(file: str) -> typing.Any:
    """Read a scenario file.

    It checks only that the file is YAML and small enough, and that every key
    is a string and is unique in its mapping. A text in place of an integer or
    boolean of the schema stays a string.

    :param file: the path of the file
    :returns: mappings, lists, strings, integers and booleans; None for an
        empty file
    :raises exception.ScenarioInvalid: it cannot be read, or fails these checks
    """
    try:
        with open(file, 'rb') as stream:
            text = stream.read(MAX_BYTES + 1)
        return parse(text)
    except _TooLarge as exc:
        finding = schema.Finding((), str(exc), 'more')
    except OSError as exc:
        cause = exc.strerror or str(exc)
        finding = schema.Finding((), 'a file that can be read', cause)
    except (yaml.YAMLError, ValueError) as exc:
        finding = schema.Finding((), 'YAML', _say_fault(exc))
    raise exception.ScenarioInvalid(path=file, findings=[finding])


def parse(text: bytes | str) -> typing.Any:
    """Parse the text of a scenario file, as :func:`load` does.

    :raises yaml.YAMLError: it is no YAML, or has what no scenario has
    """
    if len(text) > MAX_BYTES:
        raise _TooLarge(f'a file of at most {MAX_BYTES} bytes')
    try:
        node = yaml.compose(text, yaml.BaseLoader)
        return node and _read(node, SCENARIO, itertools.count(1))
    except RecursionError:
        raise _TooLarge('a few levels') from None


def _say_fault(exc: Exception) -> str:
    if not isinstance(exc, yaml.MarkedYAMLError) or not exc.problem_mark:
        return messages.clean(' '.join(str(exc).split()), 200)
    said = ', '.join(filter(None, (exc.context, exc.problem)))
    return f'{messages.clean(said, 200)} in line {exc.problem_mark.line + 1}'


class _TooLarge(Exception):
    """A value is too large; the text is the expected form."""


def _fault(node: yaml.Node, got: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=got, problem_mark=node.start_mark)


def _read(
    node: yaml.Node, form: typing.Any, counter: Iterator[int]
) -> typing.Any:
    """Return a value with the types that the schema gives to its parts.

    :param counter: counts the values; an alias counts each time it is used
    """
    if next(counter) > MAX_VALUES:
        raise _TooLarge(f'at most {MAX_VALUES} values')
    if node.tag not in _TAGS:
        raise _fault(node, f'the tag {node.tag}')
    if not isinstance(form, dict):
        form = {}
    match node, form.get('type'):
        case yaml.SequenceNode(), _:
            items = form.get('items')
            return [_read(item, items, counter) for item in node.value]
        case yaml.MappingNode(), _:
            return _read_mapping(node, form, counter)
        case _, 'integer' if _INTEGER.fullmatch(node.value):
            return int(node.value)
        case _, 'boolean':
            return _BOOLEANS.get(node.value, node.value)
    return node.value


def _read_mapping(
    node: yaml.MappingNode, form: dict[str, typing.Any], counter: Iterator[int]
) -> dict[str, typing.Any]:
    parts: dict[str, yaml.Node] = {}
    for key, part in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag not in _TAGS:
            raise _fault(key, 'a key that is no string')
        if key.value in parts:
            raise _fault(key, f'the key {key.value} twice')
        parts[key.value] = part
    # Of several forms, one is a mapping's.
    steps = form.get('step', {})
    forms = [form, *form.get('oneOf', ())]
    forms += [steps[action] for action in steps.keys() & parts.keys()]
    known: dict[str, typing.Any] = {}
    others = None
    for one in forms:
        known |= one.get('properties', {})
        others = others or one.get('additionalProperties')
    return {
        key: _read(part, known.get(key, others), counter)
        for key, part in parts.items()
    }
