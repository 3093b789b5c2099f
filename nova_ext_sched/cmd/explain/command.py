# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched explain``."""

import argparse
from collections.abc import Sequence
import sys
import typing

from nova_ext_sched import exception
from nova_ext_sched.cmd import base
from nova_ext_sched.cmd import progress
from nova_ext_sched.cmd.explain import funnel

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
        'Exit status: 0 a host is left; 1 a fault; 2 wrong usage; 3 no host '
        'is left.'
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
            '--num-instances', metavar='NUMBER', type=_positive
        )
        parser.add_argument(
            '--destination',
            metavar='HOST[:NODE]',
            help='ask for this host, as the API does with "host"; filters run',
        )
        shown = parser.add_mutually_exclusive_group()
        shown.add_argument(
            '--host',
            metavar='HOST',
            action='append',
            default=[],
            help='list what every constraint says of this host (may be '
            'repeated)',
        )
        shown.add_argument(
            '--hosts',
            action='store_true',
            help='list what every constraint says of every host',
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], list[Sequence[object]]]:
        by_host = bool(parsed_args.host or parsed_args.hosts)
        columns = funnel.HOST_COLUMNS if by_host else funnel.COLUMNS
        self.check_columns(parsed_args, columns)
        _check_usage(parsed_args)
        self.configure(parsed_args)
        # Not before: they import nova.
        from nova import exception as nova_exception

        from nova_ext_sched.cmd import nova_scheduler
        from nova_ext_sched.cmd.explain import explanation

        scheduler = nova_scheduler.ReadOnlyHostManager()
        detailed = _select(scheduler.hosts, parsed_args)
        with progress.bar(sys.stderr, 'Asking nova and placement') as advance:
            found = explanation.start(scheduler, detailed, advance)
            try:
                ctxt, spec_obj = _get_request(scheduler, parsed_args)
            except nova_exception.NoValidHost as exc:
                found.end('conductor', 'image traits', exc.format_message())
            except nova_exception.UnsupportedPolicyException as exc:
                found.end('conductor', 'server group', exc.format_message())
            else:
                explanation.explain(scheduler, found, ctxt, spec_obj)
        self.status = base.FOUND if found.finds_host else base.NOT_FOUND
        self.sentence = found.sentence
        return columns, found.words if by_host else found.lines


def _check_usage(parsed_args: argparse.Namespace) -> None:
    operation = parsed_args.operation
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
            option = f'--{name.replace("_", "-")}'
            raise _usage('--server', f'no {option} to {operation} it', 'one')
    if operation in needed and not any(
        getattr(parsed_args, name) for name in allowed
    ):
        raise _usage(f'--operation {operation}', f'--{allowed[0]}', 'none')


def _get_request(
    scheduler: typing.Any, parsed_args: argparse.Namespace
) -> tuple[typing.Any, typing.Any]:
    """Return a RequestContext and the RequestSpec of the command line."""
    from nova_ext_sched.cmd import nova_scheduler
    from nova_ext_sched.cmd.explain import request
    from nova_ext_sched.cmd.explain import server

    ctxt = nova_scheduler.context(parsed_args.project)
    if parsed_args.server is None:
        return ctxt, request.build(ctxt, parsed_args)
    found = server.Server(ctxt, parsed_args.server)
    arguments: dict[str, typing.Any] = {}
    if parsed_args.destination:
        arguments['destination'] = request.destination(parsed_args.destination)
    if parsed_args.operation == 'resize':
        arguments['flavor'] = request.get_flavor(ctxt, parsed_args.flavor)
    elif parsed_args.operation == 'rebuild':
        arguments['image'] = request.get_image(ctxt, parsed_args)
        arguments['client'] = scheduler.placement
    getattr(found, parsed_args.operation.replace('-', '_'))(**arguments)
    return ctxt, found.spec_obj


def _select(hosts: typing.Any, parsed_args: argparse.Namespace) -> list[str]:
    """Return the UUIDs of the compute nodes to tell of."""
    if parsed_args.hosts:
        return sorted(hosts, key=lambda uuid: hosts[uuid].name)
    found = []
    for name in parsed_args.host:
        uuids = [
            uuid
            for uuid, host in hosts.items()
            if name in (host.host, host.node, host.name, uuid)
        ]
        if not uuids:
            raise _usage('--host', 'a host of a compute node', name)
        found += uuids
    return found


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f'expected a number from 1 on, got {text!r}'
        )
    return int(text)


def _usage(where: str, expected: str, got: object) -> exception.InvalidValue:
    return exception.InvalidValue(where=where, expected=expected, got=got)
