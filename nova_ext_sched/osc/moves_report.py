# SPDX-License-Identifier: Apache-2.0

"""What is told of moves that are made."""

from collections.abc import Sequence

from nova_ext_sched import messages
from nova_ext_sched.cli import report
from nova_ext_sched.cli import terminal
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc.moves_plan import Result

#: The columns of the moves.
COLUMNS = ('Turn', 'Server', 'Name', 'Host', 'To', 'Kind', 'Result', 'Reason')

# What people see of moves with one result.
_MOST_MOVES = 10

# A move of which nothing is left to do.
_OVER = {Result.MOVED, Result.ELSEWHERE, Result.THERE, Result.GONE}

# Of the numbers: moves that are to come are neither good nor bad.
_STYLES = {
    str(one): terminal.GOOD if one in _OVER else ''
    for one in Result
    if one != Result.FAILED
}


def make(
    moves: Sequence[moves_plan.Move], status: int, *remarks: str
) -> report.Report:
    """Return the report of moves, what is not made first.

    :param remarks: sentences on hosts
    """
    failed = [one for one in moves if one.result == Result.FAILED]
    said = [
        *(
            f'Turn {one.turn}, {messages.clean(one.name) or one.server}: '
            f'{_clean(one.reason)}.'
            for one in failed
        ),
        *(['Run the command again to go on from there.'] if failed else []),
    ]
    counts = [
        (number, str(result))
        for result in Result
        if (number := sum(one.result == result for one in moves))
    ]
    head = sum_up(moves)
    sentence, sections = report.begin(
        head, *said, *remarks, counts=counts, styles=_STYLES
    )
    for result in Result:
        lines = [
            report.Line(
                f'{_clean(one.host)} to {_to(one)}, {one.kind}',
                one.turn,
                one.name,
                uuid=one.server,
            )
            for one in moves
            if one.result == result
        ]
        if lines:
            title = f'{result.capitalize()}:'
            sections.append(report.Section(title, lines, _MOST_MOVES, 'move'))
    rows = [
        (
            one.turn,
            one.server,
            one.name,
            one.host,
            one.to or '',
            one.kind,
            str(one.result),
            one.reason,
        )
        for one in moves
    ]
    return report.Report(sentence, sections, rows, status=status)


def sum_up(moves: Sequence[moves_plan.Move]) -> str:
    """Return in a clause how many moves are made."""
    over = len(moves) - count_left(moves)
    return messages.part(over, len(moves), 'move', 'is done', 'are done')


def count_left(moves: Sequence[moves_plan.Move]) -> int:
    """Return of how many moves something is left to do."""
    return sum(one.result not in _OVER for one in moves)


def _to(one: moves_plan.Move) -> str:
    name = _clean(one.expected)
    return name if one.to else f'where nova chooses ({name})'


def _clean(text: str) -> str:
    """Return a text of a plan or of nova, which may have several lines."""
    return messages.clean(' '.join(text.split()).rstrip('.'), 1000)
