# SPDX-License-Identifier: Apache-2.0

"""Describes for people the faults that a JSON schema finds.

The ``description`` of a schema says which form is expected, and its
``$comment`` why it has no other keys. A keyword that jsonschema does not have
yields :class:`KeywordError`.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses
import difflib
import itertools
import typing

import jsonschema

from nova_ext_sched import messages

Path = tuple[str | int, ...]

#: Takes no 2.0 for an integer, as Python and nova do not; JSON schema does
#: since draft 6.
Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft4Validator.TYPE_CHECKER,
)


@dataclasses.dataclass(frozen=True)
class Finding:
    """One value of a document that is not of the form that it must have.

    :param path: keys and list indexes from the top
    :param expected: the form, for people
    :param got: the found value, for people
    :param value: the found value
    """

    path: Path
    expected: str
    got: str
    value: typing.Any = None

    def __str__(self) -> str:
        place = format_path(self.path) or '(top)'
        return f'{place}: expected {self.expected}, got {self.got}'


class KeywordError(jsonschema.ValidationError):
    """The error of a keyword that jsonschema does not have.

    :param expected: the form that is expected, for people
    :param got: the found value, for people
    :param path: keys and list indexes from the value that has the keyword
    """

    def __init__(
        self, expected: str, got: str, path: Iterable[str | int] = ()
    ) -> None:
        super().__init__(expected, path=path)
        self.got = got

    def say(self) -> tuple[str, str]:
        """Describe the expected and the found value."""
        return self.message, self.got


def format_path(path: Iterable[str | int]) -> str:
    """Return a path as people write it: ``steps[2].flavor``."""
    text = ''
    for part in path:
        if isinstance(part, int):
            text += f'[{part}]'
        else:
            text += ('.' if text else '') + messages.clean(part, 100)
    return text


def show(value: typing.Any) -> str:
    """Return a value of a document as a finding shows it."""
    return messages.literal(value, 100)


def show_keys(value: Iterable[typing.Any]) -> str:
    """Return the keys of a mapping as a finding shows them."""
    return messages.first_few(list(value)) or 'no key'


def suggest(got: Iterable[typing.Any], known: Collection[str]) -> str:
    """Suggest a similar name, to follow an error."""
    for word in got:
        close = difflib.get_close_matches(str(word)[:255], known, 1)
        if close:
            return f'; did you mean {messages.clean(close[0])}?'
    return ''


def find(errors: Iterable[jsonschema.ValidationError]) -> Iterator[Finding]:
    """Yield the faults that jsonschema found.

    Of a ``oneOf`` it is what is wrong by the alternative that is meant: the
    first one whose ``const`` and ``enum`` the value meets, and whose ``type``
    and ``pattern`` it has itself. Where there is none, the alternatives
    together say it better.

    :param errors: the errors of a jsonschema validator
    """
    for error in errors:
        for alternative in _get_alternatives(error):
            if not any(map(_selects, alternative)):
                yield from find(alternative)
                break
        else:
            yield from _find_in(error)


def _find_in(error: jsonschema.ValidationError) -> Iterator[Finding]:
    """Yield a finding, or several, for an error of jsonschema."""
    path = tuple(error.absolute_path)
    form, got = error.schema, error.instance
    if isinstance(error, KeywordError):
        yield Finding(path, *error.say(), got)
    elif error.validator == 'additionalProperties':
        known = form.get('properties', {})
        expected = f'one of the keys {", ".join(known)}' if known else 'no key'
        if '$comment' in form:
            expected += f' ({form["$comment"]})'
        for key in (key for key in got if key not in known):
            shown = messages.clean(key, 100) + suggest([key], known)
            yield Finding((*path, key), expected, shown, got[key])
    elif error.validator == 'required':
        missing = [key for key in error.validator_value if key not in got]
        # Of several that are missing, jsonschema has an error for each.
        if error.message.startswith(repr(missing[0])):
            expected = f'the key {" and ".join(missing)}'
            yield Finding(path, expected, show_keys(got), got)
    else:
        yield _find_value(error)


def _find_value(error: jsonschema.ValidationError) -> Finding:
    selecting = [
        part
        for alternative in _get_alternatives(error)
        for part in filter(_selects, alternative)
    ]
    words = [
        str(word)
        for part in (*selecting, error)
        for word in {
            'enum': part.validator_value,
            'const': [part.validator_value],
        }.get(part.validator, ())
    ]
    expected = error.schema.get('description', messages.clean(error.message))
    if len({tuple(part.absolute_path) for part in selecting}) == 1 and all(
        part.validator in ('const', 'enum') for part in selecting
    ):
        # Each alternative wants other words at this place.
        error = selecting[0]
        expected = f'one of {", ".join(words)}'
    got = error.instance
    shown = show(got) + suggest([got], words)
    if error.cause:
        # What the checker of a format says.
        shown += f', {error.cause}'
    return Finding(tuple(error.absolute_path), expected, shown, got)


def _get_alternatives(
    error: jsonschema.ValidationError,
) -> list[list[jsonschema.ValidationError]]:
    """Return the faults by each alternative of a ``oneOf``."""
    found = (error.context or ()) if error.validator == 'oneOf' else ()
    return [
        list(parts)
        for _, parts in itertools.groupby(
            found, lambda part: part.schema_path[0]
        )
    ]


def _selects(error: jsonschema.ValidationError) -> bool:
    return error.validator in ('const', 'enum') or (
        error.validator in ('type', 'pattern') and not error.path
    )
