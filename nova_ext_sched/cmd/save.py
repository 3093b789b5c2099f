# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched save``."""

import argparse
import pathlib
import sys

from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import progress as bar
from nova_ext_sched.cli import terminal
from nova_ext_sched.cmd import scheduler

_KB = 1000


class Save(scheduler.Command):
    """Save a cloud to a file that explain, drain and the others can read.

    The file has what these commands read of nova and placement, and no
    password, token or key. With --from FILE they answer for the cloud at that
    moment, on any machine, without a service. It changes nothing in the
    cloud.
    """

    _epilog = (
        'Exit status: 0 saved; 1 something could not be read, and there is no '
        'new file; 2 wrong usage; 130 interrupted.'
    )
    purpose = cli_help.LOOK
    examples = (
        'cloud.json.gz',
        'rack7.json.gz --aggregate rack7 --image ubuntu',
        'cloud.json.gz --anonymous --placement-config p.conf',
    )

    arguments = {
        'file': {
            'metavar': 'FILE',
            'type': pathlib.Path,
            'help': 'file to write',
        },
        '--cell': {
            'metavar': 'CELL',
            'help': 'only this cell (name or UUID)',
        },
        '--aggregate': {
            **base.REPEATABLE,
            'metavar': 'AGGREGATE',
            'help': 'only hosts of this aggregate (name, UUID or ID; '
            'repeatable)',
        },
        '--image': {
            **base.REPEATABLE,
            'metavar': 'IMAGE',
            'help': 'also this image (name or UUID; repeatable); those of '
            'servers are saved anyway',
        },
        '--placement-config': {
            'metavar': 'FILE',
            'type': pathlib.Path,
            'help': "placement's own configuration; without it, answers from "
            'the file assume its defaults',
        },
        '--anonymous': {
            'action': 'store_true',
            'help': 'replace names, UUIDs, addresses, metadata and free text '
            'by other words; the answers from the file have the same numbers '
            'and causes',
        },
        **terminal.OPTION,
    }

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Save the cloud, and describe the file."""
        self.configure(parsed_args)
        from nova_ext_sched.saved import writing

        path = parsed_args.file
        with bar.bar(
            sys.stderr, 'Reading', color=parsed_args.color
        ) as advance:
            wanted = writing.Wanted(
                parsed_args.cell,
                parsed_args.aggregate,
                parsed_args.image,
                parsed_args.placement_config,
                parsed_args.anonymous,
            )
            try:
                said = writing.save(path, wanted, advance)
            except OSError as exc:
                self.status = self._fail_to_write('FILE', path, exc)
                return
        size = path.stat().st_size / _KB
        names = (
            'Names in it are replaced by other words.'
            if parsed_args.anonymous
            else 'Names of servers, projects and hosts are in it.'
        )
        self.app.stdout.write(
            f'Saved {messages.clean(path)} ({size:,.0f} kB). {names}\n'
        )
        for sentence in said:
            self.app.stdout.write(f'{sentence}\n')
        self.status = base.FINE
