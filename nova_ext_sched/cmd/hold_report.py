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

# Lists of hosts, and of commands, are folded above this number.
_MOST_HOSTS = 20
# For at most this many flavors the report says how many servers would have
# fitted on the hosts to keep free.
_MOST_FLAVORS = 5


def make(
    hold: plans.Hold,
    lose: str,
    names: cli_names.Names,
    faults: Sequence[str],
    hosts: Sequence[dict[str, typing.Any]],
) -> report.Report:
    """Return the report of hosts to keep free.

    :param lose: what fails as a whole: ``host`` or ``domain``
    :param names: names of the server groups in the servers' reasons
    :param faults: sentences on what could not be read
    :param hosts: the result of :func:`.selection.make_documents`
    """
    noun = 'failure domain' if lose == 'domain' else 'host'
    made = plan_report.make(
        hold,
        _make_remarks(hold),
        faults,
        hosts=hosts,
        names=names,
        head=_sum_up(hold, noun),
        details=[*_list_marks(hold), *_list_lost(hold, noun, names)],
        lose=lose,
    )
    is_enough = not (hold.mark or hold.alone or hold.not_saved)
    return dataclasses.replace(
        made,
        status=made.status or (base.FINE if is_enough else base.SOME_FOUND),
    )


def _sum_up(hold: plans.Hold, noun: str) -> str:
    """Return which further hosts to keep free, or that the present ones do.

    Hosts that nothing can replace are excepted.
    """
    number, marked = len(hold.held), [one.host for one in hold.mark]
    if not (number or marked) and (hold.alone or hold.not_saved):
        return 'No host can be kept free to replace one that fails'
    safe = f'any one {noun}'
    if hold.alone:
        safe += (
            ' whose hosts have replacements'
            if noun != 'host'
            else ' that has a replacement'
        )
    safe += ' can fail' + ', however full it is' * (hold.hold == 'full')
    if marked:
        kind = 'more host' if number else 'host'
        hosts = messages.count(kind, len(marked))
        shown = plan_report.say_hosts(marked)
        return f'Keep {hosts} free so that {safe}: {shown}'
    if not number:
        return f'No failover host is needed: {safe}'
    kept = messages.count('failover host', number)
    return f'{kept} {messages.agree(number, "is", "are")} enough: {safe}'


def _make_remarks(hold: plans.Hold) -> Iterator[str]:
    """Yield the cost of the hosts to keep free, the losses, the first step.

    The cost is how many servers of each flavor would have fitted on the hosts.
    The losses are the numbers of hosts without a replacement, and of servers
    that would be lost.
    """
    for one in hold.price[:_MOST_FLAVORS]:
        servers = messages.count('server', one.servers)
        yield (
            f'Keeping them free takes the room of {servers} of flavor '
            f'{one.name}.'
        )
    if number := len(hold.alone):
        yield (
            f'{messages.count("host", number)} '
            f'{messages.agree(number, "has", "have")} no replacement.'
        )
    if number := len(hold.not_saved):
        yield (
            f'{messages.count("server", number)} would be lost all the same.'
        )
    if moves := len(hold.moves):
        servers = messages.count('server', moves)
        yield f'Mark the hosts first, then move {servers} off them.'


def _list_marks(hold: plans.Hold) -> Iterator[report.Section]:
    """Yield the hosts to keep free, and the commands that mark them."""
    if hold.mark:
        wide = max(len(host.host) for host in hold.mark[:_MOST_HOSTS])
        lines = []
        for host in hold.mark:
            text = f'can replace {messages.count("host", host.replaces)}'
            if host.servers:
                servers = messages.count('server', host.servers)
                text += f'; {servers} must leave'
            if host.is_marked:
                text += '; it is marked already'
            name = layout.pad(messages.clean(host.host), wide)
            lines.append(report.Line(text, name))
        yield report.Section('Keep free:', lines, _MOST_HOSTS, 'host')
    if hold.commands:
        yield report.Section(
            'To mark them:',
            [report.Line(one) for one in hold.commands],
            _MOST_HOSTS,
            'command',
        )


def _list_lost(
    hold: plans.Hold, noun: str, names: cli_names.Names
) -> Iterator[report.Section]:
    """Yield the losses that remain: hosts, servers, and kinds of servers.

    Hosts without a replacement come first. The hosts that were not chosen,
    because servers cannot leave them, come before the servers.
    """
    if hold.alone:
        lines = [
            report.Line(
                one.reason,
                one.host + f' of {one.failure}' * (one.failure != one.host),
            )
            for one in hold.alone
        ]
        # With --hold=now there are no such hosts, so that "once they are
        # full" is true.
        yield report.Section(
            'No host can replace these once they are full:',
            lines,
            _MOST_HOSTS,
            'host',
        )
    if hold.not_emptied:
        yield plan_report.list_first_stuck(
            'Not chosen, because these servers cannot leave',
            {one.host: one.without_place for one in hold.not_emptied},
            names,
        )
    if hold.not_saved:
        yield plan_report.list_stuck(
            f'Lost if their {noun} fails, whatever is kept free:',
            hold.not_saved,
            names,
        )
    yield report.Section(
        'Never saved by a host that is kept free:',
        [report.Line(one.reason, one.kind) for one in hold.kinds],
    )


def measure(number: int) -> metrics.Figure:
    """Return the metric of further hosts to keep free."""
    return metrics.Figure(
        'failover_hosts_lacking',
        'Further hosts to keep free so that any one host (with --lose domain: '
        'any failure domain) can fail even when all are full.',
        '',
        {(): number},
    )
