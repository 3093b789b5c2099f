# SPDX-License-Identifier: Apache-2.0

"""Reads the servers on the hosts to be emptied, after the moves."""

from collections.abc import Iterable
import dataclasses
import time

from nova_ext_sched import messages
from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_making
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_run
from nova_ext_sched.osc import moves_step
from nova_ext_sched.osc import moves_words


@dataclasses.dataclass(frozen=True)
class Left:
    """A server still on a host to be emptied, and not in the report so far.

    :ivar why: if it is being deleted, a text that says so, and what to do;
        else empty: it came there after the plan was made
    """

    server: str
    name: str
    host: str
    why: str = ''


def find(
    plan: moves_plan.Plan, cloud: moves_cloud.Cloud, is_dry: bool
) -> list[Left]:
    """Return the servers on the hosts of a plan that nothing else reports.

    The report names the servers of moves that are not done, and the servers
    that the plan could not move. A deletion gets :data:`.moves_making.HELD`
    seconds to end.

    :param is_dry: whether to return at once
    :raises Exception: one of :data:`.moves_cloud.ERRORS`
    """
    reported = {one.server for one in plan.stranded}
    reported |= {
        one.server for one in plan.moves if one.result not in moves_plan.OVER
    }
    began = time.monotonic()
    while True:
        there = [
            server
            for host in plan.to_be_empty
            for server in cloud.read_servers_on(host)
            if server.id not in reported
        ]
        is_late = time.monotonic() - began > moves_making.HELD
        if (
            is_dry
            or is_late
            or not any(map(moves_words.may_be_gone_soon, there))
        ):
            break
        time.sleep(moves_run.SECONDS)
    return [
        Left(
            server.id,
            server.name or '',
            server.compute_host,
            moves_words.say_deleting(server)
            if moves_step.is_deleting(server)
            else '',
        )
        for server in there
    ]


def say(plan: moves_plan.Plan, left: Iterable[Left]) -> list[str]:
    """Return sentences on the servers that :func:`find` found."""
    said = [
        f'{messages.clean(one.name) or one.server}: {one.why}.'
        for one in left
        if one.why
    ]
    new = [one for one in left if not one.why]
    if new:
        number = messages.count('server', len(new))
        named = messages.first_few(
            [f'{one.name or one.server} on {one.host}' for one in new]
        )
        again = f': {messages.clean(plan.command, 1000)}' * bool(plan.command)
        are = messages.agree(len(new), 'is', 'are')
        said.append(
            f'{number} not in the plan {are} on a host that is to be empty: '
            f'{named}. Make a new plan{again}.'
        )
    return said
