# SPDX-License-Identifier: Apache-2.0

"""What the commands of plans do, ``nova-ext-sched mend`` for example."""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib

from nova_ext_sched import exception
from nova_ext_sched import waiting
from nova_ext_sched.cli import names as cli_names
from nova_ext_sched.cli import report as cli_report
from nova_ext_sched.cli import topology as cli_topology
from nova_ext_sched.cmd import arguments
from nova_ext_sched.cmd.moves import maps
from nova_ext_sched.cmd.moves import report
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.dryrun.cloud import groups
from nova_ext_sched.dryrun.cloud import selection
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.cloud import topology
from nova_ext_sched.dryrun.plan import drain
from nova_ext_sched.dryrun.plan import maintain
from nova_ext_sched.dryrun.plan import make_room
from nova_ext_sched.dryrun.plan import mend
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import survive


@contextlib.contextmanager
def _read(wanted: change.Change) -> Iterator[snapshot.Snapshot]:
    """Read the cloud for a plan, which is not lost where placement is away.

    It is asked again for some minutes: a plan may take longer to make.
    """
    with snapshot.read(wanted, settled=True) as cloud:
        cloud.placement.patience = waiting.Waiting('placement')
        yield cloud


def _find_not_to(
    cloud: snapshot.Snapshot, parsed_args: argparse.Namespace
) -> set[str]:
    """Return the hosts that get no server."""
    return selection.find_any(cloud, parsed_args.not_to)


def plan_mend(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> cli_report.Report:
    """Return the report of a plan after which no policy is violated."""
    wanted = arguments.make_change(parsed_args)
    with _read(wanted) as cloud:
        arguments.resolve_names(parsed_args, cloud)
        auditing = arguments.make_auditor(parsed_args, cloud)
        plan = mend.make(auditing, advance, _find_not_to(cloud, parsed_args))
        totals = auditing.totals
        found, _ = cli_report.begin(
            totals.head, *totals.remarks, counts=totals.counts
        )
        described = topology.describe(cloud)
        made = report.make(
            plan,
            [found],
            auditing.faults,
            bool(totals.not_judged),
            described,
            name_groups(plan.without_place),
        )
        if cli_topology.is_wanted(parsed_args):
            drawn = maps.draw_moves(
                plan, frozenset(), described, parsed_args.map_by
            )
            made = cli_report.insert(made, drawn)
        return made


def plan_drain(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> cli_report.Report:
    """Return the report of a plan after which hosts are empty."""
    wanted = arguments.make_change(parsed_args)
    with _read(wanted) as cloud:
        arguments.resolve_names(parsed_args, cloud)
        hosts = selection.find(
            cloud, parsed_args.hosts, parsed_args.aggregate, parsed_args.domain
        )
        not_to = _find_not_to(cloud, parsed_args)
        plan = drain.make(cloud, hosts, advance, not_to)
        unread = drain.find_unread(cloud, hosts)
        found = drain.describe(cloud, hosts, plan, unread)
        described = topology.describe(cloud)
        made = report.make(
            plan,
            found,
            cloud.faults,
            bool(unread),
            described,
            name_groups(plan.without_place),
        )
        if cli_topology.is_wanted(parsed_args):
            drawn = maps.draw_moves(
                plan, hosts - unread, described, parsed_args.map_by
            )
            made = cli_report.insert(made, drawn)
        return made


def plan_room(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> cli_report.Report:
    """Return the report of a plan after which new servers fit."""
    wanted = arguments.make_change(parsed_args)
    chosen = parsed_args.hosts, parsed_args.aggregate, parsed_args.domain
    with _read(wanted) as cloud:
        arguments.resolve_names(parsed_args, cloud)
        room = make_room.make(
            cloud,
            arguments.make_question(parsed_args, flavor=parsed_args.flavor),
            parsed_args.count,
            selection.find(cloud, *chosen) if any(chosen) else None,
            parsed_args.cold,
            _find_not_to(cloud, parsed_args),
            advance,
        )
        described = topology.describe(cloud)
        made = report.make_room(room, cloud.faults, described)
        if cli_topology.is_wanted(parsed_args):
            drawn = maps.draw_room(room, described, parsed_args.map_by)
            made = cli_report.insert(made, drawn)
        return made


def plan_maintain(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> cli_report.Report:
    """Return the report of rounds in which each host is empty once."""
    wanted = arguments.make_change(parsed_args)
    chosen = parsed_args.hosts, parsed_args.aggregate, parsed_args.domain
    with _read(wanted) as cloud:
        arguments.resolve_names(parsed_args, cloud)
        hosts = (
            selection.find(cloud, *chosen)
            if any(chosen)
            else {one.host for one in cloud.hosts.values()}
        )
        done = selection.find_any(cloud, parsed_args.done)
        hosts -= done
        number = parsed_args.round
        if number is not None and number > len(hosts):
            raise exception.InvalidValue(
                where='--round',
                expected=f'a number up to {len(hosts)}: a round has a host '
                f'at least',
                got=str(number),
            )
        unread = drain.find_unread(cloud, hosts)
        found = maintain.make(
            cloud,
            hosts - unread,
            parsed_args.round_size,
            parsed_args.round_within,
            parsed_args.keep_failover,
            advance,
            _find_not_to(cloud, parsed_args),
            number,
        )
        remarks = [
            *maintain.describe(
                cloud, hosts - unread, found, is_whole=number is None
            ),
            *drain.describe_unread(unread),
        ]
        described = topology.describe(cloud)
        about = found, remarks, cloud.faults, described
        if number is None:
            stuck = (s for one in found.not_emptied for s in one.without_place)
            made = report.make_rounds(*about, name_groups(stuck))
        else:
            made = report.make_round(number, *about)
        if cli_topology.is_wanted(parsed_args):
            drawn = maps.draw_rounds(found, described, parsed_args.map_by)
            made = cli_report.insert(made, drawn)
        return made


def name_groups(stuck: Iterable[plans.Stuck]) -> cli_names.Names:
    """Return the names of the server groups in what keeps servers."""
    ids = cli_names.find_ids(one.reason for one in stuck)
    return cli_names.Names(groups.read_names(ids))


def plan_survive(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> plans.Outcome:
    """Return what comes of failures."""
    wanted = arguments.make_change(parsed_args)
    with _read(wanted) as cloud:
        arguments.resolve_names(parsed_args, cloud)
        return survive.make(
            cloud,
            parsed_args.flavor,
            parsed_args.lose,
            parsed_args.host,
            parsed_args.aggregate,
            advance,
            parsed_args.project,
        )
