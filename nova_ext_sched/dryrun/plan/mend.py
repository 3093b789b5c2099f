# SPDX-License-Identifier: Apache-2.0

"""Plans the moves of servers that violate a policy."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Set
import copy
import dataclasses
import functools

import nova.conf

from nova_ext_sched import messages
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.audit import auditor
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.plan import departures
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import plans

CONF = nova.conf.CONF


def make(
    auditing: auditor.Auditor,
    advance: progress.Advance = progress.silent,
    not_to: Set[str] = frozenset(),
    number: int = 1,
) -> plans.Plan:
    """Plan the moves after which the given servers violate no policy.

    A server that violates a policy only for the members of its server group
    beside it may stay once enough have left. Those that violate most
    policies go first.

    :param auditing: finds the servers
    :param advance: called after each server that is judged, and then planned
    :param not_to: names of hosts that get no server
    :param number: of jobs that judge servers
    :raises placement.PlacementFailed: placement does not answer
    :raises .jobs.JobFailed: a job died
    """
    advance(total=auditing.count())
    violating = _find_violating(auditing, number, advance)
    violating.sort(key=lambda one: -len(one.policies))
    barred = set(not_to)
    if CONF.nova_ext_sched.failover_takes:
        # Live migrations could go there: audit would find them again.
        barred |= auditing.policies.held
    goal = planner.Goal(
        leaving=[
            plans.Leaving(
                server.uuid,
                messages.clean(server.name),
                server.project_id,
                server.host,
                server.policies,
            )
            for server in violating
        ],
        may_stay={
            server.uuid: functools.partial(
                is_mended, auditing.policies, server
            )
            for server in violating
            if all(map(auditing.policies.counts_group, server.policies))
        },
        barred=barred,
        never_given_up=auditing.policies.on,
        hardest_first=False,
    )
    places = destinations.Destinations(auditing.cloud)
    advance(label='Planning moves', total=len(violating))
    if number > 1:
        places.answers.ask_ahead(
            [one.request_spec for one in violating if one.request_spec],
            number,
        )
    prepare = functools.partial(departures.prepare, places)
    return planner.plan(places, goal, prepare, advance)


def _find_violating(
    auditing: auditor.Auditor, number: int, advance: progress.Advance
) -> list[policies.Standing]:
    """Return the servers that violate a policy, cell by cell."""
    if number == 1:
        return [one for one in auditing.judge(advance) if one.policies]

    def collect(
        standing: Iterable[policies.Standing],
    ) -> list[tuple[str, str, str]]:
        return [
            (one.host_state.cell_uuid, one.host, one.uuid)
            for one in standing
            if one.policies
        ]

    # What nova has of a server would be costly to send; few violate one.
    return [
        standing
        for of_cell in auditing.judge_in_jobs(number, collect, advance)
        for standing in auditing.judge_again(of_cell)
    ]


def is_mended(
    judging: policies.Policies,
    server: policies.Standing,
    moved: Mapping[str, str],
) -> bool:
    """Return whether a server that stays violates no policy after the moves.

    In the fork in which they are made.

    :param moved: the hosts of the servers that moved, by their UUIDs
    """
    state = copy.copy(server.host_state)
    state.instances = {
        uuid: None
        for uuid in (*state.instances, *moved)
        if moved.get(uuid, server.host) == server.host and uuid != server.uuid
    }
    now = dataclasses.replace(server, host_state=state)
    return not any(judging.judge(now))
