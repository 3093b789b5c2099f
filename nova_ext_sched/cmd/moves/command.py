# SPDX-License-Identifier: Apache-2.0

"""The commands of plans: ``mend``, ``drain``, ``make-room`` and others."""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import sys
import typing

from nova_ext_sched.cli import base
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

    work = 'nova_ext_sched.cmd.moves.run'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        report.add_output(parser)
        return parser


class _Moves(_Plans):
    """A command that makes a plan."""

    _epilog = (
        'Exit status: 0 no server has to move, or each has a place; 1 '
        'something could not be read or judged; 2 wrong usage; 3 a server has '
        'no place.'
    )

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        return plan_report.COLUMNS


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    """Add what names hosts that are to be empty."""
    parser.add_argument('hosts', metavar='HOST', nargs='*')
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
        help=f'{which} of this aggregate (name, UUID or ID; may be repeated)',
    )
    parser.add_argument(
        '--domain',
        metavar='VALUE',
        action='append',
        default=[],
        help=f'{which} of this failure domain (may be repeated)',
    )


def _read_at_once(text: str) -> int | None:
    """Return a number of hosts; None for as many as can be."""
    if text == 'max':
        return None
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(
            f'expected a number of hosts, at least 1, or max, got: {text}'
        )
    return int(text)


class Mend(_Moves):
    """Show moves, one after the other, after which no policy is violated.

    Judges servers as audit does, and asks nova-scheduler's own code where each
    one found can go when its turn comes; changes nothing.
    """

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
    """Show moves, one after the other, after which hosts are empty.

    Asks nova-scheduler's own code where each server can go when its turn
    comes, to no host that is to be empty; changes nothing.
    """

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
                'Name a host, --aggregate or --domain: what is to be empty.'
            )
        run = self.load(parsed_args)
        with progress.bar(
            sys.stderr, 'Planning moves', color=self.color
        ) as advance:
            made: report.Report = run.plan_drain(parsed_args, advance)
        return made


class MakeRoom(_Moves):
    """Show moves, one after the other, after which new servers fit.

    Those that fit now come first, so that their room is not spent. Asks
    nova-scheduler's own code where each server can go when its turn comes,
    and whether the new one comes then; changes nothing.
    """

    _epilog = (
        'Exit status: 0 all fit after the moves; 1 something could not be '
        'read; 2 wrong usage; 3 not all fit.'
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        group = parser.add_argument_group('the new servers')
        group.add_argument(
            '--flavor', metavar='FLAVOR', required=True, help='its ID or name'
        )
        group.add_argument(
            '--count',
            metavar='N',
            type=base.read_amount,
            default=1,
            help='how many are to fit. Default: 1',
        )
        options.add_server(group)
        where = parser.add_argument_group('where they may come')
        where.add_argument(
            '--host',
            metavar='HOST',
            dest='hosts',
            action='append',
            default=[],
            help='only to this host (may be repeated)',
        )
        _add_choice(where, 'only to hosts')
        parser.add_argument(
            '--cold',
            action='store_true',
            help='servers that run and cannot be live-migrated may be moved '
            'cold, too',
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
    """Show rounds of moves in which every host is empty once.

    In a round some hosts are empty together; after it they take servers again.
    Servers go where hosts have had their turn, as long as one takes them. By
    default every host of the cloud; changes nothing.
    """

    _epilog = (
        'Exit status: 0 each host can be emptied; 1 something could not be '
        'read or judged; 2 wrong usage; 3 a host cannot be emptied.'
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_hosts(parser)
        parser.add_argument(
            '--done',
            metavar='HOST',
            action='append',
            default=[],
            help='this host, or those of this aggregate (name or UUID), had '
            'their turn (may be repeated)',
        )
        parser.add_argument(
            '--at-once',
            metavar='N',
            type=_read_at_once,
            default=1,
            help='how many hosts a round has at most; max: as many as can be '
            'empty together. Default: 1',
        )
        parser.add_argument(
            '--by',
            choices=('domain', 'zone'),
            help='the hosts of a round are of one failure domain, or of one '
            'availability zone',
        )
        parser.add_argument(
            '--keep-failover',
            action='store_true',
            help='a round is no larger than lets any other host fail that may '
            'fail today, as survive says it; takes longer',
        )
        parser.add_argument(
            '--round',
            metavar='K',
            type=base.read_amount,
            help='show the moves of this round, as drain does, and plan no '
            'further',
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
    """Say which hosts can fail, so that each server finds another host.

    One host fails after the other; its servers are evacuated, the hardest to
    place first, each asked of nova-scheduler's own code. Changes nothing.
    """

    _epilog = (
        'Exit status: 0 each can fail; 1 something could not be read or '
        'judged; 2 wrong usage; 3 a server finds no host, nova would not '
        'evacuate one as it is, or no more of a flavor fits.'
    )

    _outcome: typing.Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--by',
            choices=('host', 'domain'),
            default='host',
            help='what fails at once; by default a host',
        )
        for name, meaning in (
            ('host', 'only this host fails, or its failure domains'),
            (
                'aggregate',
                'only hosts of this aggregate fail (name, UUID or ID)',
            ),
            (
                'flavor',
                'count how many more servers of it (name or ID) may come, so '
                'that each can fail as now',
            ),
        ):
            parser.add_argument(
                f'--{name}',
                metavar=name.upper(),
                action='append',
                default=[],
                help=f'{meaning}; may be repeated',
            )
        parser.add_argument(
            '--project',
            metavar='ID',
            help='who asks for the servers of --flavor; some policies look '
            'at it',
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
                'Name a --flavor: --project is who asks for its servers.'
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
            self._outcome, parsed_args.by, run.name_groups(stuck)
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
