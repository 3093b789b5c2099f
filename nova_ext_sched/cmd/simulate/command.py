# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched simulate``.

What comes with the extra ``simulator`` is imported when the command runs
(:mod:`.run`), so that it can say what is missing.
"""

import argparse
from collections.abc import Sequence
import importlib.metadata
import re
import sys
import types

from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import options
from nova_ext_sched.cli import progress
from nova_ext_sched.cli import report

# What the extra takes, by its name.
_REQUIREMENT = re.compile(r'([\w.-]+).*;.*extra\s*==\s*[\'"]simulator[\'"]')


class Simulate(report.Lister):
    """Run a placement scenario on a simulated cloud.

    Runs nova-api, conductor, scheduler, a fake compute for each host and a
    real placement in one process; there is no service to start.
    """

    _epilog = (
        'Exit status: 0 every step did what it expects; 1 the simulated cloud '
        'failed, or the output could not be written; 2 the usage or the '
        'scenario is wrong; 3 a step did something else; 130 interrupted.'
    )

    purpose = cli_help.TRY
    examples = (
        '--list',
        'windows_licensing --compare',
        'scenario.yaml --reasons',
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """See cliff."""
        parser = super().get_parser(prog_name)
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            'scenario',
            metavar='SCENARIO',
            nargs='?',
            help='a file, or the name of a scenario listed by --list',
        )
        what.add_argument(
            '--list',
            action='store_true',
            help='list the scenarios that come with the package',
        )
        options.add_option(
            parser,
            'as if nova_conf in the scenario had this (repeatable)',
        )
        parser.add_argument(
            '--compare',
            action='store_true',
            help='run the same steps on plain nova too, and compare',
        )
        parser.add_argument(
            '--reasons',
            action='store_true',
            help='show why hosts were refused in every step, not only where '
            'there was no valid host',
        )
        parser.add_argument(
            '--nova-log',
            metavar='FILE',
            help="append nova's log to this file, or - for standard error; "
            'with "nova-ext-sched -v simulate", at level DEBUG',
        )
        return parser

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        """See the base class."""
        return _load().get_columns(parsed_args)

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        """See the base class."""
        run = _load()
        if parsed_args.list:
            return run.list_scenarios()
        with progress.bar(
            sys.stderr, 'Starting nova', color=self.color
        ) as advance:
            return run.simulate(
                parsed_args, bool(self.app_args.verbose_level), advance
            )


def _load() -> types.ModuleType:
    """Return what the command does, where all that it imports is there.

    :raises base.UsageError: packages of the extra are missing
    """
    _check_installed()
    from nova_ext_sched.cmd.simulate import run

    return run


def _check_installed() -> None:
    """Refuse to run without the packages of the extra.

    :raises base.UsageError: some are missing
    """
    missing = []
    for requirement in importlib.metadata.requires('nova-ext-sched') or ():
        if found := _REQUIREMENT.match(requirement):
            try:
                importlib.metadata.version(found[1])
            except importlib.metadata.PackageNotFoundError:
                missing.append(found[1])
    if missing:
        raise base.UsageError(
            'expected the packages of the extra "simulator", got no '
            f'{messages.first_few(missing)}; install them: '
            f'{messages.install_extra("simulator")}'
        )
