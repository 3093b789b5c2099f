# SPDX-License-Identifier: Apache-2.0

"""Reports a plan, to people and programs."""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
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
class MigrationParts(documents.Said):
    """The parts of the document that every plan of migrations has.

    :ivar shut_down: UUIDs of the running servers that are shut down for their
        move, in the order of the moves
    """

    shut_down: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Survival(documents.Said):
    """The parts of survive's document that :class:`.plans.Outcome` lacks.

    :ivar lose: the kind of failure: host or domain
    """

    lose: typing.Annotated[str, {'enum': ['host', 'domain']}]


@dataclasses.dataclass(frozen=True)
class HoldParts(MigrationParts):
    """The parts of the document of survive --hold other than the plan.

    :ivar lose: the kind of failure: host or domain
    """

    lose: typing.Annotated[str, {'enum': ['host', 'domain']}]


#: The document's schema: its title, its format, the parts of each form.
SCHEMA = (
    'What nova-ext-sched mend, drain, make-room, maintain and survive print '
    'with -f json and -f yaml',
    plan_format.FORMAT,
    (plans.Plan, MigrationParts, *documents.COMMON),
    (plans.Room, MigrationParts, *documents.COMMON),
    (plans.Hold, HoldParts, *documents.COMMON),
    (plans.Rounds, MigrationParts, *documents.COMMON),
    (plans.Outcome, Survival, *documents.COMMON),
)

NO_NAMES = cli_names.Names()

# The most moves in the text, and the most source hosts whose moves are listed.
_MOST_MOVES = 20
_MOST_SOURCES = 5
# The most hosts in the table that counts the servers that each host gets.
_MOST_HOSTS_SHOWN = 10
# Moves are listed under their source host if, on average, at least this many
# moves from the same host follow one another.
_SHORTEST_RUN = 4
# The most servers in the list of servers without a place, for all reasons
# together, and the most in the list of servers that are shut down.
_MOST_SERVERS = 10
# The most reasons for which servers have no place, and the most causes, which
# are reasons in a word.
_MOST_CAUSES = 5
# The most hosts, or failures, whose servers without a place are listed.
_MOST_DETAILED = 3
# The most server groups with less redundancy.
_MOST_GROUPS = 10
# The most hosts that get far more servers than others.
_MOST_CROWDED = 3
# Ranges of hosts with more characters are replaced with the first hosts.
_LONGEST_RANGES = 60
# The most hosts that are named in place of such ranges.
_MOST_HOSTS = 3
# The most CPU features named for a move.
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
    :param hosts: the result of :func:`.selection.make_documents`
    :param names: the names of the server groups in the servers' reasons
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
                list(map(say_lost_redundancy, plan.groups)),
                _MOST_GROUPS,
                'server group',
            )
        )
    draft = documents.Draft(
        head=head or _sum_up(plan, not_judged),
        remarks=[*remarks],
        details=sections,
        rows=[*make_rows(plan.moves), *make_stuck_rows(plan.without_place)],
        topology=hosts,
        faults=faults,
        status=base.FAULT if not_judged else find_status(plan.without_place),
    )
    return finish(draft, plan, **more)


def name_groups(stuck: Iterable[plans.Stuck]) -> cli_names.Names:
    """Return the names of the server groups in the servers' reasons."""
    from nova_ext_sched.dryrun.cloud import groups

    return cli_names.Names(
        groups.read_names(cli_names.find_ids(one.reason for one in stuck))
    )


def finish(
    draft: documents.Draft,
    made: plans.Plan | plans.Rounds | plans.Outcome,
    **more: object,
) -> report.Report:
    """Return the report of a plan, with its whole document.

    The first lines count the running servers that the plan shuts down; the
    first section after the answer lists them.

    :param draft: the sentences and sections of this kind of plan
    :param more: further parts of the document
    """
    shut_down = [*_number_shut_down(made)]
    moves = [move for *_, move in shut_down]
    if not isinstance(made, plans.Outcome):
        more = {**more, 'shut_down': [move.server for move in moves]}
    joint = '. ' if ';' in draft.head else '; '
    remarks = [
        *draft.remarks,
        *made.remarks,
        *_say_crowded(made),
        *_say_time(made),
        *_count_paused(made),
        *_warn_of_cpu_features(made),
        *_count_gone(made),
    ]
    whole = dataclasses.replace(
        draft,
        head=draft.head + _say_shut_down(moves, joint),
        remarks=remarks,
        details=[*_list_shut_down(shut_down), *draft.details],
    )
    return documents.finish(
        whole, plan_format.FORMAT, lambda: {**_make_part(made), **more}
    )


def _get_parts(
    made: plans.Plan | plans.Rounds | plans.Outcome,
) -> Sequence[plans.Plan | plans.Round]:
    """Return the plan itself, its rounds, or nothing for failures.

    An evacuation shuts down, pauses or live-migrates no server.
    """
    if isinstance(made, plans.Plan):
        return [made]
    return made.rounds if isinstance(made, plans.Rounds) else ()


def _number_shut_down(
    made: plans.Plan | plans.Rounds | plans.Outcome,
) -> Iterator[tuple[str, int, plans.Move]]:
    """Yield the moves that shut down a running server, with their turns.

    Each round counts its turns from 1, as its own plan does.

    :returns: a prefix that names the round (``round 2: ``), empty for a plan
        without rounds; the turn; the move
    """
    for number, part in enumerate(_get_parts(made), 1):
        round_ = f'round {number}: ' * isinstance(part, plans.Round)
        for turn, move in enumerate(part.moves, 1):
            if plan_format.shuts_down(move):
                yield round_, turn, move


def _say_shut_down(moves: Sequence[plans.Move], joint: str) -> str:
    """Return the end of the head that counts the servers that are shut down.

    :param joint: the separator between the head and this end: ``; `` or ``. ``
    :returns: empty without such servers
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
    if not numbered:
        return []
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
    return [report.Section(title, lines, _MOST_SERVERS, 'move')]


def _make_part(made: typing.Any) -> dict[str, typing.Any]:
    """Return a plan, rounds or an outcome as a dictionary for the document.

    :func:`.plan_format.make_moves` gives each move its turn, and replaces
    UUIDs of servers in ``needs`` with turns.
    """
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
    # `cause_then` is why it has no place even if nova moved it.
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
            f'{messages.agree(number, "is", "are")} paused. Resume '
            f'{messages.agree(number, "it", "them")} before another live '
            'migration, or '
            f'{messages.agree(number, "its guest", "guests")} can be lost.'
        )


def _say_crowded(
    made: plans.Plan | plans.Rounds | plans.Outcome,
) -> Iterator[str]:
    """Yield a sentence for each host that gets far more servers than others.

    It names the weigher that prefers the host.
    """
    crowded = made.crowded if isinstance(made, plans.Plan) else []
    for one in crowded[:_MOST_CROWDED]:
        preferred = f' ({one.weigher} prefers it)' if one.weigher else ''
        yield (
            f'{one.host} gets {one.servers} of the servers{preferred}, the '
            f'next host {one.next}.'
        )


def _say_time(
    made: plans.Plan | plans.Rounds | plans.Outcome,
) -> Iterator[str]:
    """Yield a sentence with the estimated duration of the moves, if known."""
    if isinstance(made, plans.Outcome) or made.seconds is None:
        return
    yield (
        f'The moves take about {messages.say_time(made.seconds)}, one after '
        'the other (by the last migrations of this cloud).'
    )


def _warn_of_cpu_features(
    made: plans.Plan | plans.Rounds | plans.Outcome,
) -> Iterator[str]:
    """Yield warnings about moves that nova may refuse for CPU features.

    For rounds, there are also warnings about moves back to a host with fewer
    CPU features.
    """
    parts = _get_parts(made)
    if number := sum(bool(move.lacks) for one in parts for move in one.moves):
        yield (
            f'{messages.count("move", number)} '
            f'{messages.agree(number, "goes", "go")} to a host that lacks CPU '
            'features of the source host: nova may refuse '
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


def _count_gone(
    made: plans.Plan | plans.Rounds | plans.Outcome,
) -> Iterator[str]:
    """Yield how many servers were deleted or moved during the planning."""
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
    """Yield the list of moves, in order.

    If there are many, a table of destinations comes first.
    """
    if len(moves) > _MOST_MOVES:
        yield _count_by_host(moves)
    if moves:
        yield _list_in_order(moves)


def _count_by_host(moves: Sequence[plans.Move]) -> report.Section:
    """Return a table of the servers that each host gets, the most first."""
    totals = collections.Counter(move.expected for move in moves)
    counts = collections.Counter((one.expected, one.method) for one in moves)
    used = [
        method
        for method in (
            plan_format.LIVE,
            plan_format.COLD,
            plan_format.EVACUATE,
        )
        if any(move.method == method for move in moves)
    ]
    rows = [
        (
            messages.clean(host),
            total,
            *(counts[host, method] for method in used),
        )
        for host, total in sorted(
            totals.items(),
            key=lambda item: (-item[1], messages.in_order(item[0])),
        )
    ]
    heads = ('To', 'Servers', *map(str.capitalize, used))
    return report.Section('', rows, _MOST_HOSTS_SHOWN, 'host', columns=heads)


def _list_in_order(moves: Sequence[plans.Move]) -> report.Section:
    """Return the moves in order, below the name of their source host.

    If source hosts alternate, each line names its own instead.
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
    """Return a section of the reasons, each with its servers."""
    by_reason: dict[tuple[str, str], dict[str, report.Line]] = {}
    for one in stuck:
        of_reason = by_reason.setdefault((one.reason, one.would_help), {})
        # By UUID, so that a server of two failure domains is listed once.
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
    """Return a section on the servers without a place, by reason.

    It has those of the first few hosts, or failures, only.

    :param title: a phrase that the names of these hosts or failures complete,
        such as ``Cannot be moved from``
    :param stuck: servers by the name of their host or failure
    """
    first = dict(itertools.islice(stuck.items(), _MOST_DETAILED))
    return list_stuck(
        f'{title} {messages.first_few([*first])}:',
        [*itertools.chain(*first.values())],
        names,
    )


def say_lacking(hosts: Sequence[str] | None) -> Iterator[str]:
    """Yield a sentence if the hosts kept for failures are not enough.

    :param hosts: names of the further hosts to keep free; None if unknown
    """
    if hosts:
        yield (
            'The hosts kept for failures are not enough once the others are '
            f'full: keep {say_hosts(hosts)} free, too (survive --hold).'
        )


def say_unread(unread: Set[str]) -> Iterator[str]:
    """Yield a sentence on hosts whose servers are unknown."""
    if unread:
        names = messages.first_few(sorted(unread, key=messages.in_order))
        yield f'What runs on {names} is not known.'


def say_of_those_read(faults: Sequence[str]) -> str:
    """Return the words after a count of hosts if some could not be read.

    :param faults: sentences on what could not be read
    """
    return ', of those read' if faults else ''


def count_causes(stuck: Iterable[plans.Stuck]) -> str:
    """Return the causes, such as ``isolation (windows) 2, room 1``.

    Each is followed by what it is about, such as an aggregate. Several causes
    have their numbers of servers.
    """
    causes = plans.count_causes(stuck)[:_MOST_CAUSES]
    return ', '.join(
        cause.cause
        + f' ({cause.name})' * bool(cause.name)
        + f' {cause.servers}' * (len(causes) > 1)
        for cause in causes
    )


def say_left_out(stuck: Iterable[plans.Stuck]) -> str:
    """Return the sentence on the servers that the operator left out.

    It is empty if there are none.
    """
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
    text = f'No {noun} has to move'
    if not_judged:
        text = f'None of the {noun}s that could be judged has to move'
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
    """Yield a row of :data:`COLUMNS` for each move."""
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
    """Yield a row of :data:`COLUMNS` for each server that cannot be moved.

    The turn, the destination and the method are empty.
    """
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

    :param whom: for which servers, such as ``for 3 servers``, with a blank
        before it; empty for no words
    """
    moves = messages.count('move', len(room.moves))
    verb = messages.agree(len(room.moves), 'makes', 'make')
    made = room.room_on[room.fit_now :]
    on = [*dict.fromkeys(filter(None, made))]
    names = say_hosts(on) if len(on) > 2 else ' and '.join(on)
    return f'{moves} {verb} room{whom}' + f', on {names}' * bool(on)


def say_hosts(hosts: Sequence[str]) -> str:
    """Return host names as ranges; if these are long, the first few names."""
    # Blanks, where the list can wrap.
    shown = re.sub(', *', ', ', messages.in_ranges(hosts))
    if len(shown) > _LONGEST_RANGES:
        shown = messages.first_few(
            sorted(hosts, key=messages.in_order), _MOST_HOSTS
        )
    return shown


def say_lost_redundancy(group: plans.Group) -> str:
    """Describe on how many hosts and in how many domains a group is then.

    The numbers after the moves are given where they are smaller than before.
    """
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
