# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched drain``."""

import argparse
from collections.abc import Iterator
from collections.abc import Set

from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cli import options
from nova_ext_sched.cli import report
from nova_ext_sched.cmd import plan_command
from nova_ext_sched.cmd import plan_map
from nova_ext_sched.cmd import plan_report
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.plan import plans


class Drain(plan_command.Planner):
    """Plan the moves that empty hosts, in an order that works.

    Asks nova-scheduler's own code where each server can go when its turn
    comes. No server moves to a host that is being emptied. It changes
    nothing.
    """

    examples = (
        'cmp-0101 --output plan.json',
        '--domain rack7 --not-to cmp-0101',
        '--aggregate old-hardware --map',
    )

    arguments = {**plan_command.HOSTS, **options.NOT_TO}
    label = 'Planning moves'

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        if not (
            parsed_args.hosts or parsed_args.aggregate or parsed_args.domain
        ):
            raise base.UsageError(
                'Name the hosts to empty: HOST, --aggregate or --domain.'
            )
        return self.ask(plan, parsed_args)


def plan(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> report.Report:
    """Return the report of a plan after which hosts are empty."""
    from nova_ext_sched.cmd import arguments
    from nova_ext_sched.dryrun.cloud import selection
    from nova_ext_sched.dryrun.plan import drain

    with arguments.read_cloud(parsed_args, patient=True) as cloud:
        emptied = selection.find(
            cloud, parsed_args.hosts, parsed_args.aggregate, parsed_args.domain
        )
        not_to = selection.find_any(cloud, parsed_args.not_to)
        made, unread = drain.plan(cloud, emptied, advance, not_to)
        hosts = selection.make_documents(cloud)
        return report.add_map(
            plan_report.make(
                made,
                _say_hosts(emptied, made, unread),
                cloud.faults,
                bool(unread),
                hosts,
                plan_report.name_groups(made.without_place),
            ),
            parsed_args,
            lambda by: plan_map.draw_moves(made, emptied - unread, hosts, by),
        )


def _say_hosts(
    hosts: Set[str], plan: plans.Plan, unread: Set[str]
) -> Iterator[str]:
    """Yield sentences on hosts that are to be empty.

    :param hosts: names
    :param plan: as of :func:`.drain.plan`
    :param unread: as of :func:`.drain.plan`
    """
    empty = hosts - {*plan.not_empty_after}
    some = messages.part(len(empty), len(hosts), 'host', 'is', 'are')
    if len(hosts) > 1:
        yield f'{some} empty after these moves.'
    elif not unread:
        yield f'The host will {"" if empty else "not "}be empty.'
    yield from plan_report.say_unread(unread)
    open_ = plan.still_enabled
    if open_:
        names = messages.first_few(open_)
        verb = messages.agree(len(open_), 'is', 'are')
        yield f'{names} {verb} still enabled and can get new servers.'
