# SPDX-License-Identifier: Apache-2.0

"""``openstack move plan apply``."""

import argparse
from collections.abc import Mapping
from collections.abc import Sequence
import pathlib
import sys

from openstack.compute.v2 import service
from osc_lib.command import command

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cli import progress
from nova_ext_sched.cli import report
from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_report
from nova_ext_sched.osc import moves_run

STDIN = '-'


class ApplyPlan(report.Lister, command.Lister):
    """Carry out the moves of nova-ext-sched mend, drain or survive.

    Makes one move after the other, waits for the end of each, confirms cold
    migrations that it started, and stops at the first move that fails. When
    it is run again it goes on from there. nova-scheduler looks at each host
    again. Of survive it takes the failure of one host or domain, and
    evacuates only from hosts that are forced down. The exit status is 1 if a
    move was not made, and 3 if a dry run found a move to make.
    """

    program = 'openstack'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the command line."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'plan',
            metavar='<plan>',
            help='file of what mend, drain or survive wrote with -f json; - '
            'for standard input',
        )
        parser.add_argument(
            '--at-once',
            metavar='<number>',
            type=base.read_amount,
            default=1,
            help='how many moves that do not need each other may be under way '
            'at once (default: 1)',
        )
        parser.add_argument(
            '--dry-run',
            action='store_true',
            help='list what is left to do without doing it',
        )
        group = parser.add_mutually_exclusive_group()
        group.add_argument(
            '--disable',
            action='store_true',
            help='first disable the hosts that are to be empty',
        )
        group.add_argument(
            '--enable',
            action='store_true',
            help='enable the hosts that --disable disabled for this plan, and '
            'move nothing',
        )
        return parser

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        """See the base."""
        return moves_report.COLUMNS

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        """Make the moves and tell what became of them."""
        plan = moves_plan.read(_read(parsed_args.plan), parsed_args.plan)
        cloud = moves_cloud.Cloud(self.app.client_manager.sdk_connection)
        services = cloud.read_services()
        plan.check_cloud({host: one.id for host, one in services.items()})
        is_dry, said = parsed_args.dry_run, []
        if parsed_args.disable or parsed_args.enable:
            changed = _set_disabled(
                plan, cloud, services, parsed_args.disable, is_dry
            )
            said.append(f'{changed}.')
        if parsed_args.enable:
            return report.Report(*report.begin(changed), rows=[])
        total = len(plan.moves)
        bar = progress.bar(sys.stderr, 'Moving servers', total, self.color)
        try:
            with bar as advance:
                run = moves_run.Run(plan, cloud, is_dry, advance)
                is_fine = run.carry_out(parsed_args.at_once)
        except KeyboardInterrupt:
            print(
                f'Interrupted. {moves_report.sum_up(plan.moves)}; nova goes '
                f'on with what is under way. Run the command again to go on.',
                file=sys.stderr,
            )
            raise
        status = base.FINE if is_fine else base.FAULT
        if is_fine and moves_report.count_left(plan.moves):
            status = base.SOME_FOUND
        return moves_report.make(plan.moves, status, *said)


def _read(path: str) -> str:
    """Return the text of a file.

    :raises exception.InvalidValue: it cannot be read
    """
    try:
        if path == STDIN:
            return sys.stdin.read()
        return pathlib.Path(path).read_text()
    except (OSError, ValueError) as exc:
        raise exception.InvalidValue(
            where='plan', expected=f'a file ({exc})', got=path
        ) from exc


def _set_disabled(
    plan: moves_plan.Plan,
    cloud: moves_cloud.Cloud,
    services: Mapping[str, service.Service],
    disable: bool,
    is_dry: bool,
) -> str:
    """Disable the hosts that are to be empty, or enable them; say which.

    Those that somebody else disabled stay as they are: the reason of a host
    says for which plan it was disabled.
    """
    reason = f'nova-ext-sched: to be empty, by the plan of {plan.time}'
    found = []
    for host in plan.to_be_empty:
        one = services.get(host)
        if one and (
            one.status == 'enabled'
            if disable
            else one.status == 'disabled' and one.disabled_reason == reason
        ):
            found.append(host)
            if not is_dry:
                cloud.set_disabled(one.id, reason if disable else '')
    text = messages.count('host', len(found)) + f' {"would be " * is_dry}'
    text += 'disabled' if disable else 'enabled'
    return f'{text}: {messages.first_few(found)}' if found else text
