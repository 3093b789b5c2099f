# SPDX-License-Identifier: Apache-2.0

"""The first line of a saved cloud, which is a stranger's."""

import dataclasses
import datetime
import pathlib
import typing

from nova_ext_sched import schema
from nova_ext_sched.saved import classes
from nova_ext_sched.saved import container
from nova_ext_sched.saved import listed

_TEXT = {'type': 'string', 'maxLength': 100}
_TEXTS = {
    'type': 'object',
    'propertyNames': _TEXT,
    'additionalProperties': _TEXT,
}
_UUID = {
    'type': 'string',
    'pattern': r'^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z',
}
# Bounded, because oslo.config parses JSON in some options.
_PLAIN = {
    'type': ['string', 'number', 'boolean', 'null'],
    'maxLength': 5000,
}
# What oslo.config can have read.
_OPTION = {
    'description': 'a value of an option',
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
        'required': [*parts],
        'properties': parts,
        'additionalProperties': False,
    }


_CELL = _form(
    id={'type': 'integer'},
    uuid=_UUID,
    name={'type': ['string', 'null']},
    disabled={'type': 'boolean'},
    schema={'type': 'string'},
)
_FORM = _form(
    format={'const': container.FORMAT},
    # nova's clock is set to it.
    saved={
        'type': 'string',
        'pattern': r'^2[01]\d\d-\d\d-\d\dT[\d:.]+\Z',
        'description': 'a time in UTC',
    },
    versions=_TEXTS,
    dialect={'enum': ['sqlite', 'mysql', 'postgresql']},
    binary={'type': 'array', 'items': {'type': 'string'}},
    schema={'type': 'string'},
    cells={'type': 'array', 'items': _CELL, 'maxItems': 1000},
    options={
        'type': 'object',
        'properties': {
            group: {
                'type': 'object',
                'properties': dict.fromkeys(names.split(), _OPTION),
                'additionalProperties': False,
            }
            for group, names in listed.OPTIONS.items()
        },
        'additionalProperties': False,
    },
    placement={
        'type': ['object', 'null'],
        'properties': dict.fromkeys(listed.PLACEMENT.split(), _TEXT),
        'additionalProperties': False,
    },
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
        try:
            errors = schema.Validator(_FORM).iter_errors(record)
            for fault in schema.find(errors):
                raise ValueError(fault)
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
