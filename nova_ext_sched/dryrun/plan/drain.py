# SPDX-License-Identifier: Apache-2.0

"""Plans the moves that empty hosts."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Set
import contextlib
import dataclasses
import functools
import typing

from nova import exception as nova_exception
from nova import objects

from nova_ext_sched import messages
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.plan import departures
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import holders
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.queries import servers as queries

# A cell has nova's time for each question: the servers of thousands of hosts
# take longer.
_HOSTS_AT_ONCE = 100


def plan(
    cloud: snapshot.Snapshot,
    hosts: Set[str],
    advance: progress.Advance = progress.silent,
    not_to: Set[str] = frozenset(),
) -> tuple[plans.Plan, Set[str]]:
    """Plan the moves that empty hosts, and judge the hosts after them.

    The parameters, and what is raised, are those of :func:`make`.

    :returns: the plan, with the hosts that stay occupied, or enabled; and the
        hosts whose servers are unknown
    """
    made = make(cloud, hosts, advance, not_to)
    # Of a cell that answered at first, some servers are known.
    unread = find_unread(cloud, hosts) - made.sources
    enabled = {
        state.host
        for state in cloud.states.values()
        if state.host in hosts and not state.service.get('disabled')
    }
    stays = hosts & ({one.host for one in made.without_place} | unread)
    judged = dataclasses.replace(
        made,
        not_empty_after=sorted(stays, key=messages.in_order),
        still_enabled=sorted(enabled, key=messages.in_order),
    )
    return judged, unread


def make(
    cloud: snapshot.Snapshot,
    hosts: Set[str],
    advance: progress.Advance = progress.silent,
    not_to: Set[str] = frozenset(),
    at_end: Callable[[fork.Fork], object] = lambda _: None,
) -> plans.Plan:
    """Plan the moves that empty hosts.

    No server moves to these hosts. One that holds such a host for a migration,
    and is elsewhere, has no place until that has ended.

    :param hosts: names
    :param advance: called after each server
    :param not_to: names of other hosts that get no server
    :param at_end: as of :func:`.planner.plan`
    :raises placement.PlacementFailed: placement does not answer
    """
    occupants = read(cloud, hosts)
    goal = planner.Goal(
        leaving=occupants.leaving,
        barred=hosts | not_to,
        never_given_up=policies.Policies(cloud).on,
        to_be_empty=hosts,
        migrating=occupants.migrating,
    )
    places = destinations.Destinations(cloud)
    advance(total=len(occupants.leaving))
    prepare = functools.partial(departures.prepare, places)
    made = planner.plan(places, goal, prepare, advance, at_end)
    return dataclasses.replace(
        made, without_place=holders.name_own(cloud, made.without_place)
    )


class Occupants(typing.NamedTuple):
    """The servers of hosts.

    :ivar leaving: the servers on them
    :ivar migrating: servers elsewhere, for which a migration holds one, or
        held one that nova does not give back
    """

    leaving: list[plans.Leaving]
    migrating: list[plans.Stuck]


def read(cloud: snapshot.Snapshot, hosts: Set[str]) -> Occupants:
    """Return the servers of hosts.

    :param hosts: names
    """
    nodes = {
        uuid: one for uuid, one in cloud.nodes.items() if one.host in hosts
    }
    leaving: list[plans.Leaving] = []
    under_way: list[holders.UnderWay] = []
    for names in queries.in_chunks(hosts, _HOSTS_AT_ONCE):
        nodes_of = {
            uuid: nodes[uuid]
            for host in names
            for uuid in cloud.nodes_of(host)
        }
        # At once: a server whose migrations are unknown is not known either.
        of_cells = cloud.ask_cells(_select, names, nodes_of)
        for standing, migrations in of_cells.values():
            leaving += standing
            under_way += migrations
    return Occupants(
        leaving, holders.Holders(cloud, nodes).find(under_way, leaving)
    )


def read_standing(
    cloud: snapshot.Snapshot, hosts: Set[str]
) -> list[plans.Leaving]:
    """Return the servers on hosts.

    :param hosts: names
    """
    return [
        plans.make_leaving(one, one.host)
        for some in queries.in_chunks(hosts, _HOSTS_AT_ONCE)
        for sizes in cloud.ask_cells(servers.select_sizes, some).values()
        for one in sizes
    ]


def find_unread(cloud: snapshot.Snapshot, hosts: Set[str]) -> Set[str]:
    """Return the hosts whose servers are unknown.

    :param hosts: names
    """
    silent = cloud.silent_cells
    nodes = cloud.nodes.values()
    read = {one.host for one in nodes if one.cell_uuid not in silent}
    return hosts - read if silent else frozenset()


def _select(
    cctxt: typing.Any,
    hosts: Collection[str],
    nodes: Mapping[str, snapshot.Node],
) -> tuple[list[plans.Leaving], list[holders.UnderWay]]:
    """Return the servers on hosts, and migrations of others that hold room."""
    standing = [
        plans.make_leaving(one, one.host)
        for one in servers.select_sizes(cctxt, hosts)
    ]
    return standing, _select_moves(cctxt, nodes)


def _select_moves(
    cctxt: typing.Any, nodes: Mapping[str, snapshot.Node]
) -> list[holders.UnderWay]:
    """Return migrations of servers elsewhere that hold room on nodes."""
    under_way: list[holders.UnderWay] = []
    of = objects.MigrationList.get_in_progress_by_host_and_node
    for uuid, node in nodes.items():
        for migration in of(cctxt, node.host, node.node):
            # The server is loaded from the cell, and may be gone.
            with contextlib.suppress(nova_exception.InstanceNotFound):
                if migration.instance.host != node.host:
                    ends = (migration.source_compute, migration.dest_compute)
                    down = [
                        host
                        for host in dict.fromkeys(filter(None, ends))
                        if not _is_up(cctxt, host)
                    ]
                    under_way.append(holders.UnderWay(migration, uuid, down))
    return under_way


def _is_up(cctxt: typing.Any, host: str) -> bool:
    try:
        return admission.is_up(cctxt, host)
    except nova_exception.ComputeHostNotFound:
        # The host is in another cell, or has no service record.
        return True
