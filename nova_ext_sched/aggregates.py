# SPDX-License-Identifier: Apache-2.0

"""The one place that reads nova's aggregates from the API database.

nova's own aggregate objects carry every host of every aggregate: at 1,000
aggregates of 20 hosts they cost half a second a request. What the policies
need is a few columns.
"""

from collections.abc import Collection
from collections.abc import Sequence
import functools
import typing

from nova.db.api import api as api_db
from nova.db.api import models
import sqlalchemy as sa


class MetadataItem(typing.NamedTuple):
    """One metadata item of one aggregate."""

    uuid: str
    name: str
    key: str
    value: str


#: nova Aggregates to read metadata from in place of the database, for tools
#: that judge as if it were another. nova-scheduler has none.
supposed: Collection[typing.Any] | None = None


def get_metadata(
    ctxt: typing.Any, prefixes: Collection[str]
) -> list[MetadataItem]:
    """Return the metadata items whose key has one of the prefixes.

    One select. Prefixes are compared as they stand, in case and with ``_``
    and ``%`` as themselves, whatever the database's collation.

    :param ctxt: a nova RequestContext
    :param prefixes: beginnings of metadata keys, none of them empty
    :raises Exception: whatever oslo.db, SQLAlchemy or the driver raises where
        the database does not answer; so do the other functions here
    """
    wanted = tuple(prefixes)
    if supposed is not None:
        return [
            MetadataItem(aggregate.uuid, aggregate.name, key, value)
            for aggregate in supposed
            for key, value in (aggregate.metadata or {}).items()
            if key.startswith(wanted)
        ]
    # SQLite's LIKE and MySQL's collations ignore case, MySQL's also accents:
    # the select finds at least what is wanted, and Python decides.
    return [
        row
        for row in _select_metadata(ctxt, wanted)
        if row[2].startswith(wanted)
    ]


@functools.lru_cache(maxsize=16)
def _metadata_query(prefixes: tuple[str, ...]) -> sa.Select:
    metadata = models.AggregateMetadata
    return (
        sa.select(
            models.Aggregate.uuid,
            models.Aggregate.name,
            metadata.key,
            metadata.value,
        )
        .join(metadata, metadata.aggregate_id == models.Aggregate.id)
        .where(
            sa.or_(
                *(
                    metadata.key.startswith(prefix, autoescape=True)
                    for prefix in prefixes
                )
            )
        )
    )


@api_db.context_manager.reader
def _select_metadata(
    context: typing.Any, prefixes: tuple[str, ...]
) -> Sequence[typing.Any]:
    return context.session.execute(_metadata_query(prefixes)).all()


@api_db.context_manager.reader
def get_host_counts(context: typing.Any) -> dict[str, int]:
    """Return the number of hosts of each aggregate that has one, by UUID.

    :param context: a nova RequestContext
    """
    query = (
        sa.select(models.Aggregate.uuid, sa.func.count())
        .join(
            models.AggregateHost,
            models.AggregateHost.aggregate_id == models.Aggregate.id,
        )
        .group_by(models.Aggregate.uuid)
    )
    return dict(context.session.execute(query).all())


@api_db.context_manager.reader
def get_uuids_by_hosts(
    context: typing.Any, hosts: Collection[str]
) -> set[str]:
    """Return the UUIDs of the aggregates that hold any of the hosts.

    Names are compared without case, as nova compares forced hosts.

    :param context: a nova RequestContext
    """
    query = (
        sa.select(models.Aggregate.uuid)
        .join(
            models.AggregateHost,
            models.AggregateHost.aggregate_id == models.Aggregate.id,
        )
        .where(
            sa.func.lower(models.AggregateHost.host).in_(
                [host.lower() for host in hosts]
            )
        )
    )
    return set(context.session.execute(query).scalars())


@api_db.context_manager.reader
def get_names(context: typing.Any, uuids: Collection[str]) -> list[str]:
    """Return the names of aggregates, for messages.

    :param context: a nova RequestContext
    """
    query = sa.select(models.Aggregate.name).where(
        models.Aggregate.uuid.in_(uuids)
    )
    return list(context.session.execute(query).scalars())
