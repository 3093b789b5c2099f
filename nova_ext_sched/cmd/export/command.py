# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched export``."""

import argparse
import sys

from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cli import progress
from nova_ext_sched.cmd import nova_command


class Export(nova_command.Command):
    """Write the cloud down as a scenario of the simulator.

    Reads nova's databases and placement, with nova-scheduler's nova.conf;
    changes nothing. There is no secret, no URL and nothing of a guest in it.
    """

    _epilog = (
        'Exit status: 0 the cloud is on standard output; 1 something could '
        'not be read, or the scenario is too large; 2 wrong usage.'
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--requests',
            metavar='NUMBER',
            type=base.read_amount,
            default=0,
            help='append the last requests whose servers stand, as steps that '
            'are independent of each other',
        )
        parser.add_argument(
            '--anonymous',
            action='store_true',
            help='replace each name and ID by a word of its own',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.configure(parsed_args)
        # Not before: they import nova.
        from nova_ext_sched.cmd import nova_scheduler
        from nova_ext_sched.cmd.export import anonymous
        from nova_ext_sched.cmd.export import cloud
        from nova_ext_sched.cmd.export import text

        scheduler = nova_scheduler.ReadOnlyHostManager()
        exported = cloud.Cloud(nova_scheduler.context(), scheduler)
        total = len(scheduler.hosts)
        with progress.bar(sys.stderr, 'Reading hosts', total) as advance:
            described = exported.describe(parsed_args.requests, advance)
        if parsed_args.anonymous:
            described, _ = anonymous.rename(described, exported.unsaid)
        written = text.write(described, exported.unsaid)
        self.app.stdout.write(written)
        counts = [
            messages.count(noun, len(described.get(part, ())))
            for noun, part in (
                ('host', 'hosts'),
                ('aggregate', 'aggregates'),
                ('flavor', 'flavors'),
                ('request', 'steps'),
            )
        ]
        self.sentence = f'{", ".join(counts)}.'
        for cell, reason in scheduler.silent_cells.items():
            self.status = base.FAULT
            self.sentence += (
                f' Cell {scheduler.cell_name(cell)} does not answer: {reason}.'
            )
