# SPDX-License-Identifier: Apache-2.0

"""``openstack move plan apply``."""

import argparse
from collections.abc import Sequence
import datetime
import pathlib
import sys
import typing

from osc_lib.command import command

from nova_ext_sched import messages
from nova_ext_sched import named
from nova_ext_sched.cli import base
from nova_ext_sched.cli import progress
from nova_ext_sched.cli import report
from nova_ext_sched.osc import moves_agreement
from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_hosts
from nova_ext_sched.osc import moves_left
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_progress
from nova_ext_sched.osc import moves_report
from nova_ext_sched.osc import moves_run
from nova_ext_sched.osc import moves_words

STDIN = '-'


class ApplyPlan(report.Lister, command.Lister):
    """Carry out a plan of moves, as nova-ext-sched drain writes it.

    The command makes one move after the other, waits for each to end, confirms
    the cold migrations that it started, and stops at the first failure. Run it
    again to continue. nova-scheduler checks each destination again. A plan of
    maintain must be for one round, a plan of survive for one host or domain;
    servers are evacuated only from hosts that are forced down. At a terminal
    the command shows the plan and asks for confirmation. When it ends, it
    checks the hosts that are to be empty. The exit status is 1 if a move
    failed, and 3 if something is left: a move to make (dry run), or a server
    or host that the output names.
    """

    program = 'openstack'
    examples = (
        'plan.json --dry-run',
        'plan.json --yes --at-once 4',
        'plan.json --disable --keep-going',
    )
    arguments = {
        'plan': {
            'metavar': '<plan>',
            'help': 'file that mend, drain, make-room, maintain --round or '
            'survive wrote with --output or -f json; - reads standard input '
            '(needs --yes)',
        },
        '--at-once': {
            'metavar': '<number>',
            'type': base.read_amount,
            'default': 1,
            'help': 'make up to this many independent moves at the same time '
            '(default: 1)',
        },
        '--yes': {
            'action': 'store_true',
            'help': 'do not ask for confirmation (without a terminal the '
            'command never asks)',
        },
        '--keep-going': {
            'action': 'store_true',
            'help': 'after a move fails, continue with those that do not '
            'depend on it, until three servers are in ERROR',
        },
        '--skip': {
            **base.REPEATABLE,
            'metavar': '<server>',
            'help': 'leave out this server (name or UUID), and the moves that '
            'depend on it (repeatable)',
        },
        '--dry-run': {
            'action': 'store_true',
            'help': 'list what is left to do without doing it',
        },
    }
    columns = moves_report.COLUMNS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the command line."""
        parser = super().get_parser(prog_name)
        base.add(
            parser.add_mutually_exclusive_group(),
            {
                '--disable': {
                    'action': 'store_true',
                    'help': 'first disable the hosts to be emptied, or with a '
                    'plan of make-room those where it makes room',
                },
                '--enable': {
                    'action': 'store_true',
                    'help': 'enable the hosts that --disable disabled for '
                    'this plan or an earlier one; move nothing',
                },
            },
        )
        return parser

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        """Make the moves, and report them."""
        is_dry = parsed_args.dry_run
        moves_nothing = is_dry or parsed_args.enable
        if parsed_args.plan == STDIN and not (
            parsed_args.yes or moves_nothing
        ):
            raise base.UsageError(
                'Add --yes: the plan is on standard input, so the command '
                'cannot ask for confirmation.'
            )
        plan = moves_plan.read(_read(parsed_args.plan), parsed_args.plan)
        skipped = _find_skipped(plan, parsed_args.skip)
        connection = self.app.client_manager.sdk_connection
        cloud = moves_cloud.Cloud(connection, _say)
        services = cloud.read_services()
        uuids = {host: one.id for host, one in services.items()}
        plan.check_cloud(uuids)
        if parsed_args.enable:
            return moves_hosts.enable(plan, cloud, services, is_dry)
        now = datetime.datetime.now(datetime.UTC)
        plan.check_saved(
            uuids, lambda one: cloud.read_server(one) is not None, now
        )
        for line in moves_agreement.warn(plan, now):
            _say(line)
        if not moves_nothing:
            moves_agreement.ask(
                moves_agreement.say_plan(plan, _name(connection)),
                parsed_args.yes,
                _say,
            )
        said = []
        if parsed_args.disable:
            said = [f'{moves_hosts.disable(plan, cloud, services, is_dry)}.']
        self._carry_out(plan, cloud, parsed_args, skipped)
        left: list[moves_left.Left] | None = None
        try:
            left = moves_left.find(plan, cloud, is_dry)
        except moves_cloud.ERRORS as exc:
            said.append(
                'What is on the hosts that are to be empty could not be read '
                f'({moves_words.say_fault(exc)}): run the command again.'
            )
        return moves_report.make(plan, left, *said)

    def _carry_out(
        self,
        plan: moves_plan.Plan,
        cloud: moves_cloud.Cloud,
        parsed_args: argparse.Namespace,
        skipped: Sequence[str],
    ) -> None:
        total = len(plan.moves)
        bar = progress.bar(sys.stderr, 'Moving servers', total, self.color)
        is_dry = parsed_args.dry_run
        try:
            with bar as advance:
                shown = moves_progress.Progress(
                    plan.moves, (lambda _: None) if is_dry else _say, advance
                )
                run = moves_run.Run(
                    plan,
                    cloud,
                    shown,
                    is_dry=is_dry,
                    keeps_going=parsed_args.keep_going,
                    skipped=skipped,
                )
                run.carry_out(parsed_args.at_once)
        except KeyboardInterrupt:
            _say(
                f'Interrupted. {moves_report.sum_up(plan.moves)}; nova '
                f'finishes those under way. Run the command again to continue.'
            )
            raise


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _name(connection: typing.Any) -> str:
    """Return a cloud's name, with its address and region."""
    config = connection.config
    url = config.get_auth_args().get('auth_url') or ''
    region = config.get_region_name(None) or ''
    more = ', '.join(filter(None, (url, region)))
    return messages.clean(config.name) + f' ({more})' * bool(more)


def _find_skipped(plan: moves_plan.Plan, names: Sequence[str]) -> list[str]:
    """Return the UUIDs of the servers that --skip names.

    :raises exception.UnknownName: the plan moves no server, or several, of a
        name
    """
    known = {one.server: one.name for one in plan.moves}
    return [named.find('server', one, known, ' in the plan') for one in names]


def _read(path: str) -> str:
    """Return the text of a file.

    :raises base.UsageError: it cannot be read
    """
    try:
        if path == STDIN:
            return sys.stdin.read()
        return pathlib.Path(path).read_text()
    except (OSError, ValueError) as exc:
        why = getattr(exc, 'strerror', None) or exc
        raise base.UsageError(
            f'The plan {messages.clean(path)} cannot be read: {why}.'
        ) from exc
