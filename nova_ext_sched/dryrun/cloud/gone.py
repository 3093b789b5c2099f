# SPDX-License-Identifier: Apache-2.0

"""Finds servers that are deleted or moved while a command runs.

Reading one then fails in many ways, in nova, Neutron or Cinder, and
no error says that the server is gone. So a command asks nova's databases,
before it answers, which of the servers that it would name are gone.

A server is on its host, and placement counts it, until its deletion has ended.
Where a request was lost, or nova-compute started anew in the middle, that is
never. So what empties a host asks for those that are gone for good; everything
else takes one for gone whose deletion has just begun.

==================================  ==============  =================
a server's row                      softly counts   gone
==================================  ==============  =================
deleted, or vm_state deleted        any             yes
task_state deleting or              yes             yes
soft-deleting, written in the last
hour
the same, written before that       any             no: it is stuck
vm_state soft-delete, another task  yes             yes
any of the three                    no              no
any other                           any             no
none, in cells that all answer      any             yes: archived
none, and a cell does not answer    any             no: nobody knows
==================================  ==============  =================
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Set
import typing

from nova.compute import task_states
from nova.compute import vm_states
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_ext_sched import grouping
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.queries import servers

#: Seconds without a sign after which nova may have lost a task, or a deletion.
#: No sooner: no hypervisor writes a server's record while it copies a disk.
LONG = 3600

_DELETING = (task_states.DELETING, task_states.SOFT_DELETING)


class Changed(typing.NamedTuple):
    """Servers that were deleted or moved since they were read, by UUID.

    :ivar gone: servers that are gone
    :ivar deleting: servers that are being deleted and not gone; whether they
        have been for long
    :ivar hosts: the names of the hosts of all that are there
    """

    gone: Set[str]
    deleting: Mapping[str, bool]
    hosts: Mapping[str, str | None]


def is_gone(row: typing.Any, softly: bool = True) -> bool:
    """Return whether a server is deleted, or is being deleted.

    :param row: of nova's table, or a nova Instance
    :param softly: whether one counts that has its host until its deletion has
        ended, or until its owner restores it
    """
    if row.deleted or row.vm_state == vm_states.DELETED:
        return True
    if row.task_state in _DELETING:
        return softly and not is_stuck(row)
    return softly and bool(row.vm_state == vm_states.SOFT_DELETED)


def is_stuck(row: typing.Any) -> bool:
    """Return whether nova has not updated a server for long.

    :param row: as in :func:`is_gone`
    """
    written = row.updated_at or row.created_at
    return bool(timeutils.is_older_than(written, LONG))


def find(cloud: snapshot.Snapshot, uuids: Collection[str]) -> Set[str]:
    """Return the servers that are gone, softly too.

    :param uuids: of servers that were there before
    """
    return look(cloud, uuids).gone


def look(
    cloud: snapshot.Snapshot, uuids: Collection[str], softly: bool = True
) -> Changed:
    """Look up in nova's databases which servers are deleted or moved now.

    The cell where a server was read is asked first, and all cells about those
    that are not there any more.

    :param uuids: of servers that were there before
    :param softly: as in :func:`is_gone`
    """
    if not uuids:
        return Changed(frozenset(), {}, {})
    seen: set[str] = set()
    there: dict[str, typing.Any] = {}

    def note(answers: Mapping[str, list[typing.Any]]) -> None:
        for rows in answers.values():
            for row in rows:
                seen.add(row.uuid)
                # A move to another cell leaves a row in both for a while.
                if not is_gone(row, softly):
                    there[row.uuid] = row

    by_cell = grouping.by_key(
        (cell, uuid)
        for uuid in uuids
        if (cell := cloud.cell_of_server.get(uuid))
    )
    note(
        cloud.ask_cells(
            lambda cctxt: _select(cctxt, by_cell[cctxt.cell_uuid]),
            mappings=[cloud.cells[cell] for cell in by_cell],
        )
    )
    if remaining := [uuid for uuid in uuids if uuid not in there]:
        note(cloud.ask_cells(_select, remaining))
    unknown = bool(cloud.silent_cells)
    return Changed(
        {
            uuid
            for uuid in uuids
            if uuid not in there and (uuid in seen or not unknown)
        },
        {
            uuid: is_stuck(row)
            for uuid, row in there.items()
            if row.task_state in _DELETING
        },
        {uuid: row.host for uuid, row in there.items()},
    )


def find_changing(
    cloud: snapshot.Snapshot, hosts: Collection[str]
) -> Set[str]:
    """Return the servers that nova builds, deletes or has a task for.

    :param hosts: names of the hosts that have them
    """
    return {
        uuid
        for some in servers.in_chunks(hosts)
        for uuids in cloud.ask_cells(_select_changing, some).values()
        for uuid in uuids
    }


@main_db.pick_context_manager_reader
def _select_changing(context: typing.Any, hosts: Collection[str]) -> list[str]:
    instance = models.Instance
    query = sa.select(instance.uuid).where(
        instance.deleted == 0,
        instance.host.in_(hosts),
        instance.task_state.is_not(None)
        | instance.vm_state.in_((vm_states.BUILDING, vm_states.DELETED)),
    )
    return list(context.session.scalars(query))


@main_db.pick_context_manager_reader
def _select(context: typing.Any, uuids: Collection[str]) -> list[typing.Any]:
    """Select the rows of servers in one cell, deleted ones too."""
    instance = models.Instance
    query = sa.select(
        instance.uuid,
        instance.deleted,
        instance.vm_state,
        instance.task_state,
        instance.host,
        instance.updated_at,
        instance.created_at,
    ).where(instance.uuid.in_(servers.UUIDS))
    return [*servers.execute(context.session, query, uuids)]
