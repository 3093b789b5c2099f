# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched-simulate``."""

import argparse
from collections.abc import Sequence
import sys

from cliff import lister

from nova_ext_sched.simulator import check
from nova_ext_sched.simulator import progress
from nova_ext_sched.simulator import report
from nova_ext_sched.simulator import runner
from nova_ext_sched.simulator import worker

HELD = 0
DIFFERED = 1
INVALID = 2
FAILED = 3
INTERRUPTED = 130


class UsageError(Exception):
    """An argument cannot be used; its text says why."""


class Simulate(lister.Lister):
    """Run a placement scenario on a simulated cloud.

    nova-api, conductor, scheduler and a fake compute for each host, and a
    real placement, in one process and without any service to start.
    """

    _epilog = (
        'Exit status: 0 every expectation held; 1 one did not; 2 the '
        'scenario or the usage is wrong; 3 the simulated cloud broke down.'
    )

    #: What the command ends with.
    status = HELD

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """See cliff."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'scenario', metavar='SCENARIO.yaml', help='the scenario to run'
        )
        parser.add_argument(
            '--compare',
            action='store_true',
            help='run the same steps on plain nova too, and show both',
        )
        parser.add_argument(
            '--debug',
            action='store_true',
            help="nova's log, down to DEBUG, to standard error or to the "
            'file of --log-file',
        )
        parser.add_argument(
            '--log-file',
            metavar='FILE',
            help="append nova's log to this file",
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Sequence[report.Row]]:
        """See cliff."""
        self._check_usage(parsed_args)
        doc, declared = check.load(parsed_args.scenario)
        clouds = (False, True) if parsed_args.compare else (False,)
        log = runner.Log(
            parsed_args.log_file
            or (worker.STDERR if parsed_args.debug else None),
            'DEBUG' if parsed_args.debug else 'INFO',
        )
        total = len(clouds) * (
            len(declared.hosts)
            + sum(len(step.servers) for step in declared.steps)
        )
        with progress.Progress(total, sys.stderr) as shown:
            outcomes = runner.run(doc, clouds, log, shown.update)
        told = report.Report(
            declared,
            outcomes[False],
            outcomes.get(True),
            parsed_args.verbose,
        )
        self.status = HELD if told.held else DIFFERED
        self.summary = ' '.join(
            part for part in (declared.description, told.summary) if part
        )
        return told.columns, told.rows

    def _check_usage(self, parsed_args: argparse.Namespace) -> None:
        """Refuse before the run what cliff would refuse after it."""
        columns = (
            report.COMPARED_COLUMNS if parsed_args.compare else report.COLUMNS
        )
        try:
            self._generate_columns_and_selector(parsed_args, columns)
            if parsed_args.log_file:
                open(parsed_args.log_file, 'a').close()
        except (OSError, ValueError) as exc:
            raise UsageError(str(exc)) from exc
