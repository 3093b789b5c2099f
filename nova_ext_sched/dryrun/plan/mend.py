# SPDX-License-Identifier: Apache-2.0

"""Which servers must leave their hosts, so that none violates a policy."""

from collections.abc import Mapping
from collections.abc import Set
import copy
import dataclasses

from nova_ext_sched import messages
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.audit import auditor
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import order
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import preparation


def make(
    auditing: auditor.Auditor,
    advance: progress.Advance = progress.silent,
    not_to: Set[str] = frozenset(),
) -> plans.Plan:
    """Return the moves after which the servers found violate no policy.

    A server that violates a policy only for the members of its server group
    beside it may stay once enough of them have left. Those that violate most
    policies go first.

    :param auditing: finds the servers
    :param advance: called after each server that is judged, and then planned
    :param not_to: names of hosts that get no server
    :raises placement.PlacementFailed: placement does not answer
    """
    advance(total=auditing.count())
    found = [one for one in auditing.judge(advance) if one.policies]
    found.sort(key=lambda one: -len(one.policies))
    by_uuid = {one.uuid: one for one in found}
    must: list[plans.Leaving] = []
    may: list[plans.Leaving] = []
    for one in found:
        beside = all(map(auditing.policies.counts_group, one.policies))
        (may if beside else must).append(
            plans.Leaving(
                one.uuid,
                messages.clean(one.name),
                one.project_id,
                one.host,
                one.policies,
            )
        )
    cloud, kept = auditing.cloud, auditing.policies.on
    places = destinations.Destinations(cloud)
    places.begin(not_to)
    advance(label='Planning moves', total=len(found))
    movables = preparation.prepare(places, (*must, *may), not_to)
    plan = order.plan_moves(
        places,
        movables,
        kept,
        must,
        may,
        lambda one, moved: is_mended(
            auditing.policies, by_uuid[one.server], moved
        ),
        advance,
    )
    return order.leave_out_gone(cloud, plan)


def is_mended(
    judging: policies.Policies, one: servers.Server, moved: Mapping[str, str]
) -> bool:
    """Return whether a server that stays violates no policy after moves.

    In the fork in which they are made.

    :param moved: the hosts of the servers that moved, by their UUIDs
    """
    state = copy.copy(one.host_state)
    state.instances = {
        uuid: None
        for uuid in (*state.instances, *moved)
        if moved.get(uuid, one.host) == one.host and uuid != one.uuid
    }
    now = dataclasses.replace(one, host_state=state)
    return not any(judging.judge(now))
