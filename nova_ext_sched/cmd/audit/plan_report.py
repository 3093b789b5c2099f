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

#: What the document has of a plan, or of one server of it.
Plan = dict[str, typing.Any]

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

_MENDED = 'nothing any more after these moves'
_ALL = '-f json lists all'


def rows(plan: Plan) -> Iterator[Sequence[object]]:
    """Yield a row for each move, in their order."""
    for turn, one in enumerate(plan['moves'], 1):
        *cells, policies, room_for = one.values()
        yield (turn, *cells, lister.Several(policies), room_for or '')


def sum_up(plan: Plan) -> str:
    """Return the answer as sentences on one line."""
    moving = sum(not one['room_for'] for one in plan['moves'])
    makes_room = len(plan['moves']) - moving
    stuck, mended = plan['without_place'], len(plan['mended_by_others'])
    left = len(plan['left_over'])
    whole = moving + len(stuck) + left
    head = 'No server has to move'
    if whole:
        head = f'{moving} of {messages.count("server", whole)} can be moved'
    if stuck:
        causes = collections.Counter(
            one['cause'] for one in stuck
        ).most_common(_MOST_CAUSES)
        shown = [
            cause if len(causes) == 1 else f'{cause} {count}'
            for cause, count in causes
        ]
        verb = messages.agree(len(stuck), 'has', 'have')
        head += f'; {len(stuck)} {verb} no place: {", ".join(shown)}'
    sentences = [head]
    for number, noun, one, many, what in (
        (makes_room, 'other server', 'makes', 'make', 'room'),
        (mended, 'server', 'violates', 'violate', _MENDED),
        (left, 'server', 'is', 'are', 'left (--most)'),
    ):
        if number:
            verb = messages.agree(number, one, many)
            sentences.append(f'{messages.count(noun, number)} {verb} {what}')
    return ' '.join(f'{text}.' for text in sentences)


def write(out: layout.Layout, plan: Plan) -> None:
    """Write the answer, then the moves, then what has no place."""
    out.say(sum_up(plan), hang=0)
    if plan['moves']:
        out.section('One after the other:')
        moves = [_describe_move(out, one) for one in plan['moves']]
        out.counts(list(enumerate(moves, 1)), _MOST_MOVES, 'move', _ALL)
    if plan['without_place']:
        out.section('No place:')
        out.fold(
            plan['without_place'],
            _MOST_SERVERS,
            functools.partial(_write_stuck, out),
            'server',
            _ALL,
        )


def _describe_move(out: layout.Layout, one: Plan) -> str:
    text = f'{one["server"]}  {one["from"]} to {one["to"]}, {one["kind"]}'
    if one['room_for']:
        text += f', makes room for {one["room_for"]}'
    # Before it stands the number of its turn.
    return report.add_name(out, text, one['name'], indent=10)


def _write_stuck(out: layout.Layout, one: Plan) -> None:
    text = f'{one["server"]}  {one["host"]}'
    out.say(report.add_name(out, text, one['name']), 2)
    out.say(f'{one["reason"]}.', 4)
    if one['would_help']:
        out.say(f'What would help: {one["would_help"]}.', 4)


def write_commands(stream: typing.Any, plan: Plan) -> None:
    """Write commands that make the moves.

    What a user wrote is in none of them.
    """
    for one in plan['moves']:
        live = '--live-migration ' if one['kind'] == 'live' else ''
        stream.write(
            f'{_OPENSTACK} migrate {live}--wait '
            f'--host {shlex.quote(one["to"])} {one["server"]}\n'
        )
        if not live:
            stream.write(f'{_OPENSTACK} resize confirm {one["server"]}\n')
