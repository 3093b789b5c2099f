# SPDX-License-Identifier: Apache-2.0

"""Reports rounds in which hosts are empty, to people and programs."""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import typing

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.cli import base
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import names as cli_names
from nova_ext_sched.cli import report
from nova_ext_sched.cli import terminal
from nova_ext_sched.cli import topology
from nova_ext_sched.cmd import documents
from nova_ext_sched.cmd import plan_report
from nova_ext_sched.dryrun.plan import plans

#: The columns of the moves of rounds, in their order.
COLUMNS = ('Round', *plan_report.COLUMNS)

# The columns of the table of rounds in the text.
_HEADS = ('Round', 'Hosts', 'Moves', 'Live', 'Cold', 'Less redundancy')

# The most rounds in the text, and the most hosts that cannot be emptied.
_MOST_ROUNDS = 20
_MOST_HOSTS = 20


def make_rounds(
    planned: plans.Rounds,
    remarks: Iterable[str],
    faults: Sequence[str],
    hosts: Sequence[dict[str, typing.Any]] = (),
    names: cli_names.Names = plan_report.NO_NAMES,
) -> report.Report:
    """Return the report of rounds in which each host is empty once.

    :param remarks: sentences
    :param faults: sentences on what could not be read
    :param hosts: the result of :func:`.selection.make_documents`
    :param names: of server groups
    """
    rounds = planned.rounds
    kept = sorted(
        planned.not_emptied, key=lambda one: messages.in_order(one.host)
    )
    sections = [_list_rounds(rounds, hosts)] if rounds else []
    sections += _list_not_emptied(kept, names)
    stuck = [stuck for one in kept for stuck in one.without_place]
    status = plan_report.find_status(stuck)
    draft = documents.Draft(
        head=plan_report.say_left_out(stuck)
        + _say_how_many(rounds, kept, faults),
        remarks=[*remarks],
        details=sections,
        rows=[
            *(
                (turn, *row)
                for turn, one in enumerate(rounds, 1)
                for row in plan_report.make_rows(one.moves)
            ),
            *(
                ('', *row)
                for host in kept
                for row in plan_report.make_stuck_rows(host.without_place)
            ),
        ],
        topology=hosts,
        faults=faults,
        status=status or (base.SOME_FOUND if kept else base.FINE),
    )
    return plan_report.finish(draft, planned)


def _say_how_many(
    rounds: Sequence[plans.Round],
    kept: Sequence[plans.NotEmptied],
    faults: Sequence[str],
) -> str:
    """Return how many hosts can be emptied, cannot, or are not known."""
    of_those_read = plan_report.say_of_those_read(faults)
    number = sum(len(one.hosts) for one in rounds)
    whole = number + len(kept)
    if not whole:
        return f'There is no host to empty{of_those_read}'
    hosts = messages.count('host', whole)
    text = f'{number} of {hosts} can be emptied{of_those_read}'
    if number:
        text += f', in {messages.count("round", len(rounds))}'
    if known := sum(one.is_known for one in kept):
        text += f'; {known} cannot'
    if len(kept) > known:
        text += f'; whether {len(kept) - known} can is not known'
    return text


def _list_rounds(
    rounds: Sequence[plans.Round], hosts: Sequence[dict[str, typing.Any]]
) -> report.Section:
    domains = {one['host']: one['domains'] for one in hosts}
    table = [
        (turn, *_count_moves(one, domains))
        for turn, one in enumerate(rounds, 1)
    ]
    return report.Section('', table, _MOST_ROUNDS, 'round', columns=_HEADS)


def _list_not_emptied(
    kept: Sequence[plans.NotEmptied], names: cli_names.Names
) -> Iterator[report.Section]:
    """Yield the hosts not emptied, then stuck servers of the first."""
    if kept:
        wide = max(len(one.host) for one in kept[:_MOST_HOSTS])
        lines = [
            report.Line(
                _say_kept(one), layout.pad(messages.clean(one.host), wide)
            )
            for one in kept
        ]
        yield report.Section('Cannot be emptied:', lines, _MOST_HOSTS, 'host')
    stuck = {one.host: one.without_place for one in kept if one.without_place}
    if stuck:
        yield plan_report.list_first_stuck(
            'Cannot be moved from', stuck, names
        )


def make_round(
    number: int,
    planned: plans.Rounds,
    remarks: Iterable[str],
    faults: Sequence[str],
    hosts: Sequence[dict[str, typing.Any]] = (),
    names: cli_names.Names = plan_report.NO_NAMES,
) -> report.Report:
    """Return the report of one round, as that of a drain.

    Whether further rounds follow is not known. If there is no round at all,
    the report says why.

    :param number: the round's, from 1; the others as of :func:`make_rounds`
    :raises base.UsageError: there are rounds, but none with this number
    """
    if not planned.rounds:
        return make_rounds(planned, remarks, faults, hosts, names)
    if not 0 < number <= len(planned.rounds):
        rounds = messages.count('round', len(planned.rounds))
        raise base.UsageError(f'There is no round {number}, only {rounds}.')
    round_ = planned.rounds[number - 1]
    verb = messages.agree(len(round_.hosts), 'is', 'are')
    said = (
        f'{plan_report.say_hosts(round_.hosts)} {verb} empty after round '
        f'{number}.'
    )
    plan = plans.Plan(
        moves=round_.moves,
        groups=round_.groups,
        to_be_empty=round_.hosts,
        services=planned.services,
        remarks=planned.remarks,
    )
    return plan_report.make(plan, [said, *remarks], faults, hosts=hosts)


def _count_moves(
    round_: plans.Round, domains: Mapping[str, Sequence[str]]
) -> tuple[object, ...]:
    """Return the cells of a round's row, without its number."""
    methods = collections.Counter(move.method for move in round_.moves)
    return (
        _say_empty(round_.hosts, domains),
        len(round_.moves),
        methods[plan_format.LIVE],
        methods[plan_format.COLD],
        _say_weakest(round_.groups),
    )


def _say_kept(kept: plans.NotEmptied) -> str:
    if kept.without_place:
        return (
            f'{messages.count("server", len(kept.without_place))} cannot be '
            f'moved: {plan_report.count_causes(kept.without_place)}'
        )
    if kept.lost:
        return f'while it is empty, {messages.clean(kept.lost)} cannot fail'
    return 'what blocked it was deleted meanwhile: make a new plan'


def _say_empty(
    hosts: Sequence[str], domains: Mapping[str, Sequence[str]]
) -> str:
    """Return host names, with the failure domain that they share first.

    :param domains: of every host
    """
    shown = plan_report.say_hosts(hosts)
    first, *others = {tuple(domains.get(host, ())) for host in hosts}
    if others or len(first) != 1 or len(hosts) == 1:
        return shown
    [domain] = first
    if len(hosts) == sum(domain in of_host for of_host in domains.values()):
        shown = f'all {len(hosts)} hosts'
    return f'{messages.clean(domain)}: {shown}'


def _say_weakest(groups: Sequence[plans.Group]) -> str:
    """Describe the group on the fewest hosts; count the others."""
    if not groups:
        return ''
    text = plan_report.say_lost_redundancy(
        min(groups, key=lambda one: one.hosts)
    )
    if more := len(groups) - 1:
        text += f'; {messages.count("more group", more)}'
    return text


def draw(
    planned: plans.Rounds,
    hosts: Sequence[dict[str, typing.Any]],
    by: str | None,
) -> topology.Map:
    """Return the map of hosts by the round in which they are empty."""
    last = len(planned.rounds)
    signs = {
        host: topology.level(turn, last)
        for turn, one in enumerate(planned.rounds, 1)
        for host in one.hosts
    }
    stuck = {one.host: len(one.without_place) for one in planned.not_emptied}
    signs |= topology.count_all(stuck)
    moves = (move.host for one in planned.rounds for move in one.moves)
    return topology.Map(
        hosts,
        signs,
        collections.Counter(moves),
        'Moves',
        {
            topology.COUNTED: topology.say_counted(
                stuck, 'servers that cannot be moved'
            ),
            topology.LEVELLED: f'empty in round {topology.say_levels(last)}',
            topology.NOTHING.shown: 'not asked about',
        },
        by,
        terminal.GOOD,
    )
