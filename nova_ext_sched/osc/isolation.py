# SPDX-License-Identifier: Apache-2.0

"""``openstack aggregate isolation list`` and ``sync``."""

import argparse
from collections.abc import Iterable
from collections.abc import Sequence
import typing

from osc_lib.command import command

from nova_ext_sched import exception
from nova_ext_sched.cli import base
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import lister
from nova_ext_sched.cli import progress
from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.osc import isolation_findings
from nova_ext_sched.osc import isolation_plan
from nova_ext_sched.osc import isolation_report
from nova_ext_sched.osc import isolation_run
from nova_ext_sched.policy import isolation

Table = tuple[Sequence[str], Iterable[Sequence[typing.Any]]]


class Command(lister.Lister, command.Lister):
    """A command that reads the cloud and writes a text or a table.

    ======  ================================================================
    status  meaning
    ======  ================================================================
    0       nothing is wrong, or everything was made
    1       nova or placement could not be read, or a change was not made
    2       wrong usage
    3       ``list`` found a fault, ``sync --dry-run`` a change to make
    ======  ================================================================

    The OpenStackClient shows an error as one line; with ``--debug`` it shows
    the traceback.
    """

    #: The columns of the rows.
    names: Sequence[str]
    #: What the command ends with; set by ``take_action``.
    status = base.FINE
    #: What the command says last, as an error; set by ``take_action``.
    fault = ''

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command and return the exit status."""
        try:
            base.check_columns(self, parsed_args, self.names)
            super().run(parsed_args)
        except (base.UsageError, exception.InvalidValue) as exc:
            self.log.error(exc)
            return base.USAGE
        if self.sentence:
            errors = layout.Layout(self.app.stderr, parsed_args.max_width)
            errors.say(self.sentence)
        if self.fault:
            self.log.error(self.fault)
        return self.status

    def read_cloud(self, **options: typing.Any) -> isolation_cloud.Cloud:
        """Return what nova and placement know, as the user may see it.

        :param options: see :func:`.isolation_cloud.read`
        """
        manager = self.app.client_manager
        with progress.bar(self.app.stderr, 'Reading nova and placement'):
            return isolation_cloud.read(
                manager.compute, manager.nova_ext_sched, **options
            )


class ListIsolation(Command):
    """List the isolated aggregates and what is wrong with them.

    An aggregate is isolated if its metadata has one or more
    ``trait:<NAME>=required``. The list also has aggregates with another value
    of a ``trait:`` key, which isolates nothing. Those with faults come first.
    The command changes nothing. The exit status is 3 if there is a fault.
    """

    names = ('ID', 'Name', 'UUID', 'Traits', 'Hosts', 'Faults')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the command line."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--faults',
            action='store_true',
            help='list only the aggregates with faults',
        )
        parser.add_argument(
            '--forbid-by-trait',
            metavar='<traits>',
            default='',
            help='the value of [nova_ext_sched] forbid_by_trait in nova.conf; '
            'also lists hosts that have one of these traits outside the '
            'aggregates that require it',
        )
        parser.add_argument(
            '--hypervisors',
            action='store_true',
            help='ask nova for the compute node of each host, instead of '
            'taking the resource provider that has the name of the host; on '
            'thousands of hosts this takes half a minute',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Return the table: aggregates with faults, then the others."""
        patterns = map(str.strip, parsed_args.forbid_by_trait.split(','))
        declared = isolation.DeclaredTraits(filter(None, patterns))
        cloud = self.read_cloud(by_name=not parsed_args.hypervisors)
        found = [
            (agg, isolation_findings.find(agg, cloud, declared))
            for agg in cloud.aggregates
            if agg.has_trait_keys
        ]
        self._report = isolation_report.Report(found, not parsed_args.faults)
        if self._report.faulty:
            self.status = base.SOME_FOUND
        return self.names, [
            (
                agg.id,
                agg.name,
                agg.uuid,
                lister.Several(agg.traits),
                lister.Several(agg.hosts),
                isolation_report.FaultsColumn(findings),
            )
            for agg, findings in (*self._report.faulty, *self._report.fine)
        ]

    def write_text(self, out: layout.Layout, rows: list[lister.Row]) -> None:
        """See the base."""
        self._report.write(out)

    def sum_up(self) -> str:
        """See the base."""
        return self._report.sentence


class SyncIsolation(Command):
    """Set up in placement what the isolated aggregates need.

    The command creates the missing custom traits, adds the resource providers
    of the aggregates' hosts to the placement aggregates, and gives them the
    traits that the aggregates require. It lists the changes and their results.
    The exit status is 1 if a necessary change was not made, and 3 if a dry run
    found a change to make.
    """

    names = ('Change', 'Names', 'Host', 'Provider', 'Result')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the command line."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'aggregates',
            metavar='<aggregate>',
            nargs='*',
            help='name, ID or UUID of an aggregate to set up (default: all '
            'isolated aggregates)',
        )
        parser.add_argument(
            '--dry-run',
            action='store_true',
            help='list the changes without making them',
        )
        parser.add_argument(
            '--prune',
            action='store_true',
            help='also remove traits that an earlier sync gave to hosts and '
            'that no isolated aggregate requires of them any more',
        )
        parser.add_argument(
            '--trait',
            metavar='<trait>',
            action='append',
            default=[],
            help='with --prune, remove this trait from all hosts of which no '
            'isolated aggregate requires it, whoever gave it (repeat the '
            'option for several traits)',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Change what must change and return the table."""
        if parsed_args.trait and not parsed_args.prune:
            raise base.UsageError('--trait goes with --prune only.')
        operator_traits = set(
            map(isolation_plan.check_operator_trait, parsed_args.trait)
        )
        cloud = self.read_cloud(operator_traits=operator_traits)
        selected = [
            base.find_aggregate(cloud.aggregates, name)
            for name in parsed_args.aggregates
        ]
        for aggregate in selected:
            if not aggregate.traits:
                raise exception.InvalidValue(
                    where=f'aggregate {aggregate.name}',
                    expected='metadata trait:<NAME>=required',
                    got=aggregate.metadata,
                )
        self._steps = isolation_plan.make(
            cloud, selected, parsed_args.prune, operator_traits
        )
        if not parsed_args.dry_run:
            self._carry_out()
        elif self._steps:
            self.status = base.SOME_FOUND
        return self.names, [
            (
                str(step.change),
                lister.Several(step.names),
                step.host,
                step.provider,
                str(step.result),
            )
            for step in self._steps
        ]

    def write_text(self, out: layout.Layout, rows: list[lister.Row]) -> None:
        """See the base."""
        isolation_report.write_steps(out, self._steps)

    def sum_up(self) -> str:
        """See the base."""
        return isolation_run.summarize(self._steps)

    def _carry_out(self) -> None:
        client = self.app.client_manager.nova_ext_sched
        total = sum(step.write is not None for step in self._steps)
        bar = progress.bar(self.app.stderr, 'Changing placement', total)
        try:
            with bar as advance:
                exc = isolation_run.carry_out(self._steps, client, advance)
        except KeyboardInterrupt:
            self.app.stderr.write(f'Interrupted. {self.sum_up()}\n')
            raise
        if exc is not None:
            self.fault = (
                f'{exc}. Run the command again when the cause is gone; it '
                f'makes the remaining changes.'
            )
        done = isolation_plan.Status.DONE
        if any(step.status != done for step in self._steps):
            self.status = base.FAULT
