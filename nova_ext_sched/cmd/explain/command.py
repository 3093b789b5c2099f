# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched explain``."""

import argparse
from collections.abc import Sequence
import pathlib
import sys
import typing

from nova_ext_sched import exception
from nova_ext_sched.cli import base
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import lister
from nova_ext_sched.cli import progress
from nova_ext_sched.cmd import nova_command
from nova_ext_sched.cmd import records
from nova_ext_sched.cmd import request_options
from nova_ext_sched.cmd.explain import answer
from nova_ext_sched.cmd.explain import recorded

# What describes a request, as far as --server and --recorded do not.
_DESCRIBING = (
    'flavor',
    *request_options.NAMES,
    'num_instances',
    'destination',
)
# The operations on a server, methods of
# nova_ext_sched.cmd.explain.server.Server, and the ones that go with each.
_OF_OPERATIONS: dict[str, tuple[str, ...]] = {
    'boot': (),
    'migrate': ('destination',),
    'live-migrate': ('destination',),
    'evacuate': ('destination',),
    'unshelve': ('destination',),
    'resize': ('flavor',),
    'rebuild': ('image', 'image_property'),
}


class Explain(nova_command.Lister):
    """Say why a request has no valid host, or where it would go.

    Runs nova-scheduler's own code on nova's own request, with its nova.conf;
    changes nothing.
    """

    _epilog = (
        'Exit status: 0 a host is left for each instance; 1 something could '
        'not be read; 2 wrong usage; 3 no host is left; 130 after Ctrl-C.'
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            '--server',
            metavar='UUID',
            help='an existing server: the request that nova stored, whether '
            'it landed or not',
        )
        what.add_argument(
            '--recorded',
            metavar='REQUEST_OR_SERVER',
            help='a refusal that watch recorded, by the ID of its request '
            '(req-...) or the UUID of its server',
        )
        parser.add_argument(
            '--operation',
            choices=tuple(_OF_OPERATIONS),
            default='boot',
            help='what is to be done with the server (default: boot)',
        )
        parser.add_argument(
            '--destination',
            metavar='HOST[:NODE]',
            help='ask for this host, as the API does with "host"; filters run',
        )
        parser.add_argument(
            '--records',
            metavar='FILE',
            type=pathlib.Path,
            default=records.PATH,
            help='the file of the records (default: %(default)s)',
        )
        request = parser.add_argument_group(
            'a new server (--flavor also for resize, --image for rebuild)'
        )
        request.add_argument(
            '--flavor', metavar='FLAVOR', help='its ID or name'
        )
        request_options.add(request)
        request.add_argument(
            '--num-instances', metavar='NUMBER', type=base.read_amount
        )
        shown = parser.add_mutually_exclusive_group()
        shown.add_argument(
            '--host',
            metavar='HOST',
            action='append',
            default=[],
            help='list the constraints that refuse this host, with reasons '
            '(may be repeated)',
        )
        shown.add_argument(
            '--hosts',
            action='store_true',
            help='list the constraints that refuse each host',
        )
        parser.add_argument(
            '--all',
            action='store_true',
            help='list the constraints that refuse no host too, and the query '
            'of placement',
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], list[Sequence[object]]]:
        by_host = bool(parsed_args.host or parsed_args.hosts)
        columns = answer.HOST_COLUMNS if by_host else answer.COLUMNS
        base.check_columns(self, parsed_args, columns)
        _check_usage(parsed_args)
        if parsed_args.recorded is not None:
            self._document = recorded.read(
                parsed_args.records, parsed_args.recorded
            )
        else:
            self._document = self._explain(parsed_args)
        finds_host = self._document['answer']['finds_host']
        self.status = base.FINE if finds_host else base.SOME_FOUND
        self._all, self._by_host = parsed_args.all, by_host
        rows = answer.host_rows if by_host else answer.rows
        return columns, rows(self._document, parsed_args.all)

    def _explain(self, parsed_args: argparse.Namespace) -> answer.Document:
        self.configure(parsed_args)
        # Not before: they import nova.
        from nova_ext_sched.cmd import nova_scheduler
        from nova_ext_sched.cmd.explain import document
        from nova_ext_sched.cmd.explain import explanation

        scheduler = nova_scheduler.ReadOnlyHostManager()
        detailed = _select(scheduler.hosts, parsed_args)
        with progress.bar(sys.stderr, 'Asking nova and placement') as advance:
            found = explanation.start(scheduler, advance=advance)
            ctxt = nova_scheduler.context(parsed_args.project)
            spec_obj, server = explanation.prepare(
                ctxt, scheduler, parsed_args, found
            )
            request = document.describe_request(
                spec_obj,
                parsed_args.operation,
                parsed_args.server,
                server.name if server else None,
            )
            explanation.explain(scheduler, found, ctxt, spec_obj)
        explanation.remark(
            scheduler, found, parsed_args.operation, spec_obj, server
        )
        return document.build(found, request, detailed)

    def sum_up(self) -> str:
        return self._document['answer']['sentence']

    def write_text(self, out: layout.Layout, rows: list[lister.Row]) -> None:
        answer.write(out, self._document, rows, self._all, self._by_host)

    def make_document(self, rows: list[lister.Row]) -> object:
        return self._document


def _check_usage(parsed_args: argparse.Namespace) -> None:
    """Refuse options that do not go together.

    :raises base.UsageError: some do not
    """
    operation = parsed_args.operation
    wanted = _OF_OPERATIONS[operation]
    given = [name for name in _DESCRIBING if getattr(parsed_args, name)]
    wrong = ''
    if parsed_args.recorded is not None:
        # A record says what was asked. It has the hosts of none.
        given += [n for n in ('host', 'hosts') if getattr(parsed_args, n)]
        given += ['operation'] * (operation != 'boot')
        if given:
            wrong = (
                f'{_options(given)} cannot stand beside --recorded: a record '
                f'has its own request, and its answer without the hosts.'
            )
    elif parsed_args.server is not None:
        if extra := [name for name in given if name not in wanted]:
            may = 'A new flavor is --operation resize, a new image rebuild.'
            if wanted:
                may = f'Only {_options(wanted)} may.'
            wrong = (
                f'{_options(extra)} cannot stand beside --server to '
                f'{operation} it: nova has stored its request. {may}'
            )
        elif not given and operation in ('resize', 'rebuild'):
            wrong = f'To {operation} a server, say to what: --{wanted[0]}.'
    elif operation != 'boot':
        wrong = f'To {operation} a server, say which: --server UUID.'
    elif parsed_args.flavor is None:
        wrong = (
            'Say which request: --server UUID for an existing server, '
            '--flavor FLAVOR for a new one, --recorded ID for a refusal that '
            'watch recorded.'
        )
    if wrong:
        raise base.UsageError(wrong)


def _options(names: Sequence[str]) -> str:
    return ' and '.join(f'--{name.replace("_", "-")}' for name in names)


def _select(
    hosts: typing.Any, parsed_args: argparse.Namespace
) -> list[str] | None:
    """Return the UUIDs of the hosts to list; None for all."""
    if not parsed_args.host:
        return None
    found = {
        uuid: {host.host, host.node, host.name, uuid} & {*parsed_args.host}
        for uuid, host in hosts.items()
    }
    for name in parsed_args.host:
        if not any(name in names for names in found.values()):
            raise exception.InvalidValue(
                where='--host', expected='a host of a compute node', got=name
            )
    return [uuid for uuid, names in found.items() if names]
