# SPDX-License-Identifier: Apache-2.0

"""What people and programs read of a plan."""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
import math
import re
import typing

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.cli import bars
from nova_ext_sched.cli import base
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import names as cli_names
from nova_ext_sched.cli import report
from nova_ext_sched.cli import terminal
from nova_ext_sched.cmd import documents
from nova_ext_sched.dryrun.plan import plans

_NO_NAMES = cli_names.Names()

#: The columns of the moves, in their order.
COLUMNS = (
    'Turn',
    'Server',
    'Name',
    'Project',
    'Host',
    'Policies',
    'To',
    'Method',
)

#: The columns of servers of hosts that fail.
SURVIVAL_COLUMNS = (
    'Failure',
    'Turn',
    'Server',
    'Name',
    'Project',
    'Host',
    'To',
    'Cause',
)

#: Those that survive has besides where it counts more servers of flavors.
FLAVOR_COLUMNS = ('Flavor', 'Fit', 'Spare')

#: The columns of the moves of rounds, in their order.
ROUND_COLUMNS = ('Round', *COLUMNS)

# The columns of the rounds that people read.
_ROUND_HEADS = ('Round', 'Hosts', 'Moves', 'Live', 'Cold', 'Closer together')


@dataclasses.dataclass(frozen=True)
class Survival(documents.Said):
    """What survive has besides what comes of failures.

    :ivar lose: what fails as a whole
    """

    lose: typing.Annotated[str, {'enum': ['host', 'domain']}]


#: Of the document's schema: the title, the format, what each form has.
SCHEMA = (
    'What nova-ext-sched mend, drain, make-room, maintain and survive print '
    'with -f json and -f yaml',
    plan_format.FORMAT,
    (plans.Plan, documents.Said, *documents.COMMON),
    (plans.Room, documents.Said, *documents.COMMON),
    (plans.Rounds, documents.Said, *documents.COMMON),
    (plans.Outcome, Survival, *documents.COMMON),
)

# Moves and servers that people see, and causes.
_MOST_MOVES = 20
_MOST_SOURCES = 5
# Moves from one host, of which its name stands above them.
_SHORTEST_RUN = 4
_MOST_SERVERS = 10
_MOST_CAUSES = 5
_MOST_GROUPS = 10
_MOST_FAILURES = 20
_MOST_TIGHT = 10
_MOST_ROUNDS = 20
# Characters of hosts in ranges, and hosts that people see of more.
_LONGEST_RANGES = 60
_MOST_HOSTS = 3
# Failures of which they see servers.
_MOST_DETAILED = 3


def make(
    plan: plans.Plan,
    found: Iterable[str],
    faults: Sequence[str],
    not_judged: bool = False,
    hosts: Sequence[dict[str, typing.Any]] = (),
    names: cli_names.Names = _NO_NAMES,
    head: str = '',
) -> report.Report:
    """Return the report of a plan.

    :param found: sentences on what it is a plan for
    :param faults: sentences on what could not be read
    :param not_judged: whether a server may have to move, and nobody knows
    :param hosts: what :func:`.topology.describe` returned
    :param names: of server groups
    :param head: the first sentence, where it is another
    """
    sections = []
    if plan.moves:
        sections.append(_list_moves(plan.moves))
    if plan.without_place:
        sections.append(_list_stuck('No place:', plan.without_place, names))
    if plan.groups:
        groups = list(map(_compare, plan.groups))
        sections.append(
            report.Section(
                'Closer together:', groups, _MOST_GROUPS, 'server group'
            )
        )
    status = _find_status(plan.without_place)
    return _finish(
        head or _sum_up(plan, not_judged),
        found,
        sections,
        list(_make_rows(plan.moves)),
        plan,
        hosts,
        faults,
        base.FAULT if not_judged else status,
    )


def make_room(
    room: plans.Room,
    faults: Sequence[str],
    hosts: Sequence[dict[str, typing.Any]] = (),
) -> report.Report:
    """Return the report of moves after which new servers fit.

    :param faults: sentences on what could not be read
    :param hosts: what :func:`.topology.describe` returned
    """
    now, made = room.fit_now, len(room.room_on) - room.fit_now
    rest = room.count - len(room.room_on)
    head = f'{now} of {room.count} {messages.agree(now, "fits", "fit")} now'
    if made:
        moves = messages.count('move', len(room.moves))
        verb = messages.agree(len(room.moves), 'makes', 'make')
        on = [*dict.fromkeys(filter(None, room.room_on[now:]))]
        names = _say_hosts(on) if len(on) > 2 else ' and '.join(on)
        head += (
            f'. {moves} {verb} room for '
            + (f'{made} more' if rest else f'the other {made}')
            + f', on {names}' * bool(on)
        )
    found = []
    if rest:
        head += f'. For {rest} no moves were found'
        found += room.in_the_way
    elif not made:
        head += ', and no server has to move'
    if now and made:
        found.append(
            f'{messages.agree(now, "The one", f"The {now}")} that '
            f'{messages.agree(now, "fits", "fit")} now '
            f'{messages.agree(now, "is", "are")} placed first, so that no '
            f'move spends that room.'
        )
    if made:
        found.append(
            'Nothing keeps the room: create the servers at once after the '
            'moves, and name the host of each (room_on of the document).'
        )
    whole = make(room, found, faults, hosts=hosts, head=head)
    status = whole.status
    if rest:
        status = status or base.SOME_FOUND
    return dataclasses.replace(whole, status=status)


def make_rounds(
    found: plans.Rounds,
    remarks: Iterable[str],
    faults: Sequence[str],
    hosts: Sequence[dict[str, typing.Any]] = (),
    names: cli_names.Names = _NO_NAMES,
) -> report.Report:
    """Return the report of rounds in which each host is empty once.

    :param remarks: sentences
    :param faults: sentences on what could not be read
    :param hosts: what :func:`.topology.describe` returned
    :param names: of server groups
    """
    rounds, kept = found.rounds, found.not_emptied
    number = sum(len(one.hosts) for one in rounds)
    head = 'There is no host to empty'
    if whole := number + len(kept):
        head = f'{number} of {messages.count("host", whole)} can be emptied'
        if number:
            head += f', in {messages.count("round", len(rounds))}'
        known = sum(one.is_known for one in kept)
        if known:
            head += f'; {known} cannot'
        if len(kept) > known:
            head += f'; whether {len(kept) - known} can is not known'
    sections = []
    if rounds:
        domains = {one['host']: one['domains'] for one in hosts}
        table = []
        for turn, one in enumerate(rounds, 1):
            kinds = collections.Counter(move.method for move in one.moves)
            table.append(
                (
                    turn,
                    _say_empty(one.hosts, domains),
                    len(one.moves),
                    kinds['live'],
                    kinds['cold'],
                    _say_weakest(one.groups),
                )
            )
        sections.append(
            report.Section(
                '', table, _MOST_ROUNDS, 'round', columns=_ROUND_HEADS
            )
        )
    kept = sorted(kept, key=lambda one: messages.in_order(one.host))
    if kept:
        wide = max(len(one.host) for one in kept[:_MOST_FAILURES])
        lines = [
            report.Line(
                _say_kept(one), layout.pad(messages.clean(one.host), wide)
            )
            for one in kept
        ]
        title = 'Cannot be emptied:'
        sections.append(report.Section(title, lines, _MOST_FAILURES, 'host'))
    if crowded := [one for one in kept if one.without_place][:_MOST_DETAILED]:
        of_these = messages.first_few([one.host for one in crowded])
        title = f'No place for these of {of_these}:'
        stuck = [each for one in crowded for each in one.without_place]
        sections.append(_list_stuck(title, stuck, names))
    rows = [
        (turn, *row)
        for turn, one in enumerate(rounds, 1)
        for row in _make_rows(one.moves)
    ]

    stuck = [stuck for one in kept for stuck in one.without_place]
    status = _find_status(stuck)
    if kept:
        status = status or base.SOME_FOUND
    return _finish(head, remarks, sections, rows, found, hosts, faults, status)


def make_round(
    number: int,
    found: plans.Rounds,
    remarks: Iterable[str],
    faults: Sequence[str],
    topology: Sequence[dict[str, typing.Any]] = (),
) -> report.Report:
    """Return the report of one round, as that of a drain.

    How many there are after it is not known.

    :param number: which one, from 1; the others as of :func:`make_rounds`
    :raises exception.InvalidValue: there is none of this number
    """
    if not 0 < number <= len(found.rounds):
        raise exception.InvalidValue(
            where='--round',
            expected=f'1 to {len(found.rounds)}, the rounds that there are'
            if found.rounds
            else 'none: there is no round, and the answer without it says why',
            got=str(number),
        )
    one = found.rounds[number - 1]
    hosts = _say_hosts(one.hosts)
    verb = messages.agree(len(one.hosts), 'is', 'are')
    said = f'{hosts} {verb} empty after round {number}.'
    plan = plans.Plan(
        moves=one.moves,
        groups=one.groups,
        to_be_empty=one.hosts,
        services=found.services,
    )
    return make(plan, [said, *remarks], faults, hosts=topology)


def make_survival(
    outcome: plans.Outcome,
    lose: str,
    names: cli_names.Names = _NO_NAMES,
    all_: bool = False,
) -> report.Report:
    """Return the report of hosts that fail.

    :param lose: ``host`` or ``domain``
    :param names: of server groups
    :param all_: list every host or failure domain, though each can fail
    """
    failures, flavors = outcome.failures, outcome.flavors
    faults = outcome.faults
    remarks = [*_count_refused(outcome), *outcome.remarks]
    noun = {'host': 'host', 'domain': 'failure domain'}[lose]
    bad = [one for one in failures if one.lost]
    head = f'No {noun} holds a server' + ', of those read' * bool(faults)
    if failures:
        head = (
            f'{len(failures) - len(bad)} of '
            f'{messages.count(noun, len(failures))} can fail, one at a time'
        )
    if bad:
        head += f'; {len(bad)} cannot'
    first, sections = None, []
    if bad:
        wide = max(len(one.failure) for one in bad[:_MOST_FAILURES])
        lines: list[report.Line] = []
        for one in bad:
            number = f'{len(one.lost)} of {one.servers}'
            if not lines:
                number += ' servers find no host'
            lines.append(
                report.Line(
                    f'{number}: {_count_causes(one.lost)}',
                    layout.pad(messages.clean(one.failure), wide),
                    style=terminal.BAD,
                )
            )
        first = report.Section(
            f'{head}:', lines, _MOST_FAILURES, noun, style=terminal.ANSWER
        )
    if bad or (failures and all_):
        sections.append(_list_tightest(failures, noun))
    elif len(failures) > 1:
        sections.append(_name_tightest(failures, noun))
    if flavors:
        sections.append(_list_flavors(flavors, noun))
    if len(failures) == 1 and failures[0].moves:
        sections.append(_list_moves(failures[0].moves))
    if bad:
        detailed = bad[:_MOST_DETAILED]
        of_these = messages.first_few([one.failure for one in detailed])
        title = f'No host for these of {of_these}:'
        stuck = [each for one in detailed for each in one.lost]
        sections.append(_list_stuck(title, stuck, names))
    as_they_are = [one for one in outcome.refused.values() if not one.is_lost]
    if as_they_are:
        title = 'There is a host for these, once nova evacuates them:'
        sections.append(_list_stuck(title, as_they_are, names))
    no_flavor = ('',) * len(FLAVOR_COLUMNS) if flavors else ()
    rows = [
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
    ]
    rows += [
        (one.failure, *[''] * 6, one.cause) + (one.name, one.fit, one.spare)
        for one in flavors
    ]

    stuck = [stuck for one in failures for stuck in one.without_place]
    status = _find_status(stuck)
    if any(one.spare == 0 for one in flavors):
        status = status or base.SOME_FOUND
    return _finish(
        head,
        remarks,
        sections,
        rows,
        outcome,
        outcome.topology,
        outcome.faults,
        status,
        first,
        lose=lose,
    )


def _finish(
    head: str,
    remarks: Iterable[str],
    sections: Iterable[report.Section],
    rows: Iterable[Sequence[object]],
    found: plans.Plan | plans.Rounds | plans.Outcome,
    topology: Sequence[dict[str, typing.Any]],
    faults: Sequence[str],
    status: int,
    first: report.Section | None = None,
    **more: str,
) -> report.Report:
    """Return a report whose document has everything that was found."""
    return documents.finish(
        head,
        [*remarks, *_count_deleted(found.deleted_meanwhile)],
        sections,
        rows,
        lambda: {**_describe(found), **more},
        format_=plan_format.FORMAT,
        topology=topology,
        faults=faults,
        status=status,
        first=first,
    )


def _describe(found: typing.Any) -> dict[str, typing.Any]:
    """Return a dataclass with moves, as documents have it."""
    described = dataclasses.asdict(found)
    for one in (
        described,
        *described.get('rounds', ()),
        *described.get('failures', ()),
    ):
        if 'moves' in one:
            one['moves'] = plan_format.describe_moves(one['moves'])
    return described


def _find_status(stuck: Iterable[plans.Stuck]) -> int:
    causes = {cause for one in stuck for cause in (one.cause, one.cause_then)}
    if plans.FAULT in causes:
        return base.FAULT
    return base.SOME_FOUND if causes else base.FINE


def _count_refused(outcome: plans.Outcome) -> Iterator[str]:
    if number := len(outcome.refused):
        are = messages.agree(number, 'it is', 'they are')
        yield (
            f'nova would not evacuate {messages.count("server", number)} as '
            f'{are}.'
        )
    if never := len(outcome.never_evacuated):
        yield (
            f'nova never evacuates {messages.count("server", never)}, '
            f'whatever the state.'
        )


def _count_deleted(deleted: Sequence[plans.Leaving]) -> Iterator[str]:
    if number := len(deleted):
        verb = messages.agree(number, 'was', 'were')
        yield f'{messages.count("server", number)} {verb} deleted meanwhile.'


def _rank_tight(one: plans.Failure) -> tuple[typing.Any, ...]:
    """Return a key: those that cost servers, then the least room left."""
    left = math.inf if one.room_for_last is None else one.room_for_last
    return -len(one.lost), left, messages.in_order(one.failure)


def _name_tightest(
    failures: Sequence[plans.Failure], noun: str
) -> report.Section:
    one = min(failures, key=_rank_tight)
    text = f'The tightest is {messages.clean(one.failure)}'
    if (left := one.room_for_last) is not None:
        text += f': {messages.count("choice", left)} for its last server'
    return report.Section(f'{text} (--all lists every {noun}).', apart=False)


def _list_tightest(
    failures: Sequence[plans.Failure], noun: str
) -> report.Section:
    shown = sorted(failures, key=_rank_tight)
    lefts = [
        report.NONE if one.room_for_last is None else one.room_for_last
        for one in shown
    ]
    title = ''
    if len(failures) > _MOST_TIGHT + 1:
        title = f'The tightest of {messages.count(noun, len(shown))}:'
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
    flavors: Sequence[plans.FlavorRoom], noun: str
) -> report.Section:
    wide = max(len(one.name) for one in flavors)
    title = (
        f'Room for more servers, while any one {noun} can still fail safely:'
    )
    lines = []
    for one in flavors:
        at_least = 'at least ' * one.or_more
        text = f'{one.spare} of {at_least}{one.fit} that fit now'
        if one.failure:
            text += f'; one more would strand a server of {one.failure}'
        notes = [f'{one.reason}.'] if one.reason else []
        label = layout.pad(one.name, wide)
        lines.append(report.Line(text, label, notes=notes))
    return report.Section(title, lines)


def _list_moves(moves: Sequence[plans.Move]) -> report.Section:
    """Return the moves in their order; those from one host after its name.

    Where hosts take turns, each move names its own.
    """
    title = 'Moves, in order:'
    runs = [
        [*run]
        for _, run in itertools.groupby(
            enumerate(moves, 1), lambda numbered: numbered[1].host
        )
    ]
    if _SHORTEST_RUN * len(runs) > len(moves):
        lines = [
            _list_move(turn, one, f'{one.host} ')
            for turn, one in enumerate(moves, 1)
        ]
        return report.Section(title, lines, _MOST_MOVES, 'move')
    most = _MOST_MOVES // min(len(runs), _MOST_SOURCES)
    lines = [
        report.Line(
            f'from {messages.clean(run[0][1].host)}, '
            f'{messages.count("server", len(run))}:',
            below=report.Section(
                rows=[_list_move(turn, one) for turn, one in run],
                most=most,
                noun='move',
            ),
        )
        for run in runs
    ]
    return report.Section(title, lines, _MOST_SOURCES, 'host')


def _list_move(turn: int, one: plans.Move, host: str = '') -> report.Line:
    text = f'{host}{_to(one)}, {one.method}'
    return report.Line(text, turn, one.name, uuid=one.server)


def _list_stuck(
    title: str, stuck: Sequence[plans.Stuck], names: cli_names.Names
) -> report.Section:
    """Return each reason with its servers."""
    found: dict[tuple[str, str], dict[str, report.Line]] = {}
    for one in stuck:
        line = report.Line(one.host, name=one.name, uuid=one.server)
        of_reason = found.setdefault((one.reason, one.would_help), {})
        # It may stand in two of the failure domains that are told of.
        of_reason[one.server] = line
    most = _MOST_SERVERS // min(len(found), _MOST_CAUSES)
    lines = [
        report.Line(
            f'{names.put_into(reason)}.',
            notes=[f'What would help: {helps}.'] if helps else [],
            below=report.Section(
                rows=[*servers.values()], most=most, noun='server'
            ),
        )
        for (reason, helps), servers in found.items()
    ]
    return report.Section(title, lines, _MOST_CAUSES, 'reason')


def _count_causes(stuck: Iterable[plans.Stuck]) -> str:
    """Return the causes, each with its number where there are several."""
    causes = collections.Counter(
        (one.cause_then or one.cause)
        + f' ({one.name_of_cause})' * bool(one.name_of_cause)
        for one in stuck
    ).most_common(_MOST_CAUSES)
    return ', '.join(
        cause if len(causes) == 1 else f'{cause} {count}'
        for cause, count in causes
    )


def _sum_up(plan: plans.Plan, not_judged: bool) -> str:
    moving, stuck = len(plan.moves), len(plan.without_place)
    text = 'No server has to move' + ', of those judged' * not_judged
    if whole := moving + stuck:
        text = f'{moving} of {messages.count("server", whole)} can be moved'
    if stuck:
        text += f'; {stuck} cannot be placed: '
        text += _count_causes(plan.without_place)
    if mended := len(plan.mended_by_others):
        becomes = messages.agree(mended, 'becomes', 'become')
        text += (
            f'. {messages.count("more server", mended)} {becomes} compliant '
            f'through these moves'
        )
    return text


def _to(one: plans.Move) -> str:
    if one.to is None:
        return f'to where nova chooses ({one.expected} now)'
    return f'to {one.to}'


def _make_rows(
    moves: Iterable[plans.Move],
) -> Iterator[tuple[object, ...]]:
    for turn, one in enumerate(moves, 1):
        yield (
            turn,
            one.server,
            one.name,
            one.project,
            one.host,
            report.Cell(one.policies),
            one.to or '',
            one.method,
        )


def _say_kept(one: plans.NotEmptied) -> str:
    if one.without_place:
        number = messages.count('server', len(one.without_place))
        verb = messages.agree(len(one.without_place), 'has', 'have')
        return f'{number} {verb} no place: {_count_causes(one.without_place)}'
    if one.lost:
        return f'while it is empty, {messages.clean(one.lost)} cannot fail'
    return 'what kept it was deleted meanwhile: make the plan again'


def _say_hosts(hosts: Sequence[str]) -> str:
    """Return names as people count them; of many that are long the first."""
    # Where it wraps.
    shown = re.sub(', *', ', ', messages.in_ranges(hosts))
    if len(shown) > _LONGEST_RANGES:
        shown = messages.first_few(
            sorted(hosts, key=messages.in_order), _MOST_HOSTS
        )
    return shown


def _say_empty(
    hosts: Sequence[str], domains: Mapping[str, Sequence[str]]
) -> str:
    """Return names, after the failure domain that several are in alone.

    :param domains: of every host
    """
    shown = _say_hosts(hosts)
    first, *others = {tuple(domains.get(host, ())) for host in hosts}
    if others or len(first) != 1 or len(hosts) == 1:
        return shown
    [domain] = first
    if len(hosts) == sum(domain in of_host for of_host in domains.values()):
        shown = f'all {len(hosts)} hosts'
    return f'{messages.clean(domain)}: {shown}'


def _say_weakest(groups: Sequence[plans.Group]) -> str:
    """Return the group that stands on the fewest hosts; count the others."""
    if not groups:
        return ''
    text = _compare(min(groups, key=lambda one: one.hosts))
    if more := len(groups) - 1:
        text += f'; {messages.count("more group", more)}'
    return text


def _compare(one: plans.Group) -> str:
    text = f'{one.name}: hosts {one.hosts_before} -> {one.hosts}'
    if one.domains < one.domains_before:
        text += f', failure domains {one.domains_before} -> {one.domains}'
    return text
