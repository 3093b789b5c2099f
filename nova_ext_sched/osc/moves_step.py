# SPDX-License-Identifier: Apache-2.0

"""Decides the next step of a move from nova's records."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
import enum
import itertools

from openstack.compute.v2 import migration
from openstack.compute.v2 import server as sdk_server

from nova_ext_sched import plan_format
from nova_ext_sched.osc import moves_plan

# Task states of a server that migrates; its migration may not be recorded yet.
_MOVING = {
    'migrating',
    'resize_prep',
    'resize_migrating',
    'resize_migrated',
    'resize_finish',
}
_DELETING = {'deleting', 'soft-deleting'}
_SOFT_DELETED = 'SOFT_DELETED'
_NOWHERE = {'DELETED', 'SHELVED_OFFLOADED'}

# nova's migration types for each method. Live and cold share them: a server
# may have been stopped or started since its move was planned.
_MIGRATIONS = {'live-migration', 'migration'}
_TYPES = {
    plan_format.LIVE: _MIGRATIONS,
    plan_format.COLD: _MIGRATIONS,
    plan_format.EVACUATE: {'evacuation'},
}
# Statuses of a migration that succeeded, and of one that is over.
_ARRIVED = {'completed', 'confirmed', 'done'}
_OVER = _ARRIVED | {'error', 'failed', 'cancelled', 'reverted'}

_TO_CONFIRM, _ERROR = 'VERIFY_RESIZE', 'ERROR'
_RUNS, _STOPPED = {'ACTIVE', 'PAUSED'}, {'SHUTOFF'}
# nova's power states SHUTDOWN and CRASHED.
_OFF = {4, 6}


class Step(enum.Enum):
    """The next step of a move, or how the move ended; see :func:`decide`.

    BROKEN_AT_HOME is BROKEN on the move's own host.
    """

    BEGIN = enum.auto()
    BEGIN_LIVE = enum.auto()
    BEGIN_COLD = enum.auto()
    WAIT = enum.auto()
    CONFIRM = enum.auto()
    MOVED = enum.auto()
    GONE = enum.auto()
    DELETING = enum.auto()
    ELSEWHERE = enum.auto()
    CANCELLED = enum.auto()
    FAILED = enum.auto()
    BROKEN = enum.auto()
    BROKEN_AT_HOME = enum.auto()
    BUSY = enum.auto()
    STOP = enum.auto()


class Stall(enum.Enum):
    """A way in which nova loses a migration while a service is away.

    - FORGOTTEN: the migration is still under way, but its server is on the old
      host without a task. In nova the task begins before the migration and
      ends after it, unless nova-compute restarts meanwhile, or the cell's
      database is away while nova works on the migration.
    - UNCONFIRMED: the migration stays ``confirming``, because the cell's
      database was away while nova-compute confirmed it. nova-api can then
      neither confirm nor revert it.
    - TASK_LEFT: the migration has failed but the server keeps its task,
      because undoing the migration failed too (keystone was away, for
      example). nova-api then takes no other request.
    - UNHEARD: the server has its task, but nova-conductor has recorded no
      migration, or one that is still ``accepted``. nova-conductor may be slow,
      or the request may be lost.
    """

    FORGOTTEN = enum.auto()
    UNCONFIRMED = enum.auto()
    TASK_LEFT = enum.auto()
    UNHEARD = enum.auto()


#: The method that nova is asked for at each step that begins a move; None for
#: the planned one.
BEGINNINGS = {
    Step.BEGIN: None,
    Step.BEGIN_LIVE: plan_format.LIVE,
    Step.BEGIN_COLD: plan_format.COLD,
}


def is_under_way(one: migration.Migration) -> bool:
    """Return whether a migration is under way, or waits for confirmation."""
    return one.status not in _OVER


def list_under_way(
    migrations: Sequence[migration.Migration],
) -> list[migration.Migration]:
    """Return the migrations of a server that are under way.

    nova makes a server's migrations one at a time. So a migration that never
    ended, because a service was away, does not count if a later one has
    succeeded.

    :param migrations: all migrations of the server, the oldest first
    """
    later = itertools.takewhile(
        lambda one: one.status not in _ARRIVED, reversed(migrations)
    )
    return [*filter(is_under_way, later)][::-1]


def find_stall(
    own: migration.Migration | None,
    server: sdk_server.Server | None,
    migrations: Sequence[migration.Migration] = (),
) -> Stall | None:
    """Return how nova seems to have lost a migration; None if it has not.

    nova may just be between two steps, so the caller waits before it acts on
    the result.

    ====================  =================================  ===============
    its own migration     the server                         result
    ====================  =================================  ===============
    any                   is gone                            None
    none                  has a task of a migration, and no  unheard
                          migration that is under way
    none                  any other                          None
    is accepted           has a task of a migration          unheard
    is under way          has no task, is on its old host,   forgotten
                          and waits for no confirmation
    is "confirming"       has no task, and is in             unconfirmed
                          VERIFY_RESIZE
    is over               has a task of a migration          task left
    any other             any other                          None
    ====================  =================================  ===============

    :param own: the move's own migration, the last of :func:`list_own`; None if
        it has none
    :param server: None if it is gone
    :param migrations: all migrations of the server, the oldest first
    """
    if server is None:
        return None
    if own is None:
        is_asked = server.task_state in _MOVING
        is_unheard = is_asked and not list_under_way(migrations)
        return Stall.UNHEARD if is_unheard else None
    if not is_under_way(own):
        return Stall.TASK_LEFT if server.task_state in _MOVING else None
    if server.task_state:
        is_unheard = own.status == 'accepted' and server.task_state in _MOVING
        return Stall.UNHEARD if is_unheard else None
    if server.status == _TO_CONFIRM:
        is_confirming = own.status == 'confirming'
        return Stall.UNCONFIRMED if is_confirming else None
    is_at_home = server.compute_host == own.source_compute
    return Stall.FORGOTTEN if is_at_home else None


def is_deleting(server: sdk_server.Server) -> bool:
    """Return whether a server is being deleted, or is soft-deleted."""
    return server.task_state in _DELETING or is_soft_deleted(server)


def is_soft_deleted(server: sdk_server.Server) -> bool:
    """Return whether a server is soft-deleted.

    It then stays on its host until nova reclaims it.
    """
    return bool(server.status == _SOFT_DELETED)


def list_own(
    move: moves_plan.Move,
    migrations: Iterable[migration.Migration],
    user: str,
    time: str,
    before: Collection[int] | None = None,
) -> list[migration.Migration]:
    """Return the migrations begun for a move, the oldest first.

    The last is the move's own migration. They are the user's, of a type that
    fits the method, and from the move's host to its destination. If this run
    has not asked for the move, they are not older than the plan. If it has,
    they are those that are not in ``before``, whatever the clocks say.

    :param migrations: all migrations of the server, the oldest first
    :param user: the ID of the user who makes the moves
    :param time: when the plan was made
    :param before: IDs of the server's migrations before the request; None if
        this run did not ask for the move
    """
    return [
        migration_
        for migration_ in migrations
        if migration_.migration_type in _TYPES[move.method]
        and migration_.user_id == user
        and migration_.source_compute == move.host
        # nova may not have chosen the destination yet.
        and (move.to is None or migration_.dest_compute in (None, move.to))
        # The times of a plan have no fractions of a second.
        and (
            migration_.created_at[:19] >= time[:19]
            if before is None
            else migration_.id not in before
        )
    ]


def runs(server: sdk_server.Server) -> bool:
    """Return whether a server's guest runs, or may run."""
    return server.status in _RUNS and server.power_state not in _OFF


def is_stopped(server: sdk_server.Server) -> bool:
    """Return whether nova knows that a server's guest does not run."""
    return server.status in _STOPPED or (
        server.status in _RUNS and server.power_state in _OFF
    )


def decide(
    move: moves_plan.Move,
    server: sdk_server.Server | None,
    migrations: Sequence[migration.Migration],
    own: migration.Migration | None,
    has_begun: bool,
) -> tuple[Step, str]:
    """Return the next step, and the reason if it is STOP, BUSY or ELSEWHERE.

    *Its host* is the host that the plan moves the server from; that host is
    *dead* if the plan evacuates the server. Migrations count as
    :func:`list_under_way` says. The first row that fits decides:

    ==========================================  =============================
    the server                                  step
    ==========================================  =============================
    is deleted or offloaded; or is being        gone
    deleted or soft-deleted, not on its host
    is on its host, being deleted or            deleting; gone if its host is
    soft-deleted                                dead
    is on a host that nova does not name        stop
    is on the expected host in ERROR, without   broken, whatever the
    a task, and its last migration is its own   migration's status
    is on the expected host without a task, and moved: somebody has reset its
    its own migration is "confirming", but the  state
    server is not in VERIFY_RESIZE
    has its own migration under way             wait; confirm if it is
                                                finished, and the server in
                                                VERIFY_RESIZE without a task
    is on the expected host, has other          moved: somebody moves it on
    migrations under way, and none of them is
    from its host
    has another migration under way that is     stop: its owner has to
    finished, and is in VERIFY_RESIZE           confirm or revert it
    has another migration under way             busy
    is in VERIFY_RESIZE                         wait if the move has its own
                                                migration or has begun, else
                                                stop
    has the task of a migration, or any task    wait
    after the move has begun
    is on the expected host in ERROR, without   broken
    a task, and the move has begun
    is on the expected host                     moved
    is on another host                          elsewhere
    is on its host in ERROR, without a task     broken at home, also if not by
                                                this move; begin if its host
                                                is dead and the move has not
                                                begun
    is on its host, and the move has begun      cancelled if its own migration
                                                was, else failed
    is on its host, which is dead               begin, also with a task: no
                                                nova-compute there will end
                                                the task
    is on its host, with a task                 busy
    is on its host and runs, and was to be      begin live: it must not be
    moved cold because it was stopped           shut down
    is on its host and stopped, and was to be   begin cold
    moved live
    is on its host                              begin
    ==========================================  =============================

    :param server: None if it is gone
    :param migrations: all migrations of the server, the oldest first
    :param own: the last of :func:`list_own`; None if there is none
    :param has_begun: whether this run has asked for the move, or seen it under
        way
    """
    if server is None or server.status in _NOWHERE:
        return Step.GONE, ''
    host, task = server.compute_host, server.task_state
    is_dead = move.method == plan_format.EVACUATE
    if is_deleting(server):
        is_held = host == move.host and not is_dead
        return Step.DELETING if is_held else Step.GONE, ''
    if host is None:
        # Its cell does not answer, or the user is no administrator.
        return Step.STOP, 'nova does not say on which host it is'
    is_there = host == move.expected
    is_broken = is_there and server.status == _ERROR and not task
    if is_broken and own and own is migrations[-1]:
        return Step.BROKEN, ''
    is_to_confirm = server.status == _TO_CONFIRM
    is_confirming = own is not None and own.status == 'confirming'
    if is_confirming and is_there and not (task or is_to_confirm):
        return Step.MOVED, ''
    under_way = list_under_way(migrations)
    if own and own in under_way:
        waits = own.status == 'finished' and is_to_confirm
        return Step.CONFIRM if waits and not task else Step.WAIT, ''
    # A migration on from the expected host does not matter.
    for one in under_way:
        if not is_there or one.source_compute == move.host:
            if one.status == 'finished' and is_to_confirm:
                return Step.STOP, _say_resized(move)
            return Step.BUSY, f'another migration ({one.id}) is under way'
    if under_way:
        return Step.MOVED, ''
    if is_to_confirm and not (own or has_begun):
        return Step.STOP, _say_resized(move)
    if is_to_confirm or task in _MOVING or (task and has_begun):
        return Step.WAIT, ''
    if is_there:
        return Step.BROKEN if is_broken and has_begun else Step.MOVED, ''
    if host != move.host:
        return Step.ELSEWHERE, f'it is on {host}'
    is_error = server.status == _ERROR and not task
    if is_error and (has_begun or not is_dead):
        return Step.BROKEN_AT_HOME, ''
    if has_begun:
        is_cancelled = own and own.status == 'cancelled'
        return Step.CANCELLED if is_cancelled else Step.FAILED, ''
    if is_dead:
        return Step.BEGIN, ''
    if task:
        return Step.BUSY, f'its task is {task}'
    if move.why_cold == plan_format.STOPPED and runs(server):
        return Step.BEGIN_LIVE, ''
    if move.method == plan_format.LIVE and is_stopped(server):
        return Step.BEGIN_COLD, ''
    return Step.BEGIN, ''


def _say_resized(move: moves_plan.Move) -> str:
    return (
        f'its resize or migration waits for confirmation: openstack server '
        f'resize confirm {move.server}, or revert'
    )
