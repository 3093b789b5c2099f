# SPDX-License-Identifier: Apache-2.0

"""What the commands share that plan moves."""

import argparse
import typing

from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import options
from nova_ext_sched.cli import report
from nova_ext_sched.cmd import plan_report
from nova_ext_sched.cmd import scheduler


class Planner(scheduler.Lister):
    """A command that plans moves, one after the other."""

    _epilog = (
        'Exit status: 0 no server has to move, or each can be moved; 1 '
        'something could not be read or checked; 2 wrong usage; 3 a server '
        'cannot be moved; 130 interrupted.'
    )

    purpose = cli_help.PLAN
    columns = plan_report.COLUMNS

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add what all of these have."""
        report.add_output(parser)
        options.add_not_to(parser)


def add_hosts(parser: argparse.ArgumentParser) -> None:
    """Add what names hosts that are to be empty."""
    parser.add_argument(
        'hosts', metavar='HOST', nargs='*', help='a host to empty'
    )
    add_choice(parser, 'all hosts')


def add_choice(parser: typing.Any, which: str) -> None:
    """Add what names hosts by what they are in.

    :param parser: argparse's, or a group of it
    """
    parser.add_argument(
        '--aggregate',
        metavar='AGGREGATE',
        action='append',
        default=[],
        help=f'{which} of this aggregate (name, UUID or ID; repeatable)',
    )
    parser.add_argument(
        '--domain',
        metavar='VALUE',
        action='append',
        default=[],
        help=f'{which} of this failure domain (repeatable)',
    )
