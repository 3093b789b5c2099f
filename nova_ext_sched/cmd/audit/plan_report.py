# SPDX-License-Identifier: Apache-2.0

"""What a plan of moves writes: a text, rows, a document, or commands."""

import collections
from collections.abc import Iterator
from collections.abc import Sequence
import functools
import shlex
import typing

from nova_ext_sched import messages
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import lister

#: The columns of :func:`rows`.
COLUMNS = (
    'Turn',
    'Server',
    'Name',
    'Project',
    'From',
    'To',
    'Kind',
    'Policies',
    'Room for',
)

#: The format of :func:`write_commands`, beside those of cliff.
COMMANDS = 'commands'

# nova-api has no way around the scheduler from here on: it refuses ``force``.
# A cold migration takes a host since 2.56.
_MICROVERSION = '2.68'
_OPENSTACK = f'openstack --os-compute-api-version {_MICROVERSION} server'

# Moves and servers that people see.
_MOST_MOVES = 20
_MOST_SERVERS = 10
_MOST_CAUSES = 5

_ALL = '-f json lists all'


def rows(plan: typing.Any) -> Iterator[Sequence[object]]:
    """Yield a row for each move, in their order."""
    for turn, one in enumerate(plan.moves, 1):
        yield (
            turn,
            one.server,
            messages.clean(one.name),
            one.project,
            one.source,
            one.target,
            one.kind,
            lister.Several(list(one.policies)),
            one.room_for,
        )


def sum_up(plan: typing.Any) -> str:
    """Return the answer as sentences on one line."""
    moving = sum(not one.room_for for one in plan.moves)
    whole = moving + len(plan.without_place) + len(plan.left_over)
    if not whole:
        sentences = ['No server has to move']
    else:
        head = messages.part(
            moving, whole, 'server', 'can be moved', 'can be moved'
        )
        if plan.without_place:
            number = len(plan.without_place)
            causes = collections.Counter(
                one.cause for one in plan.without_place
            ).most_common(_MOST_CAUSES)
            shown = [
                cause if len(causes) == 1 else f'{cause} {count}'
                for cause, count in causes
            ]
            head += (
                f'; {number} {messages.agree(number, "has", "have")} no '
                f'place: {", ".join(shown)}'
            )
        sentences = [head]
    for number, one, many in (
        (
            len(plan.moves) - moving,
            'other server makes room',
            'other servers make room',
        ),
        (
            len(plan.mended),
            'server violates nothing any more after these moves',
            'servers violate nothing any more after these moves',
        ),
        (
            len(plan.left_over),
            'server is left (--most)',
            'servers are left (--most)',
        ),
    ):
        if number:
            sentences.append(f'{number} {messages.agree(number, one, many)}')
    return ' '.join(f'{text}.' for text in sentences)


def write(out: layout.Layout, plan: typing.Any) -> None:
    """Write the answer, then the moves, then what has no place."""
    out.say(sum_up(plan), hang=0)
    if plan.moves:
        out.say()
        out.say('One after the other:')
        wide = len(str(len(plan.moves)))
        out.fold(
            list(enumerate(plan.moves, 1)),
            _MOST_MOVES,
            functools.partial(_write_move, out, wide),
            'move',
            _ALL,
        )
    if plan.without_place:
        out.say()
        out.say('No place:')
        out.fold(
            plan.without_place,
            _MOST_SERVERS,
            functools.partial(_write_stuck, out),
            'server',
            _ALL,
        )


def _write_move(
    out: layout.Layout, wide: int, numbered: tuple[int, typing.Any]
) -> None:
    turn, one = numbered
    text = f'{one.server}  {one.source} to {one.target}, {one.kind}'
    if one.room_for:
        text += f', makes room for {one.room_for}'
    if one.name:
        text += f'  {messages.clean(one.name, _get_room(out, text))}'
    out.say(text, 2, f'{turn:>{wide}}  ')


def _write_stuck(out: layout.Layout, one: typing.Any) -> None:
    text = f'{one.server.uuid}  {one.host}'
    if one.server.name:
        text += f'  {messages.clean(one.server.name, _get_room(out, text))}'
    out.say(text, 2)
    out.say(f'{one.reason}.', 4)
    if one.helps:
        out.say(f'What would help: {one.helps}.', 4)


def _get_room(out: layout.Layout, text: str) -> int:
    # A name that a user gave is seen as far as the line goes.
    return max(12, out.width - len(text) - 14)


def write_commands(stream: typing.Any, plan: typing.Any) -> None:
    """Write commands that make the moves.

    What a user wrote is in none of them.
    """
    for one in plan.moves:
        live = '--live-migration ' if one.kind == 'live' else ''
        stream.write(
            f'{_OPENSTACK} migrate {live}--wait '
            f'--host {shlex.quote(one.target)} {one.server}\n'
        )
        if not live:
            stream.write(f'{_OPENSTACK} resize confirm {one.server}\n')


def make_document(plan: typing.Any) -> dict[str, typing.Any]:
    """Return the plan for the document of the audit."""
    return {
        'sentence': sum_up(plan),
        'moves': [
            {
                'server': one.server,
                'name': messages.clean(one.name),
                'project': one.project,
                'from': one.source,
                'to': one.target,
                'kind': one.kind,
                'policies': list(one.policies),
                'room_for': one.room_for or None,
            }
            for one in plan.moves
        ],
        'without_place': [
            {
                **_describe(one),
                'reason': one.reason,
                'cause': one.cause,
                'would_help': one.helps,
            }
            for one in plan.without_place
        ],
        'mended_by_others': list(map(_describe, plan.mended)),
        'left_over': list(map(_describe, plan.left_over)),
    }


def _describe(one: typing.Any) -> dict[str, typing.Any]:
    return {
        'server': one.server.uuid,
        'name': messages.clean(one.server.name),
        'project': one.server.project_id,
        'host': one.host,
        'policies': list(one.policies),
    }
