# SPDX-License-Identifier: Apache-2.0

"""The refusals that nova noted in the databases of its cells.

nova-conductor and nova-compute add a row to ``instance_faults`` for every
operation that finds no host. Unshelving is the exception: no fault is added,
but the event ``schedule_instances`` of the server's action fails
(nova.conductor.manager.ComputeTaskManager).

==========================================  =================================
row                                         is read as
==========================================  =================================
fault "No valid host was found"             a refusal by the scheduler, or by
                                            conductor before it asks
fault "Exceeded maximum number of retries"  a refusal after tries on hosts
any other fault                             nothing
event ``schedule_instances`` that failed    a refusal of an unshelving, of the
with one of these texts                     same two kinds
event ``schedule_instances`` that has not   nothing yet; it is read again
finished
==========================================  =================================
"""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import datetime
import typing

from nova.db.main import api as main_db
from nova.db.main import models
import sqlalchemy as sa

from nova_ext_sched.dryrun.decision import build

#: The operation of explain for each action of nova.
OPERATIONS: Mapping[str, str] = {
    'create': 'boot',
    'resize': 'resize',
    'migrate': 'migrate',
    'live-migration': 'live-migrate',
    'evacuate': 'evacuate',
    'rebuild': 'rebuild',
    'unshelve': 'unshelve',
}

_SCHEDULE = 'schedule_instances'

# How far the clock of nova-api, which notes when an action began, may be ahead
# of that of the conductor that notes the refusal.
_CLOCKS = datetime.timedelta(seconds=30)


@dataclasses.dataclass(frozen=True)
class Row:
    """A row that may be a refusal.

    :ivar cell: the UUID of its cell
    :ivar kind: ``fault`` or ``event``
    :ivar id: grows with time, but rows may become visible in another order
    :ivar time: when nova wrote it, in UTC
    :ivar server: the server's UUID
    :ivar message: nova's words
    :ivar is_open: whether the event has not ended, and may become a refusal
    """

    cell: str
    kind: str
    id: int
    time: datetime.datetime
    server: str
    message: str
    is_open: bool = False

    @property
    def source(self) -> tuple[str, str]:
        """The cell and the kind of row, whose IDs form one sequence."""
        return self.cell, self.kind

    @property
    def name(self) -> str:
        """Its unique name among the rows of all cells."""
        return f'{self.cell}:{self.kind}:{self.id}'

    @property
    def is_by_scheduler(self) -> bool:
        """Whether the scheduler, or conductor before it, found no host."""
        return self.message.startswith(build.NO_VALID_HOST)


@dataclasses.dataclass(frozen=True)
class Refusal(Row):
    """A row, and the operation that found no host.

    :ivar operation: a value of :data:`OPERATIONS`; empty if nova has no action
        for the row
    """

    operation: str = ''
    request_id: str | None = None
    project_id: str | None = None
    user_id: str | None = None
    server_name: str | None = None


@main_db.pick_context_manager_reader
def read(
    context: typing.Any, after: Mapping[str, int] | None
) -> tuple[dict[str, list[Row]], dict[str, int]]:
    """Read the rows of a cell after the given IDs.

    This is one select over ranges of primary keys.

    :param context: the context of the cell
    :param after: an ID for each kind of row; None for no rows
    :returns: two mappings by kind of row: the rows that may be refusals, in
        any order; and the highest ID of the table, 0 if it is empty
    """
    rows: dict[str, list[Row]] = {kind: [] for kind in _MODELS}
    newest = dict.fromkeys(_MODELS, 0)
    parts = [part for kind in _MODELS for part in _select(kind, after)]
    for kind, row_id, time, *others in context.session.execute(
        sa.union_all(*parts)
    ):
        # The highest ID comes as a row whose other columns are null.
        if time is None:
            newest[kind] = row_id or 0
        else:
            row = Row(context.cell_uuid, kind, row_id, time, *others)
            rows[kind].append(row)
    return rows, newest


_MODELS: Mapping[str, typing.Any] = {
    'fault': models.InstanceFault,
    'event': models.InstanceActionEvent,
}


def _select(
    kind: str, after: Mapping[str, int] | None
) -> Iterator[sa.sql.Select]:
    model = _MODELS[kind]
    label = sa.literal(kind).label('kind')
    if after is not None:
        select = _select_faults if kind == 'fault' else _select_events
        yield select(label, model.id > after[kind])
    # The columns of _select_faults, all of them null.
    names = 'time', 'server', 'message', 'is_open'
    nothing = [sa.null().label(name) for name in names]
    yield sa.select(label, sa.func.max(model.id), *nothing)


def _select_faults(label: typing.Any, is_after: typing.Any) -> sa.sql.Select:
    fault = models.InstanceFault
    # Columns in the order of Row's fields after the cell.
    return sa.select(
        label,
        fault.id,
        fault.created_at,
        fault.instance_uuid,
        fault.message,
        sa.literal(0),
    ).where(is_after, _is_refusal(fault.message))


def _is_refusal(words: typing.Any) -> typing.Any:
    return sa.or_(
        words.startswith(build.NO_VALID_HOST),
        words.startswith(build.NO_HOST_LEFT),
    )


def _select_events(label: typing.Any, is_after: typing.Any) -> sa.sql.Select:
    event, action = models.InstanceActionEvent, models.InstanceAction
    # The same columns as those of faults.
    return (
        sa.select(
            label,
            event.id,
            sa.func.coalesce(event.finish_time, event.created_at),
            action.instance_uuid,
            sa.func.coalesce(event.details, ''),
            sa.case((event.finish_time.is_(None), 1), else_=0),
        )
        .join(action, action.id == event.action_id)
        .where(
            is_after,
            event.event == _SCHEDULE,
            sa.or_(event.finish_time.is_(None), _is_refusal(event.details)),
        )
    )


@main_db.pick_context_manager_reader
def complete(context: typing.Any, row: Row) -> Refusal:
    """Return the refusal that a row records, with its operation.

    The operation is the latest action on the server with an event that
    conductor began before it wrote the row; both times are from conductor's
    clock. If there is no such action, it is the latest that nova-api began
    before the row's time, or at most ``_CLOCKS`` after it.

    :param context: the context of the row's cell
    """
    action, event = models.InstanceAction, models.InstanceActionEvent
    is_begun = (
        sa.exists()
        .where(event.action_id == action.id, event.start_time <= row.time)
        .correlate(action)
    )
    latest = context.session.execute(
        sa.select(
            action.action,
            action.request_id,
            action.project_id,
            action.user_id,
            models.Instance.display_name,
        )
        .join(models.Instance, models.Instance.uuid == action.instance_uuid)
        .where(
            action.instance_uuid == row.server,
            action.action.in_(OPERATIONS),
            sa.or_(is_begun, action.start_time <= row.time + _CLOCKS),
        )
        .order_by(sa.case((is_begun, 0), else_=1), action.id.desc())
        .limit(1)
    ).first()
    name, *others = latest or ['']
    fields = [*dataclasses.astuple(row), OPERATIONS.get(name, ''), *others]
    return Refusal(*fields)
