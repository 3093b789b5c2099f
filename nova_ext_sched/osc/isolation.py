# SPDX-License-Identifier: Apache-2.0

"""``openstack aggregate isolation list`` and ``sync``."""

import argparse
from collections.abc import Iterable
from collections.abc import Sequence
import typing

from cliff import columns
from osc_lib import exceptions as osc_exc
from osc_lib.cli import format_columns

from nova_ext_sched import messages
from nova_ext_sched import progress
from nova_ext_sched.osc import base
from nova_ext_sched.osc import isolation_changes as changes
from nova_ext_sched.osc import isolation_state
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import isolation_plan
from nova_ext_sched.policy import isolation_setup

Table = tuple[Sequence[str], Iterable[Sequence[typing.Any]]]

SYNC_COLUMNS = ('Change', 'Names', 'Host', 'Provider', 'Result')

_READING = 'Reading nova and placement'
_PARTS = 3


class NamesColumn(format_columns.ListColumn):
    """Names, of which people are shown the first."""

    def human_readable(self) -> str:
        """Return the first names and how many follow."""
        return messages.first_few(self._value)


class FaultsColumn(columns.FormattableColumn):
    """What is wrong with an aggregate."""

    def human_readable(self) -> str:
        """Return a line for each."""
        return '\n'.join(
            fault.problem
            + (f': {messages.first_few(fault.hosts)}' if fault.hosts else '')
            for fault in self._value
        )

    def machine_readable(self) -> list[dict[str, typing.Any]]:
        """Return a dictionary for each."""
        return [
            {
                'kind': fault.kind,
                'problem': fault.problem,
                'hosts': list(fault.hosts),
            }
            for fault in self._value
        ]


class ListIsolation(base.Lister):
    """List the isolating aggregates and what is wrong with them.

    An aggregate is isolating where its metadata has one or more
    ``trait:<NAME>=required``. Listed are also aggregates that were meant to
    be and are not, because the value is another. Changes nothing.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the command line."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--forbid-by-trait',
            metavar='<traits>',
            default='',
            help='the value of [nova_ext_sched] forbid_by_trait in nova.conf; '
            'hosts that break its promise are then listed too',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Return the table."""
        declared = isolation.DeclaredTraits(
            filter(
                None, map(str.strip, parsed_args.forbid_by_trait.split(','))
            )
        )
        with progress.bar(self.app.stderr, _READING, _PARTS) as advance:
            cloud = isolation_state.read(
                self.compute, self.placement, advance=advance
            )
        return (
            ('ID', 'Name', 'UUID', 'Traits', 'Hosts', 'Faults'),
            [
                (
                    aggregate.id,
                    aggregate.name,
                    aggregate.uuid,
                    format_columns.ListColumn(list(aggregate.traits)),
                    NamesColumn(list(aggregate.hosts)),
                    FaultsColumn(
                        isolation_setup.find_faults(aggregate, cloud, declared)
                    ),
                )
                for aggregate in sorted(
                    cloud.aggregates, key=lambda agg: agg.name
                )
                if aggregate.concerned
            ],
        )


class SyncIsolation(base.Lister):
    """Give placement what the isolating aggregates need.

    Creates the custom traits that are missing, puts the resource providers
    of the aggregates' hosts into placement's aggregates and gives them the
    traits that the aggregates require. Lists each change and what became of
    it; a summary goes to standard error. The exit status is 1 where
    something that is needed was not done.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the command line."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'aggregates',
            metavar='<aggregate>',
            nargs='*',
            help='name, ID or UUID of an aggregate to set up (default: all '
            'that are isolating)',
        )
        parser.add_argument(
            '--dry-run',
            action='store_true',
            help='list what would change and change nothing',
        )
        parser.add_argument(
            '--prune',
            action='store_true',
            help='also remove traits that an earlier sync gave to hosts which '
            'no isolating aggregate requires them of any more',
        )
        parser.add_argument(
            '--trait',
            metavar='<trait>',
            action='append',
            default=[],
            help='with --prune, remove this trait from hosts that no '
            'isolating aggregate requires it of, whoever gave it (repeat '
            'option for several)',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Change what must change and return the table."""
        if parsed_args.trait and not parsed_args.prune:
            raise osc_exc.CommandError('--trait: expected --prune beside it')
        self._check_columns(parsed_args)
        named = set(map(isolation_plan.check_named, parsed_args.trait))
        with progress.bar(self.app.stderr, _READING, _PARTS) as advance:
            cloud = isolation_state.read(
                self.compute, self.placement, named, advance
            )
        self._run = changes.Run(
            isolation_plan.make(
                cloud,
                _select(cloud, parsed_args.aggregates),
                parsed_args.prune,
                named,
            ),
            named,
        )
        if not parsed_args.dry_run:
            self._carry_out()
        return (
            SYNC_COLUMNS,
            [_row(outcome) for outcome in self._run.outcomes],
        )

    def _check_columns(self, parsed_args: argparse.Namespace) -> None:
        # cliff would refuse them after the changes, and show none of them.
        try:
            self._generate_columns_and_selector(parsed_args, SYNC_COLUMNS)
        except ValueError as exc:
            raise osc_exc.CommandError(str(exc)) from exc

    def _carry_out(self) -> None:
        run = self._run
        total = run.count(changes.PLANNED)
        try:
            with progress.bar(
                self.app.stderr, 'Changing placement', total
            ) as advance:
                run.carry_out(self.placement, advance)
        except KeyboardInterrupt:
            self.app.stderr.write(f'Interrupted. {run.summary()}\n')
            raise

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command and return the exit status."""
        status = super().run(parsed_args)
        run = self._run
        if run.ended_by is not None:
            raise osc_exc.CommandError(
                f'{run.ended_by}. {run.summary()} Run the command again when '
                f'the cause is gone: it does what is left.'
            ) from run.ended_by
        if run.count(changes.FAILED, changes.IMPOSSIBLE):
            raise osc_exc.CommandError(run.summary())
        self.app.stderr.write(run.summary() + '\n')
        return status


def _select(
    cloud: isolation_setup.Cloud, wanted: Iterable[str]
) -> set[str] | None:
    if not wanted:
        return None
    selected = set()
    for text in wanted:
        found = [
            aggregate
            for aggregate in cloud.aggregates
            if text in (aggregate.name, aggregate.uuid, str(aggregate.id))
        ]
        if len(found) != 1:
            raise osc_exc.CommandError(
                f'{text}: expected the name, ID or UUID of one aggregate, got '
                f'{len(found)} aggregates'
            )
        if not found[0].traits:
            raise osc_exc.CommandError(
                f'aggregate {text}: expected metadata trait:<NAME>=required, '
                f'got {sorted(found[0].metadata.items())}'
            )
        selected.add(found[0].uuid)
    return selected


def _row(outcome: changes.Outcome) -> tuple[typing.Any, ...]:
    step = outcome.step
    return (
        str(step.change),
        format_columns.ListColumn(list(step.names)),
        step.host,
        step.node.name if step.node else '',
        str(outcome),
    )
