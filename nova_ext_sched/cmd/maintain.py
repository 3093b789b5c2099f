# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched maintain``."""

import argparse
from collections.abc import Sequence

from nova_ext_sched.cli import base
from nova_ext_sched.cli import options
from nova_ext_sched.cli import report
from nova_ext_sched.cmd import maintain_report
from nova_ext_sched.cmd import plan_command
from nova_ext_sched.cmd import plan_report
from nova_ext_sched.dryrun import progress


def _read_size(text: str) -> int | None:
    """Return a number of hosts; None for as many as possible."""
    if text == 'max':
        return None
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(
            f'expected a number of hosts, at least 1, or max, got: {text}'
        )
    return int(text)


class Maintain(plan_command.Planner):
    """Plan a rolling maintenance: rounds that empty every host once.

    The hosts of a round are empty together; then they take servers again.
    Servers go to hosts that are done as long as one takes them. By default
    the plan covers every host of the cloud. It changes nothing.
    """

    _epilog = (
        'Exit status: 0 each host can be emptied; 1 something could not be '
        'read or checked; 2 wrong usage; 3 a host cannot be emptied; 130 '
        'interrupted.'
    )

    examples = (
        '',
        '--round-size max --keep-failover',
        '--done cmp-0101 --round 1 --output round.json',
    )

    arguments = {
        **plan_command.HOSTS,
        '--done': {
            **base.REPEATABLE,
            'metavar': 'HOST',
            'help': 'this host, or the hosts of this aggregate (name or '
            'UUID), are already done (repeatable)',
        },
        '--round-size': {
            'metavar': 'N',
            'type': _read_size,
            'default': 1,
            'help': 'the most hosts of a round, or max for as many as can be '
            'empty together (default: 1)',
        },
        '--round-within': {
            'choices': ('domain', 'zone'),
            'help': 'keep the hosts of a round within one failure domain or '
            'availability zone',
        },
        '--keep-failover': {
            'action': 'store_true',
            'help': 'limit each round so that every host that survive calls '
            'safe today stays safe during the round; takes longer',
        },
        '--round': {
            'metavar': 'K',
            'type': base.read_amount,
            'help': 'show the moves of this round alone, as drain does, and '
            'plan no further',
        },
        **options.NOT_TO,
    }

    label = 'Planning rounds'

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        return (
            maintain_report.COLUMNS
            if parsed_args.round is None
            else plan_report.COLUMNS
        )

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        return self.ask(plan, parsed_args)

    def say_how_to_apply(self, parsed_args: argparse.Namespace) -> str:
        """See the base; ``move plan apply`` takes a single round."""
        if parsed_args.round is not None:
            return super().say_how_to_apply(parsed_args)
        if parsed_args.output:
            return 'To carry out the first round, add --round 1.'
        return (
            'To carry out the first round, write it to a file: add --round 1 '
            '--output FILE.'
        )


def plan(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> report.Report:
    """Return the report of rounds in which each host is empty once."""
    from nova_ext_sched.cmd import arguments
    from nova_ext_sched.dryrun.cloud import selection
    from nova_ext_sched.dryrun.plan import drain
    from nova_ext_sched.dryrun.plan import maintain

    chosen = parsed_args.hosts, parsed_args.aggregate, parsed_args.domain
    number = parsed_args.round
    with arguments.read_cloud(parsed_args, patient=True) as cloud:
        emptied = (
            selection.find(cloud, *chosen)
            if any(chosen)
            else {node.host for node in cloud.nodes.values()}
        )
        emptied -= selection.find_any(cloud, parsed_args.done)
        if number is not None and number > len(emptied) > 0:
            raise base.UsageError(
                f'There is no round {number}: {len(emptied)} hosts have '
                f'{len(emptied)} rounds at most.'
            )
        planned = maintain.make(
            cloud,
            emptied,
            parsed_args.round_size,
            parsed_args.round_within,
            parsed_args.keep_failover,
            advance,
            selection.find_any(cloud, parsed_args.not_to),
            number,
        )
        # A cell may have been read, and not answer later questions.
        unread = drain.find_unread(cloud, emptied) - planned.judged
        remarks = [
            *maintain.say_rounds(
                cloud, emptied - unread, planned, is_whole=number is None
            ),
            *plan_report.say_unread(unread),
        ]
        hosts = selection.make_documents(cloud)
        names = plan_report.name_groups(
            stuck for one in planned.not_emptied for stuck in one.without_place
        )
        about = planned, remarks, cloud.faults, hosts, names
        if number is None:
            made = maintain_report.make_rounds(*about)
        else:
            made = maintain_report.make_round(number, *about)
        return report.add_map(
            made,
            parsed_args,
            lambda by: maintain_report.draw(planned, hosts, by),
        )
