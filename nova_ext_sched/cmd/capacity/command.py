# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched capacity``."""

import argparse
from collections.abc import Sequence
import typing

from nova_ext_sched.cli import base
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import lister
from nova_ext_sched.cmd import nova_command
from nova_ext_sched.cmd import request_options
from nova_ext_sched.cmd.capacity import answer


class Capacity(nova_command.Lister):
    """Say how many more servers fit, and what ends it.

    Runs nova-scheduler's own code on nova's own request, with its nova.conf,
    and claims one server after the other in memory; changes nothing.
    """

    _epilog = (
        'Exit status: 0 fine; 1 something could not be read; 2 wrong usage; '
        '3 a flavor that --flavor names has no room; 130 after Ctrl-C.'
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--flavor',
            metavar='FLAVOR',
            action='append',
            default=[],
            help='its ID or name (may be repeated); by default every flavor '
            'that is not disabled',
        )
        request_options.add(parser)
        parser.add_argument(
            '--hosts', action='store_true', help='list the room of each host'
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], list[tuple[typing.Any, ...]]]:
        self._by_host = parsed_args.hosts
        columns = answer.HOST_COLUMNS if self._by_host else answer.COLUMNS
        base.check_columns(self, parsed_args, columns)
        self.configure(parsed_args)
        # Not before the process is configured: it imports nova.
        from nova_ext_sched.cmd.capacity import survey

        self._document = survey.make_document(parsed_args)
        flavors = self._document['flavors']
        if any(one['fault'] for one in flavors):
            self.status = base.FAULT
        elif parsed_args.flavor and any(
            one['servers'] == 0 for one in flavors
        ):
            self.status = base.SOME_FOUND
        rows = answer.host_rows if self._by_host else answer.rows
        return columns, rows(self._document)

    def sum_up(self) -> str:
        return answer.sum_up(self._document)

    def write_text(self, out: layout.Layout, rows: list[lister.Row]) -> None:
        answer.write(out, self._document, self._by_host)

    def make_document(self, rows: list[lister.Row]) -> object:
        return self._document
