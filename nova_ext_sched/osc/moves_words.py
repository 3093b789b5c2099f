# SPDX-License-Identifier: Apache-2.0

"""Words the reasons of moves that are not made, or not wholly."""

from collections.abc import Collection
import datetime
import typing

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_step

#: After how many seconds without a sign nova has lost a deletion.
LONG = 3600

# nova's numbers, as the client shows them.
_POWER_STATES = {
    0: 'NOSTATE',
    1: 'Running',
    3: 'Paused',
    4: 'Shutdown',
    6: 'Crashed',
    7: 'Suspended',
}
_ON, _OFF = {1, 3}, {4, 6}

# What explain calls the operation of a move.
_OPERATIONS = {
    plan_format.LIVE: 'live-migrate',
    plan_format.COLD: 'migrate',
    plan_format.EVACUATE: 'evacuate',
}


def say_fault(exc: Exception) -> str:
    """Return nova's reason of an error."""
    return getattr(exc, 'details', None) or str(exc)


def say_changed(move: moves_plan.Move) -> str:
    """Return why a move is not made by its method; empty where it is."""
    if move.actual == move.method:
        return ''
    now = 'runs' if move.actual == plan_format.LIVE else 'is stopped'
    return f'it {now} now'


def say_broken(
    move: moves_plan.Move, server: typing.Any, own: typing.Any, reason: str
) -> str:
    """Describe a server that is in ERROR, and what helps.

    ====================  ===================================================
    its power state       what helps
    ====================  ===================================================
    Running or Paused     its state is set to active, if its guest runs
    Shutdown or Crashed   the same, and then it is stopped
    any other             its guest is started: nova cannot say how it is
    none, on its old      nothing is needed: the next run evacuates it
    host that is dead
    ====================  ===================================================

    :param own: the migration of the move; None where there is none
    :param reason: nova's; empty where it has none
    """
    host, power = server.compute_host, server.power_state
    shown = _POWER_STATES.get(power, 'unknown')
    text = f'it is on {host} in ERROR, power state {shown}'
    is_at_home = host == move.host
    if own is not None and is_at_home:
        text += f': its {own.migration_type} failed'
        text += f' ({reason})' if reason else ', and nova does not say why'
    elif reason:
        text += f' ({reason})'
    if move.method == plan_format.EVACUATE and is_at_home:
        return text
    if not reason:
        text += f'. See the nova-compute log of {host}'
    activate = f'openstack server set --state active {move.server}'
    helps = f'To start it again: openstack server reboot --hard {move.server}'
    if power in _ON:
        helps = f'If its guest runs: {activate}'
    elif power in _OFF:
        helps = (
            f'It is stopped: {activate}, then openstack server stop '
            f'{move.server}'
        )
    return f'{text}. {helps}'


def say_task(own: typing.Any, server: typing.Any) -> str:
    """Describe a task that has outlived its migration."""
    return (
        f'its {own.migration_type} is over ({own.status}), but its task is '
        f'still {server.task_state}'
    )


def say_stale(
    move: moves_plan.Move, own: typing.Any, server: typing.Any
) -> str:
    """Describe what keeps a server from moving, and what helps."""
    said, host = say_task(own, server), server.compute_host
    if moves_step.is_under_way(own):
        # nova-compute of the host that it left confirms it.
        said, host = f'its {own.migration_type} is {own.status}', move.host
    return (
        f'{said}. Check in the nova-compute log of {host} that it does not go '
        f'on, then: openstack server set --state active {move.server}'
    )


def say_unheard(
    move: moves_plan.Move, server: typing.Any, own: typing.Any
) -> str:
    """Describe a request that nova-conductor may have lost, and what helps.

    :param own: the migration of the move; None where there is none
    """
    has = 'but nova has no migration of it'
    if own is not None:
        has = f'and its {own.migration_type} is still {own.status}'
    return (
        f'its task is {server.task_state}, {has}. '
        'Check in the nova-conductor log that the request was lost, then: '
        f'openstack server set --state active {move.server}'
    )


def say_held(move: moves_plan.Move, holding: Collection[typing.Any]) -> str:
    """Return which migrations hold the room that a server left."""
    return '; '.join(
        f'the allocation of its {one.migration_type}, {one.uuid} '
        f'({one.status}), still holds its room on {move.host}: '
        f'{moves_cloud.FREE} {one.uuid}'
        for one in holding
    )


def say_deleting(server: typing.Any) -> str:
    """Describe a deleted server that is still on its host, and what helps."""
    host, uuid = server.compute_host, server.id
    if moves_step.is_soft_deleted(server):
        return (
            f'it is deleted softly and stays on {host}: restore it, or '
            f'openstack server delete --force {uuid}'
        )
    text = f'its task is {server.task_state}, and it is still on {host}'
    if not is_older(server.updated_at, LONG):
        return f'{text}: wait until it is deleted'
    return (
        f'{text}, for more than an hour: openstack server delete {uuid}; if '
        f'that does nothing, openstack server set --state error {uuid}, then '
        'delete it'
    )


def may_be_gone_soon(server: typing.Any) -> bool:
    """Return whether the deletion of a server may end within a minute."""
    return (
        moves_step.is_deleting(server)
        and not moves_step.is_soft_deleted(server)
        and not is_older(server.updated_at, LONG)
    )


def say_explain(move: moves_plan.Move) -> str:
    """Return the command that says why nova found no host for a move."""
    text = (
        f'nova-ext-sched explain --server {move.server} --operation '
        f'{_OPERATIONS[move.actual]}'
    )
    return f'{text} --destination {move.to}' if move.to else text


def is_older(written: str | None, seconds: float) -> bool:
    """Return whether a time of nova's is past, if the clocks are right.

    :param written: in UTC; None where nova has none
    """
    if not written:
        return False
    then = datetime.datetime.fromisoformat(written[:19])
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    return (now - then).total_seconds() > seconds


def name_host(host: str, service: typing.Any) -> str:
    """Return why nova takes no server to a host; empty where it seems fine.

    :param service: its nova-compute; None where nova has none
    """
    shown = messages.clean(host)
    if service is None:
        return f'nova has no nova-compute of {shown}'
    if service.status == 'disabled':
        why = messages.clean(service.disabled_reason or '')
        return f'{shown} is disabled' + f' ({why})' * bool(why)
    if service.is_forced_down:
        return f'{shown} is forced down'
    if service.state == 'down':
        return f'nova-compute of {shown} is down'
    return ''
