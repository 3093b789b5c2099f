# SPDX-License-Identifier: Apache-2.0

"""Estimates how long moves take, by the cloud's last migrations.

======================  ==================================================
a migration             counts from its beginning to
======================  ==================================================
live, completed         its end
cold, confirmed         its confirmation, which apply gives at once
any other               does not count: a resize, a failure, an evacuation
                        (nova writes of it again when its host is back)
======================  ==================================================

The median of each kind is taken, so that a few that were confirmed late, or
were of huge servers, do not count for all.
"""

import collections
from collections.abc import Iterable
import statistics
import typing

from nova.db.main import api as main_db
from nova.db.main import models
import sqlalchemy as sa

from nova_ext_sched import grouping
from nova_ext_sched import plan_format
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.plan import plans

#: So many of the last migrations of each cell count.
LAST = 200
# They are looked for among so many of the last rows, by their primary key:
# whatever else is asked of this table, nova has no index for.
_LAST_ROWS = 1000

_METHODS = {
    ('live-migration', 'completed'): plan_format.LIVE,
    ('migration', 'confirmed'): plan_format.COLD,
}


def estimate(
    cloud: snapshot.Snapshot, moves: Iterable[plans.Move]
) -> int | None:
    """Estimate the seconds that moves take, one after the other.

    :returns: None where there are no moves, or none of the last migrations
        was like such a move
    """
    counts = collections.Counter(move.method for move in moves)
    # Of evacuations nobody knows; survive plans hundreds.
    if not counts or counts.keys() - {*_METHODS.values()}:
        return None
    taken = grouping.by_key(
        row for rows in cloud.ask_cells(select).values() for row in rows
    )
    if not counts.keys() <= taken.keys():
        return None
    return round(
        sum(
            count * statistics.median(taken[method])
            for method, count in counts.items()
        )
    )


@main_db.pick_context_manager_reader
def select(cctxt: typing.Any) -> list[tuple[str, float]]:
    """Return the method, and the seconds, of a cell's last migrations."""
    columns = models.Migration.__table__.c
    last = sa.select(sa.func.max(columns.id)).scalar_subquery()
    query = (
        sa.select(
            columns.deleted,
            columns.migration_type,
            columns.status,
            columns.created_at,
            columns.updated_at,
        )
        .where(columns.id > last - _LAST_ROWS)
        .order_by(columns.id.desc())
    )
    # nova deletes those of a server with it; a saved cloud has none of them.
    rows = [
        rest for deleted, *rest in cctxt.session.execute(query) if not deleted
    ]
    return [
        (_METHODS[kind, status], (end - begin).total_seconds())
        for kind, status, begin, end in rows[:LAST]
        if (kind, status) in _METHODS and begin and end
    ]
