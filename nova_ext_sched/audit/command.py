# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched audit``."""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import sys
import typing

from cliff import columns
from cliff import lister

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import progress
from nova_ext_sched.audit import aggregate_change
from nova_ext_sched.audit import auditor
from nova_ext_sched.audit import policies
from nova_ext_sched.explain import scheduler as nova_scheduler

CLEAN = 0
FAULT = 1
USAGE = 2
FOUND = 3

COLUMNS = ('Server', 'Project', 'Host', 'Policy', 'Reason')

# Formatters of cliff that write a row when they get it; the others hold all.
_STREAMING = ('csv',)


class Hosts(columns.FormattableColumn):
    """Names of hosts: a few of them for people, all for programs."""

    def human_readable(self) -> str:
        """See cliff."""
        return messages.first_few(self._value) or 'none'

    def machine_readable(self) -> list[str]:
        """See cliff."""
        return self._value


class Audit(lister.Lister):
    """List the servers that the policies would not put where they stand.

    Every server of every cell is judged by the policies that nova.conf turns
    on, with nova-scheduler's own code. Run it where nova-scheduler's nova.conf
    is. It changes nothing.
    """

    _epilog = (
        'Exit status: 0 no server found; 3 some found; 1 something could not '
        'be read, a cell for example; 2 wrong usage.'
    )

    #: What the command ends with; known when the last row is out.
    status = CLEAN

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """See cliff."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--config-file',
            metavar='FILE',
            action='append',
            default=[],
            help="nova-scheduler's nova.conf; may be repeated",
        )
        parser.add_argument(
            '--config-dir',
            metavar='DIR',
            action='append',
            default=[],
            help='a directory of *.conf files; may be repeated',
        )
        narrowing = parser.add_argument_group('which servers')
        narrowing.add_argument(
            '--aggregate',
            metavar='AGGREGATE',
            help='only servers on hosts of this aggregate (name, UUID or ID)',
        )
        narrowing.add_argument(
            '--host', metavar='HOST', help='only servers on this host'
        )
        narrowing.add_argument(
            '--project',
            metavar='PROJECT_ID',
            help='only servers of this project',
        )
        narrowing.add_argument(
            '--policy',
            action='append',
            default=[],
            choices=[policy.name for policy in policies.ALL],
            help='judge by this policy alone; may be repeated',
        )
        supposing = parser.add_argument_group(
            'before a change', 'judge as if it were made; nothing is changed'
        )
        supposing.add_argument(
            '--option',
            metavar='[GROUP.]NAME=VALUE',
            action='append',
            default=[],
            help='as if nova.conf had this option; may be repeated',
        )
        supposing.add_argument(
            '--aggregate-property',
            metavar=('AGGREGATE', 'KEY=VALUE'),
            nargs=2,
            action='append',
            default=[],
            help='as if the aggregate had this metadata; may be repeated',
        )
        supposing.add_argument(
            '--no-aggregate-property',
            metavar=('AGGREGATE', 'KEY'),
            nargs=2,
            action='append',
            default=[],
            help='as if the aggregate lacked this metadata; may be repeated',
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """See cliff; returns the exit status."""
        try:
            super().run(parsed_args)
        except exception.InvalidValue as exc:
            print(f'nova-ext-sched audit: {exc}', file=sys.stderr)
            return USAGE
        return self.status

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterator[Sequence[typing.Any]]]:
        """See cliff."""
        self.configure(parsed_args)
        scheduler = nova_scheduler.Scheduler()
        suppose(scheduler, parsed_args)
        judging = policies.enabled(parsed_args.policy)
        if not judging:
            raise exception.InvalidValue(
                where='--policy' if parsed_args.policy else 'nova.conf',
                expected='a policy that is on (--option turns one on)',
                got=messages.first_few([p.name for p in policies.enabled()])
                or 'none',
            )
        auditing = auditor.Auditor(
            scheduler.context(),
            scheduler,
            judging,
            _hosts(scheduler, parsed_args),
            parsed_args.project,
        )
        return COLUMNS, self._rows(auditing, parsed_args)

    def configure(self, parsed_args: argparse.Namespace) -> None:
        """Make this process what nova-scheduler's is.

        :raises exception.InvalidValue: an option is not one of nova.conf
        """
        nova_scheduler.configure(
            parsed_args.config_file,
            parsed_args.config_dir,
            dict(map(_option, parsed_args.option)),
        )

    def _rows(
        self, auditing: auditor.Auditor, parsed_args: argparse.Namespace
    ) -> Iterator[Sequence[typing.Any]]:
        total = auditing.count()
        found = False
        with contextlib.ExitStack() as stack:
            advance = None
            # A bar would run through rows that are written while it is shown.
            if not (
                parsed_args.formatter in _STREAMING and sys.stdout.isatty()
            ):
                advance = stack.enter_context(
                    progress.bar(sys.stderr, 'Judging servers', total)
                )
            for finding in auditing.findings(advance):
                found = True
                yield finding
        for fault in auditing.faults:
            print(f'nova-ext-sched audit: {fault}', file=sys.stderr)
        self.status = FAULT if auditing.faults else FOUND if found else CLEAN


def suppose(
    scheduler: nova_scheduler.Scheduler, parsed_args: argparse.Namespace
) -> None:
    """Change the metadata of aggregates in memory, as the arguments say.

    :raises exception.InvalidValue: an argument names no aggregate or no item
    """
    aggregates = scheduler.host_manager.aggs_by_id.values()
    for name, item in parsed_args.aggregate_property:
        change = aggregate_change.AggregateChange.parse(name, item)
        change.apply(aggregates)
    for name, key in parsed_args.no_aggregate_property:
        aggregate_change.AggregateChange(name, key).apply(aggregates)


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition('=')
    if not equals:
        raise exception.InvalidValue(
            where='--option', expected='[group.]name=value', got=text
        )
    return name, value


def _hosts(
    scheduler: nova_scheduler.Scheduler, parsed_args: argparse.Namespace
) -> set[str] | None:
    hosts = None
    if parsed_args.aggregate is not None:
        hosts = set(
            aggregate_change.find(
                scheduler.host_manager.aggs_by_id.values(),
                parsed_args.aggregate,
            ).hosts
        )
    if parsed_args.host is not None:
        hosts = {parsed_args.host} & (
            {parsed_args.host} if hosts is None else hosts
        )
    return hosts
