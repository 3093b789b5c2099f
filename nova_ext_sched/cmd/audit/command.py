# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched audit``."""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import io
import sys
import typing

from cliff.formatters import value
from stevedore import extension

from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import lister
from nova_ext_sched.cli import progress
from nova_ext_sched.cmd import nova_command
from nova_ext_sched.cmd.audit import plan_report
from nova_ext_sched.cmd.audit import report

_COLUMNS = ('Server', 'Name', 'Project', 'Host', 'Policy', 'Reason')
_SUMMARY_COLUMNS = ('By', 'Name', 'Servers', 'Policies')

# The formatter of cliff that writes a row when it gets it; others hold all.
_STREAMING = 'csv'


class Audit(nova_command.Lister):
    """List the servers that violate the policies where they stand.

    Judges every server of every cell by the policies that nova.conf turns on,
    with nova-scheduler's own code; changes nothing.
    """

    _epilog = (
        'Exit status: 0 no server violates a policy; 1 something could not be '
        'read or judged; 2 wrong usage; 3 some servers violate a policy.'
    )

    _auditing: typing.Any
    _plan: typing.Any = None
    _summary = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        more = parser.add_mutually_exclusive_group()
        more.add_argument(
            '--summary',
            action='store_true',
            help='show no server, only their number by aggregate, project and '
            'host',
        )
        more.add_argument(
            '--where',
            action='store_true',
            help='add the hosts to which each server found could migrate, '
            'the best first',
        )
        more.add_argument(
            '--plan',
            action='store_true',
            help='show moves, one after the other, after which the servers '
            'found violate no policy',
        )
        plan = parser.add_argument_group('with --plan')
        plan.add_argument(
            '--most',
            metavar='N',
            type=base.read_amount,
            help='plan at most N moves',
        )
        plan.add_argument(
            '--make-room',
            action='store_true',
            help='let servers that violate nothing move too, where that frees '
            'a place for one that has none',
        )
        which = parser.add_argument_group('which servers, which policies')
        which.add_argument(
            '--aggregate',
            metavar='AGGREGATE',
            help='only servers on hosts of this aggregate (name, UUID or ID)',
        )
        which.add_argument(
            '--host', metavar='HOST', help='only servers on this host'
        )
        which.add_argument(
            '--project', metavar='ID', help='only servers of this project'
        )
        which.add_argument(
            '--policy',
            metavar='POLICY',
            action='append',
            default=[],
            help='judge only by this policy, one that is on (may be repeated)',
        )
        change = parser.add_argument_group(
            'before a change', 'judge as if it were made (may be repeated)'
        )
        base.add_option(change, 'as if nova.conf had this')
        change.add_argument(
            '--aggregate-property',
            metavar=('AGGREGATE', 'KEY=VALUE'),
            nargs=2,
            action='append',
            default=[],
            help='as if the aggregate had this metadata',
        )
        change.add_argument(
            '--no-aggregate-property',
            metavar=('AGGREGATE', 'KEY'),
            nargs=2,
            action='append',
            default=[],
            help='as if the aggregate did not have this metadata',
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterator[Sequence[typing.Any]]]:
        names: tuple[str, ...] = _COLUMNS
        if parsed_args.summary:
            names = _SUMMARY_COLUMNS
        elif parsed_args.plan:
            names = plan_report.COLUMNS
        elif parsed_args.where:
            names += ('Where',)
        base.check_columns(self, parsed_args, names)
        _check_usage(parsed_args)
        # Not before the process is configured: they import nova.
        self.configure(parsed_args)
        from nova_ext_sched.cmd.audit import auditor

        self._auditing = auditor.make(parsed_args)
        self._summary = parsed_args.summary
        if parsed_args.plan:
            from nova_ext_sched.cmd.audit import plan

            self._plan = plan.make(self._auditing, parsed_args)
            return names, plan_report.rows(self._plan)
        return names, self._rows(parsed_args)

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: typing.Any,
    ) -> int:
        if parsed_args.formatter == plan_report.COMMANDS:
            plan_report.write_commands(self.app.stdout, self._plan)
            self.sentence = self.sum_up()
        else:
            super().produce_output(parsed_args, column_names, data)
        totals = self._auditing.totals
        if self._auditing.faults or totals.not_judged:
            self.status = base.FAULT
        elif totals.violating:
            self.status = base.SOME_FOUND
        return 0

    def sum_up(self) -> str:
        auditing = self._auditing
        sentences = [auditing.totals.sentence, *auditing.faults]
        if self._plan:
            sentences.insert(0, plan_report.sum_up(self._plan))
        return ' '.join(sentences)

    def write_text(self, out: layout.Layout, rows: list[lister.Row]) -> None:
        if self._plan:
            plan_report.write(out, self._plan)
            out.say()
        report.write(
            out, self._auditing, [] if self._plan else rows, self._summary
        )

    def make_document(self, rows: list[lister.Row]) -> object:
        listed: object = report.list_rows(rows)
        name = 'summary' if self._summary else 'findings'
        if self._plan:
            sentence = plan_report.sum_up(self._plan)
            name, listed = 'plan', {'sentence': sentence, **self._plan}
        return report.make_document(self._auditing, **{name: listed})

    def _load_formatter_plugins(self) -> typing.Any:
        # One of this command alone; all programs with cliff share the others.
        found = super()._load_formatter_plugins()
        found.extensions.append(
            extension.Extension(
                plan_report.COMMANDS, None, None, value.ValueFormatter()
            )
        )
        return found

    def _rows(
        self, parsed_args: argparse.Namespace
    ) -> Iterator[Sequence[typing.Any]]:
        total = self._auditing.count()
        stream: typing.Any = sys.stderr
        if parsed_args.formatter == _STREAMING and sys.stdout.isatty():
            # A bar would run through rows that are written while it is shown.
            stream = io.StringIO()
        with progress.bar(stream, 'Judging servers', total) as advance:
            for server in self._auditing.judge(advance):
                found = () if parsed_args.summary else server.found
                for policy, reason in found:
                    row: tuple[typing.Any, ...] = (
                        server.uuid,
                        messages.clean(server.name),
                        server.project_id,
                        server.host,
                        policy,
                        reason,
                    )
                    if parsed_args.where:
                        hosts = self._auditing.find_destinations(
                            server, policy
                        )
                        row += (report.Where(hosts),)
                    yield row
        if parsed_args.summary:
            for *cells, policies in self._auditing.totals.lines():
                yield (*cells, report.Policies(policies))


def _check_usage(parsed_args: argparse.Namespace) -> None:
    """Refuse options that do not go together.

    :raises base.UsageError: some do not
    """
    wanting = {
        '--most': parsed_args.most,
        '--make-room': parsed_args.make_room,
        f'-f {plan_report.COMMANDS}': parsed_args.formatter
        == plan_report.COMMANDS,
    }
    for name, given in wanting.items():
        if given and not parsed_args.plan:
            raise base.UsageError(f'{name} needs --plan.')
