# SPDX-License-Identifier: Apache-2.0

"""The one place that reads nova's instances from the cells.

nova's own instance objects have about eighty columns. The policies need only
the host of an instance.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import typing

from nova import context as nova_context
from nova import exception as nova_exception
from nova.compute import task_states
from nova.compute import vm_states
from nova.db.main import api as main_db
from nova.db.main import models
import sqlalchemy as sa

# Databases bound the parameters of a statement; each bears more than this.
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

Found = typing.TypeVar('Found')


class Place(typing.NamedTuple):
    """The hosts of an instance.

    ``hosts`` has source and destination while the instance moves, or waits
    for its resize to be confirmed. It is empty if the instance has no
    host; ``is_under_way`` is then true if it is to get one, at boot or when it
    is unshelved.
    """

    hosts: frozenset[str]
    is_under_way: bool


def get_places(ctxt: typing.Any, uuids: Collection[str]) -> dict[str, Place]:
    """Return the hosts of instances by UUID, without deleted instances.

    Two light selects in each cell, for instances of all projects.

    :param ctxt: a nova RequestContext
    :raises Exception: what the database or its driver raises, or
        nova.exception.CellTimeout, where a cell does not answer that may hold
        one of the instances; so does the other function here
    """
    return _gather(ctxt, _select_places, uuids)


def get_compute_hosts(
    ctxt: typing.Any, uuids: Collection[str]
) -> dict[str, str]:
    """Return the hosts of compute nodes by UUID, which their providers share.

    :param ctxt: a nova RequestContext
    :param uuids: of resource providers; one of no compute node is not in the
        result
    """
    return _gather(ctxt, _select_compute_hosts, uuids)


def _gather(
    ctxt: typing.Any,
    select: Callable[[typing.Any, list[str]], Mapping[str, Found]],
    uuids: Collection[str],
) -> dict[str, Found]:
    wanted = sorted(set(uuids))
    found: dict[str, Found] = {}
    if not wanted:
        return found
    fault: Exception | None = None
    answers = nova_context.scatter_gather_skip_cell0(ctxt, select, wanted)
    for answer in answers.values():
        if isinstance(answer, Exception):
            fault = answer
        elif nova_context.is_cell_failure_sentinel(answer):
            fault = nova_exception.CellTimeout()
        else:
            found.update(answer)
    if fault is not None and len(found) < len(wanted):
        raise fault
    return found


def _chunks(uuids: list[str]) -> Iterable[list[str]]:
    for start in range(0, len(uuids), _CHUNK):
        yield uuids[start : start + _CHUNK]


@main_db.pick_context_manager_reader
def _select_places(context: typing.Any, uuids: list[str]) -> dict[str, Place]:
    instance, migration = models.Instance, models.Migration
    found: dict[str, Place] = {}
    for chunk in _chunks(uuids):
        for uuid, host, vm_state, task_state in context.session.execute(
            sa.select(
                instance.uuid,
                instance.host,
                instance.vm_state,
                instance.task_state,
            ).where(
                instance.uuid.in_(chunk),
                instance.deleted == 0,
                # The other half of a move between cells.
                instance.hidden.is_not(True),
            )
        ):
            found[uuid] = Place(
                frozenset([host] if host else []),
                not host
                and (
                    vm_state == vm_states.BUILDING
                    or task_state == task_states.UNSHELVING
                ),
            )
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
                hosts = found[uuid].hosts.union(filter(None, ends))
                found[uuid] = Place(hosts, False)
    return found


@main_db.pick_context_manager_reader
def _select_compute_hosts(
    context: typing.Any, uuids: list[str]
) -> dict[str, str]:
    node = models.ComputeNode
    found: dict[str, str] = {}
    for chunk in _chunks(uuids):
        rows = context.session.execute(
            sa.select(node.uuid, node.host).where(
                node.uuid.in_(chunk), node.deleted == 0
            )
        )
        found.update(row for row in rows if row[1])
    return found
