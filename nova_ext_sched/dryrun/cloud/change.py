# SPDX-License-Identifier: Apache-2.0

"""Shows the scheduler's code another state than nova's databases have.

For commands that ask for the effect of changed options, changed aggregates, or
moves. nova's own objects and our queries read the other state, in this process
alone.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import types
import typing
import unicodedata

from nova import objects
import nova.conf
from nova.conf import opts as nova_opts
from nova.db.api import api as api_db
from nova.db.api import models
from nova.objects import aggregate
from nova.scheduler import request_filter
from oslo_config import cfg
import sqlalchemy as sa
from sqlalchemy import orm

from nova_ext_sched import exception
from nova_ext_sched import filters
from nova_ext_sched import messages
from nova_ext_sched import named
from nova_ext_sched.dryrun.cloud import mirror
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.queries import sources

CONF = nova.conf.CONF


@dataclasses.dataclass(frozen=True)
class Change:
    """A supposed change of options or aggregates; by default none.

    An aggregate is named by its name, UUID or ID.

    :ivar options: options of nova.conf (``name`` for ``[DEFAULT]``, or
        ``group.name``), each with its value, written as in nova.conf
    :ivar metadata: aggregates, each with a key and its new value
    :ivar no_metadata: aggregates, each with a key that it loses
    :ivar hosts: aggregates, each with a host that it gets
    :ivar no_hosts: aggregates, each with a host that it loses
    """

    options: Collection[tuple[str, str]] = ()
    metadata: Collection[tuple[str, str, str]] = ()
    no_metadata: Collection[tuple[str, str]] = ()
    hosts: Collection[tuple[str, str]] = ()
    no_hosts: Collection[tuple[str, str]] = ()


#: No change.
NONE = Change()


class OtherState(sources.Sources):
    """Aggregates and places of servers after a change.

    :param engine: a database with the aggregates, made by
        :func:`copy_aggregates`
    :param moved: by UUID of each moved server, the names of the hosts on which
        it is counted
    """

    def __init__(
        self, engine: sa.engine.Engine, moved: Mapping[str, sources.Places]
    ) -> None:
        self._engine = engine
        self._moved = moved

    def open_aggregates(
        self, context: typing.Any
    ) -> contextlib.AbstractContextManager[typing.Any]:
        return orm.Session(self._engine)

    def place(
        self, places: Mapping[str, sources.Places], asked: Iterable[str] = ()
    ) -> Mapping[str, sources.Places]:
        # nova's databases have no server that came in a fork.
        known = [uuid for uuid in (*places, *asked) if uuid in self._moved]
        return {**places, **{uuid: self._moved[uuid] for uuid in known}}


def _elsewhere(query: typing.Any) -> Callable[..., typing.Any]:
    """Return a query of nova's that reads another state's database."""

    def ask(
        context: typing.Any, *args: typing.Any, **kw: typing.Any
    ) -> object:
        with sources.current.open_aggregates(context) as session:
            # Past the decorator, which would open nova's own database.
            return query.__wrapped__(
                types.SimpleNamespace(session=session), *args, **kw
            )

    return ask


# All that nova's AggregateList reads, by name.
_QUERIES = {
    query.__name__: _elsewhere(query)
    for query in (
        aggregate._get_all_from_db,
        aggregate._get_by_host_from_db,
        aggregate._get_by_metadata_from_db,
        aggregate._get_non_matching_by_metadata_keys_from_db,
    )
}


@contextlib.contextmanager
def used(
    engine: sa.engine.Engine, moved: Mapping[str, sources.Places]
) -> Iterator[None]:
    """Show the scheduler's code another state, an :class:`OtherState`.

    nova's request filters read it too: both stages decide on the same
    aggregates.
    """
    before = sources.current
    of_nova = vars(aggregate)
    queries = {name: of_nova[name] for name in _QUERIES}
    sources.current = OtherState(engine, moved)
    of_nova.update(_QUERIES)
    try:
        yield
    finally:
        of_nova.update(queries)
        sources.current = before


@contextlib.contextmanager
def made(supposed: Change) -> Iterator[None]:
    """Apply a change before a :class:`.snapshot.Snapshot` is made.

    The change is undone at the end. CONF and nova's modules belong to the
    whole process, so there can be only one change at a time.

    :raises exception.InvalidValue: the change names something that does not
        exist or is malformed
    """
    with contextlib.ExitStack() as stack:
        for option in dict(supposed.options):
            values = [
                value for one, value in supposed.options if one == option
            ]
            stack.enter_context(_overridden(option, values))
        if _needs_package(dict(supposed.options)):
            stack.enter_context(_loaded())
        if (
            supposed.metadata
            or supposed.no_metadata
            or supposed.hosts
            or supposed.no_hosts
        ):
            aggregates = objects.AggregateList.get_all(process.context())
            _set_metadata(aggregates, supposed)
            changes = _set_hosts(aggregates, supposed)
            copy = copy_aggregates(aggregates, find_dialect())
            stack.enter_context(used(copy, {}))
            stack.enter_context(mirror.used(changes))
        yield


@contextlib.contextmanager
def _overridden(option: str, values: Sequence[str]) -> Iterator[None]:
    """Override an option of nova.conf.

    :param values: the last one counts; for an option that nova.conf may have
        in several lines, each value is a line
    """
    group, _, name = option.rpartition('.')
    group, name = find_option(group, name)
    if group == 'DEFAULT':
        # oslo.config has no group of this name.
        group = ''
    before, value = _read(name, group), values[-1]
    try:
        CONF.set_override(name, value, group or None)
        if len(value) > 1 and _read(name, group) == list(value):
            # Else oslo.config would take the letters of a text for its lines.
            CONF.set_override(name, list(values), group or None)
    except (cfg.NoSuchOptError, cfg.NoSuchGroupError) as exc:
        raise exception.InvalidValue(
            where='--option',
            expected='[group.]name of an option of nova.conf',
            got=option,
        ) from exc
    except ValueError as exc:
        raise exception.InvalidValue(
            where=f'--option {option}', expected=str(exc), got=value
        ) from exc
    try:
        yield
    finally:
        CONF.clear_override(name, group or None)
        if _read(name, group) != before:
            # The option had an override before.
            CONF.set_override(name, before, group or None)


def _needs_package(options: Collection[str]) -> bool:
    """Return whether options mean nothing unless this package is loaded."""
    if any(one.startswith('nova_ext_sched.') for one in options):
        return True
    enabled = {*CONF.filter_scheduler.enabled_filters}
    return (
        'filter_scheduler.enabled_filters' in options
        and not enabled <= filters.classes_in_use().keys()
    )


@contextlib.contextmanager
def _loaded() -> Iterator[None]:
    """Add the line to nova.conf that loads this package."""
    lines = CONF.filter_scheduler.available_filters
    if filters.ALL_FILTERS in lines:
        yield
        return
    before = [*request_filter.ALL_REQUEST_FILTERS]
    lines = [*lines, filters.ALL_FILTERS]
    with _overridden('filter_scheduler.available_filters', lines):
        try:
            yield
        finally:
            request_filter.ALL_REQUEST_FILTERS[:] = before


def find_option(group: str, name: str) -> tuple[str, str]:
    """Return the present group and name of an option with an old name.

    :param group: ``DEFAULT`` or nothing for ``[DEFAULT]``
    """
    return _renamed().get((group or 'DEFAULT', name), (group, name))


@functools.cache
def _renamed() -> dict[tuple[str, str], tuple[str, str]]:
    """The group and name of nova's options by each that they had before."""
    renamed, known = {}, set()
    for where, opts in nova_opts.list_opts():
        group = getattr(where, 'name', where)
        for opt in opts:
            known.add((group, opt.dest))
            for old in opt.deprecated_opts:
                name = (old.name or opt.dest).replace('-', '_')
                renamed[old.group or group, name] = group, opt.dest
    # Except where another option has the old name now.
    return {old: new for old, new in renamed.items() if old not in known}


def _read(name: str, group: str) -> typing.Any:
    """Return the value of an option; None where it has none that is valid."""
    try:
        return (CONF[group] if group else CONF)[name]
    except (cfg.Error, ValueError):
        return None


def _set_metadata(
    aggregates: Collection[typing.Any], supposed: Change
) -> None:
    for name, key, value in supposed.metadata:
        meant = named.find_aggregate(aggregates, name)
        meant.metadata = {**(meant.metadata or {}), key: value}
    for name, key in supposed.no_metadata:
        meant = named.find_aggregate(aggregates, name)
        metadata = dict(meant.metadata or {})
        if metadata.pop(key, None) is None:
            raise exception.InvalidValue(
                where='--no-aggregate-property',
                expected=f'a metadata key of aggregate '
                f'{messages.clean(meant.name)}: '
                f'{messages.first_few(sorted(metadata)) or "it has none"}',
                got=key,
            )
        meant.metadata = metadata


def _set_hosts(
    aggregates: Collection[typing.Any], supposed: Change
) -> mirror.Changes:
    changes: mirror.Changes = {}
    if supposed.hosts:
        # nova-api, too, takes mapped hosts alone.
        mapped = objects.HostMappingList.get_all(process.context())
        known = [mapping.host for mapping in mapped]
    for name, host in supposed.hosts:
        meant = named.find_aggregate(aggregates, name)
        host = named.find_host(host, known)
        meant.hosts = list({*meant.hosts, host})
        changes.setdefault(meant.uuid, {})[host] = True
    for name, host in supposed.no_hosts:
        meant = named.find_aggregate(aggregates, name)
        place = f' in aggregate {messages.clean(meant.name)}'
        host = named.find_host(host, meant.hosts, place)
        meant.hosts = [other for other in meant.hosts if other != host]
        changes.setdefault(meant.uuid, {})[host] = False
    return changes


def fold(text: str) -> str:
    """Return a text as MySQL's utf8_general_ci compares it."""
    bare = text.rstrip(' ').upper()
    if bare.isascii():
        # Nearly every name, and SQLite compares each one many times.
        return bare
    bare = unicodedata.normalize('NFD', bare)
    return ''.join(one for one in bare if not unicodedata.combining(one))


def _compare(*texts: str) -> int:
    one, other = map(fold, texts)
    return (one > other) - (one < other)


# MySQL ignores case and blanks at the end; PostgreSQL's LIKE heeds case.
_LIKE_ITS_DATABASE: dict[str, Callable[[typing.Any, object], object]] = {
    'mysql': lambda raw, _: raw.create_collation('mysql', _compare),
    'postgresql': lambda raw, _: raw.execute('PRAGMA case_sensitive_like = 1'),
}


#: The kind of database that nova's was copied from; empty where it was not.
copied_from = ''


def find_dialect() -> str:
    """Return SQLAlchemy's name of the kind of nova's database."""
    return str(copied_from or api_db.get_engine().dialect.name)


def like_its_database(dialect: str) -> Callable[[typing.Any, object], object]:
    """Return a function that makes SQLite compare text as the database does.

    :param dialect: SQLAlchemy's name of the kind of database that it is to
        compare like
    """
    return _LIKE_ITS_DATABASE.get(dialect, lambda raw, _: None)


def create_tables(
    engine: sa.engine.Engine,
    tables: Iterable[sa.Table],
    dialect: str,
    binary: Collection[str] = (),
) -> None:
    """Create tables of nova that compare text as its own database does.

    :param engine: of SQLite; its connections are prepared
    :param dialect: see :func:`like_its_database`
    :param binary: columns that heed case in spite of it, as ``table.column``
    """
    sa.event.listen(engine, 'connect', like_its_database(dialect))
    collation = 'mysql' if dialect == 'mysql' else None
    created = sa.MetaData()
    for table in tables:
        for column in table.to_metadata(created).columns:
            if isinstance(column.type, sa.String):
                name = f'{column.table.name}.{column.name}'
                column.type = sa.String(
                    255, None if name in binary else collation
                )
    created.create_all(engine)


def copy_aggregates(
    aggregates: Iterable[typing.Any], dialect: str = 'sqlite'
) -> sa.engine.Engine:
    """Return a database in memory that has some aggregates.

    :param aggregates: nova Aggregate objects
    :param dialect: SQLAlchemy's name of the kind of nova's database; the copy
        compares text as that does
    """
    engine = sa.create_engine(
        'sqlite://',
        poolclass=sa.pool.StaticPool,
        connect_args={'check_same_thread': False},
    )
    items, members = models.AggregateMetadata, models.AggregateHost
    copied = (models.Aggregate, items, members)
    create_tables(
        engine, [aggregate.__table__ for aggregate in copied], dialect
    )
    with orm.Session(engine) as session, session.begin():
        for aggregate in aggregates:
            session.add(
                models.Aggregate(
                    id=aggregate.id, uuid=aggregate.uuid, name=aggregate.name
                )
            )
            session.add_all(
                items(aggregate_id=aggregate.id, key=key, value=value)
                for key, value in (aggregate.metadata or {}).items()
            )
            session.add_all(
                members(aggregate_id=aggregate.id, host=host)
                for host in aggregate.hosts
            )
    return engine
