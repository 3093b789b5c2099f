# SPDX-License-Identifier: Apache-2.0

"""Makes questions for the library from the arguments of commands."""

import argparse
from collections.abc import Iterator
import contextlib
import sys
import typing

from nova import objects

from nova_ext_sched import exception
from nova_ext_sched import waiting
from nova_ext_sched.cli import completion
from nova_ext_sched.cli import options
from nova_ext_sched.dryrun.audit import auditor
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.dryrun.cloud import groups
from nova_ext_sched.dryrun.cloud import jobs
from nova_ext_sched.dryrun.cloud import overlay
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import projects
from nova_ext_sched.dryrun.cloud import selection
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import request

# The fields of a question that repeatable options fill, by the option.
_SEVERAL = {'image_property': 'image_properties', 'hint': 'hints'}


def make_change(parsed_args: argparse.Namespace) -> change.Change:
    """Return the change of :func:`nova_ext_sched.cli.options.add_change`.

    :raises exception.InvalidValue: metadata has another form
    """
    metadata = []
    for name, item in parsed_args.aggregate_property:
        key, equals, value = item.partition('=')
        if not key or not equals:
            raise exception.InvalidValue(
                where='--aggregate-property', expected='KEY=VALUE', got=item
            )
        metadata.append((name, key, value))
    return change.Change(
        options=parsed_args.option,
        metadata=metadata,
        no_metadata=parsed_args.no_aggregate_property,
        hosts=parsed_args.aggregate_host,
        no_hosts=parsed_args.no_aggregate_host,
    )


@contextlib.contextmanager
def read_cloud(
    parsed_args: argparse.Namespace,
    settled: bool = True,
    patient: bool = False,
) -> Iterator[snapshot.Snapshot]:
    """Read the cloud with the supposed changes, for a command.

    Names in the arguments become IDs.

    :param settled: as of :func:`.snapshot.read`
    :param patient: whether to ask placement again for some minutes if it does
        not answer, so that a plan that takes long is not lost
    """
    with contextlib.ExitStack() as stack:
        cloud = stack.enter_context(_change_cloud(parsed_args, settled))
        if patient:
            cloud.client.patience = waiting.Waiting('placement')
        resolve_names(parsed_args, cloud)
        if sys.stderr.isatty() and not getattr(parsed_args, 'saved', None):
            _keep_names(cloud)
        yield cloud


@contextlib.contextmanager
def _change_cloud(
    parsed_args: argparse.Namespace, settled: bool
) -> Iterator[snapshot.Snapshot]:
    """Read the cloud with the supposed changes, except hosts added or removed.

    A copy of the cloud has those already.
    """
    with snapshot.read(make_change(parsed_args), settled=settled) as cloud:
        supposed = overlay.NONE
        if names := parsed_args.enable_host:
            running = selection.find(cloud, names, ())
            supposed = overlay.Overlay(running=tuple(running))
        with overlay.laid(cloud, supposed):
            yield cloud


def remove_hosts(parsed_args: argparse.Namespace) -> list[str]:
    """Take the hosts of ``--without-host`` out of the copy of a cloud.

    :returns: sentences on their servers that have no place
    :raises exception.UnknownName: there is no such host
    :raises placement.PlacementFailed: placement does not answer
    """
    from nova_ext_sched.saved import reading
    from nova_ext_sched.saved import removed

    with _change_cloud(parsed_args, settled=True) as cloud:
        hosts = selection.find(cloud, parsed_args.without_host, ())
        removal = removed.Removal(cloud, hosts)
    with reading.changing() as connections:
        removal.carry_out(connections)
    removal.carry_out_in_placement()
    return [*removal.say()]


def _keep_names(cloud: snapshot.Snapshot) -> None:
    """Keep the names of a cloud, with which the shell completes words."""
    kept = completion.read_kept()
    aggregates = cloud.aggs_by_id.values()
    names = {
        'HOST': sorted({node.host for node in cloud.nodes.values()}),
        'AGGREGATE': sorted({one.name for one in aggregates}),
        'VALUE': sorted(selection.group(cloud)),
        'POLICY': sorted(policies.Policies(cloud).on),
    }
    if names.items() <= kept.items():
        return
    flavors = objects.FlavorList.get_all(process.context())
    completion.keep({**names, 'FLAVOR': [one.name for one in flavors]})


def resolve_names(
    parsed_args: argparse.Namespace, cloud: snapshot.Snapshot
) -> None:
    """Put IDs in place of the names of a project, a server and a group.

    :raises exception.UnknownName: nothing has a name
    :raises projects.NotTold: keystone does not tell which project has a name
    """
    project = getattr(parsed_args, 'project', None)
    if project:
        parsed_args.project = project = projects.find_id(cloud, project)
    if server := getattr(parsed_args, 'server', None):
        parsed_args.server = servers.find_id(cloud, server, project)
    if group := getattr(parsed_args, 'server_group', None):
        parsed_args.server_group = groups.find_id(group, project)


def choose_jobs(
    parsed_args: argparse.Namespace, cloud: snapshot.Snapshot
) -> int:
    """Return the number of jobs; say before they begin what they take."""
    number = jobs.limit(cloud, parsed_args.jobs)
    if parsed_args.jobs > 1:
        said = 'All hosts are in one cell: one job works on it.'
        print(jobs.say(number) if number > 1 else said, file=sys.stderr)
    return number


def make_auditor(
    parsed_args: argparse.Namespace, cloud: snapshot.Snapshot
) -> auditor.Auditor:
    """Return an auditor for :func:`nova_ext_sched.cli.options.add_selection`.

    :raises exception.InvalidValue: a named object does not exist
    """
    return auditor.make(
        cloud,
        parsed_args.policy,
        parsed_args.host,
        parsed_args.aggregate,
        parsed_args.project,
    )


def make_question(
    parsed_args: argparse.Namespace, **others: typing.Any
) -> request.Question:
    """Return a question from :data:`nova_ext_sched.cli.options.OF_SERVER`.

    :param others: fields of the question that these options do not fill
    """
    described = {
        _SEVERAL.get(name, name): getattr(parsed_args, name)
        for name in options.NAMES
    }
    return request.Question(**described, **others)
