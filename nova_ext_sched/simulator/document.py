# SPDX-License-Identifier: Apache-2.0

"""A scenario's YAML, with the line of everything in it."""

from collections.abc import Iterator
import dataclasses
import pathlib
import textwrap
import typing

import yaml

from nova_ext_sched import exception

Path = tuple[str | int, ...]


class Words(str):
    """What was got, where it is told in words and not quoted from the file."""

    def __repr__(self) -> str:
        return str(self)


NOTHING = Words('nothing')

_TAG = 'tag:yaml.org,2002:'


@dataclasses.dataclass(frozen=True)
class Document:
    """The content of a scenario file.

    :param file: the file's name as the operator gave it
    :param data: what the YAML says: mappings, lists, strings, numbers
    :param lines: the line of each value by its path
    """

    file: str
    data: typing.Any
    lines: dict[Path, int]

    def fault(
        self, path: Path, expected: str, got: typing.Any
    ) -> exception.ScenarioFault:
        """Return what is wrong at one place of the document.

        :param path: keys and list indexes from the top
        :param expected: the form that is expected, in words
        :param got: the value that was found, or :class:`Words`
        """
        line = next(
            (
                self.lines[path[:length]]
                for length in range(len(path), -1, -1)
                if path[:length] in self.lines
            ),
            0,
        )
        place = f'{self.file}:{line}' if line else self.file
        if not isinstance(got, Words):
            got = Words(textwrap.shorten(repr(got), 100))
        return exception.ScenarioFault(
            where=f'{place}: {dotted(path)}',
            expected=expected,
            got=got,
            line=line,
        )


def dotted(path: Path) -> str:
    """Return a path as operators write it: ``steps[2].flavor``."""
    text = ''
    for part in path:
        if isinstance(part, int):
            text += f'[{part}]'
        else:
            text += f'.{part}' if text else part
    return text or '(top)'


def load(file: str) -> Document:
    """Read a scenario file.

    Nothing but YAML is checked here, that every key is a string and stands
    once in its mapping, and that every number is what was written.

    :param file: the path of the file
    :raises exception.ScenarioInvalid: it cannot be read, or is not such YAML
    """
    empty = Document(file, None, {})
    try:
        text = pathlib.Path(file).read_bytes()
    except OSError as exc:
        raise _invalid(
            file, empty.fault((), 'a file that can be read', _cause(exc))
        ) from exc

    loader = None
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        document = Document(file, None, {})
        faults = list(_index(document, node, (), frozenset()))
        if faults:
            raise _invalid(file, *faults)
        data = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as exc:
        mark = getattr(exc, 'problem_mark', None)
        lines: dict[Path, int] = {}
        if mark is not None:
            lines[()] = mark.line + 1
        raise _invalid(
            file,
            Document(file, None, lines).fault((), 'YAML', _cause(exc)),
        ) from exc
    except ValueError as exc:
        # Python refuses what YAML's pattern for a date or a number lets by.
        raise _invalid(file, empty.fault((), 'YAML', _cause(exc))) from exc
    finally:
        if loader is not None:
            loader.dispose()
    return dataclasses.replace(document, data=data)


def _invalid(
    file: str, *faults: exception.ScenarioFault
) -> exception.ScenarioInvalid:
    return exception.ScenarioInvalid(path=file, faults=faults)


def _cause(exc: Exception) -> Words:
    if isinstance(exc, OSError):
        return Words(exc.strerror or str(exc))
    parts = [
        getattr(exc, name, None) for name in ('context', 'problem', 'reason')
    ]
    told = ', '.join(str(part) for part in parts if part)
    return Words(textwrap.shorten(told or str(exc), 200))


def _index(
    document: Document,
    node: yaml.Node | None,
    path: Path,
    above: frozenset[int],
) -> Iterator[exception.ScenarioFault]:
    """Note each value's line; yield the keys and values that cannot be."""
    if node is None:
        return
    if id(node) in above:
        yield document.fault(
            path, 'a value', Words('an alias of what it stands in')
        )
        return
    document.lines[path] = node.start_mark.line + 1
    above |= {id(node)}
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _index(document, item, (*path, index), above)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.tag == f'{_TAG}merge':
                yield from _index(document, value, path, above)
                continue
            name = str(key.value)
            here = (*path, name)
            document.lines[here] = key.start_mark.line + 1
            if key.tag != f'{_TAG}str':
                yield document.fault(
                    here, 'a string as key (quote it)', Words(name)
                )
                continue
            if name in seen:
                yield document.fault(here, 'each key once', Words('it twice'))
            seen.add(name)
            yield from _index(document, value, here, above)
    elif isinstance(node, yaml.ScalarNode) and (
        expected := _other_than_written(node)
    ):
        yield document.fault(path, expected, Words(node.value))


def _other_than_written(node: yaml.ScalarNode) -> str | None:
    """Return what is expected of a scalar that YAML makes another value of.

    YAML 1.1 takes 010 for 8, 12:30 for 750 and 1.10 for 1.1. Most of what a
    scenario states becomes a string in the cloud, which would then not be
    the one that was written.
    """
    if node.tag == f'{_TAG}timestamp':
        return 'a string (quote it)'
    if node.tag not in (f'{_TAG}int', f'{_TAG}float'):
        return None
    try:
        value = yaml.constructor.SafeConstructor().construct_object(node)
    except (ValueError, LookupError):
        # A tag may say so of anything.
        return 'a number'
    if str(value) == node.value:
        return None
    return f'a number as YAML reads it ({value}) or a string (quote it)'
