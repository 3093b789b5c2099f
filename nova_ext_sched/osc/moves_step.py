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

# Tasks of a migration, which nova-conductor may yet have to record.
_MOVING = {'migrating', 'resize_prep', 'resize_migrating', 'resize_migrated'}
_MOVING |= {'resize_finish'}
_DELETING = {'deleting', 'soft-deleting'}
_SOFT_DELETED = 'SOFT_DELETED'
_NOWHERE = {'DELETED', 'SHELVED_OFFLOADED'}

# How nova calls the migrations of a kind, and those that are over. A server
# may have been stopped, or started, since its move was planned.
_MIGRATIONS = {'live-migration', 'migration'}
_TYPES = {
    plan_format.LIVE: _MIGRATIONS,
    plan_format.COLD: _MIGRATIONS,
    plan_format.EVACUATE: {'evacuation'},
}
_ARRIVED = {'completed', 'confirmed', 'done'}
_OVER = _ARRIVED | {'error', 'failed', 'cancelled', 'reverted'}

_TO_CONFIRM, _ERROR = 'VERIFY_RESIZE', 'ERROR'
_RUNS, _STOPPED = {'ACTIVE', 'PAUSED'}, {'SHUTOFF'}
# Of a guest that has shut itself down, or crashed: nova's numbers.
_OFF = {4, 6}


class Step(enum.Enum):
    """The next step of a move."""

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

    - FORGOTTEN: nova-api gives a server a task before it hands a migration on,
      and the task ends after the migration. A cell's database that is away
      then, or a nova-compute that starts anew, leaves a migration that is
      under way for ever, of a server without a task on its old host.
    - UNCONFIRMED: the cell's database was away while nova-compute confirmed
      it. nova-api neither confirms nor reverts it any more.
    - TASK_LEFT: nova-compute records first that a migration failed, and ends
      the task when it has undone it. Where that fails too, because keystone is
      away, say, the task stays, and nova-api takes no other request.
    - UNHEARD: nova-api gave a server its task, and nova-conductor, which
      records the migration first, has none, or has left it as it was then. It
      may be slow, or the request may be lost.
    """

    FORGOTTEN = enum.auto()
    UNCONFIRMED = enum.auto()
    TASK_LEFT = enum.auto()
    UNHEARD = enum.auto()


#: How nova is asked then; None for as planned.
BEGINNINGS = {
    Step.BEGIN: None,
    Step.BEGIN_LIVE: plan_format.LIVE,
    Step.BEGIN_COLD: plan_format.COLD,
}


def is_under_way(one: migration.Migration) -> bool:
    """Return whether a migration is; one to be confirmed is, too."""
    return one.status not in _OVER


def list_under_way(
    migrations: Sequence[migration.Migration],
) -> list[migration.Migration]:
    """Return the migrations of a server that are under way.

    nova carries out one after the other. So one that it left as it was, while
    a service was away, does not count after a later one has arrived.

    :param migrations: all of the server, the oldest first
    """
    later = itertools.takewhile(
        lambda one: one.status not in _ARRIVED, reversed(migrations)
    )
    return [*filter(is_under_way, later)][::-1]


def find_stall(
    own: migration.Migration | None,
    server: sdk_server.Server | None,
    others: Sequence[migration.Migration] = (),
) -> Stall | None:
    """Return how nova seems to have ceased to work on a migration, if it does.

    It may also be between two steps, so that only time tells.

    ====================  =================================  ===============
    the own migration     the server                         ceased
    ====================  =================================  ===============
    any                   is gone                            no
    none                  has a task of a migration, and no  unheard
                          migration that is under way
    none                  any other                          no
    is accepted           has a task of a migration          unheard
    is under way          has no task, is on its old host,   forgotten
                          and waits for no confirmation
    is being confirmed    has no task, and waits for         unconfirmed
                          confirmation
    is over               has a task of a migration          task left
    any other             any other                          no
    ====================  =================================  ===============

    :param others: all migrations of the server, the oldest first
    """
    if server is None:
        return None
    if own is None:
        is_asked = server.task_state in _MOVING
        is_unheard = is_asked and not list_under_way(others)
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
    """Return whether a server is on its host until its deletion ends."""
    return server.task_state in _DELETING or is_soft_deleted(server)


def is_soft_deleted(server: sdk_server.Server) -> bool:
    """Return whether a server has its host for as long as nova keeps it."""
    return bool(server.status == _SOFT_DELETED)


def list_own(
    move: moves_plan.Move,
    migrations: Iterable[migration.Migration],
    user: str,
    time: str,
    before: Collection[int] | None = None,
) -> list[migration.Migration]:
    """Return the migrations that were begun for a move, the last one last.

    They are of this user, move a server as the move may, between its hosts,
    and are no older than the plan. Where the move was asked for in this run,
    clocks do not count: they are none of those that there were before.

    :param time: when the plan was made
    :param before: the IDs of those that there were
    """
    return [
        migration_
        for migration_ in migrations
        if migration_.migration_type in _TYPES[move.method]
        and migration_.user_id == user
        and migration_.source_compute == move.host
        # nova may not have chosen yet where it goes.
        and (move.to is None or migration_.dest_compute in (None, move.to))
        # In a plan, times have no fraction.
        and (
            migration_.created_at[:19] >= time[:19]
            if before is None
            else migration_.id not in before
        )
    ]


def runs(server: sdk_server.Server) -> bool:
    """Return whether a guest runs, or may run."""
    return server.status in _RUNS and server.power_state not in _OFF


def is_stopped(server: sdk_server.Server) -> bool:
    """Return whether nova knows that a guest does not run."""
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
    """Return the next step, and why the run stops where it does.

    The first row that fits decides:

    ==========================================  =============================
    the server                                  step
    ==========================================  =============================
    is deleted or offloaded, or is being        gone
    deleted away from its host
    is on its host and being deleted, softly    deleting: it holds its host
    too                                         until that has ended; gone if
                                                its host is dead
    is on a host that nova does not tell        stop
    is on the expected host in ERROR, without   broken: nova goes no further,
    a task, and the own migration is the last   whatever it says of that
    is on the expected host without a task,     moved: somebody has set its
    and the own migration is being confirmed,   state, because nova did not go
    but not the server                          on
    has the own migration under way             wait; confirm if nova waits
                                                for that
    has another one, away from where it goes    moved
    has another one that waits to be confirmed  stop: that is its owner's
    has another one, after which none has       busy
    arrived
    waits for its resize to be confirmed        wait if there was an own one
                                                or the move has begun, else
                                                stop
    is about to migrate, or has a task and      wait
    the move has begun
    is on the expected host in ERROR, and the   broken
    move has begun
    is on the expected host                     moved
    is on another host                          elsewhere
    is on its host in ERROR, without a task     broken at home, whoever broke
                                                it; begin if its host is dead
                                                and the move has not begun
    is on its host, and the move has begun      failed; cancelled if that is
                                                the status of the own one
    is on its host, and that is dead            begin: nothing ends a task
                                                there
    is on its host, with a task                 busy
    is on its host and runs, and was to be      begin live: nobody is to lose
    moved cold because it was stopped           a server that runs
    is on its host and stopped, and was to be   begin cold
    moved live
    is on its host                              begin
    ==========================================  =============================

    :param migrations: all of the server, the oldest first
    :param own: the last of :func:`list_own`; None where there is none
    :param has_begun: whether this run has asked for the move, or waited for it
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
