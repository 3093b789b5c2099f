# SPDX-License-Identifier: Apache-2.0

"""Reports hosts that fail, to people and programs."""

import collections
from collections.abc import Iterator
from collections.abc import Sequence
import math
import typing

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.cli import bars
from nova_ext_sched.cli import base
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import names as cli_names
from nova_ext_sched.cli import report
from nova_ext_sched.cli import terminal
from nova_ext_sched.cli import topology
from nova_ext_sched.cmd import documents
from nova_ext_sched.cmd import plan_map
from nova_ext_sched.cmd import plan_report
from nova_ext_sched.dryrun.plan import plans

#: The columns of servers of hosts that fail.
COLUMNS = (
    'Failure',
    'Turn',
    'Server',
    'Name',
    'Project',
    'Host',
    'To',
    'Cause',
)

#: Further columns if more servers of flavors are counted.
FLAVOR_COLUMNS = ('Flavor', 'Fit', 'Spare')

# The most failures in the text, and the most in the table of the tightest.
_MOST_FAILURES = 20
_MOST_TIGHT = 10


def make(
    outcome: plans.Outcome,
    lose: str,
    names: cli_names.Names = plan_report.NO_NAMES,
    all_: bool = False,
    count: int = 1,
) -> report.Report:
    """Return the report of hosts that fail.

    :param lose: ``host`` or ``domain``
    :param names: of server groups
    :param all_: whether to list all hosts or failure domains, even if each can
        fail
    :param count: how many more servers of each flavor must fit
    """
    failures, flavors = outcome.failures, outcome.flavors
    noun = topology.GROUPS.get(lose, lose)
    bad = [one for one in failures if one.lost]
    head = _say_how_many(outcome, bad, noun)
    status = plan_report.find_status(
        stuck for one in failures for stuck in one.without_place
    )
    if outcome.lacking or any(one.spare < count for one in flavors):
        status = status or base.SOME_FOUND
    draft = documents.Draft(
        head=head,
        remarks=[
            *plan_format.say_from_image(
                move for one in failures for move in one.moves
            ),
            *_count_refused(outcome),
            *plan_report.say_lacking(outcome.lacking),
        ],
        details=[*_make_sections(outcome, bad, noun, names, all_, count)],
        rows=_make_rows(failures, flavors),
        topology=outcome.topology,
        faults=outcome.faults,
        status=status,
        first=_list_bad(head, bad, noun) if bad else None,
    )
    return plan_report.finish(draft, outcome, lose=lose)


def _say_how_many(
    outcome: plans.Outcome, bad: Sequence[plans.Failure], noun: str
) -> str:
    """Describe how many can fail, and how many cannot."""
    failures = outcome.failures
    of_those_read = plan_report.say_of_those_read(outcome.faults)
    if not failures:
        return f'No {noun} holds a server{of_those_read}'
    if len(failures) == 1 and not bad and not of_those_read:
        return _say_one_can_fail(failures[0])
    head = (
        f'{len(failures) - len(bad)} of '
        f'{messages.count(noun, len(failures))} can fail, one at a time'
        f'{of_those_read}'
    )
    return f'{head}; {len(bad)} cannot' if bad else head


def _say_one_can_fail(failure: plans.Failure) -> str:
    """Describe the outcome of the only failure."""
    servers, moving = failure.servers, len(failure.moves)
    if servers == moving == 1:
        of_servers = 'its server'
    elif servers == moving:
        of_servers = f'all {servers} of its servers'
    else:
        of_servers = f'{moving} of its {messages.count("server", servers)}'
    return (
        f'{messages.clean(failure.failure)} can fail: {of_servers} can be '
        'restarted elsewhere'
    )


def _make_sections(
    outcome: plans.Outcome,
    bad: Sequence[plans.Failure],
    noun: str,
    names: cli_names.Names,
    all_: bool,
    count: int = 1,
) -> Iterator[report.Section]:
    """Yield the sections below the answer.

    :param bad: failures that strand servers; further parameters as of
        :func:`make`
    """
    failures = outcome.failures
    if bad or (failures and all_):
        yield _list_tightest(failures, noun)
    elif len(failures) > 1:
        yield _name_tightest(failures, noun, len(outcome.topology))
    yield from _list_flavors(outcome.flavors, noun, count)
    if enabled := [one for one in failures if one.enabled]:
        yield report.Section(
            'Enable these hosts before the evacuation (openstack compute '
            'service set --enable HOST nova-compute):',
            [
                report.Line(
                    messages.first_few(one.enabled),
                    messages.clean(one.failure),
                )
                for one in enabled
            ],
            _MOST_FAILURES,
            noun,
        )
    if len(failures) == 1 and failures[0].moves:
        yield from plan_report.list_moves(failures[0].moves)
    if bad:
        yield plan_report.list_first_stuck(
            'Cannot be placed, from',
            {one.failure: one.lost for one in bad},
            names,
        )
    if as_they_are := [
        one for one in outcome.refused.values() if not one.is_lost
    ]:
        yield plan_report.list_stuck(
            'There is room for these, but nova does not evacuate them in '
            'their state:',
            as_they_are,
            names,
        )
    if left := [*outcome.left_out.values()]:
        yield plan_report.list_stuck(
            'Lost with the host by your choice:', left, names
        )


def _list_bad(
    head: str, bad: Sequence[plans.Failure], noun: str
) -> report.Section:
    """Return the answer, with a line for each failure that strands servers."""
    wide = max(len(failure.failure) for failure in bad[:_MOST_FAILURES])
    lines: list[report.Line] = []
    for failure in bad:
        number = f'{len(failure.lost)} of {failure.servers}'
        if not lines:
            number += ' servers cannot be placed'
        lines.append(
            report.Line(
                f'{number}: {plan_report.count_causes(failure.lost)}',
                layout.pad(messages.clean(failure.failure), wide),
                style=terminal.BAD,
            )
        )
    return report.Section(
        f'{head}:', lines, _MOST_FAILURES, noun, style=terminal.ANSWER
    )


def _make_rows(
    failures: Sequence[plans.Failure], flavors: Sequence[plans.FlavorRoom]
) -> list[tuple[object, ...]]:
    """Return the rows of servers on hosts that fail, then those of flavors."""
    no_flavor = ('',) * len(FLAVOR_COLUMNS) if flavors else ()
    return [
        (failure.failure, turn, one.server, one.name, one.project, one.host)
        + end
        + no_flavor
        for failure in failures
        for turn, one, end in (
            *(
                (turn, one, (one.to or '', ''))
                for turn, one in enumerate(failure.moves, 1)
            ),
            *(
                ('', one, ('', ', '.join(filter(None, causes))))
                for one in failure.without_place
                for causes in [(one.cause, one.cause_then)]
            ),
        )
    ] + [
        (one.failure, *[''] * 6, one.cause, one.name, one.fit, one.spare)
        for one in flavors
    ]


def _count_refused(outcome: plans.Outcome) -> Iterator[str]:
    if number := len(outcome.refused):
        yield (
            f'nova would not evacuate {messages.count("server", number)} in '
            f'{messages.agree(number, "its", "their")} state.'
        )
    if never := len(outcome.never_evacuated):
        yield (
            f'nova never evacuates {messages.count("server", never)}, '
            f'in any state.'
        )
    if left := len(outcome.left_out):
        are = messages.agree(left, 'is', 'are')
        yield (
            f'{messages.count("server", left)} {are} lost with the host by '
            'your choice.'
        )


def _rank_tight(one: plans.Failure) -> tuple[typing.Any, ...]:
    """Return a sort key: failures that cost servers, then the least room."""
    room = math.inf if one.room_for_last is None else one.room_for_last
    return -len(one.lost), room, messages.in_order(one.failure)


def _name_tightest(
    failures: Sequence[plans.Failure], noun: str, hosts: int
) -> report.Section:
    """Return the failure that leaves its last server the fewest hosts.

    :param hosts: number of hosts
    """
    tightest = min(failures, key=_rank_tight)
    text = f'The tightest is {messages.clean(tightest.failure)}'
    if (left := tightest.room_for_last) is not None:
        text += f': {messages.count("choice", left)} for its last server'
        if 0 < hosts - len(tightest.hosts) <= left:
            text = 'None is tight'
    return report.Section(f'{text} (--all lists every {noun}).', apart=False)


def _list_tightest(
    failures: Sequence[plans.Failure], noun: str
) -> report.Section:
    shown = sorted(failures, key=_rank_tight)
    lefts = [report.make_cell(one.room_for_last) for one in shown]
    title = f'The tightest of {messages.count(noun, len(shown))}:' * (
        len(failures) > _MOST_TIGHT + 1
    )
    rows = [
        (messages.clean(one.failure), one.servers, len(one.moves), left, bar)
        for one, left, bar in zip(
            shown, lefts, bars.compare(lefts), strict=True
        )
    ]
    heads = (
        noun.capitalize(),
        'Servers',
        'Placed',
        'Choices for last server',
        '',
    )
    return report.Section(title, rows, _MOST_TIGHT, noun, columns=heads)


def _list_flavors(
    flavors: Sequence[plans.FlavorRoom], noun: str, count: int
) -> Iterator[report.Section]:
    """Yield how many more servers of each flavor fit, if any is asked for.

    :param count: how many must fit
    """
    if not flavors:
        return
    wide = max(len(flavor.name) for flavor in flavors)
    lines = []
    for flavor in flavors:
        fit = f'{"at least " * flavor.or_more}{flavor.fit}'
        text = f'{flavor.spare} of {fit} that fit now'
        if flavor.spare < count > 1:
            text += f', {count} wanted'
        if flavor.failure:
            text += f'; one more would strand a server of {flavor.failure}'
        notes = [f'{flavor.reason}.'] if flavor.reason else []
        lines.append(
            report.Line(text, layout.pad(flavor.name, wide), notes=notes)
        )
    yield report.Section(
        f'Room for more servers, while any one {noun} can still fail safely:',
        lines,
    )


def draw(outcome: plans.Outcome, by: str | None, of_all: bool) -> topology.Map:
    """Return the map of servers that cannot be placed, or of choices left.

    Of one failure, it shows where its servers go.

    :param of_all: whether every host of the cloud was supposed to fail
    """
    failures = outcome.failures
    if len(failures) == 1:
        return plan_map.draw_failure(failures[0], outcome.topology, by)
    most = max((one.room_for_last or 0 for one in failures), default=0)
    signs = {
        host: topology.level(one.room_for_last, most)
        for one in failures
        for host in one.hosts
        if one.room_for_last
    }
    stuck = collections.Counter(one.host for one in outcome.lost.values())
    signs |= topology.count_all(stuck)
    return topology.Map(
        outcome.topology,
        signs,
        stuck,
        'No host',
        {
            topology.COUNTED: topology.say_counted(
                stuck, 'servers that cannot be placed'
            ),
            topology.LEVELLED: (
                f'{topology.say_levels(most, "choice")} for the last server'
            ),
            topology.NOTHING.shown: (
                'holds no server' if of_all else 'not asked about'
            ),
        },
        by,
    )
