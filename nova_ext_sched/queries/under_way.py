# SPDX-License-Identifier: Apache-2.0

"""Selects the migrations that are under way."""

from collections.abc import Collection
from collections.abc import Iterator
import itertools
import typing

from nova.db.main import models
import sqlalchemy as sa

from nova_ext_sched.queries import servers


class RunningMigration(typing.NamedTuple):
    """A migration that has not ended.

    :ivar server: the UUID of its server
    :ivar uuid: its own
    :ivar source: the host that the server leaves
    :ivar dest: the host that it goes to; None where nova has chosen none yet
    """

    server: str
    uuid: str
    status: str
    source: str | None
    dest: str | None


_migration = models.Migration.__table__.c
_OVER = sorted((*servers.ENDED, servers.REVERTED))
# Each part of a statement has each UUID; with 1,000 MariaDB takes no index.
_AT_ONCE = 200


def _find_gaps() -> Iterator[typing.Any]:
    """Yield conditions of which a status meets one unless it has ended.

    All statuses but those: a list of the others would miss a new one. With
    NOT IN, PostgreSQL reads each migration that has ended, and MariaDB does
    for more than 200 servers; a gap between two statuses is a range of the
    index.
    """
    status = _migration.status
    yield status < _OVER[0]
    for low, high in itertools.pairwise(_OVER):
        yield sa.and_(status > low, status < high)
    yield status > _OVER[-1]


_UNDER_WAY = sa.union_all(
    *(
        sa.select(
            _migration.instance_uuid,
            _migration.uuid,
            _migration.status,
            _migration.source_compute,
            _migration.dest_compute,
        ).where(
            # nova's index is of (deleted, instance_uuid, status).
            _migration.deleted == 0,
            _migration.instance_uuid.in_(servers.UUIDS),
            gap,
        )
        for gap in _find_gaps()
    )
)


def select(
    session: typing.Any, uuids: Collection[str]
) -> list[RunningMigration]:
    """Select the migrations of servers of a cell that are under way.

    One that waits for its owner to confirm or revert is among them.

    :param session: of the cell's database
    :param uuids: of servers that are not deleted; nova deletes the migrations
        of a server with it
    """
    rows = servers.execute(session, _UNDER_WAY, uuids, _AT_ONCE)
    return [RunningMigration(*row) for row in rows]


_instance = models.Instance.__table__.c
_LIVING = servers.of_living(
    sa.select(_instance.uuid).where(_instance.deleted == 0)
)


def select_all(session: typing.Any) -> list[RunningMigration]:
    """Select the migrations of all servers of a cell, as :func:`select`."""
    return select(session, session.scalars(_LIVING).all())
