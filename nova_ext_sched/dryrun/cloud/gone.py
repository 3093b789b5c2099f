# SPDX-License-Identifier: Apache-2.0

"""Servers that are deleted while a command looks at them.

What is read of one then fails in many ways, in nova, Neutron or Cinder, and
none of them says that the server is gone. So a command asks nova's databases,
before it answers, which of the servers that it would name are gone.

==================================  ==============  =================
a server's row                      deleted softly  gone
                                    counts
==================================  ==============  =================
deleted, or vm_state deleted        any             yes
task_state deleting                 any             yes
vm_state soft-delete, or            yes             yes
task_state soft-deleting
the same                            no              no
any other                           any             no
none, in cells that all answer      any             yes: archived
none, and a cell does not answer    any             no: nobody knows
==================================  ==============  =================
"""

from collections.abc import Collection
import typing

from nova.compute import task_states
from nova.compute import vm_states
from nova.db.main import api as main_db
from nova.db.main import models
import sqlalchemy as sa

from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.queries import servers


def is_gone(row: typing.Any, softly: bool = True) -> bool:
    """Return whether a server is deleted, or is being deleted.

    :param row: of nova's table, or a nova Instance
    :param softly: whether one counts that was deleted softly: its owner may
        restore it, and it has its host until then
    """
    if row.deleted or row.task_state == task_states.DELETING:
        return True
    if row.vm_state == vm_states.SOFT_DELETED or (
        row.task_state == task_states.SOFT_DELETING
    ):
        return softly
    return bool(row.vm_state == vm_states.DELETED)


def find(
    cloud: snapshot.Snapshot, uuids: Collection[str], softly: bool = True
) -> set[str]:
    """Return the servers that are gone, as nova's databases have it now.

    :param uuids: of servers that were there before
    :param softly: as in :func:`is_gone`
    """
    if not uuids:
        return set()
    lives: dict[str, bool] = {}
    for rows in cloud.ask_cells(_select, uuids).values():
        for row in rows:
            # A move to another cell leaves a row in both cells for a while.
            if not lives.get(row.uuid):
                lives[row.uuid] = not is_gone(row, softly)
    unknown = bool(cloud.silent_cells)
    return {uuid for uuid in uuids if not lives.get(uuid, unknown)}


@main_db.pick_context_manager_reader
def _select(context: typing.Any, uuids: Collection[str]) -> list[typing.Any]:
    """Return what one cell knows of servers, of deleted ones too."""
    instance = models.Instance
    rows: list[typing.Any] = []
    for chunk in servers.in_chunks(uuids):
        query = sa.select(
            instance.uuid,
            instance.deleted,
            instance.vm_state,
            instance.task_state,
        ).where(instance.uuid.in_(chunk))
        rows += context.session.execute(query)
    return rows
