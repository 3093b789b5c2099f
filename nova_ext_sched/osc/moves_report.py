# SPDX-License-Identifier: Apache-2.0

"""Reports the result of moves."""

from collections.abc import Sequence

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.cli import base
from nova_ext_sched.cli import report
from nova_ext_sched.cli import terminal
from nova_ext_sched.osc import moves_left
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_remedies
from nova_ext_sched.osc import moves_words
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

# The most moves of one result that are shown.
_MOST_MOVES = 10

# The style of the count of each result; FAILED and LEFT_OUT keep the default
# style, terminal.BAD.
_STYLES = {
    str(result): terminal.GOOD if result in moves_plan.OVER else ''
    for result in Result
    if result not in (Result.FAILED, Result.LEFT_OUT)
}


def make(
    plan: moves_plan.Plan,
    left: Sequence[moves_left.Left] | None,
    *remarks: str,
) -> report.Report:
    """Return the report of moves, with a section for each result.

    :param left: servers that are still on hosts to be emptied, and that the
        report names for no other reason; None if these hosts could not be read
    :param remarks: sentences on hosts that were disabled, or whose servers
        could not be read
    """
    moves, status = plan.moves, _find_status(plan, left)
    left = left or ()
    said = [
        *(
            moves_words.say_about(one, one.reason)
            for one in moves
            if one.result == Result.FAILED
        ),
        *moves_remedies.say_undone(plan),
        *moves_remedies.say_next(plan),
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
                f'{moves_words.clean(move.host)} to {_to(move)}, {move.actual}'
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


def _find_status(
    plan: moves_plan.Plan, left: Sequence[moves_left.Left] | None
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
    """
    failed = any(one.result == Result.FAILED for one in plan.moves)
    if failed or left is None:
        return base.FAULT
    is_over = all(one.is_over for one in plan.moves)
    is_fine = is_over and not (plan.stranded or left)
    return base.FINE if is_fine else base.SOME_FOUND


def _say_why(move: moves_plan.Move) -> str:
    """Return why a move is cold, or the reason of its result, in parentheses.

    It is empty if there is nothing to say.
    """
    if move.actual == plan_format.COLD == move.method and move.why_cold:
        return f' ({_WHY_COLD[move.why_cold]})'
    if move.result in (Result.MOVED, Result.PLANNED, Result.NOT_TRIED):
        return f' ({moves_words.clean(move.reason)})' if move.reason else ''
    return ''


def _to(one: moves_plan.Move) -> str:
    name = moves_words.clean(one.expected)
    return name if one.to else f'a host that nova chooses ({name})'
