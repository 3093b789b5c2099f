# SPDX-License-Identifier: Apache-2.0

"""openstack scheduler explain: why there was no valid host."""

import argparse
from collections.abc import Iterable
import sys
import typing

from nova_ext_sched import exception
from nova_ext_sched.osc import base
from nova_ext_sched.osc import explain_funnel
from nova_ext_sched.osc import explain_request
from nova_ext_sched.osc import progress
from nova_ext_sched.osc import scheduler_conf

Table = tuple[tuple[str, ...], Iterable[tuple[typing.Any, ...]]]

FUNNEL_COLUMNS = ('Stage', 'Constraint', 'Removed', 'Left', 'Why')
HOSTS_COLUMNS = ('Host', 'Node', 'Result', 'Stage', 'Constraint', 'Reason')
STORY_COLUMNS = ('Host', 'Stage', 'Constraint', 'Result', 'Reason')


class Explain(base.Lister):
    """Tell which hosts a request for a server may use, and why not others

    Takes the hosts of the cloud through the constraints of the request in
    the scheduler's order, and says how many each one removes. Changes
    nothing.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """See :meth:`cliff.command.Command.get_parser`."""
        parser = super().get_parser(prog_name)
        request = parser.add_argument_group('the request')
        request.add_argument(
            '--flavor', metavar='<flavor>', help='Flavor (name or ID)'
        )
        request.add_argument(
            '--image', metavar='<image>', help='Image (name or ID)'
        )
        request.add_argument(
            '--boot-from-volume',
            action='store_true',
            help='The root disk is a volume',
        )
        request.add_argument(
            '--availability-zone',
            metavar='<zone>',
            help='Availability zone; ZONE:HOST:NODE forces a host as it does '
            'for administrators who create a server',
        )
        request.add_argument(
            '--requested-host',
            metavar='<host>',
            help='Host that the request names (openstack server create '
            '--host)',
        )
        request.add_argument(
            '--server-group',
            metavar='<server-group>',
            help='Server group (name or ID)',
        )
        request.add_argument(
            '--project',
            metavar='<project>',
            help='Project of the request (name or ID); by default yours',
        )
        request.add_argument(
            '--hint',
            metavar='<key=value>',
            action='append',
            default=[],
            help='Scheduler hint; repeat for several',
        )
        request.add_argument(
            '--server',
            metavar='<server>',
            help='Take all of it from a server that exists (name or ID); '
            'other options of the request take precedence',
        )
        shown = parser.add_mutually_exclusive_group()
        shown.add_argument(
            '--hosts',
            action='store_true',
            help='List every host with the first constraint that removes it',
        )
        shown.add_argument(
            '--host',
            metavar='<host>',
            help='Tell what every constraint says about one host',
        )
        known = parser.add_argument_group('nova.conf of the scheduler')
        known.add_argument(
            '--nova-conf',
            metavar='<file>',
            action='append',
            default=[],
            help='File to read its options from; repeat for several',
        )
        known.add_argument(
            '--option',
            metavar='<[group.]option=value>',
            action='append',
            default=[],
            help='An option of it, over --nova-conf; the group is '
            'nova_ext_sched where none is named; repeat for several',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """See :meth:`cliff.lister.Lister.take_action`."""
        if not (parsed_args.flavor or parsed_args.server):
            raise exception.InvalidValue(
                where='openstack scheduler explain',
                expected='--flavor or --server',
                got='neither',
            )
        options, assumed = scheduler_conf.load(
            parsed_args.nova_conf, parsed_args.option
        )
        connection = self.app.client_manager.sdk_connection
        resolver = explain_request.Resolver(connection)
        request = resolver.resolve(parsed_args)
        explainer = explain_funnel.Explainer(
            connection.compute,
            self.placement,
            resolver,
            options,
        )
        with progress.bar(sys.stderr, 'Asking nova and placement') as advance:
            explained = explainer.explain(request, advance, parsed_args.host)
        self._end = [
            explained.funnel.sentence(),
            *(f'({note})' for note in [*explained.notes, *assumed]),
        ]
        if parsed_args.hosts:
            return HOSTS_COLUMNS, _hosts(explained)
        if parsed_args.host:
            return STORY_COLUMNS, _story(explained, parsed_args.host)
        return FUNNEL_COLUMNS, _funnel(explained)

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: typing.Any,
        data: typing.Any,
    ) -> int:
        """See :meth:`cliff.lister.Lister.produce_output`."""
        status = super().produce_output(parsed_args, column_names, data)
        # What other programs read must stay what they can read.
        table = parsed_args.formatter == 'table'
        stream = self.app.stdout if table else self.app.stderr
        for line in self._end:
            stream.write(f'{line}\n')
        return status


def _funnel(
    explained: explain_funnel.Explained,
) -> Iterable[tuple[typing.Any, ...]]:
    for step in explained.funnel.steps:
        yield (
            step.constraint.stage,
            step.constraint.words,
            len(step.removed),
            step.left,
            step.why,
        )


def _hosts(
    explained: explain_funnel.Explained,
) -> Iterable[tuple[typing.Any, ...]]:
    for host, step in explained.funnel.first_refusals():
        if step is None:
            yield (host.name, host.node, 'passes', '', '', '')
        else:
            yield (
                host.name,
                host.node,
                'removed',
                step.constraint.stage,
                step.constraint.words,
                step.removed[host.provider].reason,
            )


def _story(
    explained: explain_funnel.Explained, name: str
) -> Iterable[tuple[typing.Any, ...]]:
    hosts = [
        host
        for host in explained.funnel.hosts
        if name in (host.name, host.node)
    ]
    if not hosts:
        raise exception.InvalidValue(
            where='--host',
            expected='the name of a compute host or of its hypervisor',
            got=name,
        )
    return [
        (
            host.label,
            constraint.stage,
            constraint.words,
            'refuses' if refusal else 'passes',
            refusal.reason if refusal else '',
        )
        for host in hosts
        for constraint, refusal in explained.funnel.story(host)
    ]
