# SPDX-License-Identifier: Apache-2.0

"""The one place that reads nova's instances from the cells.

nova's own instance objects carry some eighty columns. What the policies need
is where an instance stands.
"""

from collections.abc import Collection
from collections.abc import Sequence
import typing

from nova import context as nova_context
from nova import exception as nova_exception
from nova.db.main import api as main_db
from nova.db.main import models
import sqlalchemy as sa

# Parameters of one statement; databases bear several times as many.
_CHUNK = 1000

# The statuses of a migration that nova counts as ended
# (nova.db.main.api.migration_get_in_progress_by_host_and_node).
_ENDED = (
    'confirmed',
    'reverted',
    'error',
    'failed',
    'completed',
    'cancelled',
    'done',
)


def get_hosts(
    ctxt: typing.Any, uuids: Collection[str]
) -> dict[str, frozenset[str]]:
    """Return the hosts of instances, from every cell.

    Two light selects a cell, whatever project the instances belong to.

    :param ctxt: a nova RequestContext
    :returns: by the UUID of each instance that is not deleted its hosts: none
        before it is built, source and destination while it moves or waits
        for its resize to be confirmed
    :raises Exception: what the database or its driver raises, and
        nova.exception.CellTimeout, where a cell does not answer that may hold
        one of the instances
    """
    wanted = sorted(set(uuids))
    if not wanted:
        return {}
    found: dict[str, frozenset[str]] = {}
    fault: Exception | None = None
    answers = nova_context.scatter_gather_skip_cell0(
        ctxt, _select_hosts, wanted
    )
    for answer in answers.values():
        if isinstance(answer, Exception):
            fault = answer
        elif nova_context.is_cell_failure_sentinel(answer):
            fault = nova_exception.CellTimeout()
        else:
            for uuid, hosts in answer.items():
                found[uuid] = found.get(uuid, frozenset()) | hosts
    if fault is not None and len(found) < len(wanted):
        raise fault
    return found


@main_db.pick_context_manager_reader
def _select_hosts(
    context: typing.Any, uuids: Sequence[str]
) -> dict[str, frozenset[str]]:
    instance, migration = models.Instance, models.Migration
    found: dict[str, frozenset[str]] = {}
    for start in range(0, len(uuids), _CHUNK):
        chunk = uuids[start : start + _CHUNK]
        for uuid, host in context.session.execute(
            sa.select(instance.uuid, instance.host).where(
                instance.uuid.in_(chunk), instance.deleted == 0
            )
        ):
            found[uuid] = frozenset([host] if host else [])
        for uuid, *ends in context.session.execute(
            sa.select(
                migration.instance_uuid,
                migration.source_compute,
                migration.dest_compute,
            ).where(
                migration.instance_uuid.in_(chunk),
                migration.deleted == 0,
                migration.status.not_in(_ENDED),
            )
        ):
            if uuid in found:
                found[uuid] |= frozenset(filter(None, ends))
    return found
