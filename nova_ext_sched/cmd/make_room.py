# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched make-room``."""

import argparse
from collections.abc import Sequence
import dataclasses
import typing

from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cli import options
from nova_ext_sched.cli import report
from nova_ext_sched.cli import terminal
from nova_ext_sched.cli import topology
from nova_ext_sched.cmd import plan_command
from nova_ext_sched.cmd import plan_map
from nova_ext_sched.cmd import plan_report
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.plan import plans

# The sign of a host that has room after the moves.
_ROOM = topology.Sign('n', style=terminal.GOOD)


class MakeRoom(plan_command.Planner):
    """Plan the moves that let new servers fit, in an order that works.

    New servers that already fit are placed first, so that no move takes their
    room. Asks nova-scheduler's own code where each server can go, and whether
    the new one fits then. It changes nothing.
    """

    _epilog = (
        'Exit status: 0 all fit after the moves; 1 something could not be '
        'read; 2 wrong usage; 3 not all fit; 130 interrupted.'
    )

    examples = (
        '--flavor m1.huge',
        '--flavor m1.huge --count 4 --output plan.json',
        '--flavor m1.huge --aggregate windows --cold',
    )

    arguments = {
        '--cold': {
            'action': 'store_true',
            'help': 'allow cold migration of running servers that cannot be '
            'live-migrated',
        },
        **options.NOT_TO,
    }

    label = 'Making room'

    def add_groups(self, parser: argparse.ArgumentParser) -> None:
        base.add(
            parser.add_argument_group('the new servers'),
            {
                '--flavor': {
                    'metavar': 'FLAVOR',
                    'required': True,
                    'help': 'name or ID',
                },
                '--count': {
                    'metavar': 'N',
                    'type': base.read_amount,
                    'default': 1,
                    'help': 'how many must fit (default: 1)',
                },
                **options.OF_SERVER,
            },
        )
        base.add(
            parser.add_argument_group('where they can go'),
            {
                '--host': {
                    **base.REPEATABLE,
                    'metavar': 'HOST',
                    'dest': 'hosts',
                    'help': 'only to this host (repeatable)',
                },
                **plan_command.choose('only to hosts'),
            },
        )

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        return self.ask(plan, parsed_args)


def plan(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> report.Report:
    """Plan moves after which new servers fit; return the report."""
    from nova_ext_sched.cmd import arguments
    from nova_ext_sched.dryrun.cloud import selection
    from nova_ext_sched.dryrun.plan import make_room

    chosen = parsed_args.hosts, parsed_args.aggregate, parsed_args.domain
    with arguments.read_cloud(parsed_args, patient=True) as cloud:
        room = make_room.make(
            cloud,
            arguments.make_question(parsed_args, flavor=parsed_args.flavor),
            parsed_args.count,
            selection.find(cloud, *chosen) if any(chosen) else None,
            parsed_args.cold,
            selection.find_any(cloud, parsed_args.not_to),
            advance,
        )
        hosts = selection.make_documents(cloud)
        made = tell(room, cloud.faults, hosts)
        if room.never:
            return made
        return report.add_map(
            made, parsed_args, lambda by: draw(room, hosts, by)
        )


def tell(
    room: plans.Room,
    faults: Sequence[str],
    hosts: Sequence[dict[str, typing.Any]] = (),
) -> report.Report:
    """Return the report of moves after which new servers fit.

    :param faults: sentences on what could not be read
    :param hosts: the result of :func:`.selection.make_documents`
    """
    now, made = room.fit_now, len(room.room_on) - room.fit_now
    rest = room.count - len(room.room_on)
    head = f'{now} of {room.count} {messages.agree(now, "fits", "fit")} now'
    if made:
        whom = f'{made} more' if rest else f'the other {made}'
        head += f'. {plan_report.say_room(room, f" for {whom}")}'
    said = []
    if room.never:
        head = f'{room.flavor} can never fit: {room.never}'
    elif rest:
        head += f'. No moves make room for {_name_rest(rest, room.count)}'
        said += room.in_the_way
        if room.would_help:
            said.append(f'Fix: {room.would_help}.')
    elif not made:
        head += ', and no server has to move'
    if now and made:
        said.append(
            f'{messages.agree(now, "The one", f"The {now}")} that '
            f'{messages.agree(now, "fits", "fit")} now '
            f'{messages.agree(now, "is", "are")} placed first, so that no '
            'move takes that room.'
        )
    if made:
        said.append(
            'Nothing reserves the room: create the servers right after the '
            'moves, each on its own host (room_on in the document).'
        )
    whole = plan_report.make(room, said, faults, hosts=hosts, head=head)
    return dataclasses.replace(
        whole,
        status=whole.status or (base.SOME_FOUND if rest else base.FINE),
    )


def _name_rest(rest: int, count: int) -> str:
    if rest == count:
        return messages.agree(rest, 'it', 'them')
    return 'the other' + f' {rest}' * (rest > 1)


def draw(
    room: plans.Room,
    hosts: Sequence[dict[str, typing.Any]],
    by: str | None,
) -> topology.Map:
    """Return the map of hosts with room for new servers, and of the moves."""
    drawn = plan_map.draw_moves(room, frozenset(), hosts, by)
    taking = dict.fromkeys(filter(None, room.room_on[room.fit_now :]), _ROOM)
    return dataclasses.replace(
        drawn,
        signs={**drawn.signs, **taking},
        legend={_ROOM.shown: 'room for new servers', **drawn.legend},
    )
