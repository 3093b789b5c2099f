# SPDX-License-Identifier: Apache-2.0

"""The first line of a saved cloud, which is a stranger's."""

from collections.abc import Iterable
import dataclasses
import datetime
import pathlib
import typing

from nova_ext_sched import schema
from nova_ext_sched.saved import classes
from nova_ext_sched.saved import container
from nova_ext_sched.saved import listed

_TEXT = {'type': 'string', 'maxLength': 100, 'description': 'a short text'}
_UUID = {
    'type': 'string',
    'pattern': r'^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z',
    'description': 'a UUID',
}
# Bounded, because oslo.config parses JSON in some options.
_PLAIN = {
    'type': ['string', 'number', 'boolean', 'null'],
    'maxLength': 5000,
}
_OPTION = {
    'description': 'a value that an option can have',
    'anyOf': [
        _PLAIN,
        {'type': 'array', 'items': _PLAIN},
        {'type': 'object', 'additionalProperties': _PLAIN},
    ],
}


def _form(**parts: typing.Any) -> dict[str, typing.Any]:
    """Return the schema of a mapping that has exactly these keys."""
    return {
        'type': 'object',
        'description': 'a mapping',
        'required': [*parts],
        'properties': parts,
        'additionalProperties': False,
    }


def _options(names: Iterable[str], form: typing.Any) -> dict[str, typing.Any]:
    """Return the schema of a mapping that has some of these keys."""
    known = {'enum': [*names], 'description': 'a name that save writes'}
    return {
        'type': 'object',
        'description': 'a mapping',
        'propertyNames': known,
        'additionalProperties': form,
    }


_CELL = _form(
    id={'type': 'integer', 'description': 'a number'},
    uuid=_UUID,
    name={'type': ['string', 'null'], 'description': 'a name'},
    disabled={'type': 'boolean', 'description': 'true or false'},
    schema=_TEXT,
)
_FORM = _form(
    format={'const': container.FORMAT},
    # nova's clock is set to it.
    saved={
        'type': 'string',
        'pattern': r'^2[01]\d\d-\d\d-\d\dT[\d:.]+\Z',
        'description': 'a time in UTC',
    },
    versions={
        'type': 'object',
        'description': 'a mapping',
        'propertyNames': _TEXT,
        'additionalProperties': _TEXT,
    },
    dialect={
        'enum': ['sqlite', 'mysql', 'postgresql'],
        'description': 'sqlite, mysql or postgresql',
    },
    binary={
        'type': 'array',
        'description': 'a list of names',
        'items': {'type': 'string', 'description': 'a name'},
    },
    schema=_TEXT,
    cells={
        'type': 'array',
        'description': 'a list of at most 1,000 cells',
        'items': _CELL,
        'maxItems': 1000,
    },
    options=_options(listed.OPTIONS, {})
    | {
        'properties': {
            group: _options(names.split(), _OPTION)
            for group, names in listed.OPTIONS.items()
        }
    },
    placement=_options(listed.PLACEMENT.split(), _TEXT)
    | {'type': ['object', 'null']},
)


@dataclasses.dataclass(frozen=True)
class Header:
    """The header of a file, for the whole cloud; see :mod:`.writing`."""

    saved: datetime.datetime
    versions: dict[str, str]
    dialect: str
    binary: list[str]
    schema: str
    cells: list[dict[str, typing.Any]]
    options: classes.Options
    placement: dict[str, str]

    @classmethod
    def read(cls, path: pathlib.Path, record: typing.Any) -> typing.Self:
        """Read the header of a file.

        :raises container.SavedInvalid: it begins otherwise
        """
        form = record.get('format') if isinstance(record, dict) else None
        if form != container.FORMAT:
            raise container.invalid(
                path,
                f'a cloud that nova-ext-sched save wrote, of format '
                f'{container.FORMAT}',
                f'format {form!r}' if form else 'something else',
            )
        errors = schema.Validator(_FORM).iter_errors(record)
        for fault in schema.find(errors):
            raise container.SavedInvalid(
                where=f'--from {path}: {schema.format_path(fault.path)}',
                expected=fault.expected,
                got=fault.value,
            )
        try:
            for key in ('id', 'uuid'):
                cells = {one[key] for one in record['cells']}
                if len(cells) != len(record['cells']):
                    raise ValueError(f'two cells with one {key}')
            parsed = {
                'saved': datetime.datetime.fromisoformat(record['saved']),
                'placement': record['placement'] or {},
            }
        except ValueError as exc:
            raise container.invalid(
                path, 'a whole first line', str(exc)
            ) from exc
        parts = {name: record[name] for name in record if name != 'format'}
        return cls(**parts | parsed)
