# SPDX-License-Identifier: Apache-2.0

"""Asks the user to agree to a plan: warns, shows it, reads the answer."""

import collections
from collections.abc import Callable
from collections.abc import Sequence
import datetime
import sys

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.osc import moves_plan

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


class NotAgreed(Exception):
    """The user did not agree to carry out the plan."""


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


def ask(
    described: Sequence[str],
    is_agreed: bool,
    say: Callable[[str], object],
    read: Callable[[str], str] = input,
) -> None:
    """Show a plan, and ask whether to carry it out.

    :param described: the result of :func:`say_plan`
    :param is_agreed: whether the user has agreed already
    :param say: called with each line
    :raises NotAgreed: the user said no
    """
    for line in described:
        say(line)
    if is_agreed or not sys.stdin.isatty():
        return
    say('Carry it out? [y/N]')
    try:
        answer = read('')
    except EOFError:
        answer = ''
    if answer.strip().lower() not in ('y', 'yes'):
        raise NotAgreed('nothing was done')
