# SPDX-License-Identifier: Apache-2.0

"""A scenario's YAML, bounded, and each value as it was written."""

from collections.abc import Callable
import re
import typing

import yaml

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import schema

#: Bounds of a file; the largest scenarios have a hundredth of them.
MAX_BYTES = 1 << 20
MAX_VALUES = 50_000
MAX_DEPTH = 20

_TAG = 'tag:yaml.org,2002:'


def load(file: str) -> typing.Any:
    """Read a scenario file.

    Nothing but YAML is checked here, that it is small enough, and that every
    key is a string and stands once in its mapping. Integers, ``true``,
    ``false`` and ``null`` keep the type that YAML gives them; anything else is
    a string, as it is written.

    :param file: the path of the file
    :returns: mappings, lists, strings, integers, booleans and None
    :raises exception.ScenarioInvalid: it cannot be read, or is not such YAML
    """
    try:
        with open(file, 'rb') as stream:
            text = stream.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise _TooLarge(f'a file of at most {MAX_BYTES} bytes')
        loader = _Loader(text)
        node = loader.get_single_node()
        data = None if node is None else loader.read(node, ())
        faults = loader.faults
    except _TooLarge as exc:
        faults = [schema.Fault((), str(exc), 'more')]
    except OSError as exc:
        cause = exc.strerror or str(exc)
        faults = [schema.Fault((), 'a file that can be read', cause)]
    except (yaml.YAMLError, ValueError) as exc:
        faults = [schema.Fault((), 'YAML', _cause(exc))]
    if faults:
        raise exception.ScenarioInvalid(path=file, faults=faults)
    return data


def _cause(exc: Exception) -> str:
    if not isinstance(exc, yaml.MarkedYAMLError) or not exc.problem_mark:
        return messages.clean(' '.join(str(exc).split()), 200)
    said = ', '.join(filter(None, (exc.context, exc.problem)))
    return f'{messages.clean(said, 200)} in line {exc.problem_mark.line + 1}'


class _TooLarge(Exception):
    """The text is what is expected."""


class _Loader(yaml.SafeLoader):
    """Reads nodes in place of constructing what YAML 1.1 takes them for."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.faults: list[schema.Fault] = []
        self._depth = 0
        self._values = 0

    def compose_node(
        self, parent: typing.Any, index: typing.Any
    ) -> yaml.Node | None:
        """Compose a node, unless it is nested too deeply."""
        self._depth += 1
        _check_depth(self._depth)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def read(self, node: yaml.Node, path: schema.Path) -> typing.Any:
        """Return the value of a node; its faults go to ``faults``.

        An alias is read again wherever it stands, so that what is counted is
        what would be built.
        """
        _check_depth(len(path))
        self._values += 1
        if self._values > MAX_VALUES:
            raise _TooLarge(f'at most {MAX_VALUES} values')
        match node.tag.removeprefix(_TAG), node:
            case 'map', yaml.MappingNode():
                return self._read_mapping(node, path)
            case 'seq', yaml.SequenceNode():
                return [
                    self.read(item, (*path, index))
                    for index, item in enumerate(node.value)
                ]
            case 'str', yaml.ScalarNode():
                return node.value
            case kind, yaml.ScalarNode() if (
                # A tag may say so of any text.
                kind in _SCALARS and _SCALARS[kind][0].match(node.value)
            ):
                return _SCALARS[kind][1](node.value)
            case kind, _:
                self._add_fault(path, 'no tag', f'{kind} {node.value}')
        return None

    def _add_fault(self, path: schema.Path, expected: str, got: str) -> None:
        self.faults.append(
            schema.Fault(path, expected, messages.clean(got, 100))
        )

    def _read_mapping(
        self, node: yaml.MappingNode, path: schema.Path
    ) -> dict[str, typing.Any]:
        merged: dict[str, typing.Any] = {}
        own: dict[str, typing.Any] = {}
        for key, value in node.value:
            name = str(key.value)
            here = (*path, name)
            if key.tag == f'{_TAG}merge':
                parts = self.read(value, path)
                for part in parts if isinstance(parts, list) else [parts]:
                    if isinstance(part, dict):
                        merged = {**part, **merged}
                    else:
                        self._add_fault(path, 'a mapping to merge', repr(part))
            elif not isinstance(key, yaml.ScalarNode):
                self._add_fault(here, 'a string as key', name)
            else:
                if name in own:
                    self._add_fault(here, 'each key once', 'it twice')
                own[name] = self.read(value, here)
        return {**merged, **own}


# What YAML makes of a scalar that is not quoted; any other is a string. YAML
# 1.1 takes 010 for 8, 12:30 for 750, 1.10 for 1.1 and no for false. Most of
# what a scenario states becomes a string in the cloud, which would then not be
# the one that was written.
_SCALARS: dict[str, tuple[re.Pattern[str], Callable[[str], typing.Any]]] = {
    'int': (re.compile(r'(0|-?[1-9][0-9]{,17})\Z'), int),
    'bool': (
        re.compile(r'([Tt]rue|[Ff]alse)\Z'),
        lambda text: text[0] in 'tT',
    ),
    'null': (re.compile(r'(null|~|)\Z'), lambda text: None),
    'merge': (re.compile(r'<<\Z'), str),
}
_Loader.yaml_implicit_resolvers = {}
for _kind, (_pattern, _) in _SCALARS.items():
    _Loader.add_implicit_resolver(_TAG + _kind, _pattern, None)


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _TooLarge(f'at most {MAX_DEPTH} levels')
