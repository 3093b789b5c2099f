# SPDX-License-Identifier: Apache-2.0

"""Describes why a move was not made or not finished, and what to do."""

from collections.abc import Collection
import datetime
import typing

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_step

#: Seconds without a change after which a deletion counts as lost.
LONG = 3600

# nova's power states in the words of the OpenStackClient.
_POWER_STATES = {
    0: 'NOSTATE',
    1: 'Running',
    3: 'Paused',
    4: 'Shutdown',
    6: 'Crashed',
    7: 'Suspended',
}
_ON, _OFF = {1, 3}, {4, 6}

# The operation of explain for each method.
_OPERATIONS = {
    plan_format.LIVE: 'live-migrate',
    plan_format.COLD: 'migrate',
    plan_format.EVACUATE: 'evacuate',
}


def say_fault(exc: Exception) -> str:
    """Return the text of an error: nova's own if it has one."""
    return getattr(exc, 'details', None) or str(exc)


def say_changed(move: moves_plan.Move) -> str:
    """Return why a move is not made by its planned method; empty if it is."""
    if move.actual == move.method:
        return ''
    now = 'runs' if move.actual == plan_format.LIVE else 'is stopped'
    return f'it {now} now'


def say_broken(
    move: moves_plan.Move, server: typing.Any, own: typing.Any, reason: str
) -> str:
    """Describe a server that is in ERROR, and what to do.

    ====================  ===================================================
    its power state       what to do
    ====================  ===================================================
    any, on its old host  nothing: the next run evacuates it
    that is dead
    Running or Paused     set its state to active, if its guest runs
    Shutdown or Crashed   set its state to active, then stop it
    any other             reboot it hard: nova cannot say whether it runs
    ====================  ===================================================

    :param own: the move's own migration; None if it has none
    :param reason: nova's; empty if it has none
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
    """Describe what keeps a server from moving, and what to do.

    :param own: the move's own migration, which nova has lost
    """
    said, host = say_task(own, server), server.compute_host
    if moves_step.is_under_way(own):
        # nova-compute of the old host confirms a migration.
        said, host = f'its {own.migration_type} is {own.status}', move.host
    return (
        f'{said}. Check in the nova-compute log of {host} that it does not go '
        f'on, then: openstack server set --state active {move.server}'
    )


def say_unheard(
    move: moves_plan.Move, server: typing.Any, own: typing.Any
) -> str:
    """Describe a request that nova-conductor may have lost, and what to do.

    :param own: the move's own migration; None if it has none
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
    """Return which migrations still hold room on a server's old host."""
    return '; '.join(
        f'the allocation of its {one.migration_type}, {one.uuid} '
        f'({one.status}), still holds its room on {move.host}: '
        f'{moves_cloud.FREE} {one.uuid}'
        for one in holding
    )


def say_deleting(server: typing.Any) -> str:
    """Describe a deleted server that is still on its host, and what to do."""
    host, uuid = server.compute_host, server.id
    if moves_step.is_soft_deleted(server):
        return (
            f'it is soft-deleted and stays on {host}: restore it, or '
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
    """Return the explain command for a move that nova found no host for."""
    text = (
        f'nova-ext-sched explain --server {move.server} --operation '
        f'{_OPERATIONS[move.actual]}'
    )
    return f'{text} --destination {move.to}' if move.to else text


def is_older(written: str | None, seconds: float) -> bool:
    """Return whether a time of nova's is longer ago than some seconds.

    nova's clock and this one may differ.

    :param written: in UTC; None if nova has none
    :returns: False without a time
    """
    if not written:
        return False
    then = datetime.datetime.fromisoformat(written[:19])
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    return (now - then).total_seconds() > seconds


def name_host(host: str, service: typing.Any) -> str:
    """Return why nova moves no server to a host; empty if nothing shows why.

    :param service: its nova-compute; None if nova has none
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


def say_about(move: moves_plan.Move, text: str, what: str = '') -> str:
    """Word a sentence on a move, with its turn and its server.

    :param what: the verb, if the text is its reason
    """
    return f'Move {move.turn} ({move.shown}){what}: {clean(text)}.'


def clean(text: str) -> str:
    """Return a text from a plan or from nova as one line, for a terminal.

    It has no full stop: the caller adds one, or continues the sentence.
    """
    return messages.clean(' '.join(text.split()).rstrip('.'), 1000)
