# SPDX-License-Identifier: Apache-2.0

"""Reports the result of moves."""

import collections
from collections.abc import Iterator
from collections.abc import Sequence
import datetime
import re

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.cli import base
from nova_ext_sched.cli import report
from nova_ext_sched.cli import terminal
from nova_ext_sched.osc import moves_left
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_run
from nova_ext_sched.osc.moves_plan import Remedy
from nova_ext_sched.osc.moves_plan import Result

#: The columns of the moves.
COLUMNS = (
    'Turn',
    'Server',
    'Name',
    'Host',
    'To',
    'Method',
    'Result',
    'Reason',
)

#: The result shown for a server that is still on a host to be emptied, and
#: that the report names for no other reason.
NOT_IN_PLAN = 'not in the plan'

# The words for why a move is cold.
_WHY_COLD = {
    plan_format.STOPPED: 'stopped',
    **{why: said for why, (said, _) in plan_format.SHUT_DOWN.items()},
}

# The kinds of moves that are counted before the run, in this order.
_STOPPED = 'cold of servers that are stopped'
_SHUTS_DOWN = 'cold of running servers'
_KINDS = (
    plan_format.LIVE,
    plan_format.EVACUATE,
    _STOPPED,
    _SHUTS_DOWN,
)

# The age from which on a plan gets a warning.
_OLD = datetime.timedelta(days=1)

# The most sentences of one kind that are shown.
_MOST_SENTENCES = 5

# The most moves of one result that are shown.
_MOST_MOVES = 10

# The style of the count of each result; FAILED and LEFT_OUT keep the default
# style, terminal.BAD.
_STYLES = {
    str(result): terminal.GOOD if result in moves_plan.OVER else ''
    for result in Result
    if result not in (Result.FAILED, Result.LEFT_OUT)
}


# The sentence on what to do next, by the remedy of the failed moves. The last
# has no full stop, because the plan's command follows.
_NEXT_STEPS = {
    Remedy.RUN_AGAIN: 'Run the command again to continue.',
    Remedy.FIX: 'Fix that, then run the command again to continue.',
    Remedy.NEW_PLAN: 'Fix what is named, then make a new plan',
}


def make(
    plan: moves_plan.Plan,
    status: int,
    *remarks: str,
    left: Sequence[moves_left.Left] = (),
) -> report.Report:
    """Return the report of moves, with a section for each result.

    :param status: the exit status
    :param remarks: sentences on hosts that were disabled, or whose servers
        could not be read
    :param left: servers that are still on hosts to be emptied, and that the
        report names for no other reason
    """
    moves = plan.moves
    said = [
        *(
            f'{_say_turn(one)}: {_clean(one.reason)}.'
            for one in moves
            if one.result == Result.FAILED
        ),
        *_say_more(plan),
        *_say_end(plan),
        *moves_left.say(plan, left),
    ]
    counts = [
        (number, str(result))
        for result in Result
        if (number := sum(one.result == result for one in moves))
    ]
    sentence, sections = report.begin(
        sum_up(moves), *said, *remarks, counts=counts, styles=_STYLES
    )
    for result in Result:
        lines = [
            report.Line(
                f'{_clean(move.host)} to {_to(move)}, {move.actual}'
                + _say_why(move),
                move.turn,
                move.name,
                uuid=move.server,
            )
            for move in moves
            if move.result == result
        ]
        if lines:
            sections.append(
                report.Section(
                    f'{result.capitalize()}:', lines, _MOST_MOVES, 'move'
                )
            )
    rows: list[tuple[object, ...]] = [
        (
            move.turn,
            move.server,
            move.name,
            move.host,
            move.to or '',
            move.actual,
            str(move.result),
            move.reason or move.held,
        )
        for move in moves
    ]
    rows += [
        ('', server.server, server.name, server.host)
        + ('', '', NOT_IN_PLAN, server.why)
        for server in left
    ]
    return report.Report(sentence, sections, rows, status=status)


def sum_up(moves: Sequence[moves_plan.Move]) -> str:
    """Return how many moves are done, and how many of these hold room."""
    done = [one for one in moves if one.result in moves_plan.OVER]
    text = messages.part(len(done), len(moves), 'move', 'is done', 'are done')
    if holding := sum(not one.is_over for one in done):
        held = messages.agree(
            holding,
            'holds room on its old host',
            'hold room on their old hosts',
        )
        text += f', but {holding} still {held}'
    return text


def find_status(
    plan: moves_plan.Plan, left: Sequence[moves_left.Left] | None = ()
) -> int:
    """Return the exit status.

    ======  ===============================================================
    status  meaning
    ======  ===============================================================
    0       every move is done and holds no room, no server is stranded,
            and the hosts to be emptied are empty
    1       a move failed, or the hosts to be emptied could not be read
    3       a move is not done, or still holds room on its old host; a
            server is stranded; or a host to be emptied is not empty
    ======  ===============================================================

    :param left: as :func:`make`; None if the hosts to be emptied could not be
        read
    """
    failed = any(one.result == Result.FAILED for one in plan.moves)
    if failed or left is None:
        return base.FAULT
    is_over = all(one.is_over for one in plan.moves)
    is_fine = is_over and not (plan.stranded or left)
    return base.FINE if is_fine else base.SOME_FOUND


def say_plan(plan: moves_plan.Plan, cloud: str) -> list[str]:
    """Describe the plan that is about to be carried out.

    :param cloud: the name of the cloud
    """
    shut_down = [*filter(plan_format.shuts_down, plan.moves)]
    kinds = collections.Counter(map(_say_kind, plan.moves))
    number = messages.count('move', len(plan.moves))
    parts = ', '.join(f'{kinds[one]} {one}' for one in _KINDS if kinds[one])
    sources = messages.first_few(
        sorted({one.host for one in plan.moves}, key=messages.in_order)
    )
    text = f'{number} ({parts}) from {sources}' if plan.moves else number
    lines = [f'{text}.']
    if shut_down:
        names = messages.first_few([one.shown for one in shut_down])
        verb = messages.agree(len(shut_down), 'is', 'are')
        lines.append(
            f'{messages.count("running server", len(shut_down))} {verb} shut '
            f'down: {names}.'
        )
    lines += plan_format.say_from_image(plan.moves)
    return [*lines, f'Planned {plan.time}, for {cloud}.']


def _say_kind(move: moves_plan.Move) -> str:
    if plan_format.shuts_down(move):
        return _SHUTS_DOWN
    return _STOPPED if move.method == plan_format.COLD else move.method


def warn(plan: moves_plan.Plan, now: datetime.datetime) -> list[str]:
    """Return warnings about a plan that is old, or assumes a change.

    :param now: the current time, with a time zone
    """
    said = []
    age = now - datetime.datetime.fromisoformat(plan.time)
    if age >= _OLD:
        said.append(f'The plan is {messages.count("day", age.days)} old.')
    if plan.supposed:
        named = '; '.join(
            messages.clean(f'{one.option} {one.value}')
            for one in plan.supposed
        )
        said.append(
            f'The plan assumes {named}: apply that first, or nova can refuse '
            'its moves.'
        )
    return said


def _say_more(plan: moves_plan.Plan) -> Iterator[str]:
    """Yield sentences on what the moves leave undone.

    These are held room, deletions, servers left out, and servers without a
    place.
    """
    for move in plan.moves:
        if move.held:
            yield f'{_say_turn(move)}: {_clean(move.held)}.'
    for move in plan.moves:
        if move.result == Result.DELETING:
            yield f'{_say_turn(move)}: {_clean(move.reason)}.'
    for move in plan.moves:
        if move.result == Result.LEFT_OUT:
            yield f'{_say_turn(move)} was left out: {_clean(move.reason)}.'
    left_out = [
        server
        for server in plan.stranded
        if server.cause == plan_format.LEFT_OUT
    ]
    for server in left_out[:_MOST_SENTENCES]:
        name = _clean(server.name or server.server)
        yield (
            f'{name} stays on {_clean(server.host)}: {_clean(server.reason)}.'
        )
    if (more := len(left_out) - _MOST_SENTENCES) > 0:
        yield f'{more} more that you left out: see without_place of the plan.'
    stranded = [one for one in plan.stranded if one not in left_out]
    if stranded:
        number = messages.count('server', len(stranded))
        names = messages.first_few(
            [f'{one.name or one.server} on {one.host}' for one in stranded]
        )
        yield (f'{number} could not be moved when the plan was made: {names}.')
        servers_by_fix: dict[str, list[str]] = {}
        for server in stranded:
            if server.would_help:
                fix = messages.clean(server.would_help, 1000)
                servers = servers_by_fix.setdefault(fix, [])
                servers.append(server.name or server.server)
        for fix, servers in [*servers_by_fix.items()][:_MOST_SENTENCES]:
            is_for_all = len(servers) == len(stranded)
            whose = '' if is_for_all else f' for {messages.first_few(servers)}'
            yield f'Fix{whose}: {fix}.'
        if (more := len(servers_by_fix) - _MOST_SENTENCES) > 0:
            yield f'{more} more fixes: see without_place of the plan.'


def _say_end(plan: moves_plan.Plan) -> Iterator[str]:
    """Yield why the run ended early, and what to do next."""
    failed = [one for one in plan.moves if one.result == Result.FAILED]
    are_left_out = any(one.result == Result.LEFT_OUT for one in plan.moves)
    again = f': {messages.clean(plan.command, 1000)}' if plan.command else ''
    in_error = sum(one.is_in_error for one in plan.moves)
    if in_error >= moves_run.MOST_IN_ERROR:
        yield (
            f'Nothing more was begun: {messages.count("server", in_error)} '
            'are in ERROR.'
        )
    if failed:
        remedy = max(one.remedy for one in failed)
        text = _NEXT_STEPS[remedy]
        yield f'{text}{again}.' if remedy == Remedy.NEW_PLAN else text
        if remedy == Remedy.FIX:
            yield f'{_say_without(plan, failed, again)}.'
        yield from _say_undo(plan.moves)
    elif are_left_out:
        yield f'For the servers left out, make a new plan{again}.'
    else:
        yield from _say_wait(plan.moves)


def _say_wait(moves: Sequence[moves_plan.Move]) -> Iterator[str]:
    """Yield when to run the command again, after held room and deletions.

    If no move failed and no server was left out, a move is NOT_TRIED for one
    reason only: it needs a move that still holds room, or whose server is
    still being deleted.
    """
    is_deleting = any(one.result == Result.DELETING for one in moves)
    is_held = any(
        one.result == Result.NOT_TRIED and one.reason for one in moves
    ) and any(one.held for one in moves)
    conditions = ['the held room is free'] * is_held
    conditions += ['the deletion has ended'] * is_deleting
    if conditions:
        yield f'When {" and ".join(conditions)}, run the command again.'


def _say_undo(moves: Sequence[moves_plan.Move]) -> Iterator[str]:
    """Yield how to undo the moves that were made.

    nova cannot undo an evacuation.
    """
    made = [
        one
        for one in moves
        if one.result == Result.MOVED and one.actual != plan_format.EVACUATE
    ]
    if made:
        last = made[-1]
        is_live = last.actual == plan_format.LIVE
        # From 2.56 on, a request for a cold migration can name a host, too.
        command = (
            'openstack --os-compute-api-version 2.56 server migrate '
            f'{"--live-migration " * is_live}--host {_clean(last.host)} '
            f'{last.server}'
        )
        if not is_live:
            command += f', then openstack server migrate confirm {last.server}'
        yield (
            'To undo the plan instead, enable the hosts (apply --enable) and '
            f'move back {messages.count("server", len(made))}, the last one '
            f'first: {command}.'
        )


def _say_without(
    plan: moves_plan.Plan, failed: list[moves_plan.Move], again: str
) -> str:
    """Describe how to continue without the failed moves."""
    moves = messages.agree(len(failed), 'move', 'moves')
    text = (
        f'To continue without the failed {moves}: --skip SERVER, or '
        '--keep-going'
    )
    # Exclude only hosts that nova's reason names: the others may be fine. An
    # evacuation is planned by the command survive, which has no --not-to.
    hosts = {
        one.expected
        for one in failed
        if one.remedy == Remedy.FIX
        and one.method != plan_format.EVACUATE
        and _mentions(one.reason, one.expected)
    }
    if not hosts or not plan.command:
        return text
    options = ' '.join(
        f'--not-to {host}' for host in sorted(hosts, key=messages.in_order)
    )
    return f'{text}; or make a new plan{again} {messages.clean(options)}'


def _mentions(text: str, host: str) -> bool:
    """Return whether a text has a host's name, not as part of a longer one."""
    pattern = rf'(?<![\w.-]){re.escape(host)}(?![\w-]|\.\w)'
    return re.search(pattern, text) is not None


def _say_turn(one: moves_plan.Move) -> str:
    return f'Move {one.turn} ({one.shown})'


def _say_why(move: moves_plan.Move) -> str:
    """Return why a move is cold, or the reason of its result, in parentheses.

    It is empty if there is nothing to say.
    """
    if move.actual == plan_format.COLD == move.method and move.why_cold:
        return f' ({_WHY_COLD[move.why_cold]})'
    if move.result in (Result.MOVED, Result.PLANNED, Result.NOT_TRIED):
        return f' ({_clean(move.reason)})' if move.reason else ''
    return ''


def _to(one: moves_plan.Move) -> str:
    name = _clean(one.expected)
    return name if one.to else f'a host that nova chooses ({name})'


def _clean(text: str) -> str:
    """Return a text from a plan or from nova as one line, for a terminal.

    It has no full stop: the caller adds one, or continues the sentence.
    """
    return messages.clean(' '.join(text.split()).rstrip('.'), 1000)
