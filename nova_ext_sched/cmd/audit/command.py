# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched audit``."""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import functools
import io
import sys
import typing

from cliff import columns

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.cmd import base
from nova_ext_sched.cmd import progress

#: The exit status where a server is found.
SOME_FOUND = 3

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

_COLUMNS = ('Server', 'Project', 'Host', 'Policy', 'Reason')

# The formatter of cliff that writes a row when it gets it; others hold all.
_STREAMING = 'csv'


class Hosts(columns.FormattableColumn):
    """Names of hosts: a few of them for people, all for programs.

    None where they are not known.
    """

    def human_readable(self) -> str:
        if self._value is None:
            return 'unknown'
        return messages.first_few(self._value) or 'none'

    def machine_readable(self) -> list[str] | None:
        return self._value


class Audit(base.Command):
    """List the servers that the policies would not put where they stand.

    Judges every server of every cell by the policies that nova.conf turns on,
    with nova-scheduler's own code; changes nothing.
    """

    _epilog = (
        'Exit status: 0 no server is found; 1 something could not be read, a '
        'cell for example; 2 wrong usage; 3 some servers are found.'
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
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
        names = (*_COLUMNS, 'Where') if parsed_args.where else _COLUMNS
        self.check_columns(parsed_args, names)
        self.configure(parsed_args, dict(parsed_args.option))
        return names, self._rows(parsed_args)

    def _rows(
        self, parsed_args: argparse.Namespace
    ) -> Iterator[Sequence[typing.Any]]:
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
            aggregate_change.suppose_property(aggregates, name, item)
        for name, key in parsed_args.no_aggregate_property:
            aggregate_change.suppose_no_property(aggregates, name, key)
        hosts = None
        if parsed_args.host is not None:
            _check_host(scheduler, parsed_args.host)
            hosts = {parsed_args.host}
        if parsed_args.aggregate is not None:
            found = aggregate_change.find(aggregates, parsed_args.aggregate)
            hosts = set(found.hosts).intersection(hosts or found.hosts)
        auditing = auditor.Auditor(
            nova_scheduler.context(),
            scheduler,
            judging,
            hosts,
            parsed_args.project,
        )
        total = auditing.count()
        stream: typing.Any = sys.stderr
        if parsed_args.formatter == _STREAMING and sys.stdout.isatty():
            # A bar would run through rows that are written while it is shown.
            stream = io.StringIO()
        with progress.bar(stream, 'Judging servers', total) as advance:
            for finding in auditing.findings(advance):
                row: tuple[typing.Any, ...] = finding
                if parsed_args.where:
                    row += (Hosts(auditing.find_destinations(finding)),)
                yield row
        self.sentence = auditing.sentence
        if auditing.faults:
            self.status = base.FAULT
        elif auditing.found:
            self.status = SOME_FOUND


def _check_host(scheduler: typing.Any, name: str) -> None:
    known = {host.host for host in scheduler.hosts.values()}
    if name not in known and not scheduler.silent_cells:
        raise exception.InvalidValue(
            where='--host', expected='a host of a compute node', got=name
        )
