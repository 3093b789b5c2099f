# SPDX-License-Identifier: Apache-2.0

"""``openstack aggregate isolation list`` and ``sync``."""

import argparse
from collections.abc import Sequence
import os
import sys

from osc_lib.command import command

from nova_ext_sched import exception
from nova_ext_sched import named
from nova_ext_sched.cli import base
from nova_ext_sched.cli import completion
from nova_ext_sched.cli import progress
from nova_ext_sched.cli import report
from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.osc import isolation_findings
from nova_ext_sched.osc import isolation_plan
from nova_ext_sched.osc import isolation_report
from nova_ext_sched.osc import isolation_run
from nova_ext_sched.osc import isolation_step
from nova_ext_sched.policy import isolation


class Command(report.Lister, command.Lister):
    """A command that reads the cloud and writes text output or a table.

    ======  ================================================================
    status  meaning
    ======  ================================================================
    0       nothing is wrong, or every change was made
    1       nova or placement could not be read, or a change was not made
    2       wrong usage
    3       ``list`` found a fault, ``sync --dry-run`` a change to make
    ======  ================================================================

    With ``--debug`` the OpenStackClient shows the traceback of an error.
    """

    program = 'openstack'

    def read_cloud(self, by_name: bool) -> isolation_cloud.Cloud:
        """Read aggregates and traits from nova and placement, as the user may.

        :param by_name: see :func:`.isolation_cloud.read`
        """
        manager = self.app.client_manager
        label = 'Reading nova and placement'
        with progress.bar(sys.stderr, label, color=self.color):
            # Its compute is novaclient's before python-openstackclient 7.
            nova = manager.sdk_connection.compute
            cloud = isolation_cloud.read(nova, manager.nova_ext_sched, by_name)
        if sys.stderr.isatty():
            completion.keep(
                {'<aggregate>': [one.name for one in cloud.aggregates]},
                os.environ.get('OS_CLOUD', 'envvars'),
            )
        return cloud


class ListIsolation(Command):
    """List the isolated aggregates and what is wrong with them.

    An aggregate is isolated if its metadata has one or more
    ``trait:<NAME>=required``. The list also has aggregates with another value
    of a ``trait:`` key, which isolates nothing. Those with faults come first.
    The command changes nothing. The exit status is 3 if there is a fault.
    """

    examples = (
        '',
        "--forbid-by-trait 'CUSTOM_LICENSED_*'",
        '-f json',
    )
    columns = isolation_report.COLUMNS

    arguments = {
        '--forbid-by-trait': {
            'metavar': '<traits>',
            'default': '',
            'help': 'the value of [nova_ext_sched] forbid_by_trait in '
            'nova.conf; also lists hosts that have one of these traits '
            'outside the aggregates that require it (traits of devices do not '
            'count)',
        }
    }

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        """See the base."""
        patterns = map(str.strip, parsed_args.forbid_by_trait.split(','))
        declared = isolation.DeclaredTraits(filter(None, patterns))
        cloud = self.read_cloud(by_name=True)
        findings = [
            (agg, isolation_findings.find(agg, cloud, declared))
            for agg in cloud.aggregates
            if agg.has_trait_keys
        ]
        return isolation_report.make(findings, cloud)


class SyncIsolation(Command):
    """Set up in placement what the isolated aggregates need.

    The command creates the missing custom traits, adds the resource providers
    of the aggregates' hosts to the placement aggregates, and gives them the
    traits that the aggregates require. It lists the changes and their results.
    The exit status is 1 if a necessary change was not made, and 3 if a dry run
    found a change to make.
    """

    examples = ('--dry-run', 'windows', '--prune')
    columns = isolation_report.STEP_COLUMNS

    arguments = {
        'aggregates': {
            'metavar': '<aggregate>',
            'nargs': '*',
            'help': 'name, ID or UUID of an aggregate to set up (default: all '
            'isolated aggregates)',
        },
        '--dry-run': {
            'action': 'store_true',
            'help': 'list the changes without making them',
        },
        '--prune': {
            'action': 'store_true',
            'help': 'also remove traits that an earlier sync gave to hosts '
            'and that no isolated aggregate requires of them any more',
        },
    }

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        """Make the changes, and report them."""
        # Only the host's own provider is written to.
        cloud = self.read_cloud(by_name=False)
        selected = [
            named.find_aggregate(cloud.aggregates, name)
            for name in parsed_args.aggregates
        ]
        for aggregate in selected:
            if not aggregate.traits:
                raise exception.InvalidValue(
                    where=f'aggregate {aggregate.name}',
                    expected='metadata trait:<NAME>=required',
                    got=aggregate.metadata,
                )
        steps = isolation_plan.make(cloud, selected, parsed_args.prune)
        said = []
        if parsed_args.prune and selected:
            said = [
                'Traits of hosts outside these aggregates were not checked: '
                'run sync --prune without a name for that.'
            ]
        fault = base.SOME_FOUND
        if not parsed_args.dry_run:
            fault = base.FAULT
            said += self._carry_out(steps)
        is_done = all(
            step.status == isolation_step.Status.DONE for step in steps
        )
        return isolation_report.make_of_steps(
            steps, base.FINE if is_done else fault, *said
        )

    def _carry_out(self, steps: Sequence[isolation_step.Step]) -> list[str]:
        """Make the changes; return the error that ended them early."""
        client = self.app.client_manager.nova_ext_sched
        bar = progress.bar(
            sys.stderr,
            'Changing placement',
            sum(not step.reason for step in steps),
            self.color,
        )
        try:
            with bar as advance:
                exc = isolation_run.carry_out(steps, client, advance)
        except KeyboardInterrupt:
            print(
                f'Interrupted. {isolation_run.sum_up(steps)}.',
                file=sys.stderr,
            )
            raise
        if exc is None:
            return []
        return [
            f'{exc}. Fix that, then run the command again: it makes the '
            f'remaining changes.'
        ]
