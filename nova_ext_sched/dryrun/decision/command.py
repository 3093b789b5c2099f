# SPDX-License-Identifier: Apache-2.0

"""Writes the commands that carry out an act, quoted for a shell.

Every word is quoted. Objects of projects are named by their UUIDs.
A word that holds control characters, or that a program could take for an
option, makes no command: operators can name a host ``--help``.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import shlex

from nova.compute import power_state
from nova.compute import vm_states
import os_traits

from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.decision import trial
from nova_ext_sched.policy import act

_OPENSTACK = 'openstack'
_OF_TRAITS = (
    _OPENSTACK,
    '--os-placement-api-version',
    '1.6',
)

#: The words of a command; those of others come after an option's name.
Words = tuple[str, ...]


class _NoCommand(Exception):
    """No command carries out the act safely."""


def make(
    steps: Iterable[trial.Step], trials: trial.Trials, most: int
) -> list[str]:
    """Return the commands of acts, one a line; empty if one act has none.

    :param most: the most hosts of an act
    """
    lines: list[str] = []
    for step in steps:
        find = _COMMANDS.get(step.act.supposes)
        if not find or not step.act.by_command or len(step.hosts) > most:
            return []
        try:
            lines += dict.fromkeys(map(shlex.join, find(step, trials)))
        except (_NoCommand, placement.PlacementFailed):
            return []
    return lines


def is_safe(word: str) -> bool:
    """Return whether no program takes a word for an option, or for more."""
    return bool(word and not word.startswith('-') and messages.is_clean(word))


def _safe(word: str) -> str:
    """Return a word that is safe.

    :raises _NoCommand: it is not
    """
    if not is_safe(word):
        raise _NoCommand
    return word


def _hosts(step: trial.Step, trials: trial.Trials) -> list[str]:
    hosts = (trials.cloud.nodes[uuid].host for uuid in step.hosts)
    return [_safe(one) for one in dict.fromkeys(hosts)]


def _enable(step: trial.Step, trials: trial.Trials) -> Iterator[Words]:
    for host in _hosts(step, trials):
        yield (
            *(_OPENSTACK, 'compute', 'service', 'set', '--enable'),
            *(host, 'nova-compute'),
        )


def _change_hosts(step: trial.Step, trials: trial.Trials) -> Iterator[Words]:
    """Yield the commands that put hosts into aggregates, or take them out."""
    leaves = step.act.supposes == act.LEAVES
    known = trials.cloud.aggs_by_id.values()
    for aggregate in sorted(known, key=lambda one: one.id):
        if aggregate.name not in step.act.names:
            continue
        for host in _hosts(step, trials):
            if (host in aggregate.hosts) == leaves:
                yield (
                    *(_OPENSTACK, 'aggregate', 'remove' if leaves else 'add'),
                    # By its ID, which is no option whatever its name is.
                    *('host', str(aggregate.id), host),
                )


def _set_item(step: trial.Step, trials: trial.Trials) -> Iterator[Words]:
    name, key, *value = step.act.names
    item = '='.join((key, *value))
    if '=' in key or not messages.is_clean(item):
        raise _NoCommand
    for aggregate in trials.cloud.aggs_by_id.values():
        if aggregate.name == name:
            verb = 'set' if value else 'unset'
            yield (
                *(_OPENSTACK, 'aggregate', verb),
                *(f'--property={item}', str(aggregate.id)),
            )


def _set_traits(step: trial.Step, trials: trial.Trials) -> Iterator[Words]:
    """Yield the commands that write the whole list of a provider's traits."""
    gets = step.act.supposes == act.GETS_TRAIT
    providers = trials.cloud.providers
    names = {_safe(one) for one in step.act.names}
    if gets:
        for name in sorted(names - providers.find_known(names)):
            yield *_OF_TRAITS, 'trait', 'create', name
    for uuid in step.hosts:
        # A list that was read before a host is enabled would disable it again.
        before = providers.get_traits(uuid) - {
            os_traits.COMPUTE_STATUS_DISABLED
        }
        after = sorted(before | names if gets else before - names)
        yield (
            *(*_OF_TRAITS, 'resource', 'provider', 'trait', 'set'),
            *(f'--trait={one}' for one in after),
            uuid,
        )


def _move(step: trial.Step, trials: trial.Trials) -> Iterator[Words]:
    if step not in trials.moved:
        raise _NoCommand
    server, node = trials.moved[step]
    instance = trials.cloud.states[node].instances[server]
    is_live = (
        instance.vm_state == vm_states.ACTIVE
        and instance.power_state == power_state.RUNNING
    )
    yield (
        *(_OPENSTACK, 'server', 'migrate'),
        *('--live-migration',) * is_live,
        server,
    )


def _delete_unheld(step: trial.Step, trials: trial.Trials) -> Iterator[Words]:
    for node in step.hosts:
        for consumer in trials.unheld[node]:
            yield (
                *(_OPENSTACK, 'resource', 'provider', 'allocation'),
                *('delete', consumer),
            )


def _make_room(step: trial.Step, trials: trial.Trials) -> Iterator[Words]:
    described = trials.described
    if not described or not all(map(messages.is_clean, described)):
        raise _NoCommand
    # It looks for moves, and makes none.
    yield 'nova-ext-sched', 'make-room', *described


def _run(*words: str) -> Callable[[object, object], Iterator[Words]]:
    return lambda *_: iter([words])


_COMMANDS: dict[str, Callable[[trial.Step, trial.Trials], Iterator[Words]]] = {
    act.RUNS: _enable,
    act.JOINS: _change_hosts,
    act.LEAVES: _change_hosts,
    act.SETS: _set_item,
    act.UNSETS: _set_item,
    act.GETS_TRAIT: _set_traits,
    act.LOSES_TRAIT: _set_traits,
    act.AWAY: _move,
    act.ROOM: _make_room,
    act.UNHELD: _delete_unheld,
    act.MAPPED: _run('nova-manage', 'cell_v2', 'discover_hosts'),
    act.MIRRORED: _run('nova-manage', 'placement', 'sync_aggregates'),
}


def join(lines: Sequence[str]) -> str:
    """Return commands as one line, each after the other has succeeded."""
    return ' && '.join(lines)
