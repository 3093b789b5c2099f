# SPDX-License-Identifier: Apache-2.0

"""Reports a plan, to people and programs."""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
import re
import typing

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.cli import base
from nova_ext_sched.cli import names as cli_names
from nova_ext_sched.cli import report
from nova_ext_sched.cmd import documents
from nova_ext_sched.dryrun.plan import plans

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
    'Shut Down',
    'Cause',
)


@dataclasses.dataclass(frozen=True)
class Moving(documents.Said):
    """The common parts of plans of migrations.

    :ivar shut_down: UUIDs of the running servers that are shut down for their
        move, in the order of the moves
    """

    shut_down: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Survival(documents.Said):
    """The parts of survive's document besides its failures.

    :ivar lose: the kind of failure: host or domain
    """

    lose: typing.Annotated[str, {'enum': ['host', 'domain']}]


@dataclasses.dataclass(frozen=True)
class HoldParts(Moving):
    """The parts of the document of survive --hold besides the plan.

    :ivar lose: the kind of failure: host or domain
    """

    lose: typing.Annotated[str, {'enum': ['host', 'domain']}]


#: The document's schema: its title, its format, the parts of each form.
SCHEMA = (
    'What nova-ext-sched mend, drain, make-room, maintain and survive print '
    'with -f json and -f yaml',
    plan_format.FORMAT,
    (plans.Plan, Moving, *documents.COMMON),
    (plans.Room, Moving, *documents.COMMON),
    (plans.Hold, HoldParts, *documents.COMMON),
    (plans.Rounds, Moving, *documents.COMMON),
    (plans.Outcome, Survival, *documents.COMMON),
)

NO_NAMES = cli_names.Names()

# The most moves that people see, and the most hosts that they leave.
_MOST_MOVES = 20
_MOST_SOURCES = 5
# The most hosts that people see in a table of where servers go.
_MOST_HOSTS_SHOWN = 10
# So many moves from one host are below its name.
_SHORTEST_RUN = 4
# The most servers without a place that people see, the most reasons, and the
# most hosts that they are from.
_MOST_SERVERS = 10
_MOST_CAUSES = 5
_MOST_DETAILED = 3
_MOST_GROUPS = 10
# The most hosts that get far more servers than others.
_MOST_CROWDED = 3
# The most characters of hosts in ranges; of more, so many hosts are named.
_LONGEST_RANGES = 60
_MOST_HOSTS = 3
_MOST_FEATURES = 3


def make(
    plan: plans.Plan,
    remarks: Iterable[str],
    faults: Sequence[str],
    not_judged: bool = False,
    hosts: Sequence[dict[str, typing.Any]] = (),
    names: cli_names.Names = NO_NAMES,
    head: str = '',
    details: Iterable[report.Section] = (),
    **more: typing.Any,
) -> report.Report:
    """Return the report of a plan.

    :param remarks: sentences that follow the first, such as what the plan is
        for
    :param faults: sentences on what could not be read
    :param not_judged: whether some servers could not be judged, so that the
        plan may lack moves
    :param hosts: the result of :func:`.topology.make_documents`
    :param names: of server groups
    :param head: the first sentence, in place of the number of servers that can
        be moved
    :param details: sections before the moves
    :param more: other parts of the document
    """
    sections = [*details, *list_moves(plan.moves)]
    if plan.without_place:
        sections.append(
            list_stuck('Cannot be moved:', plan.without_place, names)
        )
    if plan.groups:
        sections.append(
            report.Section(
                'Server groups with less redundancy:',
                list(map(compare, plan.groups)),
                _MOST_GROUPS,
                'server group',
            )
        )
    told = documents.Told(
        head=head or _sum_up(plan, not_judged),
        remarks=[*remarks],
        details=sections,
        rows=[*make_rows(plan.moves), *make_stuck_rows(plan.without_place)],
        topology=hosts,
        faults=faults,
        status=base.FAULT if not_judged else find_status(plan.without_place),
    )
    return finish(told, plan, **more)


def name_groups(stuck: Iterable[plans.Stuck]) -> cli_names.Names:
    """Return the names of the server groups that keep servers."""
    from nova_ext_sched.dryrun.cloud import groups

    return cli_names.Names(
        groups.read_names(cli_names.find_ids(one.reason for one in stuck))
    )


def finish(
    told: documents.Told,
    made: plans.Plan | plans.Rounds | plans.Outcome,
    **more: object,
) -> report.Report:
    """Return a report with the whole document.

    The running servers that a plan shuts down are in its first sentence, and
    are listed before all else.

    :param told: the sentences and sections of this kind of plan
    :param more: further parts of the document
    """
    shut_down = [*_number_shut_down(made)]
    moves = [move for *_, move in shut_down]
    if not isinstance(made, plans.Outcome):
        more = {**more, 'shut_down': [move.server for move in moves]}
    joint = '. ' if ';' in told.head else '; '
    remarks = [
        *told.remarks,
        *made.remarks,
        *_say_crowded(made),
        *_say_time(made),
        *_count_paused(made),
        *_count_lesser(made),
        *_count_left(made),
    ]
    whole = dataclasses.replace(
        told,
        head=told.head + _say_shut_down(moves, joint),
        remarks=remarks,
        details=[*_list_shut_down(shut_down), *told.details],
    )
    return documents.finish(
        whole, plan_format.FORMAT, lambda: {**_make_part(made), **more}
    )


def _get_parts(
    made: plans.Plan | plans.Rounds | plans.Outcome,
) -> Sequence[plans.Plan | plans.Round]:
    """Return the parts with migrations of running servers, not failures."""
    if isinstance(made, plans.Plan):
        return [made]
    return made.rounds if isinstance(made, plans.Rounds) else ()


def _number_shut_down(
    made: plans.Plan | plans.Rounds | plans.Outcome,
) -> Iterator[tuple[str, int, plans.Move]]:
    """Yield the moves that shut down a running server, with their turns.

    Each round counts its turns from 1, as its own plan does.

    :returns: the round in words, empty in a plan without; the turn; the move
    """
    for number, part in enumerate(_get_parts(made), 1):
        round_ = f'round {number}: ' * isinstance(part, plans.Round)
        for turn, move in enumerate(part.moves, 1):
            if plan_format.shuts_down(move):
                yield round_, turn, move


def _say_shut_down(moves: Sequence[plans.Move], joint: str) -> str:
    """Return the second sentence of a plan that shuts down servers.

    :param joint: the text between both sentences
    """
    if not moves:
        return ''
    servers = {move.server: move.why_cold for move in moves}
    number = len(servers)
    causes = collections.Counter(servers.values()).most_common()
    why = ', '.join(
        (
            messages.agree(number, 'it', 'they')
            if len(causes) == 1
            else str(count)
        )
        + f' {messages.agree(count, *plan_format.SHUT_DOWN[cause])}'
        for cause, count in causes
    )
    return (
        f'{joint}{messages.count("running server", number)} '
        f'{messages.agree(number, "is", "are")} shut down for it ({why})'
    )


def _list_shut_down(
    numbered: Sequence[tuple[str, int, plans.Move]],
) -> list[report.Section]:
    """Return the section of running servers that a plan shuts down, if any.

    :param numbered: as :func:`_number_shut_down` yields them
    """
    lines = [
        report.Line(
            f'{round_}{move.host} {_to(move)}: it '
            + plan_format.SHUT_DOWN[move.why_cold][0],
            turn,
            move.name,
            uuid=move.server,
        )
        for round_, turn, move in numbered
    ]
    title = 'Running servers that are shut down:'
    return [report.Section(title, lines, _MOST_SERVERS, 'move')] * bool(lines)


def _make_part(made: typing.Any) -> dict[str, typing.Any]:
    """Return a dataclass with moves, as documents have it."""
    described = dataclasses.asdict(made)
    for part in (
        described,
        *described.get('rounds', ()),
        *described.get('failures', ()),
    ):
        if 'moves' in part:
            part['moves'] = plan_format.make_moves(part['moves'])
    return described


def find_status(stuck: Iterable[plans.Stuck]) -> int:
    """Return the exit status of a plan with servers that have no place."""
    causes = {cause for one in stuck for cause in (one.cause, one.cause_then)}
    if plans.FAULT in causes:
        return base.FAULT
    return base.SOME_FOUND if causes else base.FINE


def _count_paused(
    made: plans.Plan | plans.Rounds | plans.Outcome,
) -> Iterator[str]:
    """Yield how many servers are moved while their guests are paused."""
    number = sum(
        move.paused for part in _get_parts(made) for move in part.moves
    )
    if number:
        yield (
            f'{messages.count("moved server", number)} '
            f'{messages.agree(number, "is", "are")} paused: moved live once '
            'more without a resume between, a guest can be lost.'
        )


def _say_crowded(
    made: plans.Plan | plans.Rounds | plans.Outcome,
) -> Iterator[str]:
    """Yield hosts that get far more servers than others, with the weigher."""
    whole = made if isinstance(made, plans.Plan) else plans.Plan(moves=[])
    for one in whole.crowded[:_MOST_CROWDED]:
        preferred = f' ({one.weigher} prefers it)' if one.weigher else ''
        yield (
            f'{one.host} gets {one.servers} of the servers{preferred}, the '
            f'next host {one.next}.'
        )


def _say_time(
    made: plans.Plan | plans.Rounds | plans.Outcome,
) -> Iterator[str]:
    """Yield about how long the moves take, where that is known."""
    if isinstance(made, plans.Outcome) or made.seconds is None:
        return
    yield (
        f'The moves take about {messages.say_time(made.seconds)}, one after '
        'the other (by the last migrations of this cloud).'
    )


def _count_lesser(
    made: plans.Plan | plans.Rounds | plans.Outcome,
) -> Iterator[str]:
    """Yield how many servers are moved to hosts with other CPU features."""
    parts = _get_parts(made)
    if number := sum(bool(move.lacks) for one in parts for move in one.moves):
        yield (
            f'{messages.count("move", number)} '
            f'{messages.agree(number, "goes", "go")} to a host that lacks CPU '
            'features of the one before: nova may refuse '
            f'{messages.agree(number, "it", "them")} (Unacceptable CPU info).'
        )
    for number, part in enumerate(parts, 1):
        newer = sum(move.newer for move in part.moves)
        if newer and isinstance(made, plans.Rounds):
            yield (
                f'Round {number} leaves {messages.count("server", newer)} on '
                'hosts with more CPU features: nova may refuse to live-migrate'
                f' {messages.agree(newer, "it", "them")} back.'
            )


def _count_left(
    made: plans.Plan | plans.Rounds | plans.Outcome,
) -> Iterator[str]:
    """Yield how many servers have left while the plan was made."""
    if number := len(made.deleted_meanwhile):
        was = messages.agree(number, 'was', 'were')
        being = messages.agree(number, 'is', 'are')
        yield (
            f'{messages.count("server", number)} {was} deleted meanwhile, or '
            f'{being} being deleted.'
        )
    if isinstance(made, plans.Plan) and (number := len(made.moved_meanwhile)):
        was = messages.agree(number, 'was', 'were')
        yield f'{messages.count("server", number)} {was} moved meanwhile.'


def list_moves(moves: Sequence[plans.Move]) -> Iterator[report.Section]:
    """Yield the moves in their order; of many, first where servers go."""
    if len(moves) > _MOST_MOVES:
        yield _count_by_host(moves)
    if moves:
        yield _list_in_order(moves)


def _count_by_host(moves: Sequence[plans.Move]) -> report.Section:
    """Return how many servers each host gets, the most first."""
    methods: dict[str, collections.Counter[str]] = {}
    for move in moves:
        counted = methods.setdefault(move.expected, collections.Counter())
        counted[move.method] += 1
    used = [
        method
        for method in (
            plan_format.LIVE,
            plan_format.COLD,
            plan_format.EVACUATE,
        )
        if any(counted[method] for counted in methods.values())
    ]
    rows = [
        (messages.clean(host), counted.total())
        + tuple(counted[method] for method in used)
        for host, counted in sorted(
            methods.items(),
            key=lambda item: (-item[1].total(), messages.in_order(item[0])),
        )
    ]
    heads = ('To', 'Servers', *map(str.capitalize, used))
    return report.Section('', rows, _MOST_HOSTS_SHOWN, 'host', columns=heads)


def _list_in_order(moves: Sequence[plans.Move]) -> report.Section:
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


def _list_move(turn: int, move: plans.Move, host: str = '') -> report.Line:
    method = f'{move.method} (paused)' if move.paused else move.method
    if move.lacks:
        lacks = messages.first_few(move.lacks, _MOST_FEATURES)
        method += f' (lacks {lacks} of {messages.clean(move.host)})'
    return report.Line(
        f'{host}{_to(move)}, {method}', turn, move.name, uuid=move.server
    )


def list_stuck(
    title: str, stuck: Sequence[plans.Stuck], names: cli_names.Names
) -> report.Section:
    """Return each reason with its servers."""
    by_reason: dict[tuple[str, str], dict[str, report.Line]] = {}
    for one in stuck:
        of_reason = by_reason.setdefault((one.reason, one.would_help), {})
        # A dictionary: a server may be in two of the failure domains.
        of_reason[one.server] = report.Line(
            one.host, name=one.name, uuid=one.server
        )
    most = _MOST_SERVERS // min(len(by_reason), _MOST_CAUSES)
    lines = [
        report.Line(
            f'{names.put_into(reason)}.',
            notes=[f'Fix: {helps}.'] if helps else [],
            below=report.Section(
                rows=[*servers.values()], most=most, noun='server'
            ),
        )
        for (reason, helps), servers in by_reason.items()
    ]
    return report.Section(title, lines, _MOST_CAUSES, 'reason')


def list_first_stuck(
    title: str,
    stuck: Mapping[str, Sequence[plans.Stuck]],
    names: cli_names.Names,
) -> report.Section:
    """Return each reason with the servers of the first hosts, or failures.

    :param title: their names follow it: ``Cannot be moved from``
    :param stuck: the servers, by these names
    """
    first = dict(itertools.islice(stuck.items(), _MOST_DETAILED))
    return list_stuck(
        f'{title} {messages.first_few([*first])}:',
        [*itertools.chain(*first.values())],
        names,
    )


def say_lacking(hosts: Sequence[str] | None) -> Iterator[str]:
    """Yield a sentence if the hosts kept for failures are not enough.

    :param hosts: names of those to keep besides
    """
    if hosts:
        yield (
            'The hosts kept for failures are not enough once the others are '
            f'full: keep {say_hosts(hosts)} free, too (survive --hold).'
        )


def say_of_those_read(faults: Sequence[str]) -> str:
    """Return the words after a count of hosts if some could not be read.

    :param faults: sentences on what could not be read
    """
    return ', of those read' if faults else ''


def count_causes(stuck: Iterable[plans.Stuck]) -> str:
    """Return the causes, each with its number where there are several."""
    causes = plans.count_causes(stuck)[:_MOST_CAUSES]
    return ', '.join(
        one.cause
        + f' ({one.name})' * bool(one.name)
        + f' {one.servers}' * (len(causes) > 1)
        for one in causes
    )


def say_left_out(stuck: Iterable[plans.Stuck]) -> str:
    """Return the first words of a plan that leaves servers out, or none."""
    left = [one for one in stuck if one.is_left_out]
    if not left:
        return ''
    hosts = say_hosts([*dict.fromkeys(one.host for one in left)])
    return (
        f'{hosts} will keep {messages.count("server", len(left))} that you '
        'left out. '
    )


def _sum_up(plan: plans.Plan, not_judged: bool) -> str:
    kept = say_left_out(plan.without_place)
    others = [one for one in plan.without_place if not one.is_left_out]
    moving, stuck = len(plan.moves), len(others)
    noun = 'other server' if kept else 'server'
    text = f'No {noun} has to move' + ', of those judged' * not_judged
    if whole := moving + stuck:
        text = f'{moving} of {messages.count(noun, whole)} can be moved'
    if stuck:
        text += f'; {stuck} cannot: {count_causes(others)}'
    if mended := len(plan.mended_by_others):
        text += (
            f'. {messages.count("more server", mended)} '
            f'{messages.agree(mended, "becomes", "become")} compliant '
            f'through these moves'
        )
    return kept + text


def _to(one: plans.Move) -> str:
    if one.to is None:
        return f'to a host that nova chooses ({one.expected} now)'
    return f'to {one.to}'


def make_rows(
    moves: Iterable[plans.Move],
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of moves, of :data:`COLUMNS`."""
    for turn, move in enumerate(moves, 1):
        yield (
            turn,
            move.server,
            move.name,
            move.project,
            move.host,
            report.Cell(move.policies),
            move.to or '',
            move.method,
            plan_format.SHUT_DOWN[move.why_cold][0]
            if plan_format.shuts_down(move)
            else '',
            '',
        )


def make_stuck_rows(
    stuck: Iterable[plans.Stuck],
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of servers that cannot be moved: without a turn."""
    for server in stuck:
        yield (
            '',
            server.server,
            server.name,
            server.project,
            server.host,
            report.Cell(server.policies),
            '',
            '',
            '',
            ', '.join(filter(None, (server.cause, server.cause_then))),
        )


def say_room(room: plans.Room, whom: str = '') -> str:
    """Return how many moves make room, and on which hosts.

    :param whom: the servers that it is for, after a blank
    """
    moves = messages.count('move', len(room.moves))
    verb = messages.agree(len(room.moves), 'makes', 'make')
    made = room.room_on[room.fit_now :]
    on = [*dict.fromkeys(filter(None, made))]
    names = say_hosts(on) if len(on) > 2 else ' and '.join(on)
    return f'{moves} {verb} room{whom}' + f', on {names}' * bool(on)


def say_hosts(hosts: Sequence[str]) -> str:
    """Return names as people count them; of many that are long the first."""
    # Blanks, where the list can wrap.
    shown = re.sub(', *', ', ', messages.in_ranges(hosts))
    if len(shown) > _LONGEST_RANGES:
        shown = messages.first_few(
            sorted(hosts, key=messages.in_order), _MOST_HOSTS
        )
    return shown


def compare(group: plans.Group) -> str:
    """Describe the hosts of a group before and after."""
    counts = (
        ('on', 'host', group.hosts_before, group.hosts),
        ('in', 'failure domain', group.domains_before, group.domains),
    )
    said = [
        f'{where} {messages.count(noun, after)} instead of {before}'
        for where, noun, before, after in counts
        if after < before
    ]
    return f'{group.name} is {", ".join(said)}'
