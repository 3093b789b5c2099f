# SPDX-License-Identifier: Apache-2.0

"""Says what the moves leave undone, and what to do next."""

from collections.abc import Iterator
from collections.abc import Sequence
import re

from nova_ext_sched import grouping
from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_run
from nova_ext_sched.osc import moves_words
from nova_ext_sched.osc.moves_plan import Remedy
from nova_ext_sched.osc.moves_plan import Result

# The most sentences of one kind that are shown.
_MOST_SENTENCES = 5

# The sentence on what to do next, by the remedy of the failed moves. The last
# has no full stop, because the plan's command follows.
_NEXT_STEPS = {
    Remedy.RUN_AGAIN: 'Run the command again to continue.',
    Remedy.FIX: 'Fix that, then run the command again to continue.',
    Remedy.NEW_PLAN: 'Fix what is named, then make a new plan',
}


def say_undone(plan: moves_plan.Plan) -> Iterator[str]:
    """Yield sentences on what the moves leave undone.

    These are held room, deletions, servers left out, and servers without a
    place.
    """
    say, moves = moves_words.say_about, plan.moves
    yield from (say(one, one.held) for one in moves if one.held)
    yield from (
        say(one, one.reason) for one in moves if one.result == Result.DELETING
    )
    yield from (
        say(one, one.reason, ' was left out')
        for one in moves
        if one.result == Result.LEFT_OUT
    )
    left_out = [
        server
        for server in plan.stranded
        if server.cause == plan_format.LEFT_OUT
    ]
    for server in left_out[:_MOST_SENTENCES]:
        name, host, why = map(
            moves_words.clean,
            (server.name or server.server, server.host, server.reason),
        )
        yield f'{name} stays on {host}: {why}.'
    if (more := len(left_out) - _MOST_SENTENCES) > 0:
        yield f'{more} more that you left out: see without_place of the plan.'
    stranded = [one for one in plan.stranded if one not in left_out]
    if stranded:
        number = messages.count('server', len(stranded))
        names = messages.first_few(
            [f'{one.name or one.server} on {one.host}' for one in stranded]
        )
        yield (f'{number} could not be moved when the plan was made: {names}.')
        servers_by_fix = grouping.by_key(
            (messages.clean(one.would_help, 1000), one.name or one.server)
            for one in stranded
            if one.would_help
        )
        for fix, servers in [*servers_by_fix.items()][:_MOST_SENTENCES]:
            is_for_all = len(servers) == len(stranded)
            whose = '' if is_for_all else f' for {messages.first_few(servers)}'
            yield f'Fix{whose}: {fix}.'
        if (more := len(servers_by_fix) - _MOST_SENTENCES) > 0:
            yield f'{more} more fixes: see without_place of the plan.'


def say_next(plan: moves_plan.Plan) -> Iterator[str]:
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
            f'{"--live-migration " * is_live}--host '
            f'{moves_words.clean(last.host)} '
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
