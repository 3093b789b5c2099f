# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched explain``."""

import argparse
from collections.abc import Iterable
from collections.abc import Sequence
import sys
import typing

from nova_ext_sched import exception
from nova_ext_sched import progress
from nova_ext_sched.cmd import base

# Methods of nova_ext_sched.explain.server.Server, but for resize.
_OPERATIONS = (
    'boot',
    'migrate',
    'live-migrate',
    'evacuate',
    'unshelve',
    'resize',
    'rebuild',
)

_COLUMNS = ('Stage', 'Constraint', 'Effect', 'Refused', 'Left')
_HOST_COLUMNS = ('Host', 'Stage', 'Constraint', 'Verdict', 'Reason')

# What describes a new server, and is refused beside --server.
_NEW_SERVER = (
    'image_property',
    'boot_from_volume',
    'availability_zone',
    'project',
    'server_group',
    'hint',
    'num_instances',
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
        """See cliff."""
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
            type=_pair,
            help='a property of the image, instead of one of Glance or beside '
            'it (may be repeated)',
        )
        request.add_argument(
            '--boot-from-volume',
            action='store_true',
            default=None,
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
            type=_pair,
            help='a scheduler hint (may be repeated)',
        )
        request.add_argument(
            '--num-instances', metavar='NUMBER', type=_positive, default=None
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
    ) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        """See cliff."""
        self._check_usage(parsed_args)
        self.configure(parsed_args)
        # Not before: they import nova.
        from nova import exception as nova_exception

        from nova_ext_sched.explain import explanation
        from nova_ext_sched.explain import scheduler as nova_scheduler

        scheduler = nova_scheduler.Scheduler()
        detailed = _select(scheduler.hosts, parsed_args)
        with progress.bar(sys.stderr, 'Asking nova and placement') as advance:
            explained = explanation.Explanation(scheduler, detailed, advance)
            try:
                ctxt, spec_obj = _get_request(scheduler, parsed_args)
            except nova_exception.NoValidHost as exc:
                found = explained.end(
                    'conductor', 'image traits', exc.format_message()
                )
            except nova_exception.UnsupportedPolicyException as exc:
                found = explained.end(
                    'conductor', 'server group', exc.format_message()
                )
            else:
                found = explained.explain(ctxt, spec_obj)
        self.status = base.FOUND if found.finds_host else base.NOT_FOUND
        self.sentence = found.sentence
        if detailed:
            return _HOST_COLUMNS, found.words(detailed)
        return _COLUMNS, found.lines

    def _check_usage(self, parsed_args: argparse.Namespace) -> None:
        columns = (
            _HOST_COLUMNS
            if parsed_args.host or parsed_args.hosts
            else _COLUMNS
        )
        try:
            self._generate_columns_and_selector(parsed_args, columns)
        except ValueError as exc:
            raise _usage('--column', 'existing columns', exc) from exc
        if parsed_args.server is None:
            if parsed_args.flavor is None:
                raise _usage('explain', '--server or --flavor', 'neither')
            if parsed_args.operation != 'boot':
                raise _usage(
                    '--operation',
                    'boot without --server',
                    parsed_args.operation,
                )
            return
        for name in _NEW_SERVER:
            if getattr(parsed_args, name) and not (
                name == 'image_property' and parsed_args.operation == 'rebuild'
            ):
                raise _usage(
                    '--server',
                    'its stored request alone',
                    f'--{name.replace("_", "-")} too',
                )
        operation = parsed_args.operation
        has_image = bool(parsed_args.image or parsed_args.image_property)
        for name, given, wanted in (
            ('--flavor', bool(parsed_args.flavor), operation == 'resize'),
            ('--image', has_image, operation == 'rebuild'),
        ):
            if given != wanted:
                raise _usage(
                    f'--operation {operation}',
                    f'{name}' if wanted else f'no {name}',
                    'none' if wanted else name,
                )
        if parsed_args.destination and operation in (
            'boot',
            'resize',
            'rebuild',
        ):
            raise _usage(f'--operation {operation}', 'no --destination', 'one')


def _get_request(
    scheduler: typing.Any, parsed_args: argparse.Namespace
) -> tuple[typing.Any, typing.Any]:
    """Return a RequestContext and the RequestSpec of the command line."""
    from nova_ext_sched.explain import image
    from nova_ext_sched.explain import request
    from nova_ext_sched.explain import server

    auth = image.user_auth()
    if parsed_args.server is None:
        ctxt = scheduler.context(parsed_args.project, auth=auth)
        hints: dict[str, list[str]] = {}
        for key, value in parsed_args.hint:
            hints.setdefault(key, []).append(value)
        return ctxt, request.build(
            ctxt,
            request.Wish(
                parsed_args.flavor,
                parsed_args.image,
                dict(parsed_args.image_property),
                bool(parsed_args.boot_from_volume),
                parsed_args.availability_zone,
                parsed_args.destination,
                parsed_args.project,
                parsed_args.server_group,
                hints,
                parsed_args.num_instances or 1,
            ),
        )
    ctxt = scheduler.context(auth=auth)
    found = server.Server(ctxt, parsed_args.server)
    ctxt.project_id = found.spec_obj.project_id
    arguments: dict[str, typing.Any] = {}
    if parsed_args.destination:
        arguments['destination'] = request.destination(parsed_args.destination)
    match parsed_args.operation:
        case 'resize':
            flavor = request.get_flavor(ctxt, parsed_args.flavor)
            return ctxt, found.migrate(flavor)
        case 'rebuild':
            properties = dict(parsed_args.image_property)
            new = image.get(ctxt, parsed_args.image, properties)
            return ctxt, found.rebuild(new, scheduler.placement)
        case operation:
            method = getattr(found, operation.replace('-', '_'))
            return ctxt, method(**arguments)


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


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition('=')
    if not key or not equals:
        raise argparse.ArgumentTypeError(f'expected KEY=VALUE, got {text!r}')
    return key, value


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f'expected a number from 1 on, got {text!r}'
        )
    return int(text)


def _usage(where: str, expected: str, got: object) -> exception.InvalidValue:
    return exception.InvalidValue(where=where, expected=expected, got=got)
