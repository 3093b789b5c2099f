# SPDX-License-Identifier: Apache-2.0

"""Reports the hosts to keep free for failures."""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import typing

from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import metrics
from nova_ext_sched.cli import names as cli_names
from nova_ext_sched.cli import report
from nova_ext_sched.cmd import plan_report
from nova_ext_sched.dryrun.plan import plans

# The most hosts that people see of each list, and the most flavors.
_MOST_HOSTS = 20
_MOST_FLAVORS = 5


def make(
    held: plans.Hold,
    lose: str,
    names: cli_names.Names,
    faults: Sequence[str],
    hosts: Sequence[dict[str, typing.Any]],
) -> report.Report:
    """Return the report of hosts to keep free.

    :param lose: ``host`` or ``domain``
    :param names: of server groups
    :param faults: sentences on what could not be read
    :param hosts: the result of :func:`.topology.make_documents`
    """
    noun = 'failure domain' if lose == 'domain' else 'host'
    made = plan_report.make(
        held,
        _say(held),
        faults,
        hosts=hosts,
        names=names,
        head=_sum_up(held, noun),
        lose=lose,
    )
    answer, *rest = made.sections
    is_enough = not (held.mark or held.alone or held.not_saved)
    return dataclasses.replace(
        made,
        sections=[
            answer,
            *_list_marks(held),
            *_list_lost(held, noun, names),
            *rest,
        ],
        status=made.status or (base.FINE if is_enough else base.SOME_FOUND),
    )


def _sum_up(held: plans.Hold, noun: str) -> str:
    full = held.hold == 'full'
    whom = f'any one {noun} fails' + ', however full it is' * full
    number = len(held.held)
    kept = messages.count('failover host', number)
    if not held.mark:
        if not number and held.alone:
            return f'No host can be kept free for when {whom}'
        return f'{kept} {messages.agree(number, "is", "are")} enough: {whom}'
    marked = [one.host for one in held.mark]
    more = f'{len(marked)} more' if number else f'{len(marked)}'
    return (
        f'Keep {more} {messages.agree(len(marked), "host", "hosts")} free for '
        f'when {whom}: {plan_report.say_hosts(marked)}'
    )


def _say(held: plans.Hold) -> Iterator[str]:
    for one in held.price[:_MOST_FLAVORS]:
        servers = messages.count('server', one.servers)
        yield f'That costs {servers} of flavor {one.name} that would fit.'
    if number := len(held.alone):
        yield (
            f'{messages.count("host", number)} '
            f'{messages.agree(number, "has", "have")} no replacement.'
        )
    if number := len(held.not_saved):
        yield (
            f'{messages.count("server", number)} would be lost all the same.'
        )
    if moves := len(held.moves):
        servers = messages.count('server', moves)
        yield f'Mark the hosts first, then move {servers} off them.'


def _list_marks(held: plans.Hold) -> Iterator[report.Section]:
    """Yield the hosts to keep free, and the commands that mark them."""
    if held.mark:
        wide = max(len(host.host) for host in held.mark[:_MOST_HOSTS])
        lines = []
        for host in held.mark:
            text = f'can replace {messages.count("host", host.replaces)}'
            if host.servers:
                servers = messages.count('server', host.servers)
                text += f'; {servers} must leave'
            if host.is_marked:
                text += '; it is marked already'
            name = layout.pad(messages.clean(host.host), wide)
            lines.append(report.Line(text, name))
        yield report.Section('Keep free:', lines, _MOST_HOSTS, 'host')
    if held.commands:
        yield report.Section(
            'To mark them:',
            [report.Line(one) for one in held.commands],
            _MOST_HOSTS,
            'command',
        )


def _list_lost(
    held: plans.Hold, noun: str, names: cli_names.Names
) -> Iterator[report.Section]:
    """Yield hosts and servers that no host that is kept free saves."""
    if held.alone:
        lines = []
        for one in held.alone:
            of = f' of {one.failure}' * (one.failure != one.host)
            lines.append(report.Line(one.reason, f'{one.host}{of}'))
        yield report.Section(
            'Nothing replaces, if they get full:', lines, _MOST_HOSTS, 'host'
        )
    if held.not_emptied:
        yield plan_report.list_first_stuck(
            'Not chosen, because these servers cannot leave',
            {one.host: one.without_place for one in held.not_emptied},
            names,
        )
    if held.not_saved:
        yield plan_report.list_stuck(
            f'Lost if their {noun} fails, whatever is kept free:',
            held.not_saved,
            names,
        )
    yield report.Section(
        'Never saved by a host that is kept free:',
        [report.Line(one.reason, one.kind) for one in held.kinds],
    )


def measure(number: int) -> metrics.Figure:
    """Return the metric of hosts that are to be kept free besides."""
    return metrics.Figure(
        'failover_hosts_lacking',
        'Hosts to keep free besides those that are, until any can fail '
        'however full the others are.',
        '',
        {(): number},
    )
