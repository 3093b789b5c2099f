# SPDX-License-Identifier: Apache-2.0

"""What the next step of a move is, by what nova shows."""

from collections.abc import Collection
from collections.abc import Iterable
import enum

from openstack.compute.v2 import migration
from openstack.compute.v2 import server as sdk_server

from nova_ext_sched.osc import moves_plan

# Tasks of a migration, which nova-conductor may yet have to record.
_MOVING = {'migrating', 'resize_prep', 'resize_migrating', 'resize_migrated'}
_MOVING |= {'resize_finish'}
_DELETING = {'deleting', 'soft-deleting'}
_NOWHERE = {'SOFT_DELETED', 'DELETED', 'SHELVED_OFFLOADED'}

# How nova calls the migrations of a kind, and those that are over.
_TYPES = {
    'live': 'live-migration',
    'cold': 'migration',
    'evacuate': 'evacuation',
}
_OVER = {'completed', 'confirmed', 'done', 'error', 'failed', 'cancelled'}
_OVER |= {'reverted'}

_TO_CONFIRM = 'VERIFY_RESIZE'


class Step(enum.Enum):
    """What is done next."""

    BEGIN = enum.auto()
    WAIT = enum.auto()
    CONFIRM = enum.auto()
    MOVED = enum.auto()
    GONE = enum.auto()
    ELSEWHERE = enum.auto()
    FAILED = enum.auto()
    STOP = enum.auto()


def is_under_way(one: migration.Migration) -> bool:
    """Return whether a migration is; one to be confirmed is, too."""
    return one.status not in _OVER


def is_gone(server: sdk_server.Server | None) -> bool:
    """Return whether a server is deleted, or about to be, or offloaded."""
    return (
        server is None
        or server.task_state in _DELETING
        or server.status in _NOWHERE
    )


def find_own(
    move: moves_plan.Move,
    migrations: Iterable[migration.Migration],
    user: str,
    time: str,
    before: Collection[int] | None = None,
) -> migration.Migration | None:
    """Return the last migration that was begun for a move, if any.

    It is of this user, is of the move's kind and between its hosts, and is no
    older than the plan. Where the move was asked for in this run, clocks do
    not count: it is none of those that there were before.

    :param time: when the plan was made
    :param before: the IDs of those that there were
    """
    found = [
        one
        for one in migrations
        if one.migration_type == _TYPES[move.kind]
        and one.user_id == user
        and one.source_compute == move.host
        # nova may not have chosen yet where it goes.
        and (move.to is None or one.dest_compute in (None, move.to))
        # In a plan, times have no fraction.
        and (
            one.created_at[:19] >= time[:19]
            if before is None
            else one.id not in before
        )
    ]
    return found[-1] if found else None


def decide(
    move: moves_plan.Move,
    server: sdk_server.Server | None,
    migrations: Iterable[migration.Migration],
    own: migration.Migration | None,
    has_begun: bool,
) -> tuple[Step, str]:
    """Return the next step, and why the run stops where it does.

    The first row that fits decides:

    ==========================================  =============================
    the server                                  step
    ==========================================  =============================
    is deleted, is being deleted, is offloaded  gone
    is on a host that nova does not tell        stop
    has the own migration under way             wait; confirm if nova waits
                                                for that
    has another one, away from where it goes    moved
    has another one                             stop
    waits for its resize to be confirmed        wait if there was an own one
                                                or the move has begun, else
                                                stop
    is about to migrate, or has a task and      wait
    the move has begun
    is on the expected host                     moved; failed if it has begun
                                                and ended in ERROR
    is on another host                          elsewhere
    is on its host, and the move has begun      failed
    is on its host, with a task                 stop; begin if its host is
                                                dead: nothing ends the task
    is on its host                              begin
    ==========================================  =============================

    :param own: what :func:`find_own` returned
    :param has_begun: whether this run has asked for the move, or waited for it
    """
    if server is None or is_gone(server):
        return Step.GONE, ''
    host, task = server.compute_host, server.task_state
    if host is None:
        # Its cell does not answer, or the user is no administrator.
        return Step.STOP, 'nova does not say on which host it is'
    if own and is_under_way(own):
        waits = own.status == 'finished' and server.status == _TO_CONFIRM
        return Step.CONFIRM if waits and not task else Step.WAIT, ''
    others = list(filter(is_under_way, migrations))
    for one in others:
        if host != move.expected or one.source_compute == move.host:
            text = f'another migration of it, {one.id}, is under way'
            return Step.STOP, text
    if others:
        return Step.MOVED, ''
    if server.status == _TO_CONFIRM and not (own or has_begun):
        return Step.STOP, 'a resize of it waits to be confirmed'
    if server.status == _TO_CONFIRM or task in _MOVING or (task and has_begun):
        return Step.WAIT, ''
    if host == move.expected:
        if has_begun and server.status == 'ERROR':
            return Step.FAILED, ''
        return Step.MOVED, ''
    if host != move.host:
        return Step.ELSEWHERE, f'it is on {host}'
    if has_begun:
        return Step.FAILED, ''
    if task and move.kind != 'evacuate':
        return Step.STOP, f'its task is {task}'
    return Step.BEGIN, ''
