# SPDX-License-Identifier: Apache-2.0

"""What a JSON schema finds wrong with a document, in words.

The ``description`` of a schema is the expected form in words. It is the only
thing that a schema needs for this module beside what jsonschema reads.
"""

from collections.abc import Iterable
from collections.abc import Iterator
import difflib
import typing

from nova_ext_sched import messages


class Fault(typing.NamedTuple):
    """One value of a document that is not of the form that it must have.

    :ivar path: where it stands, such as ``server_group.rules`` or
        ``steps[2].boot``; empty for the document itself
    :ivar expected: the form, in words
    :ivar got: the value
    """

    path: str
    expected: str
    got: typing.Any


def find_faults(errors: Iterable[typing.Any]) -> list[Fault]:
    """Return what jsonschema found, each fault once.

    Of the branches of a ``oneOf`` or ``anyOf``, the one that the document
    means counts: the one whose ``const`` and ``enum`` keywords it meets.

    :param errors: what ``iter_errors`` of a jsonschema validator yields
    """
    # jsonschema yields the error of a missing key once for each such key.
    faults = {
        (fault.path, fault.expected): fault
        for error in errors
        for fault in _translate(error)
    }
    return list(faults.values())


def _translate(error: typing.Any) -> Iterator[Fault]:
    path = format_path(error.absolute_path)
    schema, got = error.schema, error.instance
    if error.validator in ('oneOf', 'anyOf') and error.context:
        yield from _translate_branches(error)
    elif error.validator == 'required':
        for key in schema['required']:
            if key not in got:
                yield Fault(path, f'the key {key}', got)
    elif error.validator == 'additionalProperties':
        unknown = set(got) - set(schema.get('properties', ()))
        for key in sorted(unknown, key=str):
            yield _unknown_key(error, key)
    else:
        expected = schema.get('description') or messages.quote(error.message)
        yield Fault(path, expected, got)


def _unknown_key(error: typing.Any, key: typing.Any) -> Fault:
    known = list(error.schema.get('properties', ()))
    near = difflib.get_close_matches(str(key), known, 1)
    hint = f' (did you mean {near[0]}?)' if near else ''
    form = error.schema.get('description') or ', '.join(known)
    return Fault(
        format_path([*error.absolute_path, key]),
        f'no such key{hint}, but {form}',
        error.instance[key],
    )


def _translate_branches(error: typing.Any) -> Iterator[Fault]:
    branches: dict[int, list[typing.Any]] = {}
    for found in error.context:
        branches.setdefault(found.schema_path[0], []).append(found)
    selecting = [
        [found for found in branch if found.validator in ('const', 'enum')]
        for branch in branches.values()
    ]
    if all(selecting) and len({_place(found[0]) for found in selecting}) == 1:
        # No branch is meant: every one wants another word at this place.
        words = [word for found in selecting for word in _words(found[0])]
        yield Fault(
            _place(selecting[0][0]),
            f'one of {", ".join(map(str, words))}',
            selecting[0][0].instance,
        )
        return
    meant = min(
        branches.values(),
        key=lambda branch: (
            sum(found.validator in ('const', 'enum') for found in branch),
            len(branch),
        ),
    )
    for found in meant:
        yield from _translate(found)


def _place(error: typing.Any) -> str:
    return format_path(error.absolute_path)


def _words(error: typing.Any) -> list[typing.Any]:
    value = error.validator_value
    return list(value) if error.validator == 'enum' else [value]


def format_path(parts: Iterable[str | int]) -> str:
    """Return the path of a value in a document, as people write it.

    :param parts: keys and, in a list, indices; keys are quoted
    """
    path = ''
    for part in parts:
        if isinstance(part, int):
            path += f'[{part}]'
        else:
            path += ('.' if path else '') + messages.quote(part)
    return path
