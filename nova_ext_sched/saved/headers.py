# SPDX-License-Identifier: Apache-2.0

"""The first line of a saved cloud, which is a stranger's."""

import dataclasses
import datetime
import pathlib
import typing

from oslo_utils import uuidutils

from nova_ext_sched import messages
from nova_ext_sched.saved import classes
from nova_ext_sched.saved import container
from nova_ext_sched.saved import listed

_DIALECTS = ('sqlite', 'mysql', 'postgresql')
_CELL = {'id', 'uuid', 'name', 'disabled', 'schema'}
# Characters of an option's value; one of JSON is so bounded in its depth.
_LONGEST = 5000
_YEARS = range(2000, 2200)
_MOST_CELLS = 1000


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
            header = cls(
                datetime.datetime.fromisoformat(record['saved']),
                check_texts(record['versions']),
                record['dialect'],
                [*map(str, record['binary'])],
                record['schema'],
                record['cells'],
                record['options'],
                check_texts(record['placement'] or {}),
            )
            header._check()
        except (LookupError, TypeError, ValueError, AttributeError) as exc:
            raise container.invalid(
                path, 'a whole first line', messages.say_error(exc)
            ) from exc
        return header

    def _check(self) -> None:
        is_year = self.saved.year in _YEARS
        if self.saved.tzinfo or not is_year or self.dialect not in _DIALECTS:
            raise ValueError(f'{self.saved}, {self.dialect}')
        if len(self.cells) > _MOST_CELLS:
            raise ValueError(f'{len(self.cells)} cells')
        for key in ('id', 'uuid'):
            if len({one[key] for one in self.cells}) != len(self.cells):
                raise ValueError(f'two cells with one {key}')
        for cell in self.cells:
            if not (
                cell.keys() == _CELL
                and type(cell['id']) is int
                and uuidutils.is_uuid_like(cell['uuid'])
                and isinstance(cell['name'], str | None)
                and type(cell['disabled']) is bool
                and isinstance(cell['schema'], str)
            ):
                raise ValueError(f'cell {cell}')
        for group, values in self.options.items():
            known = listed.OPTIONS.get(group, '').split()
            for name, value in values.items():
                if name not in known or not _is_option(value):
                    raise ValueError(f'option {group}.{name}')
        for name in self.placement:
            if name not in listed.PLACEMENT.split():
                raise ValueError(f'option placement.{name}')


def _is_option(value: typing.Any) -> bool:
    """Return whether oslo.config can have read a value."""
    parts = [value]
    if isinstance(value, list):
        parts = value
    elif isinstance(value, dict):
        parts = [*value.values()]
    return all(
        isinstance(one, str | int | float | None) and len(str(one)) < _LONGEST
        for one in parts
    )


def check_texts(value: typing.Any) -> dict[str, str]:
    return {str(key)[:100]: str(one)[:100] for key, one in value.items()}
