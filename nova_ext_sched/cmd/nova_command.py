# SPDX-License-Identifier: Apache-2.0

"""What the commands share that run where nova-scheduler runs and only read.

Nothing of nova is imported before :meth:`Command.take_action`: which nova
runs, and how its threads work, is decided first.
"""

import argparse
from collections.abc import Iterator
import contextlib
import inspect
import logging
import sys

from nova_ext_sched import exception
from nova_ext_sched.cli import base
from nova_ext_sched.cli import lister


class Command(base.Command):
    """A command that uses nova-scheduler's code, with its nova.conf."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--config-file',
            metavar='FILE',
            action='append',
            default=[],
            help="nova-scheduler's nova.conf; by default where nova-scheduler "
            'finds it (may be repeated)',
        )
        parser.add_argument(
            '--config-dir',
            metavar='DIRECTORY',
            action='append',
            default=[],
            help='a directory of files that end in .conf (may be repeated)',
        )
        return parser

    def configure(self, parsed_args: argparse.Namespace) -> None:
        """Make this process what nova-scheduler's is.

        :raises exception.InvalidValue: there is no nova, or no nova.conf
        """
        try:
            with _silent_eventlet():
                from nova import monkey_patch
        except ImportError as exc:
            raise exception.InvalidValue(
                where='nova',
                expected="the Python of nova-scheduler's environment",
                got=f'a Python without nova ({sys.executable})',
            ) from exc
        # nova 31 patches on import; nova 32 knows only eventlet.
        if patch := getattr(monkey_patch, 'patch', None):
            if 'backend' in inspect.signature(patch).parameters:
                patch(backend='threading')
            else:
                with _silent_eventlet():
                    patch()
        from nova_ext_sched.cmd import nova_scheduler

        if not self.app_args or not self.app_args.debug:
            # nova has lines for each host, which cliff would let through, and
            # neutronclient says at each call that it is deprecated.
            logging.getLogger('nova').setLevel(logging.ERROR)
            logging.getLogger('neutronclient').setLevel(logging.ERROR)
            # It has a traceback for each cell that does not answer. The
            # commands name these cells in a sentence.
            logging.getLogger('nova.context').setLevel(logging.CRITICAL)
        nova_scheduler.configure(
            parsed_args.config_file, parsed_args.config_dir
        )


class Lister(Command, lister.Lister):
    """A command that prints rows, in the format that ``-f`` names."""


@contextlib.contextmanager
def _silent_eventlet() -> Iterator[None]:
    # It complains about locks that were made before it patches them, by a
    # logger that no configuration reaches.
    last_resort = logging.lastResort
    logging.lastResort = logging.NullHandler()
    try:
        yield
    finally:
        logging.lastResort = last_resort
