# SPDX-License-Identifier: Apache-2.0

"""A scenario's YAML, bounded, and each value as it was written."""

from collections.abc import Collection
from collections.abc import Iterable
import dataclasses
import difflib
import typing

import yaml

from nova_ext_sched import exception
from nova_ext_sched import messages

Path = tuple[str | int, ...]

#: Bounds of a file; the largest scenarios have a hundredth of them.
MAX_BYTES = 1 << 20
MAX_VALUES = 50_000
MAX_DEPTH = 20

_TAG = 'tag:yaml.org,2002:'


@dataclasses.dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a scenario.

    :param path: keys and list indexes from the top
    :param expected: the form that is expected, in words
    :param got: what was found, in words
    """

    path: Path
    expected: str
    got: str

    def __str__(self) -> str:
        return f'{dotted(self.path)}: expected {self.expected}, got {self.got}'


def show(value: typing.Any) -> str:
    """Return a value of a document as a fault shows it."""
    return messages.quote(repr(value), 100)


def dotted(path: Path) -> str:
    """Return a path as operators write it: ``steps[2].flavor``."""
    text = ''
    for part in path:
        if isinstance(part, int):
            text += f'[{part}]'
        else:
            text += ('.' if text else '') + messages.quote(part, 100)
    return text or '(top)'


def suggest(got: Iterable[typing.Any], known: Collection[str]) -> str:
    """Return what somebody may have meant, to follow what was got."""
    for word in got:
        close = difflib.get_close_matches(str(word)[:255], known, 1)
        if close:
            return f'; did you mean {messages.quote(close[0])}?'
    return ''


def load(file: str) -> typing.Any:
    """Read a scenario file.

    Nothing but YAML is checked here, that it is small enough, that every key
    is a string and stands once in its mapping, and that every number is what
    was written.

    :param file: the path of the file
    :returns: mappings, lists, strings, numbers, booleans and None
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
        faults = [Fault((), str(exc), 'more')]
    except OSError as exc:
        cause = exc.strerror or str(exc)
        faults = [Fault((), 'a file that can be read', cause)]
    except (yaml.YAMLError, ValueError) as exc:
        faults = [Fault((), 'YAML', _cause(exc))]
    if faults:
        raise exception.ScenarioInvalid(path=file, faults=faults)
    return data


def _cause(exc: Exception) -> str:
    if not isinstance(exc, yaml.MarkedYAMLError) or not exc.problem_mark:
        return messages.quote(' '.join(str(exc).split()), 200)
    said = ', '.join(filter(None, (exc.context, exc.problem)))
    return f'{messages.quote(said, 200)} in line {exc.problem_mark.line + 1}'


class _TooLarge(Exception):
    """The text is what is expected."""


class _Loader(yaml.SafeLoader):
    """Reads nodes in place of constructing what YAML takes them for."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.faults: list[Fault] = []
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

    def read(self, node: yaml.Node, path: Path) -> typing.Any:
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
            case 'null', yaml.ScalarNode():
                return None
            case 'bool', yaml.ScalarNode() if (
                node.value.lower() in self.bool_values
            ):
                return self.bool_values[node.value.lower()]
            case 'int' | 'float', yaml.ScalarNode():
                return self._read_number(node, path)
            case 'timestamp', _:
                self._add_fault(path, 'a string (quote it)', node.value)
            case kind, _:
                self._add_fault(path, 'no tag', f'{kind} {node.value}')
        return None

    def _add_fault(self, path: Path, expected: str, got: str) -> None:
        self.faults.append(Fault(path, expected, messages.quote(got, 100)))

    def _read_mapping(
        self, node: yaml.MappingNode, path: Path
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
            elif key.tag != f'{_TAG}str':
                self._add_fault(here, 'a string as key (quote it)', name)
            else:
                if name in own:
                    self._add_fault(here, 'each key once', 'it twice')
                own[name] = self.read(value, here)
        return {**merged, **own}

    def _read_number(self, node: yaml.ScalarNode, path: Path) -> typing.Any:
        """Return a number, where YAML makes of it what was written.

        YAML 1.1 takes 010 for 8, 12:30 for 750 and 1.10 for 1.1. Most of what
        a scenario states becomes a string in the cloud, which would then not
        be the one that was written.
        """
        expected = 'a number'
        try:
            value = self.construct_object(node)
            if str(value) == node.value:
                return value
            expected += f' as YAML reads it ({value}) or a string (quote it)'
        except (ValueError, LookupError):
            # A tag may say so of anything, and Python bounds integers.
            pass
        self._add_fault(path, expected, node.value)
        return None


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _TooLarge(f'at most {MAX_DEPTH} levels')
