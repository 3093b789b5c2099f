# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched explain``."""

import argparse
from collections.abc import Iterable
from collections.abc import Sequence
import json
import pathlib
import shutil
import sys
import typing

import yaml

from nova_ext_sched import exception
from nova_ext_sched.cmd import base
from nova_ext_sched.cmd import progress
from nova_ext_sched.cmd import records
from nova_ext_sched.cmd.explain import answer
from nova_ext_sched.cmd.explain import recorded

# Methods of nova_ext_sched.cmd.explain.server.Server.
_OPERATIONS = (
    'boot',
    'migrate',
    'live-migrate',
    'evacuate',
    'unshelve',
    'resize',
    'rebuild',
)

# Formats that show everything.
_DOCUMENTS = ('json', 'yaml')

# What describes a request, as far as --server does not.
_DESCRIBING = (
    'flavor',
    'image',
    'image_property',
    'boot_from_volume',
    'availability_zone',
    'project',
    'server_group',
    'hint',
    'num_instances',
    'destination',
)


class Explain(base.Command):
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
        server = parser.add_argument_group('an existing server')
        server.add_argument(
            '--server',
            metavar='UUID',
            help='the server whose request nova stored, landed or not',
        )
        server.add_argument(
            '--operation',
            choices=_OPERATIONS,
            default='boot',
            help='what is to be done with it (default: boot)',
        )
        request = parser.add_argument_group(
            'a new server (--flavor and --image also for resize and rebuild)'
        )
        request.add_argument(
            '--flavor', metavar='FLAVOR', help='its ID or name'
        )
        request.add_argument(
            '--image',
            metavar='UUID',
            help='an image of Glance, which is asked with the credentials of '
            'the OS_* variables or of clouds.yaml',
        )
        request.add_argument(
            '--image-property',
            metavar='KEY=VALUE',
            action='append',
            default=[],
            type=base.read_pair,
            help='a property of the image, instead of one of Glance or beside '
            'it (may be repeated)',
        )
        request.add_argument(
            '--boot-from-volume',
            action='store_true',
            help='the root disk is a volume',
        )
        request.add_argument(
            '--availability-zone',
            metavar='ZONE[:HOST[:NODE]]',
            help='with a host, it is forced and no filter runs',
        )
        request.add_argument('--project', metavar='ID')
        request.add_argument('--server-group', metavar='UUID')
        request.add_argument(
            '--hint',
            metavar='KEY=VALUE',
            action='append',
            default=[],
            type=base.read_pair,
            help='a scheduler hint (may be repeated)',
        )
        request.add_argument(
            '--num-instances', metavar='NUMBER', type=base.read_amount
        )
        parser.add_argument(
            '--destination',
            metavar='HOST[:NODE]',
            help='ask for this host, as the API does with "host"; filters run',
        )
        kept = parser.add_argument_group('a refusal that watch recorded')
        kept.add_argument(
            '--recorded',
            metavar='REQUEST_OR_SERVER',
            help='the ID of a request (req-...) or the UUID of a server',
        )
        kept.add_argument(
            '--records',
            metavar='FILE',
            type=pathlib.Path,
            default=records.PATH,
            help='the file of the records (default: %(default)s)',
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
        if _is_table(parsed_args):
            # The answer stands before the table.
            self.sentence = ''
        elif parsed_args.formatter not in _DOCUMENTS:
            self.sentence = self._document['answer']['sentence']
        rows = answer.host_rows if by_host else answer.rows
        return columns, rows(self._document, parsed_args.all)

    def _explain(self, parsed_args: argparse.Namespace) -> answer.Document:
        self.configure(parsed_args)
        # Not before: they import nova.
        from nova_ext_sched.cmd import nova_scheduler
        from nova_ext_sched.cmd.explain import asked
        from nova_ext_sched.cmd.explain import document
        from nova_ext_sched.cmd.explain import explanation

        scheduler = nova_scheduler.ReadOnlyHostManager()
        detailed = _select(scheduler.hosts, parsed_args)
        with progress.bar(sys.stderr, 'Asking nova and placement') as advance:
            found = explanation.start(scheduler, advance=advance)
            ctxt = nova_scheduler.context(parsed_args.project)
            request = asked.Asked(ctxt, scheduler, parsed_args)
            if request.end is None:
                explanation.explain(scheduler, found, ctxt, request.spec_obj)
            else:
                found.stop('conductor', *request.end)
        found.remarks += request.remarks(found)
        return document.build(found, request.description, detailed)

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[Sequence[object]],
    ) -> int:
        if parsed_args.formatter == 'json':
            json.dump(self._document, self.app.stdout, indent=2)
            self.app.stdout.write('\n')
        elif parsed_args.formatter == 'yaml':
            yaml.safe_dump(
                self._document, self.app.stdout, sort_keys=False, width=79
            )
        elif _is_table(parsed_args):
            answer.write(
                self._document,
                self.app.stdout,
                parsed_args.max_width or _get_width(),
                parsed_args.all,
                column_names is answer.HOST_COLUMNS,
            )
        else:
            super().produce_output(parsed_args, column_names, data)
        return 0


def _check_usage(parsed_args: argparse.Namespace) -> None:
    operation = parsed_args.operation
    if parsed_args.recorded is not None:
        # A record says what was asked. It has the hosts of none.
        for name in ('server', *_DESCRIBING, 'host', 'hosts'):
            if getattr(parsed_args, name):
                raise _usage('--recorded', f'no {_option(name)}', 'one')
        if operation != 'boot':
            raise _usage('--recorded', 'no --operation', operation)
        return
    if parsed_args.server is None:
        if parsed_args.flavor is None:
            raise _usage('arguments', '--server or --flavor', 'neither')
        if operation != 'boot':
            raise _usage('--operation', 'boot without --server', operation)
        return
    needed = {'resize': ('flavor',), 'rebuild': ('image', 'image_property')}
    allowed = needed.get(
        operation, () if operation == 'boot' else ('destination',)
    )
    for name in _DESCRIBING:
        if getattr(parsed_args, name) and name not in allowed:
            expected = f'no {_option(name)} to {operation} it'
            raise _usage('--server', expected, 'one')
    if operation in needed and not any(
        getattr(parsed_args, name) for name in allowed
    ):
        raise _usage(f'--operation {operation}', f'--{allowed[0]}', 'none')


def _option(name: str) -> str:
    return f'--{name.replace("_", "-")}'


def _is_table(parsed_args: argparse.Namespace) -> bool:
    # Whoever chooses columns wants those and nothing else.
    return parsed_args.formatter == 'table' and not (
        parsed_args.columns or parsed_args.sort_columns
    )


def _get_width() -> int:
    """Return the width of the terminal, and 80 where there is none."""
    return shutil.get_terminal_size((answer.WIDTH, 24)).columns


def _select(
    hosts: typing.Any, parsed_args: argparse.Namespace
) -> list[str] | None:
    """Return the UUIDs of the hosts to list; None for all."""
    if not parsed_args.host:
        return None
    found: list[str] = []
    for name in parsed_args.host:
        uuids = [
            uuid
            for uuid, host in hosts.items()
            if name in (host.host, host.node, host.name, uuid)
        ]
        if not uuids:
            raise _usage('--host', 'a host of a compute node', name)
        found += [uuid for uuid in uuids if uuid not in found]
    return found


def _usage(where: str, expected: str, got: object) -> exception.InvalidValue:
    return exception.InvalidValue(where=where, expected=expected, got=got)
