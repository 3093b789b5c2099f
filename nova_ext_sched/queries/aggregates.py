# SPDX-License-Identifier: Apache-2.0

"""Reads nova's aggregates from the API database, for the scheduler.

nova's own aggregate objects have every host of every aggregate: at 1,000
aggregates of 20 hosts they cost half a second for each request. The policies
need only a few columns.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import datetime
import functools
import typing
import weakref

from nova.db.api import api as api_db
from nova.db.api import models
import sqlalchemy as sa

from nova_ext_sched import grouping
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import sources

# Databases limit the parameters of one statement; all take this many.
_MOST_HOSTS = 1000

# Not the classes: SQLAlchemy's ORM takes longer than the database.
_AGGREGATES = models.Aggregate.__table__
_METADATA = models.AggregateMetadata.__table__
_MEMBERS = models.AggregateHost.__table__


class HostValue(typing.NamedTuple):
    """The value of one key in one aggregate, for one host or for none."""

    uuid: str
    name: str
    value: str
    host: str | None


def _read(
    context: typing.Any, query: sa.sql.Select, **parameters: typing.Any
) -> Sequence[typing.Any]:
    with sources.current.open_aggregates(context) as session:
        return session.execute(query, parameters).all()


def get_metadata(
    context: typing.Any, prefixes: Collection[str]
) -> Sequence[verdict.Item]:
    """Read metadata items with one of the key prefixes, and perhaps more.

    This is one light select. Databases differ in how they compare text. So
    the select ignores case and blanks before a key, and a colon at the end of
    a prefix (``trait :X``), and may return other items too; the policy
    decides what a key means. The answer of a policy is then the same on every
    database.

    :raises Exception: whatever oslo.db, SQLAlchemy or the driver raises where
        the database does not answer; so do the other functions here
    """
    if not prefixes:
        return []
    return _read(context, _metadata_query(tuple(prefixes)))


def get_by_name_or_value(
    context: typing.Any,
    names: Collection[str],
    key: str,
    prefixes: Collection[str],
) -> Sequence[verdict.Item]:
    """Read items of aggregates with these names or values, and perhaps more.

    This is one light select. As databases differ in how they compare text, it
    may return other items too.

    :param names: of aggregates, of which all items are returned; one that has
        none gives an item whose key is None
    :param key: the metadata key to return of every other aggregate where its
        value begins with one of ``prefixes``
    """
    query = _name_or_value_query(key, tuple(prefixes))
    return _read(context, query, names=sorted(names))


# To make the statement takes longer than to execute it. It goes by options;
# what members write is a parameter, and is not kept.
@functools.lru_cache(maxsize=16)
def _name_or_value_query(key: str, prefixes: tuple[str, ...]) -> sa.sql.Select:
    metadata = _METADATA.c
    begins = [_begins_with(metadata.value, prefix) for prefix in prefixes]
    return _select_items(isouter=True).where(
        sa.or_(
            _AGGREGATES.c.name.in_(sa.bindparam('names', expanding=True)),
            sa.and_(metadata.key == key, sa.or_(sa.false(), *begins)),
        )
    )


def _begins_with(text: typing.Any, prefix: str) -> typing.Any:
    # Not LIKE: its wildcards would have to be escaped.
    return sa.func.lower(
        sa.func.substr(text, 1, len(prefix))
    ) == sa.func.lower(prefix)


@functools.lru_cache(maxsize=16)
def _metadata_query(prefixes: tuple[str, ...]) -> sa.sql.Select:
    key = sa.func.ltrim(_METADATA.c.key)
    return _select_items().where(
        sa.or_(
            *(
                _begins_with(key, prefix.rstrip(': ') or prefix)
                for prefix in prefixes
            )
        )
    )


def _select_items(
    *columns: typing.Any, isouter: bool = False
) -> sa.sql.Select:
    one, metadata = _AGGREGATES.c, _METADATA.c
    return (
        sa.select(one.uuid, one.name, metadata.key, metadata.value, *columns)
        .select_from(_AGGREGATES)
        .join(_METADATA, metadata.aggregate_id == one.id, isouter=isouter)
    )


def get_values(
    context: typing.Any, key: str, hosts: Collection[str]
) -> list[HostValue]:
    """Read the values of one key, with the hosts that they are for.

    This is one select. Key and hosts are compared exactly, whatever the
    collation of the database.

    :returns: each aggregate that has the key: an item for each of ``hosts``
        that it holds; one with the host None if it holds none of them, and
        perhaps also where it holds others
    """
    few = len(hosts) <= _MOST_HOSTS
    parameters = {'hosts': sorted(hosts)} if few else {}
    rows = _read(context, _values_query(few), key=key, **parameters)
    wanted = set(hosts)
    return list(
        dict.fromkeys(
            HostValue(uuid, name, value, host if host in wanted else None)
            for uuid, name, found, value, host in rows
            if found == key
        )
    )


def get_times(
    context: typing.Any, key: str, host: str
) -> list[tuple[str | None, datetime.datetime]]:
    """Return the values of one key for a host, and since when it has each.

    That is when the key was written, or the host added, whichever was later;
    nothing is known of aggregates that are only supposed.
    """
    item, member = _METADATA.c, _MEMBERS.c
    with api_db.context_manager.reader.using(context) as session:
        rows = session.execute(
            sa.select(
                item.value, item.updated_at, item.created_at, member.created_at
            )
            .join(_MEMBERS, member.aggregate_id == item.aggregate_id)
            .where(item.key == key, member.host == host)
        ).all()
    return [
        (value, max(updated or created, added))
        for value, updated, created, added in rows
        if created and added
    ]


def get_hosts(context: typing.Any) -> Mapping[str, Collection[str]]:
    """Return the hosts of each aggregate that has one, by UUID.

    To read thousands of hosts takes ten times as long as all else that stage
    1 does. So a light select says whether any aggregate has other hosts than
    before, and only then all are read.
    """
    with sources.current.open_aggregates(context) as session:
        engine = session.get_bind().engine
        version = session.execute(_version_of_hosts).one()
        known, hosts = _hosts.get(engine, (None, {}))
        if known != version:
            query = _select_hosts(_MEMBERS.c.host)
            hosts = grouping.by_key(session.execute(query))
            _hosts[engine] = version, hosts
    return hosts


# nova adds rows and deletes rows, and changes none. A new one has a later
# time or, within a second, another ID.
_version_of_hosts = sa.select(
    sa.func.count(),
    sa.func.sum(_MEMBERS.c.id),
    sa.func.max(_MEMBERS.c.created_at),
)

# By engine: the version, and the hosts by the UUID of their aggregate.
_hosts: weakref.WeakKeyDictionary[
    typing.Any, tuple[typing.Any, Mapping[str, Collection[str]]]
] = weakref.WeakKeyDictionary()


@functools.cache
def _values_query(of_hosts: bool) -> sa.sql.Select:
    member = _MEMBERS.c
    joined = member.aggregate_id == _AGGREGATES.c.id
    if of_hosts:
        hosts = sa.bindparam('hosts', expanding=True)
        joined = sa.and_(joined, member.host.in_(hosts))
    return (
        _select_items(member.host)
        .outerjoin(_MEMBERS, joined)
        .where(_METADATA.c.key == sa.bindparam('key'))
    )


def get_uuids_by_hosts(
    context: typing.Any, hosts: Collection[str]
) -> set[str]:
    """Return the UUIDs of the aggregates that hold any of the hosts.

    Names are compared without case, as nova compares forced hosts.
    """
    query = _select_hosts().where(
        sa.func.lower(_MEMBERS.c.host).in_([host.lower() for host in hosts])
    )
    return {uuid for (uuid,) in _read(context, query)}


def _select_hosts(*columns: typing.Any) -> sa.sql.Select:
    return (
        sa.select(_AGGREGATES.c.uuid, *columns)
        .select_from(_AGGREGATES)
        .join(_MEMBERS, _MEMBERS.c.aggregate_id == _AGGREGATES.c.id)
    )
