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
            raise _TooLarge(f'a file of at most {MAX_BYTES} bytes', 'more')
        loader = _Loader(text)
        node = loader.get_single_node()
        data = None if node is None else loader.read(node, ())
        faults = loader.faults
    except _TooLarge as exc:
        faults = [Fault((), *exc.args)]
    except OSError as exc:
        cause = exc.strerror or str(exc)
        faults = [Fault((), 'a file that can be read', cause)]
    except (yaml.YAMLError, ValueError) as exc:
        faults = [Fault((), 'YAML', _cause(exc))]
    if faults:
        raise exception.ScenarioInvalid(path=file, faults=faults)
    return data


def _cause(exc: Exception) -> str:
    parts = [
        getattr(exc, name, None) for name in ('context', 'problem', 'reason')
    ]
    said = ', '.join(str(part) for part in parts if part) or str(exc)
    mark = getattr(exc, 'problem_mark', None)
    line = f' in line {mark.line + 1}' if mark else ''
    return messages.quote(' '.join(said.split()), 200) + line


class _TooLarge(Exception):
    """The arguments are what is expected, and what was got."""


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
        self._check_depth(self._depth)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def read(self, node: yaml.Node, path: Path) -> typing.Any:
        """Return the value of a node; its faults go to ``faults``.

        An alias is read again wherever it stands, so that what is counted is
        what would be built.
        """
        self._check_depth(len(path))
        self._values += 1
        if self._values > MAX_VALUES:
            raise _TooLarge(f'at most {MAX_VALUES} values', 'more')
        kind = node.tag.removeprefix(_TAG)
        if isinstance(node, yaml.MappingNode) and kind == 'map':
            return self._read_mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and kind == 'seq':
            return [
                self.read(item, (*path, index))
                for index, item in enumerate(node.value)
            ]
        if isinstance(node, yaml.ScalarNode):
            match kind:
                case 'str':
                    return node.value
                case 'null':
                    return None
                case 'bool' if node.value.lower() in self.bool_values:
                    return self.bool_values[node.value.lower()]
                case 'int' | 'float':
                    return self._read_number(node, path)
        expected, got = 'no tag', f'{kind} {node.value}'
        if kind == 'timestamp':
            expected, got = 'a string (quote it)', node.value
        self.faults.append(Fault(path, expected, messages.quote(got, 100)))
        return None

    def _read_mapping(
        self, node: yaml.MappingNode, path: Path
    ) -> dict[str, typing.Any]:
        merged: dict[str, typing.Any] = {}
        own: dict[str, typing.Any] = {}
        for key, value in node.value:
            if key.tag == f'{_TAG}merge':
                parts = self.read(value, path)
                for part in parts if isinstance(parts, list) else [parts]:
                    if isinstance(part, dict):
                        merged = {**part, **merged}
                    else:
                        self.faults.append(
                            Fault(path, 'a mapping to merge', show(part))
                        )
                continue
            name = messages.quote(key.value, 100)
            if key.tag != f'{_TAG}str':
                self.faults.append(
                    Fault((*path, name), 'a string as key (quote it)', name)
                )
                continue
            here = (*path, key.value)
            if key.value in own:
                self.faults.append(Fault(here, 'each key once', 'it twice'))
            own[key.value] = self.read(value, here)
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
        self.faults.append(
            Fault(path, expected, messages.quote(node.value, 100))
        )
        return None

    def _check_depth(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise _TooLarge(f'at most {MAX_DEPTH} levels', 'more')
