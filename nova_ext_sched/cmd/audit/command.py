# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched audit``."""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import sys
import typing

from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import metrics
from nova_ext_sched.cli import options
from nova_ext_sched.cli import progress
from nova_ext_sched.cli import report
from nova_ext_sched.cli import topology
from nova_ext_sched.cmd import scheduler
from nova_ext_sched.cmd.audit import report as audit_report


class Audit(metrics.Command, scheduler.Command, report.Lister):
    """List servers that violate a policy on their current host.

    Checks every server in every cell against the policies that nova.conf turns
    on, with nova-scheduler's own code. It changes nothing.
    """

    _epilog = (
        'Exit status: 0 no server violates a policy; 1 something could not be '
        'read or checked; 2 wrong usage; 3 some servers violate a policy; 130 '
        'interrupted.'
    )

    purpose = cli_help.LOOK
    examples = (
        '--summary',
        '--aggregate windows --policy isolation',
        '--aggregate-property windows trait:CUSTOM_A=required',
    )
    work = 'nova_ext_sched.cmd.audit.run'
    _auditing: typing.Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--summary',
            action='store_true',
            help='count servers by aggregate, project and host instead of '
            'listing them',
        )
        options.add_selection(parser)
        options.add_change(parser)
        topology.add_options(parser)
        return parser

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        if parsed_args.summary:
            return audit_report.SUMMARY_COLUMNS
        return audit_report.COLUMNS

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        run = self.load(parsed_args)
        with progress.bar(
            sys.stderr, 'Judging servers', color=self.color
        ) as advance:
            found = run.audit(parsed_args, advance)
        self._auditing = found.auditing
        made = audit_report.make(
            found.auditing,
            found.findings,
            parsed_args.summary,
            found.hosts,
            found.projects,
        )
        if topology.is_wanted(parsed_args):
            counts = found.auditing.totals.by_host
            drawn = audit_report.draw(found.hosts, counts, parsed_args.map_by)
            made = report.insert(made, drawn)
        return made

    def measure(self) -> Iterator[metrics.Figure]:
        yield metrics.Figure(
            'policy_violations',
            'Servers that violate a policy.',
            'policy',
            self._auditing.totals.policies,
        )
