# SPDX-License-Identifier: Apache-2.0

"""Opens a saved cloud: nova's and placement's tables, made here, of a file.

A file comes from strangers. Nothing is imported, opened or run because it
says so: its rows go by column into tables that are made here, each value of
the type that its column has, and each JSON by the list of what it may have.
"""

from collections.abc import Callable
from collections.abc import Collection
import dataclasses
import datetime
import importlib.metadata
import pathlib
import tempfile
import typing

import nova.conf
from nova.db.api import models as api_models
from nova.db.main import models
from oslo_config import cfg
from oslo_utils import timeutils
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.saved import classes
from nova_ext_sched.saved import container
from nova_ext_sched.saved import listed
from nova_ext_sched.saved import lookups
from nova_ext_sched.saved import offline
from nova_ext_sched.saved import tables
from nova_ext_sched.saved import trees

CONF = nova.conf.CONF

_DIALECTS = ('sqlite', 'mysql', 'postgresql')
_CELL = {'id', 'uuid', 'name', 'disabled'}
# Characters of an option's value; one of JSON is so bounded in its depth.
_LONGEST = 5000
_YEARS = range(2000, 2200)
_MOST_CELLS = 1000

# The folders of clouds that are open; each is deleted when the process ends.
_open: list[tempfile.TemporaryDirectory[str]] = []


def use(
    path: pathlib.Path, without: Collection[str] = ()
) -> plan_format.Origin:
    """Make this process one of the cloud that a file has.

    It is nova-scheduler's by the options of the file, with its clock at the
    moment when the cloud was saved; no other cloud can be read in it any
    more.

    :param without: names of filters and weighers that may be missing
    :returns: the origin for documents
    :raises container.SavedInvalid: the file is damaged, or is none
    :raises classes.NotInstalled: a filter or weigher is missing
    :raises offline.NoPlacement: placement's code is
    :raises OSError: the file cannot be read
    """
    try:
        release = importlib.metadata.version('openstack-placement')
    except importlib.metadata.PackageNotFoundError:
        release = None
    offline.check(release)
    records = container.read(path)
    header = _Header.read(path, next(records, {}))
    dropped = classes.check(header.options, without)
    # Its own folder, that nobody else can open.
    _open.append(tempfile.TemporaryDirectory(prefix='nova-ext-sched-'))
    folder = pathlib.Path(_open[-1].name)
    _configure(folder)
    notes = [f'Answered without {messages.clean(one)}.' for one in dropped]
    notes += _set_options(path, header.options)
    # All connections from now on, nova's own and placement's.
    sa.event.listen(sa.pool.Pool, 'connect', _be_quick)
    sa.event.listen(
        sa.pool.Pool, 'connect', change.like_its_database(header.dialect)
    )
    change.copied_from = header.dialect
    loading = _Loading(path, folder, header)
    for record in records:
        loading.take(record)
    loading.finish()
    loading.answers.use()
    timeutils.set_time_override(header.saved)
    return plan_format.Origin(
        file=path.name,
        saved=header.saved.isoformat(timespec='seconds') + 'Z',
        versions=header.versions,
        notes=[*map(messages.clean, loading.notes), *notes],
    )


@dataclasses.dataclass(frozen=True)
class _Header:
    """The header of a file, for the whole cloud; see :meth:`.writing`."""

    saved: datetime.datetime
    versions: dict[str, str]
    dialect: str
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
                _check_texts(record['versions']),
                record['dialect'],
                record['cells'],
                record['options'],
                _check_texts(record['placement'] or {}),
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
        for one in self.cells:
            if not (
                one.keys() == _CELL
                and type(one['id']) is int
                and uuidutils.is_uuid_like(one['uuid'])
                and isinstance(one['name'], str | None)
                and type(one['disabled']) is bool
            ):
                raise ValueError(f'cell {one}')
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


def _check_texts(value: typing.Any) -> dict[str, str]:
    return {str(key)[:100]: str(one)[:100] for key, one in value.items()}


def _configure(folder: pathlib.Path) -> None:
    """Configure nova with databases of the folder alone."""
    file, directory = folder / 'nova.conf', folder / 'none'
    directory.mkdir()
    file.write_text(
        f'[DEFAULT]\ntransport_url = fake://\nstate_path = {folder}\n'
        f'[api_database]\nconnection = sqlite:///{folder}/api.sqlite\n'
        f'[database]\nconnection = sqlite:///{folder}/none.sqlite\n'
    )
    process.configure([str(file)], [str(directory)])


def _be_quick(raw: typing.Any, _: object) -> None:
    # Nobody reads a database whose process ended before its time.
    raw.execute('PRAGMA synchronous = OFF')
    raw.execute('PRAGMA journal_mode = OFF')


def _set_options(path: pathlib.Path, options: classes.Options) -> list[str]:
    """Set the options of a file; return a sentence for each that failed."""
    notes = []
    for group, values in options.items():
        section = None if group == 'DEFAULT' else group
        for name, value in values.items():
            try:
                CONF.set_override(name, value, section)
            except (cfg.NoSuchOptError, cfg.NoSuchGroupError):
                notes.append(
                    f'Option [{group}] {name} is unknown to this nova, and is '
                    f'not heeded.'
                )
            except (AttributeError, TypeError, ValueError) as exc:
                raise container.invalid(
                    path, f'a value of [{group}] {name}', value
                ) from exc
    return notes


class _Loading:
    """Puts records where they belong.

    :ivar notes: sentences that every answer has
    :ivar answers: of other services
    """

    def __init__(
        self, path: pathlib.Path, folder: pathlib.Path, header: _Header
    ) -> None:
        self._path = path
        self._connections: dict[str, sa.engine.Connection] = {}
        self._add('', folder / 'api.sqlite', api_models.BASE, header)
        for number, cell in enumerate(header.cells):
            file = folder / f'cell{number}.sqlite'
            self._add(cell['uuid'], file, models.BASE, header)
            self._connections[''].execute(
                sa.insert(api_models.CellMapping.__table__).values(
                    **cell,
                    transport_url='fake://',
                    database_connection=f'sqlite:///{file}',
                )
            )
        self._app, engine = offline.create(
            folder / 'placement.sqlite', header.placement
        )
        self._trees = trees.Trees(engine)
        self.answers = lookups.Answers()
        self.notes: list[str] = []
        self._insert: tables.Filler | None = None
        self._kinds: dict[str, Callable[[typing.Any], None]] = {
            'again': self._forget,
            'end': self._end,
            'traits': self._trees.add_traits,
            'classes': self._trees.add_classes,
            'provider': self._trees.add,
            'without': self._trees.remove,
            'consumer': self._trees.add_consumer,
            'image': lambda one: self._keep(
                self.answers.images, listed.IMAGE, one
            ),
            'volume': lambda one: self._keep(
                self.answers.volumes, listed.VOLUME, one
            ),
            'port': lambda one: self._keep(
                self.answers.ports, listed.PORT, one
            ),
            'extensions': self._add_extensions,
            'projects': lambda one: self.answers.projects.update(
                _check_texts(one)
            ),
        }

    def _add(
        self, cell: str, file: pathlib.Path, base: typing.Any, header: _Header
    ) -> None:
        engine = sa.create_engine(f'sqlite:///{file}', future=True)
        whole = base.metadata.tables.values()
        change.create_tables(engine, whole, header.dialect)
        self._connections[cell] = engine.connect()

    def take(self, record: typing.Any) -> None:
        """Put one line of the file where it belongs.

        :raises container.SavedInvalid: it does not belong anywhere
        """
        try:
            if isinstance(record, list):
                if self._insert is None:
                    raise ValueError('a row before its table')
                self._insert.add(record)
                return
            if self._insert is not None:
                self._insert.flush()
                self._insert = None
            if 'table' in record:
                self._insert = self._begin(record)
                return
            ((kind, value),) = record.items()
            self._kinds[kind](value)
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            OverflowError,
            RecursionError,
            sa.exc.SQLAlchemyError,
        ) as exc:
            raise container.invalid(
                self._path, 'what nova-ext-sched save writes', _say(exc)
            ) from exc

    def finish(self) -> None:
        """End, and let placement answer.

        :raises container.SavedInvalid: the whole is no cloud
        """
        for connection in self._connections.values():
            # Else SQLite reads all servers to find some by their UUIDs.
            connection.exec_driver_sql('ANALYZE')
            connection.commit()
        try:
            self._check_servers()
            self._trees.finish(self._find_owners())
        except (TypeError, ValueError, sa.exc.SQLAlchemyError) as exc:
            raise container.invalid(
                self._path, 'a cloud as there may be one', _say(exc)
            ) from exc
        for connection in self._connections.values():
            connection.close()
        offline.use(self._app)

    def _begin(self, record: dict[str, typing.Any]) -> tables.Filler:
        name, cell = record['table'], record['cell']
        base = models.BASE if cell else api_models.BASE
        known = (listed.CELL if cell else listed.API)[name].split()
        return tables.Filler(
            self._connections[cell],
            base.metadata.tables[name],
            known,
            record['columns'],
        )

    def _forget(self, again: dict[str, typing.Any]) -> None:
        """Drop the rows of servers that come again."""
        cell, servers = again['cell'], again['servers']
        tables.forget(self._connections[cell], bool(cell), servers)

    def _end(self, end: dict[str, typing.Any]) -> None:
        notes = end['notes']
        self.notes = [str(note) for note in notes]

    def _keep(
        self, things: dict[str, typing.Any], form: typing.Any, one: typing.Any
    ) -> None:
        things[str(one['id'])] = listed.prune(form, one)

    def _add_extensions(self, aliases: typing.Any) -> None:
        self.answers.extensions = [str(alias) for alias in aliases]

    def _check_servers(self) -> None:
        """Refuse a server in two cells, unless it is on its way.

        :raises ValueError: there is one
        """
        server = models.Instance.__table__.c
        query = sa.select(server.uuid).where(
            server.deleted == 0, server.hidden.is_not(sa.true())
        )
        seen: set[str] = set()
        for cell in filter(None, self._connections):
            for uuid in self._connections[cell].scalars(query):
                if uuid in seen:
                    raise ValueError(f'server {uuid} in two cells')
                seen.add(uuid)

    def _find_owners(self) -> dict[str, tuple[str, str]]:
        """Return project and user of each consumer that nova knows."""
        owners: dict[str, tuple[str, str]] = {}
        server, move = (
            models.Instance.__table__.c,
            models.Migration.__table__.c,
        )
        own = sa.select(server.uuid, server.project_id, server.user_id)
        moves = sa.select(move.uuid, server.project_id, server.user_id).where(
            server.uuid == move.instance_uuid
        )
        for cell in filter(None, self._connections):
            for query in (own, moves):
                for uuid, *owner in self._connections[cell].execute(query):
                    owners[uuid] = (owner[0], owner[1])
        return owners


def _say(exc: Exception) -> str:
    if isinstance(exc, sa.exc.DBAPIError):
        return str(exc.orig)
    return messages.say_error(exc)
