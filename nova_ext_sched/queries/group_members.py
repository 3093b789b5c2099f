# SPDX-License-Identifier: Apache-2.0

"""The hosts of a server group's members, including those under way.

The one place that reads nova's instances from the cells. nova's own instance
objects have about eighty columns; the policies need only the host.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import typing

from nova import context as nova_context
from nova import exception as nova_exception
from nova.compute import task_states
from nova.compute import vm_states
from nova.db.main import api as main_db
from nova.db.main import models
from nova.scheduler.client import report
import sqlalchemy as sa

from nova_ext_sched import log_once

LOG_ONCE = log_once.LogOnce(__name__)

# Members under way that placement is asked about, one by one.
MOST_UNDER_WAY = 50

# Databases limit the parameters of one statement; all take this many.
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


def get_hosts(
    ctxt: typing.Any, uuids: Collection[str]
) -> dict[str, frozenset[str]]:
    """Return the hosts of members, of all projects, by UUID.

    =====================================  ==================================
    member                                 hosts
    =====================================  ==================================
    claimed by nova-compute                its host
    moves, or its resize is unconfirmed    source and destination
    placed, and not yet claimed, at boot   that of its allocation in placement
    or when it is unshelved
    not placed, in ERROR without a host,   none: it is not in the result
    shelved, or deleted
    =====================================  ==================================

    Two selects a cell. While members wait to be claimed, a request to
    placement for each, up to :data:`MOST_UNDER_WAY`, and a select a cell.

    :raises Exception: what the database or its driver raises, or
        nova.exception.CellTimeout, where a cell does not answer that may hold
        a member; what nova's report client raises where placement does not
        answer
    """
    places = _gather(ctxt, _select_hosts, uuids)
    found = {uuid: frozenset(hosts) for uuid, hosts in places.items() if hosts}
    under_way = sorted(
        uuid for uuid, hosts in places.items() if hosts == set()
    )
    if not under_way:
        return found
    if len(under_way) > MOST_UNDER_WAY:
        LOG_ONCE.warning(
            f'More than {MOST_UNDER_WAY} servers of one server group wait '
            f'for nova-compute to claim them. Failure domains count '
            f'{MOST_UNDER_WAY} of them; the others count when they are '
            f'claimed.'
        )
    client = report.report_client_singleton()
    providers = {
        uuid: client.get_allocs_for_consumer(ctxt, uuid)['allocations']
        for uuid in under_way[:MOST_UNDER_WAY]
    }
    hosts = _gather(
        ctxt, _select_compute_hosts, set().union(*providers.values())
    )
    for uuid, held in providers.items():
        # Other providers of the tree (of devices) are no compute nodes.
        if on := frozenset(hosts[rp] for rp in held if rp in hosts):
            found[uuid] = on
    return found


def _gather(
    ctxt: typing.Any,
    select: Callable[[typing.Any, list[str]], Mapping[str, Found]],
    uuids: Collection[str],
) -> dict[str, Found]:
    wanted = sorted(uuids)
    found: dict[str, Found] = {}
    fault: Exception | None = None
    for start in range(0, len(wanted), _CHUNK):
        answers = nova_context.scatter_gather_skip_cell0(
            ctxt, select, wanted[start : start + _CHUNK]
        )
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


@main_db.pick_context_manager_reader
def _select_hosts(
    context: typing.Any, uuids: list[str]
) -> dict[str, set[str] | None]:
    # None: it has no host and will not get one by itself.
    instance, migration = models.Instance, models.Migration
    found: dict[str, set[str] | None] = {}
    for uuid, host, vm_state, task_state in context.session.execute(
        sa.select(
            instance.uuid,
            instance.host,
            instance.vm_state,
            instance.task_state,
        ).where(
            instance.uuid.in_(uuids),
            instance.deleted == 0,
            # The other half of a move between cells.
            instance.hidden.is_not(True),
        )
    ):
        is_under_way = (
            vm_state == vm_states.BUILDING
            or task_state == task_states.UNSHELVING
        )
        found[uuid] = {host} if host else set() if is_under_way else None
    for uuid, *ends in context.session.execute(
        sa.select(
            migration.instance_uuid,
            migration.source_compute,
            migration.dest_compute,
        ).where(
            migration.instance_uuid.in_(uuids),
            migration.deleted == 0,
            migration.status.not_in(_ENDED),
        )
    ):
        if uuid in found:
            found[uuid] = {*(found[uuid] or ()), *filter(None, ends)}
    return found


@main_db.pick_context_manager_reader
def _select_compute_hosts(
    context: typing.Any, uuids: list[str]
) -> dict[str, str]:
    node = models.ComputeNode
    rows = context.session.execute(
        sa.select(node.uuid, node.host).where(
            node.uuid.in_(uuids), node.deleted == 0
        )
    )
    return {uuid: host for uuid, host in rows if host}
