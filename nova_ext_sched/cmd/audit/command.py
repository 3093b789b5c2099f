# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched audit``."""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import functools
import io
import sys
import typing

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.cmd import aggregates as named
from nova_ext_sched.cmd import base
from nova_ext_sched.cmd import lines
from nova_ext_sched.cmd import progress
from nova_ext_sched.cmd.audit import report

#: The policies, as nova_ext_sched.cmd.audit.policies has them, which imports
#: nova.
POLICIES = (
    'isolation',
    'reservation',
    'aggregate-instance-type',
    'anti-affinity',
    'failure-domain',
    'blazar',
)

_COLUMNS = ('Server', 'Name', 'Project', 'Host', 'Policy', 'Reason')
_SUMMARY_COLUMNS = ('By', 'Name', 'Servers', 'Policies')

# The formatter of cliff that writes a row when it gets it; others hold all.
_STREAMING = 'csv'
_DOCUMENTS = ('json', 'yaml')


class Audit(base.Command):
    """List the servers that violate the policies where they stand.

    Judges every server of every cell by the policies that nova.conf turns on,
    with nova-scheduler's own code; changes nothing.
    """

    _epilog = (
        'Exit status: 0 no server violates a policy; 1 something could not be '
        'read or judged; 2 wrong usage; 3 some servers violate a policy.'
    )

    formatter: typing.Any
    _auditing: typing.Any

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
            choices=POLICIES,
            action='append',
            default=[],
            help='judge only by this policy (may be repeated)',
        )
        change = parser.add_argument_group(
            'before a change', 'judge as if it were made (may be repeated)'
        )
        change.add_argument(
            '--option',
            metavar='[GROUP.]NAME=VALUE',
            action='append',
            default=[],
            type=functools.partial(base.read_pair, form='[group.]name=value'),
            help='as if nova.conf had this',
        )
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
        elif parsed_args.where:
            names += ('Where',)
        base.check_columns(self, parsed_args, names)
        self.configure(parsed_args, dict(parsed_args.option))
        self._auditing = _make_auditor(parsed_args)
        return names, self._rows(parsed_args)

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: typing.Any,
    ) -> int:
        if parsed_args.formatter in _DOCUMENTS:
            self.formatter = report.Document(self._auditing, self.formatter)
        elif parsed_args.formatter == 'table' and not (
            parsed_args.columns or parsed_args.sort_columns
        ):
            text = report.Summary if parsed_args.summary else report.Findings
            self.formatter = text(self._auditing)
        status = super().produce_output(parsed_args, column_names, data)
        if not isinstance(self.formatter, lines.Text):
            self.sentence = ' '.join(
                (self._auditing.totals.sentence, *self._auditing.faults)
            )
        totals = self._auditing.totals
        if self._auditing.faults or totals.not_judged:
            self.status = base.FAULT
        elif totals.violating:
            self.status = base.SOME_FOUND
        return status

    def _rows(
        self, parsed_args: argparse.Namespace
    ) -> Iterator[Sequence[typing.Any]]:
        total = self._auditing.count()
        stream: typing.Any = sys.stderr
        if parsed_args.formatter == _STREAMING and sys.stdout.isatty():
            # A bar would run through rows that are written while it is shown.
            stream = io.StringIO()
        with progress.bar(stream, 'Judging servers', total) as advance:
            for finding in self._auditing.findings(advance):
                if parsed_args.summary:
                    continue
                row = finding._replace(name=messages.clean(finding.name))
                if parsed_args.where:
                    hosts = self._auditing.find_destinations(finding)
                    row += (report.Where(hosts),)
                yield row
        if parsed_args.summary:
            for *cells, policies in self._auditing.totals.lines():
                yield (*cells, report.Policies(policies))


def _make_auditor(parsed_args: argparse.Namespace) -> typing.Any:
    # Not before the process is configured: they import nova.
    from nova_ext_sched.cmd import nova_scheduler
    from nova_ext_sched.cmd.audit import aggregate_change
    from nova_ext_sched.cmd.audit import auditor
    from nova_ext_sched.cmd.audit import policies

    judging = policies.enabled(parsed_args.policy)
    off = set(parsed_args.policy) - {policy.name for policy in judging}
    if off:
        raise exception.InvalidValue(
            where='--policy',
            expected='a policy that is on (--option judges as if it were)',
            got=', '.join(sorted(off)),
        )
    scheduler = nova_scheduler.ReadOnlyHostManager()
    aggregates = scheduler.aggs_by_id.values()
    for name, item in parsed_args.aggregate_property:
        aggregate_change.set_property(aggregates, name, item)
    for name, key in parsed_args.no_aggregate_property:
        aggregate_change.remove_property(aggregates, name, key)
    hosts = None
    if parsed_args.host is not None:
        _check_host(scheduler, parsed_args.host)
        hosts = {parsed_args.host}
    if parsed_args.aggregate is not None:
        found = named.find(aggregates, parsed_args.aggregate)
        hosts = set(found.hosts).intersection(hosts or found.hosts)
    return auditor.Auditor(
        nova_scheduler.context(),
        scheduler,
        judging,
        hosts,
        parsed_args.project,
    )


def _check_host(scheduler: typing.Any, name: str) -> None:
    known = {host.host for host in scheduler.hosts.values()}
    if name not in known and not scheduler.silent_cells:
        raise exception.InvalidValue(
            where='--host', expected='a host of a compute node', got=name
        )
