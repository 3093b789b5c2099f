# SPDX-License-Identifier: Apache-2.0

"""The commands of plans: ``mend``, ``drain``, ``make-room`` and others."""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import sys
import typing

from nova_ext_sched.cli import base
from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import metrics
from nova_ext_sched.cli import options
from nova_ext_sched.cli import progress
from nova_ext_sched.cli import report
from nova_ext_sched.cli import topology
from nova_ext_sched.cmd import scheduler
from nova_ext_sched.cmd.moves import maps
from nova_ext_sched.cmd.moves import report as plan_report


class _Plans(scheduler.Command, report.Lister):
    """A command that makes a plan, or several."""

    purpose = cli_help.PLAN
    work = 'nova_ext_sched.cmd.moves.run'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        report.add_output(parser)
        return parser


class _Moves(_Plans):
    """A command that makes a plan."""

    _epilog = (
        'Exit status: 0 no server has to move, or each can be moved; 1 '
        'something could not be read or checked; 2 wrong usage; 3 a server '
        'cannot be moved; 130 interrupted.'
    )

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        return plan_report.COLUMNS


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    """Add what names hosts that are to be empty."""
    parser.add_argument(
        'hosts', metavar='HOST', nargs='*', help='a host to empty'
    )
    _add_choice(parser, 'all hosts')


def _add_choice(parser: typing.Any, which: str) -> None:
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


def _read_size(text: str) -> int | None:
    """Return a number of hosts; None for as many as can be."""
    if text == 'max':
        return None
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(
            f'expected a number of hosts, at least 1, or max, got: {text}'
        )
    return int(text)


class Mend(_Moves):
    """Plan the moves that fix what audit found, in an order that works.

    Checks servers as audit does, and asks nova-scheduler's own code where each
    violating server can go when its turn comes. It changes nothing.
    """

    examples = (
        '--output plan.json',
        '--aggregate windows --policy isolation',
        '--not-to cmp-0101 --map',
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        options.add_selection(parser)
        options.add_not_to(parser)
        options.add_change(parser)
        topology.add_options(parser)
        return parser

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        run = self.load(parsed_args)
        with progress.bar(
            sys.stderr, 'Judging servers', color=self.color
        ) as advance:
            made: report.Report = run.plan_mend(parsed_args, advance)
        return made


class Drain(_Moves):
    """Plan the moves that empty hosts, in an order that works.

    Asks nova-scheduler's own code where each server can go when its turn
    comes. No server moves to a host that is being emptied. It changes
    nothing.
    """

    examples = (
        'cmp-0101 --output plan.json',
        '--domain rack7 --not-to cmp-0101',
        '--aggregate old-hardware --map',
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_hosts(parser)
        options.add_not_to(parser)
        options.add_change(parser)
        topology.add_options(parser)
        return parser

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        if not (
            parsed_args.hosts or parsed_args.aggregate or parsed_args.domain
        ):
            raise base.UsageError(
                'Name the hosts to empty: HOST, --aggregate or --domain.'
            )
        run = self.load(parsed_args)
        with progress.bar(
            sys.stderr, 'Planning moves', color=self.color
        ) as advance:
            made: report.Report = run.plan_drain(parsed_args, advance)
        return made


class MakeRoom(_Moves):
    """Plan the moves that let new servers fit, in an order that works.

    New servers that already fit are placed first, so that no move takes their
    room. Asks nova-scheduler's own code where each server can go, and whether
    the new one fits then. It changes nothing.
    """

    _epilog = (
        'Exit status: 0 all fit after the moves; 1 something could not be '
        'read; 2 wrong usage; 3 not all fit; 130 interrupted.'
    )

    examples = (
        '--flavor m1.huge',
        '--flavor m1.huge --count 4 --output plan.json',
        '--flavor m1.huge --aggregate windows --cold',
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        group = parser.add_argument_group('the new servers')
        group.add_argument(
            '--flavor', metavar='FLAVOR', required=True, help='name or ID'
        )
        group.add_argument(
            '--count',
            metavar='N',
            type=base.read_amount,
            default=1,
            help='how many must fit (default: 1)',
        )
        options.add_server(group)
        where = parser.add_argument_group('where they can go')
        where.add_argument(
            '--host',
            metavar='HOST',
            dest='hosts',
            action='append',
            default=[],
            help='only to this host (repeatable)',
        )
        _add_choice(where, 'only to hosts')
        parser.add_argument(
            '--cold',
            action='store_true',
            help='allow cold migration of running servers that cannot be '
            'live-migrated',
        )
        options.add_not_to(parser)
        options.add_change(parser)
        topology.add_options(parser)
        return parser

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        run = self.load(parsed_args)
        with progress.bar(
            sys.stderr, 'Making room', color=self.color
        ) as advance:
            made: report.Report = run.plan_room(parsed_args, advance)
        return made


class Maintain(_Moves):
    """Plan a rolling maintenance: rounds that empty every host once.

    The hosts of a round are empty together; then they take servers again.
    Servers go to hosts that are done as long as one takes them. By default
    the plan covers every host of the cloud. It changes nothing.
    """

    _epilog = (
        'Exit status: 0 each host can be emptied; 1 something could not be '
        'read or checked; 2 wrong usage; 3 a host cannot be emptied; 130 '
        'interrupted.'
    )

    examples = (
        '',
        '--round-size max --keep-failover',
        '--done cmp-0101 --round 1 --output round.json',
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_hosts(parser)
        parser.add_argument(
            '--done',
            metavar='HOST',
            action='append',
            default=[],
            help='this host, or the hosts of this aggregate (name or UUID), '
            'are already done (repeatable)',
        )
        parser.add_argument(
            '--round-size',
            metavar='N',
            type=_read_size,
            default=1,
            help='the most hosts of a round, or max for as many as can be '
            'empty together (default: 1)',
        )
        parser.add_argument(
            '--round-within',
            choices=('domain', 'zone'),
            help='keep the hosts of a round within one failure domain or '
            'availability zone',
        )
        parser.add_argument(
            '--keep-failover',
            action='store_true',
            help='limit each round so that every host that survive calls safe '
            'today stays safe during the round; takes longer',
        )
        parser.add_argument(
            '--round',
            metavar='K',
            type=base.read_amount,
            help='show the moves of this round alone, as drain does, and plan '
            'no further',
        )
        options.add_not_to(parser)
        topology.add_options(parser)
        options.add_change(parser)
        return parser

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        if parsed_args.round is None:
            return plan_report.ROUND_COLUMNS
        return plan_report.COLUMNS

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        run = self.load(parsed_args)
        with progress.bar(
            sys.stderr, 'Planning rounds', color=self.color
        ) as advance:
            made: report.Report = run.plan_maintain(parsed_args, advance)
        return made


class Survive(metrics.Command, _Plans):
    """Check which hosts you can lose and still restart every server (N+1).

    Lets one host after another fail, and asks nova-scheduler's own code where
    each of its servers could be evacuated, the hardest to place first. It
    changes nothing.
    """

    _epilog = (
        'Exit status: 0 you can lose each; 1 something could not be read or '
        'checked; 2 wrong usage; 3 a server would have no host, nova would '
        'not evacuate it in its state, or no more of a flavor fits; 130 '
        'interrupted.'
    )

    _outcome: typing.Any

    purpose = cli_help.LOOK
    examples = (
        '',
        '--lose domain --map',
        '--flavor m1.small --aggregate windows',
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--lose',
            choices=('host', 'domain'),
            default='host',
            help='what fails as a whole: a host or a failure domain (default: '
            'host)',
        )
        for name, meaning in (
            ('host', 'lose only this host, or its failure domains'),
            (
                'aggregate',
                'lose only hosts of this aggregate (name, UUID or ID)',
            ),
            (
                'flavor',
                'count how many more servers of this flavor (name or ID) fit '
                'before a failure would strand one',
            ),
        ):
            parser.add_argument(
                f'--{name}',
                metavar=name.upper(),
                action='append',
                default=[],
                help=f'{meaning} (repeatable)',
            )
        parser.add_argument(
            '--project',
            metavar='PROJECT',
            help='name or ID of the project that asks for the servers of '
            '--flavor; some policies depend on it',
        )
        options.add_change(parser)
        topology.add_options(parser)
        return parser

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        more = plan_report.FLAVOR_COLUMNS if parsed_args.flavor else ()
        return plan_report.SURVIVAL_COLUMNS + more

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        if parsed_args.project and not parsed_args.flavor:
            raise base.UsageError(
                'Name a --flavor: --project is the project that asks for it.'
            )
        run = self.load(parsed_args)
        with progress.bar(
            sys.stderr, 'Evacuating servers', color=self.color
        ) as advance:
            self._outcome = run.plan_survive(parsed_args, advance)
        stuck = (
            each
            for one in self._outcome.failures
            for each in one.without_place
        )
        made = plan_report.make_survival(
            self._outcome,
            parsed_args.lose,
            run.name_groups(stuck),
            parsed_args.all,
        )
        if topology.is_wanted(parsed_args):
            of_all = not (parsed_args.host or parsed_args.aggregate)
            drawn = maps.draw_survival(
                self._outcome, parsed_args.map_by, of_all
            )
            made = report.insert(made, drawn)
        return made

    def measure(self) -> Iterator[metrics.Figure]:
        outcome = self._outcome
        failures = outcome.failures
        bad = sum(bool(one.lost) for one in failures)
        yield metrics.Figure(
            'failures',
            'Hosts or failure domains that can fail one at a time, so that '
            'each server finds another host, and those that cannot.',
            'survived',
            {'yes': len(failures) - bad, 'no': bad},
        )
        yield metrics.Figure(
            'stranded_servers',
            'Servers that find no host when theirs fails (room), those that '
            'nova would not evacuate as they are (state), and those that it '
            'evacuates in no state (never).',
            'reason',
            {
                'room': len(outcome.without_room),
                'state': len(outcome.refused),
                'never': len(outcome.never_evacuated),
            },
        )
