# SPDX-License-Identifier: Apache-2.0

"""Base of the commands that plan moves."""

import argparse
from collections.abc import Sequence
import pathlib
import shlex

from nova_ext_sched.cli import base
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
        'cannot be moved, or is left out; 130 interrupted.'
    )

    purpose = cli_help.PLAN
    columns = plan_report.COLUMNS
    has_output = True

    #: The options of openstack move plan apply for such a plan.
    apply_with: Sequence[str] = ('--disable',)

    def say_next(
        self, parsed_args: argparse.Namespace, made: report.Report
    ) -> str:
        """See the base; if there are moves, also how to carry them out."""
        said = super().say_next(parsed_args, made)
        # Servers that stay have rows without a turn.
        has_moves = any(row[0] for row in made.rows)
        if has_moves and (parsed_args.output or self.is_text(parsed_args)):
            said = f'{said} {self.say_how_to_apply(parsed_args)}'.lstrip()
        return said

    def say_how_to_apply(self, parsed_args: argparse.Namespace) -> str:
        """Return how to carry out the plan; to write it to a file is first."""
        if parsed_args.output:
            return say_how_to_apply(parsed_args.output, *self.apply_with)
        return 'To carry it out, write the plan to a file: add --output FILE.'


def say_how_to_apply(path: pathlib.Path, *options: str) -> str:
    """Return the command that carries out a plan.

    :param path: the plan's file
    :param options: further options of the command
    """
    command = ['openstack', 'move', 'plan', 'apply', str(path), *options]
    return f'Where the OpenStackClient runs:\n  {shlex.join(command)}'


def choose(which: str) -> base.Arguments:
    """Return the options that choose hosts by aggregate or failure domain.

    :param which: the hosts, for the help
    """
    return {
        '--aggregate': {
            **base.REPEATABLE,
            'metavar': 'AGGREGATE',
            'help': f'{which} of this aggregate (name, UUID or ID; '
            'repeatable)',
        },
        '--domain': {
            **base.REPEATABLE,
            'metavar': 'VALUE',
            'help': f'{which} of this failure domain (repeatable)',
        },
    }


#: The arguments that name hosts to empty.
HOSTS: base.Arguments = {
    **options.name_several('host', 'a host to empty', 'hosts'),
    **choose('all hosts'),
}
