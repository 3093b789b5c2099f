# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched capacity``."""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import math
import sys
import typing

from nova_ext_sched.cli import base
from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import metrics
from nova_ext_sched.cli import options
from nova_ext_sched.cli import report
from nova_ext_sched.cli import topology
from nova_ext_sched.cmd import capacity_report
from nova_ext_sched.cmd import scheduler
from nova_ext_sched.dryrun import progress


class Capacity(metrics.Command, scheduler.Lister):
    """Count how many more servers fit, and name the limiting resource.

    Runs nova-scheduler's own code with its nova.conf, and claims server after
    server in memory. It changes nothing.
    """

    _epilog = (
        'Exit status: 0 fine; 1 something could not be read; 2 wrong usage; '
        '3 a flavor named by --flavor has no room; 130 interrupted.'
    )

    purpose = cli_help.LOOK
    examples = (
        '',
        '--flavor m1.small --by zone',
        '--flavor m1.small --aggregate-host windows cmp-0101',
    )
    label = 'Counting servers of flavors'

    def __init__(self, *args: typing.Any, **kwargs: typing.Any) -> None:
        super().__init__(*args, **kwargs)
        self._document: capacity_report.Document = {}

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--flavor',
            metavar='FLAVOR',
            action='append',
            default=[],
            help='name or ID of a flavor (repeatable); by default each that '
            'is not disabled',
        )
        options.add_server(parser)
        listed = parser.add_mutually_exclusive_group()
        listed.add_argument(
            '--hosts', action='store_true', help='list the room on each host'
        )
        listed.add_argument(
            '--by',
            choices=list(capacity_report.GROUPS),
            help='list the room in each availability zone, aggregate or '
            'failure domain',
        )
        parser.add_argument(
            '--long',
            action='store_true',
            help='show all limiting factors of each flavor, and why other '
            'hosts have no room',
        )

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        if parsed_args.hosts:
            return capacity_report.HOST_COLUMNS
        if parsed_args.by:
            return capacity_report.get_group_columns(parsed_args.by)
        return capacity_report.COLUMNS

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        if topology.is_wanted(parsed_args) and not parsed_args.flavor:
            raise base.UsageError(
                'Name a --flavor: the map shows the room for it on each host.'
            )
        try:
            is_complete = self.ask(self._count, parsed_args)
        except KeyboardInterrupt:
            if self._document:
                self.write_part(
                    capacity_report.make(
                        self._document,
                        parsed_args.hosts,
                        base.FAULT,
                        parsed_args.long,
                        is_part=True,
                    ),
                    parsed_args,
                )
            raise
        flavors = self._document['flavors']
        status = base.FINE
        if not is_complete or any(one['fault'] for one in flavors):
            status = base.FAULT
        elif parsed_args.flavor and any(
            one['servers'] == 0 for one in flavors
        ):
            status = base.SOME_FOUND
        made = capacity_report.make(
            self._document, parsed_args.hosts, status, parsed_args.long
        )
        if topology.is_wanted(parsed_args):
            drawn = capacity_report.draw(self._document, parsed_args.map_by)
            made = report.append(made, *drawn)
        return made

    def _count(
        self, parsed_args: argparse.Namespace, advance: progress.Advance
    ) -> bool:
        """Return whether every enabled cell answered.

        To people each of several flavors is said as soon as it is counted.
        """
        is_said = len(parsed_args.flavor) != 1 and self.is_text(parsed_args)
        told: set[str] = set()
        is_complete = True
        for counted in count(parsed_args, advance):
            self._document, is_complete = counted
            for one in self._document['flavors'] if is_said else ():
                if one['id'] not in told:
                    said = capacity_report.say_flavor(
                        one, self._document['hosts']
                    )
                    print(f'{said}.', file=sys.stderr, flush=True)
                    told.add(one['id'])
        return is_complete

    def measure(self) -> Iterator[metrics.Figure]:
        yield metrics.Figure(
            'capacity_servers',
            'Servers of a flavor that fit if nothing else is created; +Inf '
            'where a host takes any number.',
            'flavor',
            {
                one['name']: math.inf if one['unlimited'] else one['servers']
                for one in self._document['flavors']
            },
        )


def count(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> Iterator[tuple[capacity_report.Document, bool]]:
    """Yield documents, and whether every enabled cell answered.

    See :func:`.survey.make_documents`.
    """
    from nova_ext_sched.cmd import arguments
    from nova_ext_sched.dryrun.fit import survey

    with arguments.read_cloud(parsed_args) as cloud:
        yield from survey.make_documents(
            cloud,
            arguments.make_question(parsed_args),
            parsed_args.flavor,
            parsed_args.hosts or topology.is_wanted(parsed_args),
            parsed_args.by,
            advance,
        )
