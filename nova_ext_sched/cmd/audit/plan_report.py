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
from nova_ext_sched.cmd.audit import report

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

# What the document calls the columns of a move.
_KEYS = [name.lower().replace(' ', '_') for name in COLUMNS[1:]]

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

_MENDED = 'nothing any more after these moves'
_ALL = '-f json lists all'


def rows(plan: typing.Any) -> Iterator[Sequence[object]]:
    """Yield a row for each move, in their order."""
    for turn, one in enumerate(plan.moves, 1):
        yield (turn, *one._replace(policies=lister.Several(one.policies)))


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
    for number, noun, one, many, what in (
        (len(plan.moves) - moving, 'other server', 'makes', 'make', 'room'),
        (len(plan.mended), 'server', 'violates', 'violate', _MENDED),
        (len(plan.left_over), 'server', 'is', 'are', 'left (--most)'),
    ):
        if number:
            verb = messages.agree(number, one, many)
            sentences.append(f'{messages.count(noun, number)} {verb} {what}')
    return ' '.join(f'{text}.' for text in sentences)


def write(out: layout.Layout, plan: typing.Any) -> None:
    """Write the answer, then the moves, then what has no place."""
    out.say(sum_up(plan), hang=0)
    if plan.moves:
        out.say()
        out.say('One after the other:')
        out.counts(
            [
                (turn, _describe_move(out, one))
                for turn, one in enumerate(plan.moves, 1)
            ],
            _MOST_MOVES,
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


def _describe_move(out: layout.Layout, one: typing.Any) -> str:
    text = f'{one.server}  {one.source} to {one.target}, {one.kind}'
    if one.room_for:
        text += f', makes room for {one.room_for}'
    # Before it stands the number of its turn.
    return report.add_name(out, text, one.name, indent=10)


def _write_stuck(out: layout.Layout, one: typing.Any) -> None:
    server = one.server
    text = f'{server.uuid}  {server.host}'
    out.say(report.add_name(out, text, server.name), 2)
    out.say(f'{one.reason}.', 4)
    if one.helps:
        out.say(f'What would help: {one.helps}.', 4)


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
                **dict(zip(_KEYS, one, strict=True)),
                'room_for': one.room_for or None,
            }
            for one in plan.moves
        ],
        'without_place': [
            {
                **_describe(one.server),
                'reason': one.reason,
                'cause': one.cause,
                'would_help': one.helps,
            }
            for one in plan.without_place
        ],
        'mended_by_others': list(map(_describe, plan.mended)),
        'left_over': list(map(_describe, plan.left_over)),
    }


def _describe(server: typing.Any) -> dict[str, typing.Any]:
    return {
        'server': server.uuid,
        'name': messages.clean(server.name),
        'project': server.project_id,
        'host': server.host,
        'policies': server.policies,
    }
