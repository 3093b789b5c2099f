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

#: The result of a server on a host to be emptied that no move names.
NOT_IN_PLAN = 'not in the plan'

# Why a move is cold.
_WHY = {
    plan_format.STOPPED: 'stopped',
    **{why: said for why, (said, _) in plan_format.SHUT_DOWN.items()},
}

# How moves are counted before they are made, in this order.
_STOPPED = 'cold of servers that are stopped'
_SHUTS_DOWN = 'cold of running servers'
_KINDS = (
    plan_format.LIVE,
    plan_format.EVACUATE,
    _STOPPED,
    _SHUTS_DOWN,
)

_OLD = datetime.timedelta(days=1)

# How many fixes people see.
_MOST_HELPS = 5

# The most moves of one result that people see.
_MOST_MOVES = 10

# The signs of numbers: moves to come are neither good nor bad.
_STYLES = {
    str(one): terminal.GOOD if one in moves_plan.OVER else ''
    for one in Result
    if one not in (Result.FAILED, Result.LEFT_OUT)
}


# The next step, by the end of moves.
_SAID = {
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
    """Return the report of moves, unfinished ones first.

    :param remarks: sentences on hosts
    :param left: servers on hosts that are to be empty
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
        ('', move.server, move.name, move.host, '', '', NOT_IN_PLAN, move.why)
        for move in left
    ]
    return report.Report(sentence, sections, rows, status=status)


def sum_up(moves: Sequence[moves_plan.Move]) -> str:
    """Return in a clause how many moves are made."""
    over = sum(one.result in moves_plan.OVER for one in moves)
    return messages.part(over, len(moves), 'move', 'is done', 'are done')


def find_status(
    plan: moves_plan.Plan, left: Sequence[moves_left.Left] | None = ()
) -> int:
    """Return the exit status.

    ======  ===============================================================
    status  meaning
    ======  ===============================================================
    0       each move is made, each server had a place, and none is on a
            host that is to be empty
    1       a move failed, or nobody knows what is on these hosts
    3       a move is left, room is not given back, a server had no place,
            or is on such a host
    ======  ===============================================================

    :param left: servers on hosts that are to be empty; None where that could
        not be read
    """
    failed = any(one.result == Result.FAILED for one in plan.moves)
    if failed or left is None:
        return base.FAULT
    is_over = all(one.is_over for one in plan.moves)
    is_fine = is_over and not (plan.stranded or left)
    return base.FINE if is_fine else base.SOME_FOUND


def say_plan(plan: moves_plan.Plan, cloud: str) -> list[str]:
    """Describe the plan that is about to be carried out.

    :param cloud: its name
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

    :param now: with its zone
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
    """Yield sentences on servers that are left, and on other work left."""
    for move in plan.moves:
        if move.held:
            yield f'{_say_turn(move)}: {_clean(move.held)}.'
    for move in plan.moves:
        if move.result == Result.DELETING:
            yield f'{_say_turn(move)}: {_clean(move.reason)}.'
    for move in plan.moves:
        if move.result == Result.LEFT_OUT:
            yield f'{_say_turn(move)} was left out: {_clean(move.reason)}.'
    chosen = [
        move for move in plan.stranded if move.cause == plan_format.LEFT_OUT
    ]
    for kept in chosen[:_MOST_HELPS]:
        name = _clean(kept.name or kept.server)
        yield f'{name} stays on {_clean(kept.host)}: {_clean(kept.reason)}.'
    if (more := len(chosen) - _MOST_HELPS) > 0:
        yield f'{more} more that you left out: see without_place of the plan.'
    stranded = [one for one in plan.stranded if one not in chosen]
    if stranded:
        number = messages.count('server', len(stranded))
        names = messages.first_few(
            [f'{one.name or one.server} on {one.host}' for one in stranded]
        )
        yield (f'{number} could not be moved when the plan was made: {names}.')
        helped: dict[str, list[str]] = {}
        for lost in stranded:
            if lost.would_help:
                helps = messages.clean(lost.would_help, 1000)
                helped.setdefault(helps, []).append(lost.name or lost.server)
        for helps, whom in [*helped.items()][:_MOST_HELPS]:
            whose = f' for {messages.first_few(whom)}' * (
                len(whom) < len(stranded)
            )
            yield f'Fix{whose}: {helps}.'
        if (more := len(helped) - _MOST_HELPS) > 0:
            yield f'{more} more: see without_place of the plan.'


def _say_end(plan: moves_plan.Plan) -> Iterator[str]:
    """Yield the next steps, if a move was not made."""
    missed = [
        one
        for one in plan.moves
        if one.result in (Result.FAILED, Result.LEFT_OUT)
    ]
    failed = [one for one in missed if one.result == Result.FAILED]
    again = f': {messages.clean(plan.command, 1000)}' if plan.command else ''
    waits = any(
        one.result == Result.DELETING
        or (one.result == Result.NOT_TRIED and one.reason)
        for one in plan.moves
    )
    in_error = sum(one.is_in_error for one in plan.moves)
    if in_error >= moves_run.MOST_IN_ERROR:
        yield (
            f'Nothing more was begun: {messages.count("server", in_error)} '
            'are in ERROR.'
        )
    if failed:
        end = max(one.remedy for one in failed)
        text = _SAID[end]
        yield f'{text}{again}.' if end == Remedy.NEW_PLAN else text
        if end == Remedy.FIX:
            yield f'{_say_without(plan, failed, again)}.'
        yield from _say_undo(plan.moves)
    elif missed or waits:
        yield (
            f'For the servers left out, make a new plan{again}.'
            if missed
            else 'When that room is free, run the command again.'
        )


def _say_undo(moves: Sequence[moves_plan.Move]) -> Iterator[str]:
    """Yield how to go back, where a plan was half made.

    nova has no way back from an evacuation.
    """
    made = [
        one
        for one in moves
        if one.result == Result.MOVED and one.actual != plan_format.EVACUATE
    ]
    if made:
        last = made[-1]
        is_live = last.actual == plan_format.LIVE
        # From that version on, nova takes a host for each kind of move.
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
    """Describe how to continue without the refused moves."""
    text = 'To continue without it: --skip SERVER, or --keep-going'
    # Only hosts that nova names: the others are as good as before.
    # survive, which plans evacuations, takes no --not-to.
    hosts = {
        one.expected
        for one in failed
        if one.remedy == Remedy.FIX
        and one.method != plan_format.EVACUATE
        and _names(one.reason, one.expected)
    }
    if not hosts or not plan.command:
        return text
    options = ' '.join(
        f'--not-to {host}' for host in sorted(hosts, key=messages.in_order)
    )
    return f'{text}; or make a new plan{again} {messages.clean(options)}'


def _names(reason: str, host: str) -> bool:
    """Return whether a reason has the name of a host, not of a longer one."""
    name = rf'(?<![\w.-]){re.escape(host)}(?![\w-]|\.\w)'
    return re.search(name, reason) is not None


def _say_turn(one: moves_plan.Move) -> str:
    return f'Move {one.turn} ({one.shown})'


def _say_why(move: moves_plan.Move) -> str:
    """Return why a move is cold, or is not tried."""
    if move.actual == plan_format.COLD == move.method and move.why_cold:
        return f' ({_WHY[move.why_cold]})'
    if move.result == Result.DELETING:
        return ''
    if move.result in (Result.MOVED, Result.PLANNED, Result.NOT_TRIED):
        return f' ({_clean(move.reason)})' if move.reason else ''
    return ''


def _to(one: moves_plan.Move) -> str:
    name = _clean(one.expected)
    return name if one.to else f'a host that nova chooses ({name})'


def _clean(text: str) -> str:
    """Clean a text of a plan or of nova, of one line or several."""
    return messages.clean(' '.join(text.split()).rstrip('.'), 1000)
