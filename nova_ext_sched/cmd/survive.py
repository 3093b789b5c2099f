# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched survive``."""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import typing

from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import metrics
from nova_ext_sched.cli import options
from nova_ext_sched.cli import report
from nova_ext_sched.cmd import hold_report
from nova_ext_sched.cmd import plan_command
from nova_ext_sched.cmd import plan_map
from nova_ext_sched.cmd import plan_report
from nova_ext_sched.cmd import scheduler
from nova_ext_sched.cmd import survive_report
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.plan import plans

# The options that --hold does not take, with the reason.
_NOT_WITH_HOLD = {
    'host': 'is for all hosts',
    'aggregate': 'is for all hosts',
    'spare': 'enables no spare hosts',
    'count': 'counts no further servers',
}


class Survive(metrics.Command, scheduler.Lister):
    """Check which hosts you can lose and still restart every server (N+1).

    Supposes for each host that it alone fails, and asks nova-scheduler's own
    code where each of its servers could be evacuated, the hardest to place
    first. The command changes nothing.
    """

    _epilog = (
        'Exit status: 0 you can lose each; 1 something could not be read or '
        'checked; 2 wrong usage; 3 a failure would strand a server (no host '
        'for it, a state that nova does not evacuate, or left out by your '
        'choice), the hosts kept for failures are not enough, or fewer than '
        '--count more servers of a flavor fit; with --hold also: hosts must '
        'be kept free, or none can replace some; 130 interrupted.'
    )

    # The result with --hold, and the result without it.
    _hold: plans.Hold | None = None
    _outcome: plans.Outcome
    # The value of --lose.
    _lose = 'host'

    purpose = cli_help.LOOK
    examples = (
        '',
        '--lose domain --map',
        '--hold --output plan.json',
    )

    arguments = {
        '--lose': {
            'choices': ('host', 'domain'),
            'default': 'host',
            'help': 'what fails as a whole: a host or a failure domain '
            '(default: host)',
        },
        **options.name_several(
            'host', 'lose only this host, or its failure domains'
        ),
        '--aggregate': {
            **base.REPEATABLE,
            'metavar': 'AGGREGATE',
            'help': 'lose only hosts of this aggregate (name, UUID or ID) '
            '(repeatable)',
        },
        '--flavor': {
            **base.REPEATABLE,
            'metavar': 'FLAVOR',
            'help': 'count how many more servers of this flavor (name or ID) '
            'fit before a failure would strand one (repeatable)',
        },
        '--spare': {
            **base.REPEATABLE,
            'metavar': 'HOST|AGGREGATE',
            'help': 'a disabled host, or an aggregate with such hosts, that '
            'may be enabled after a failure, as masakari does; the answer '
            'names the fewest needed (repeatable)',
        },
        '--hold': {
            'nargs': '?',
            'choices': ('full', 'now'),
            'const': 'full',
            'help': 'say which hosts to keep free so that any other can fail, '
            'however full it is (=now: with the servers that it has now), and '
            'plan the moves that empty them',
        },
        '--count': {
            'metavar': 'N',
            'type': base.read_amount,
            'help': 'with --flavor: how many more servers must fit before a '
            'failure would strand one (default: 1)',
        },
        '--project': {
            'metavar': 'PROJECT',
            'help': 'name or ID of the project the --flavor servers belong '
            'to; some policies depend on it',
        },
        **options.JOBS,
    }
    has_output = True

    label = 'Evacuating servers'

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        if parsed_args.hold:
            return plan_report.COLUMNS
        return survive_report.COLUMNS + (
            survive_report.FLAVOR_COLUMNS if parsed_args.flavor else ()
        )

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        if parsed_args.project and not parsed_args.flavor:
            raise base.UsageError(
                'Name a --flavor: its servers belong to --project.'
            )
        if parsed_args.count and not parsed_args.flavor:
            raise base.UsageError(
                'Name a --flavor: --count is a number of its servers.'
            )
        if parsed_args.jobs > 1 and (parsed_args.flavor or parsed_args.hold):
            raise base.UsageError(
                '--jobs is for failures alone: leave --flavor and --hold out.'
            )
        self._lose = parsed_args.lose
        if parsed_args.hold:
            return self._make_hold(parsed_args)
        self._outcome = outcome = self.ask(suppose_failures, parsed_args)
        stuck = (s for one in outcome.failures for s in one.without_place)
        of_all = not (parsed_args.host or parsed_args.aggregate)
        return report.add_map(
            survive_report.make(
                outcome,
                parsed_args.lose,
                plan_report.name_groups(stuck),
                parsed_args.all,
                parsed_args.count or 1,
            ),
            parsed_args,
            lambda by: survive_report.draw(outcome, by, of_all),
        )

    def _make_hold(self, parsed_args: argparse.Namespace) -> report.Report:
        """Return the report of the hosts to keep free."""
        for name, reason in _NOT_WITH_HOLD.items():
            if getattr(parsed_args, name):
                raise base.UsageError(f'--hold {reason}: leave --{name} out.')
        hold, faults, hosts = self.ask(plan_hosts_to_keep, parsed_args)
        self._hold = hold
        return report.add_map(
            hold_report.make(
                hold,
                parsed_args.lose,
                plan_report.name_groups(
                    [*hold.without_place, *hold.not_saved]
                ),
                faults,
                hosts,
            ),
            parsed_args,
            lambda by: plan_map.draw_moves(
                hold, {one.host for one in hold.mark}, hosts, by
            ),
        )

    def say_next(
        self, parsed_args: argparse.Namespace, made: report.Report
    ) -> str:
        """Return where the answer was written, and how to carry out the plan.

        ``move plan apply`` takes the evacuation after one failure. If the
        answer has several, the sentence says how to choose one.
        """
        said = super().say_next(parsed_args, made)
        plans_made = [self._hold] if self._hold else self._outcome.failures
        if not (parsed_args.output and any(one.moves for one in plans_made)):
            return said
        if len(plans_made) > 1:
            return (
                f'{said} To carry out the evacuation after one failure, add '
                '--host HOST.'
            )
        return f'{said} {plan_command.say_how_to_apply(parsed_args.output)}'

    def measure(self) -> Iterator[metrics.Figure]:
        if self._hold:
            # The metric supposes full hosts, and --hold=now does not.
            if self._hold.hold == 'full':
                yield hold_report.measure(len(self._hold.mark))
            return
        outcome = self._outcome
        if outcome.lacking is not None:
            yield hold_report.measure(len(outcome.lacking))
        failures = outcome.failures
        bad = sum(bool(one.lost) for one in failures)
        yield metrics.Figure(
            'failures',
            'Hosts or failure domains, by whether every server could be '
            'restarted elsewhere if that one failed.',
            'survived',
            {'yes': len(failures) - bad, 'no': bad},
        )
        if self._lose == 'host':
            yield metrics.Figure(
                'unsafe_servers',
                'Servers that could not be restarted if this host failed; a '
                'host that can fail safely has no series.',
                'host',
                {one.failure: len(one.lost) for one in failures if one.lost},
            )
        yield metrics.Figure(
            'stranded_servers',
            'Servers that could not be restarted if their host (with --lose '
            'domain: their failure domain) failed: for lack of room, for a '
            'state in which nova does not evacuate them, or because it never '
            'does.',
            'reason',
            {
                'room': len(outcome.without_room),
                'state': len(outcome.refused),
                'never': len(outcome.never_evacuated),
            },
        )


def plan_hosts_to_keep(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> tuple[plans.Hold, list[str], list[dict[str, typing.Any]]]:
    """Return the hosts to keep free, the faults, and all hosts."""
    from nova_ext_sched.cmd import arguments
    from nova_ext_sched.dryrun.cloud import selection
    from nova_ext_sched.dryrun.plan import hold

    with arguments.read_cloud(parsed_args, patient=True) as cloud:
        planned = hold.make(
            cloud,
            parsed_args.hold,
            parsed_args.flavor,
            parsed_args.lose,
            advance,
            parsed_args.project,
        )
        return planned, cloud.faults, selection.make_documents(cloud)


def suppose_failures(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> plans.Outcome:
    """Return where the servers of each failure go, and which have no place.

    The hosts of ``--spare`` take servers as if they were enabled; the outcome
    names those that are down.
    """
    from nova_ext_sched.cmd import arguments
    from nova_ext_sched.dryrun.cloud import overlay
    from nova_ext_sched.dryrun.cloud import selection
    from nova_ext_sched.dryrun.plan import survive

    with arguments.read_cloud(parsed_args, patient=True) as cloud:
        spares, down = selection.find_spares(cloud, parsed_args.spare)
        # In the overlay the spare hosts are enabled and up.
        enabled_spares = overlay.Overlay(running=tuple(sorted(spares)))
        with overlay.laid(cloud, enabled_spares):
            outcome = survive.make(
                cloud,
                parsed_args.flavor,
                parsed_args.lose,
                parsed_args.host,
                parsed_args.aggregate,
                advance,
                parsed_args.project,
                spares,
                arguments.choose_jobs(parsed_args, cloud),
            )
    if down:
        names = messages.first_few(sorted(down, key=messages.in_order))
        verb = messages.agree(len(down), 'is', 'are')
        spare = messages.agree(len(down), 'a spare', 'spares')
        outcome.remarks.append(
            f'{names} {verb} down and cannot serve as {spare}.'
        )
    return outcome
