# SPDX-License-Identifier: Apache-2.0

"""Opens a saved cloud: nova's and placement's tables, made here, of a file.

A file comes from strangers. Nothing is imported, opened or run because it
says so: its rows go by column into tables that are made here, each value of
the type that its column has, and each JSON by the list of what it may have.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
import contextlib
import dataclasses
import datetime
import importlib.metadata
import pathlib
import tempfile
import typing

from nova import objects
import nova.conf
from nova.db.api import models as api_models
from nova.db.main import models
from oslo_config import cfg
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.saved import classes
from nova_ext_sched.saved import container
from nova_ext_sched.saved import headers
from nova_ext_sched.saved import listed
from nova_ext_sched.saved import lookups
from nova_ext_sched.saved import migrations
from nova_ext_sched.saved import offline
from nova_ext_sched.saved import supposed
from nova_ext_sched.saved import tables
from nova_ext_sched.saved import trees

CONF = nova.conf.CONF

# The database that nova.conf names: of cell0, as deployments have it.
_MAIN = 'main.sqlite'
# What was opened.
_origins: dict[pathlib.Path, plan_format.Origin] = {}
# The databases of the cloud that is open, by cell; that of the API is ''.
_engines: dict[str, sa.engine.Engine] = {}
# The folders of clouds that are open; each is deleted when the process ends.
_open: list[tempfile.TemporaryDirectory[str]] = []


def use(
    path: pathlib.Path,
    without: Collection[str] = (),
    options: classes.Options | None = None,
    wanted: supposed.Supposed = supposed.NONE,
) -> plan_format.Origin:
    """Make this process one of the cloud that a file has.

    It is nova-scheduler's by the options of the file, with its clock at the
    moment when the cloud was saved; no other cloud can be read in it any
    more. Who asks for it again gets the same.

    :param without: names of filters and weighers that may be missing
    :param options: of nova.conf, in place of those of the file
    :param wanted: what is to be other than it was
    :raises exception.InvalidValue: it names what is not there
    :returns: the origin for documents
    :raises container.SavedInvalid: the file is damaged, or is none
    :raises exception.UsageError: a filter or weigher is missing, or
        placement's code is
    :raises OSError: the file cannot be read
    """
    if path in _origins:
        return _origins[path]
    try:
        release = importlib.metadata.version('openstack-placement')
    except importlib.metadata.PackageNotFoundError:
        release = None
    offline.check(release)
    records = container.read(path)
    header = headers.Header.read(path, next(records, {}))
    if options is not None:
        header = dataclasses.replace(header, options=options)
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
    loading.finish(wanted, header.saved)
    loading.answers.use()
    timeutils.set_time_override(header.saved)
    _origins[path] = plan_format.Origin(
        file=path.name,
        saved=header.saved.isoformat(timespec='seconds') + 'Z',
        versions=header.versions,
        notes=[*loading.notes, *notes],
    )
    return _origins[path]


@contextlib.contextmanager
def changing() -> Iterator[dict[str, sa.engine.Connection]]:
    """Change the tables of the cloud that :func:`use` has opened.

    nova's own databases are never among them.
    """
    with contextlib.ExitStack() as stack:
        yield {
            cell: stack.enter_context(engine.begin())
            for cell, engine in _engines.items()
        }


def _configure(folder: pathlib.Path) -> None:
    """Configure nova with databases of the folder alone."""
    file, directory = folder / 'nova.conf', folder / 'none'
    directory.mkdir()
    file.write_text(
        f'[DEFAULT]\ntransport_url = fake://\nstate_path = {folder}\n'
        f'[api_database]\nconnection = sqlite:///{folder}/api.sqlite\n'
        f'[database]\nconnection = sqlite:///{folder}/{_MAIN}\n'
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
        self, path: pathlib.Path, folder: pathlib.Path, header: headers.Header
    ) -> None:
        self._path = path
        self._connections: dict[str, sa.engine.Connection] = {}
        self._older: dict[str, migrations.OlderTables] = {}
        self._nova = header.versions.get('nova', '')
        self.notes: list[str] = []
        self._add('', folder / 'api.sqlite', header, header.schema)
        # Where nova looks without a cell: for the hosts of a server group.
        self._create(folder / _MAIN, header, 'main')
        for number, cell in enumerate(header.cells):
            file = folder / f'cell{number}.sqlite'
            if cell['uuid'] == objects.CellMapping.CELL0_UUID:
                file = folder / _MAIN
            self._add(cell['uuid'], file, header, cell.pop('schema'))
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
        self._insert: tables.Filler | None = None
        self._kinds: dict[str, Callable[[typing.Any], None]] = {
            'again': self._forget,
            'end': lambda end: self.notes.extend(
                map(container.say_note, end['notes'])
            ),
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
                (key, str(name)) for key, name in one.items()
            ),
        }

    def _add(
        self,
        cell: str,
        file: pathlib.Path,
        header: headers.Header,
        revision: str,
    ) -> None:
        """Make the tables of a cell or, without one, of the API."""
        engine = self._create(file, header, cell)
        self._connections[cell] = engine.connect()
        _engines[cell] = engine
        database = migrations.CELL if cell else migrations.API
        if not revision or migrations.is_current(database, revision):
            return
        if not migrations.is_known(database, revision):
            note = (
                f'It was saved of nova {messages.clean(self._nova)}, which '
                f'has tables that this nova does not know.'
            )
            if note not in self.notes:
                self.notes.append(note)
        else:
            self._older[cell] = migrations.OlderTables(
                file.with_suffix('.older'), database, revision
            )

    @staticmethod
    def _create(
        file: pathlib.Path, header: headers.Header, cell: str
    ) -> sa.engine.Engine:
        """Make a database with the tables of a cell, unless it has them.

        :param cell: empty for those of the API
        """
        engine = sa.create_engine(f'sqlite:///{file}', future=True)
        made = tables.get_all(cell).values()
        change.create_tables(engine, made, header.dialect, header.binary)
        return engine

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

    def finish(
        self, wanted: supposed.Supposed, saved: datetime.datetime
    ) -> None:
        """End, and let placement answer.

        :param wanted: what is to be other
        :param saved: when the cloud was
        :raises container.SavedInvalid: the whole is no cloud
        """
        for cell, older in self._older.items():
            names = listed.CELL if cell else listed.API
            older.move(
                self._connections[cell],
                [tables.get_all(cell)[name] for name in names],
            )
        supposing = supposed.Supposing(
            self._connections, self._trees, wanted, saved
        )
        supposing.suppose()
        self.notes += supposing.notes
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
            connection.commit()
            connection.close()
        offline.use(self._app)
        here = importlib.metadata.version('nova').partition('.')[0]
        if self._nova.partition('.')[0] != here:
            context = process.context()
            migrations.migrate_online(
                context, objects.CellMappingList.get_all(context)
            )

    def _begin(self, record: dict[str, typing.Any]) -> tables.Filler:
        name, cell = record['table'], record['cell']
        known = (listed.CELL if cell else listed.API)[name].split()
        older = self._older.get(cell)
        return tables.Filler(
            older.connection if older else self._connections[cell],
            (older.tables if older else tables.get_all(cell))[name],
            known,
            record['columns'],
        )

    def _forget(self, again: dict[str, typing.Any]) -> None:
        """Drop the rows of servers that come again."""
        cell, servers = again['cell'], again['servers']
        older = self._older.get(cell)
        connection = older.connection if older else self._connections[cell]
        tables.forget(connection, bool(cell), servers)

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
        server, move = (
            models.Instance.__table__.c,
            models.Migration.__table__.c,
        )
        own = sa.select(server.uuid, server.project_id, server.user_id)
        moves = sa.select(move.uuid, server.project_id, server.user_id).where(
            server.uuid == move.instance_uuid
        )
        return {
            uuid: (project, user)
            for cell in filter(None, self._connections)
            for query in (own, moves)
            for uuid, project, user in self._connections[cell].execute(query)
        }


def _say(exc: Exception) -> str:
    if isinstance(exc, sa.exc.DBAPIError):
        return str(exc.orig)
    return messages.say_error(exc)
