# SPDX-License-Identifier: Apache-2.0

"""``openstack aggregate isolation list`` and ``sync``."""

import argparse
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
import typing

from cliff import columns
from openstack import exceptions as sdk_exc
from osc_lib import exceptions as osc_exc
from osc_lib.cli import format_columns
from osc_lib.command import command

from nova_ext_sched import messages
from nova_ext_sched.cmd import progress
from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.osc import isolation_findings
from nova_ext_sched.osc import isolation_plan
from nova_ext_sched.osc import isolation_run
from nova_ext_sched.placement import answers
from nova_ext_sched.policy import isolation

Table = tuple[Sequence[str], Iterable[Sequence[typing.Any]]]

SYNC_COLUMNS = ('Change', 'Names', 'Host', 'Provider', 'Result')

_NOT_MADE = (isolation_plan.Status.FAILED, isolation_plan.Status.IMPOSSIBLE)


class NamesColumn(format_columns.ListColumn):
    """Names; people see only the first of them."""

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
        return [fault._asdict() for fault in self._value]


class Command(command.Lister):
    """A command that reads the cloud and writes a table.

    The OpenStackClient shows an error as one line and ends with status 1; with
    ``--debug`` it shows the traceback.
    """

    app: typing.Any

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command and return the exit status."""
        try:
            return super().run(parsed_args)
        except sdk_exc.HttpException as exc:
            raise osc_exc.CommandError(_describe(exc)) from exc

    def read_cloud(
        self, operator_traits: Collection[str] = ()
    ) -> isolation_cloud.Cloud:
        """Return what nova and placement know, as the user may see it."""
        manager = self.app.client_manager
        with progress.bar(
            self.app.stderr, 'Reading nova and placement', 3
        ) as advance:
            return isolation_cloud.read(
                manager.compute,
                manager.nova_ext_sched,
                operator_traits,
                advance,
            )


def _describe(exc: sdk_exc.HttpException) -> str:
    problem = {
        401: 'the service does not accept the token, which may have expired',
        403: 'the service does not allow the user to do this',
    }.get(exc.status_code or 0, 'the service refuses the request')
    context = [
        messages.clean(f'{exc.method} {exc.url}'),
        f'status {exc.status_code}',
    ]
    if exc.request_id:
        context.append(f'request id {exc.request_id}')
    # nova answers in HTML where its middleware refuses.
    detail = answers.clean(str(exc.details or exc.message))
    return f'{problem}: {detail} ({", ".join(context)})'


class ListIsolation(Command):
    """List the isolated aggregates and what is wrong with them.

    An aggregate is isolated if its metadata has one or more
    ``trait:<NAME>=required``. The list also has aggregates with another value
    of a ``trait:`` key, which isolates nothing. The command changes nothing.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the command line."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--forbid-by-trait',
            metavar='<traits>',
            default='',
            help='the value of [nova_ext_sched] forbid_by_trait in nova.conf; '
            'also lists hosts that have one of these traits outside the '
            'aggregates that require it',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Return the table."""
        patterns = map(str.strip, parsed_args.forbid_by_trait.split(','))
        declared = isolation.DeclaredTraits(filter(None, patterns))
        cloud = self.read_cloud()
        rows = [
            (
                agg.id,
                agg.name,
                agg.uuid,
                format_columns.ListColumn(agg.traits),
                NamesColumn(agg.hosts),
                FaultsColumn(isolation_findings.find(agg, cloud, declared)),
            )
            for agg in sorted(cloud.aggregates, key=lambda agg: agg.name)
            if agg.has_trait_keys
        ]
        return ('ID', 'Name', 'UUID', 'Traits', 'Hosts', 'Faults'), rows


class SyncIsolation(Command):
    """Set up in placement what the isolated aggregates need.

    The command creates the missing custom traits, adds the resource providers
    of the aggregates' hosts to the placement aggregates, and gives them the
    traits that the aggregates require. It lists each change and its result. A
    summary goes to standard error. The exit status is 1 if a necessary change
    was not made.
    """

    _steps: Sequence[isolation_plan.Step] = ()
    _ended_by: Exception | None = None

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
            raise osc_exc.CommandError('--trait: expected --prune too')
        self._check_columns(parsed_args)
        operator_traits = set(
            map(isolation_plan.check_operator_trait, parsed_args.trait)
        )
        cloud = self.read_cloud(operator_traits)
        self._steps = isolation_plan.make(
            cloud,
            _select_aggregates(cloud, parsed_args.aggregates),
            parsed_args.prune,
            operator_traits,
        )
        if not parsed_args.dry_run:
            total = sum(step.write is not None for step in self._steps)
            with progress.bar(
                self.app.stderr, 'Changing placement', total
            ) as advance:
                self._ended_by = isolation_run.carry_out(
                    self._steps,
                    self.app.client_manager.nova_ext_sched,
                    advance,
                )
        return SYNC_COLUMNS, [_row(step) for step in self._steps]

    def _check_columns(self, parsed_args: argparse.Namespace) -> None:
        # cliff would refuse them after the changes, and show none of them.
        try:
            self._generate_columns_and_selector(parsed_args, SYNC_COLUMNS)
        except ValueError as exc:
            raise osc_exc.CommandError(str(exc)) from exc

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command and return the exit status."""
        try:
            status = super().run(parsed_args)
        except KeyboardInterrupt:
            if self._steps:
                summary = isolation_run.summarize(self._steps)
                self.app.stderr.write(f'Interrupted. {summary}\n')
            raise
        summary = isolation_run.summarize(self._steps)
        if self._ended_by is not None:
            raise osc_exc.CommandError(
                f'{self._ended_by}. {summary} Run the command again when the '
                f'cause is gone; it makes the remaining changes.'
            ) from self._ended_by
        if any(step.status in _NOT_MADE for step in self._steps):
            raise osc_exc.CommandError(summary)
        self.app.stderr.write(summary + '\n')
        return status


def _select_aggregates(
    cloud: isolation_cloud.Cloud, wanted: Iterable[str]
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
        shown = messages.clean(text)
        if len(found) != 1:
            raise osc_exc.CommandError(
                f'{shown}: expected the name, ID or UUID of one aggregate, '
                f'got {len(found)} aggregates'
            )
        if not found[0].traits:
            metadata = sorted(found[0].metadata.items())
            raise osc_exc.CommandError(
                f'aggregate {shown}: expected metadata trait:<NAME>=required, '
                f'got {messages.clean(metadata, 1000)}'
            )
        selected.add(found[0].uuid)
    return selected


def _row(step: isolation_plan.Step) -> tuple[typing.Any, ...]:
    return (
        str(step.change),
        format_columns.ListColumn(step.names),
        step.host,
        step.provider,
        f'{step.status}: {step.reason}' if step.reason else str(step.status),
    )
