# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched mend``."""

import argparse

from nova_ext_sched.cli import options
from nova_ext_sched.cli import report
from nova_ext_sched.cmd import plan_command
from nova_ext_sched.cmd import plan_map
from nova_ext_sched.cmd import plan_report
from nova_ext_sched.dryrun import progress


class Mend(plan_command.Planner):
    """Plan the moves that fix what audit found, in an order that works.

    Checks servers as audit does, and asks nova-scheduler's own code where each
    violating server can go when its turn comes. It changes nothing.
    """

    examples = (
        '--output plan.json',
        '--aggregate windows --policy isolation',
        '--not-to cmp-0101 --map',
    )

    arguments = {**options.JOBS, **options.NOT_TO}
    label = 'Judging servers'
    apply_with = ()

    def add_groups(self, parser: argparse.ArgumentParser) -> None:
        options.add_selection(parser)

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        return self.ask(plan, parsed_args)


def plan(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> report.Report:
    """Return the report of a plan after which no policy is violated."""
    from nova_ext_sched.cmd import arguments
    from nova_ext_sched.dryrun.cloud import selection
    from nova_ext_sched.dryrun.plan import mend

    with arguments.read_cloud(parsed_args, patient=True) as cloud:
        auditing = arguments.make_auditor(parsed_args, cloud)
        made = mend.make(
            auditing,
            advance,
            selection.find_any(cloud, parsed_args.not_to),
            arguments.choose_jobs(parsed_args, cloud),
        )
        hosts = selection.make_documents(cloud)
        totals = auditing.totals
        said, _ = report.begin(
            totals.head, *totals.remarks, counts=totals.counts
        )
        return report.add_map(
            plan_report.make(
                made,
                [said],
                auditing.faults,
                bool(totals.not_judged or auditing.faults),
                hosts,
                plan_report.name_groups(made.without_place),
            ),
            parsed_args,
            lambda by: plan_map.draw_moves(made, frozenset(), hosts, by),
        )
