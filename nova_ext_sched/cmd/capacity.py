# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched capacity``."""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
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
from nova_ext_sched.dryrun.fit import answer

# The label's value for hosts that are in no zone, aggregate or domain:
# Prometheus drops a label with an empty value.
_NO_GROUP = '(none)'


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
        'm1.small --by zone',
        'm1.small --aggregate-host windows cmp-0101',
    )
    arguments = {
        **options.name_several(
            'flavor',
            'name or ID of a flavor; by default each that is not disabled',
        ),
        **options.OF_SERVER,
    }
    label = 'Counting servers of flavors'

    # The flavors counted so far: an answer.Tally.
    _found: typing.Any = None
    _hosts: capacity_report.Hosts
    _is_complete: bool

    def add_groups(self, parser: argparse.ArgumentParser) -> None:
        base.add(
            parser.add_mutually_exclusive_group(),
            {
                '--hosts': {
                    'action': 'store_true',
                    'help': 'list the room on each host',
                },
                '--by': {
                    'choices': list(capacity_report.GROUPS),
                    'help': 'list the room in each availability zone, '
                    'aggregate or failure domain',
                },
            },
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
            self.ask(self._count, parsed_args)
        except KeyboardInterrupt:
            if self._found:
                made = self._tell(parsed_args, base.FAULT, is_part=True)
                self.write_part(made, parsed_args)
            raise
        flavors, status = self._found.flavors, base.FINE
        if not self._is_complete or any(one.fault for one in flavors):
            status = base.FAULT
        elif parsed_args.flavor and any(one.servers == 0 for one in flavors):
            status = base.SOME_FOUND
        made = self._tell(parsed_args, status)
        if topology.is_wanted(parsed_args):
            drawn = capacity_report.draw(
                self._found, self._hosts, parsed_args.map_by
            )
            maps = [report.Section(body=one) for one in drawn]
            made = dataclasses.replace(made, sections=[*made.sections, *maps])
        return made

    def _tell(
        self,
        parsed_args: argparse.Namespace,
        status: int,
        is_part: bool = False,
    ) -> report.Report:
        return capacity_report.make(
            self._found,
            self._hosts,
            parsed_args.hosts,
            status,
            parsed_args.long,
            is_part,
        )

    def _count(
        self, parsed_args: argparse.Namespace, advance: progress.Advance
    ) -> None:
        """Count the servers, and keep the numbers.

        If text is written and no progress bar is shown, each of several
        flavors is written to standard error as soon as it is counted.
        """
        is_said = (
            len(parsed_args.flavor) != 1
            and self.is_text(parsed_args)
            and not sys.stderr.isatty()
        )
        printed: set[str] = set()
        for counted in count(parsed_args, advance):
            self._found, self._hosts, self._is_complete = counted
            for one in self._found.flavors if is_said else ():
                if one.id not in printed:
                    printed.add(one.id)
                    said = capacity_report.say_flavor(one, self._found.hosts)
                    print(f'{said}.', file=sys.stderr, flush=True)

    def measure(self) -> Iterator[metrics.Figure]:
        flavors = self._found.flavors
        if self._found.by:
            # The sums are in the file of a run without --by.
            yield metrics.Figure(
                f'capacity_{self._found.by}_servers',
                f'Servers of a flavor that fit in this '
                f'{capacity_report.GROUPS[self._found.by]}; +Inf where a host '
                'takes any number.',
                f'flavor {self._found.by}',
                {
                    (one.name, group.name or _NO_GROUP): _count_room(group)
                    for one in flavors
                    for group in one.groups or ()
                },
            )
            return
        yield metrics.Figure(
            'capacity_servers',
            'Servers of a flavor that fit if nothing else is created; +Inf '
            'where a host takes any number.',
            'flavor',
            {one.name: _count_room(one) for one in flavors},
        )


def _count_room(room: answer.RoomForFlavor | answer.RoomInGroup) -> float:
    # NaN is Prometheus' value for an unknown number.
    known = math.nan if room.servers is None else room.servers
    return math.inf if room.unlimited else known


def count(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> Iterator[tuple[answer.Tally, capacity_report.Hosts, bool]]:
    """Yield the tally, the hosts, and whether every cell answered.

    See :func:`.survey.count_all`.
    """
    from nova_ext_sched.cmd import arguments
    from nova_ext_sched.dryrun.fit import survey

    with arguments.read_cloud(parsed_args) as cloud:
        yield from survey.count_all(
            cloud,
            arguments.make_question(parsed_args),
            parsed_args.flavor,
            parsed_args.hosts or topology.is_wanted(parsed_args),
            parsed_args.by,
            advance,
        )
