# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched explain``."""

import argparse
from collections.abc import Sequence
import dataclasses
import pathlib

from nova_ext_sched.cli import base
from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import options
from nova_ext_sched.cli import report
from nova_ext_sched.cmd import explain_recorded
from nova_ext_sched.cmd import explain_report
from nova_ext_sched.cmd import scheduler
from nova_ext_sched.dryrun import progress
from nova_ext_sched.watch import records

# The options that describe a request; --server and --recorded have their own.
_DESCRIBING = (
    'flavor',
    *options.NAMES,
    'num_instances',
    'destination',
)
# The operations on a server (methods of
# nova_ext_sched.dryrun.decision.server.Server), and the options of each.
_OF_OPERATIONS: dict[str, tuple[str, ...]] = {
    'boot': (),
    'migrate': ('destination',),
    'live-migrate': ('destination',),
    'evacuate': ('destination',),
    'unshelve': ('destination',),
    'resize': ('flavor',),
    'rebuild': ('image', 'image_property'),
}


# The arguments that name a server, or a recorded refusal.
_WHAT: base.Arguments = {
    '--server': {
        'metavar': 'SERVER',
        'help': 'name or UUID of an existing server, including one that was '
        'never scheduled',
    },
    'server': {
        'metavar': 'SERVER',
        'nargs': '?',
        # None would take the place of the option's value.
        'default': argparse.SUPPRESS,
        'help': 'the same as --server',
    },
    '--recorded': {
        'metavar': 'REQUEST_OR_SERVER',
        'help': 'explain a recorded refusal, by request ID (req-...) or '
        'server UUID',
    },
}
_NEW_SERVER: base.Arguments = {
    '--flavor': {'metavar': 'FLAVOR', 'help': 'name or ID'},
    **options.OF_SERVER,
    '--num-instances': {
        'metavar': 'NUMBER',
        'type': base.read_amount,
        'help': 'servers created by one request (default: 1)',
    },
    '--try': {
        'dest': 'tries',
        'action': 'store_true',
        'help': 'if no host is left, also plan moves that make room, as '
        'make-room does',
    },
}


class Explain(scheduler.Lister):
    """Explain why a request has no valid host, or where it would go.

    Runs nova-scheduler's own code on nova's own request, with its nova.conf.
    It changes nothing.
    """

    _epilog = (
        'Exit status: 0 there is a host for each instance; 1 something could '
        'not be read; 2 wrong usage; 3 there is no valid host; 130 '
        'interrupted.'
    )

    all_means = (
        'show everything, with the constraints that refuse no host and the '
        'placement query; shorten no list'
    )
    purpose = cli_help.LOOK
    examples = (
        'web-1',
        '--server web-1 --operation live-migrate --host cmp-0101',
        '--flavor m1.small --image ubuntu --project shop',
    )
    label = 'Asking nova and placement'
    has_map = False

    def add_groups(self, parser: argparse.ArgumentParser) -> None:
        base.add(parser.add_mutually_exclusive_group(), _WHAT)
        base.add(
            parser,
            {
                '--operation': {
                    'choices': tuple(_OF_OPERATIONS),
                    'default': 'boot',
                    'help': 'what to do with the server (default: boot)',
                },
                '--destination': {
                    'metavar': 'HOST[:NODE]',
                    'help': 'request this host, as the API does with "host"; '
                    'filters run',
                },
                '--records': {
                    'metavar': 'FILE',
                    'type': pathlib.Path,
                    'default': records.PATH,
                    'help': 'file that watch writes (default: %(default)s)',
                },
            },
        )
        request = parser.add_argument_group(
            'a new server',
            '--flavor also goes with resize, --image with rebuild',
        )
        base.add(request, _NEW_SERVER)
        base.add(
            parser.add_mutually_exclusive_group(),
            {
                '--host': {
                    **base.REPEATABLE,
                    'metavar': 'HOST',
                    'help': 'show what refuses this host, and why '
                    '(repeatable)',
                },
                '--hosts': {
                    'action': 'store_true',
                    'help': 'show what refuses each host',
                },
            },
        )

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        return (
            explain_report.HOST_COLUMNS
            if parsed_args.host or parsed_args.hosts
            else explain_report.COLUMNS
        )

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        _check_usage(parsed_args)
        tried: Sequence[report.Section] = ()
        if parsed_args.recorded is not None:
            document = explain_recorded.read(
                parsed_args.records, parsed_args.recorded
            )
        else:
            document, tried = self.ask(explain, parsed_args)
        made = explain_report.make(
            document,
            parsed_args.all,
            by_host=bool(parsed_args.host or parsed_args.hosts),
        )
        sections = [*made.sections, *tried]
        return dataclasses.replace(made, sections=sections)


def explain(
    parsed_args: argparse.Namespace, advance: progress.Advance
) -> tuple[explain_report.Document, Sequence[report.Section]]:
    """Return the document of an explanation, and what ``--try`` found."""
    from nova_ext_sched.cmd import arguments
    from nova_ext_sched.dryrun.cloud import selection
    from nova_ext_sched.dryrun.decision import explanation
    from nova_ext_sched.dryrun.plan import make_room

    with arguments.read_cloud(parsed_args, settled=False) as cloud:
        asked = arguments.make_question(
            parsed_args,
            flavor=parsed_args.flavor,
            instances=parsed_args.num_instances or 1,
            destination=parsed_args.destination,
            server=parsed_args.server,
            operation=parsed_args.operation,
        )
        detailed = selection.find_nodes(cloud, parsed_args.host)
        found = explanation.explain(cloud, asked, advance)
        document = found.make_document(
            detailed, selection.make_documents(cloud)
        )
        if not parsed_args.tries or document['answer']['finds_host']:
            return document, ()
        room = make_room.make(cloud, asked, asked.instances)
        document['make_room'], sections = explain_report.tell_room(room)
        return document, sections


def _check_usage(parsed_args: argparse.Namespace) -> None:
    """Refuse options that do not go together.

    :raises base.UsageError: some do not
    """
    operation = parsed_args.operation
    wanted = _OF_OPERATIONS[operation]
    given = [name for name in _DESCRIBING if getattr(parsed_args, name)]
    wrong = ''
    if parsed_args.tries and parsed_args.flavor is None:
        raise base.UsageError('--try goes with a new server: --flavor FLAVOR.')
    if parsed_args.recorded is not None:
        # A record says what was asked, and has no hosts to name.
        given += [
            name
            for name in ('host', 'hosts', *options.CHANGES)
            if getattr(parsed_args, name)
        ]
        given += ['operation'] * (operation != 'boot')
        if given:
            wrong = (
                f'{_options(given)} cannot be combined with --recorded: a '
                'record has its own request, and no answer for single '
                'hosts.'
            )
    elif parsed_args.server is not None:
        if extra := [name for name in given if name not in wanted]:
            hint = (
                f'Only {_options(wanted)} can.'
                if wanted
                else 'A new flavor is --operation resize, a new image rebuild.'
            )
            wrong = (
                f'{_options(extra)} cannot be combined with --server to '
                f'{operation} it: nova has stored its request. {hint}'
            )
        elif not given and operation in ('resize', 'rebuild'):
            wrong = f'To {operation} a server, say to what: --{wanted[0]}.'
    elif operation != 'boot':
        wrong = f'To {operation} a server, say which: --server SERVER.'
    elif parsed_args.flavor is None:
        wrong = (
            'Name a request: --server SERVER for an existing server, '
            '--flavor FLAVOR for a new one, --recorded ID for a refusal that '
            'watch recorded.'
        )
    if wrong:
        raise base.UsageError(wrong)


def _options(names: Sequence[str]) -> str:
    return ' and '.join(f'--{name.replace("_", "-")}' for name in names)
