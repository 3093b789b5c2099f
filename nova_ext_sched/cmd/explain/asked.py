# SPDX-License-Identifier: Apache-2.0

"""The request that the command line describes."""

import argparse
import typing

from oslo_utils import timeutils

from nova_ext_sched import messages
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import explanation
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import request
from nova_ext_sched.cmd.explain import server
from nova_ext_sched.queries import fields
from nova_ext_sched.request_filters import reservation


def prepare(
    ctxt: typing.Any,
    scheduler: nova_scheduler.ReadOnlyHostManager,
    wanted: argparse.Namespace,
    found: funnel.Funnel,
) -> tuple[typing.Any, server.Server | None]:
    """Make the request that nova-conductor would send to the scheduler.

    :param ctxt: a nova RequestContext; gets the project of the server
    :param wanted: the command's arguments
    :param found: ends where conductor refuses the request without asking the
        scheduler
    :returns: nova's RequestSpec, and the server if it exists
    :raises exception.InvalidValue: something that is named does not exist, or
        contradicts itself
    """
    arguments: dict[str, typing.Any] = {}
    if wanted.destination:
        arguments['destination'] = request.destination(wanted.destination)
    if wanted.server is None:
        flavor = request.get_flavor(ctxt, wanted.flavor)
        image = request.get_image(ctxt, wanted)
        spec_obj = request.build(ctxt, wanted, flavor, image)
        spec_obj.num_instances = wanted.num_instances or 1
        spec_obj.requested_destination = arguments.get('destination')
        with explanation.conducting(found):
            request.set_up_group(ctxt, spec_obj)
        return spec_obj, None
    mine = server.Server(ctxt, wanted.server)
    if wanted.operation == 'resize':
        arguments['flavor'] = request.get_flavor(ctxt, wanted.flavor)
    elif wanted.operation == 'rebuild':
        arguments['image'] = request.get_image(ctxt, wanted)
        arguments['client'] = scheduler.placement
    with explanation.conducting(found):
        getattr(mine, wanted.operation.replace('-', '_'))(**arguments)
    return mine.spec_obj, mine


def remark(
    scheduler: nova_scheduler.ReadOnlyHostManager,
    found: funnel.Funnel,
    operation: str,
    spec_obj: typing.Any,
    mine: server.Server | None,
) -> None:
    """Add to the remarks why the scheduler may have decided otherwise.

    :param spec_obj: what :func:`prepare` returned; ``mine`` too
    """
    if (
        mine is not None
        and mine.never_landed
        and found.finds_host
        and operation == 'boot'
    ):
        found.remarks.append(
            'The server is in ERROR, so nova found no host when it was '
            'created, and it finds one now. Either the cloud has changed '
            'since (hosts, their use, aggregates, the flavor), or the '
            'server was created with "host" or "hypervisor_hostname", '
            'which nova does not store'
        )
    if mine is not None and mine.building_since is not None:
        seconds = timeutils.delta_seconds(
            mine.building_since, timeutils.utcnow(with_timezone=True)
        )
        found.remarks.append(
            f'The server is in BUILD for '
            f'{messages.count("minute", int(seconds // 60))}: nova has noted '
            f'neither a host nor a fault. If that lasts, nova-conductor '
            f'did not get the request, ended, or could not store the '
            f'fault: its log says which. nova does not try again: delete '
            f'the server and create it anew'
        )
    if spec_obj.project_id is None and (
        closed := _find_closed_aggregates(scheduler, spec_obj)
    ):
        found.remarks.append(
            f'No project was given (--project), and the reservation '
            f'depends on it: {messages.first_few(closed)}'
        )


def _find_closed_aggregates(
    scheduler: nova_scheduler.ReadOnlyHostManager, spec_obj: typing.Any
) -> list[str]:
    """Return which aggregates that the request names are whose."""
    wanted = reservation.compile_request(spec_obj)
    found = []
    for aggregate in scheduler.aggs_by_id.values():
        metadata = fields.aggregate_metadata(aggregate)
        items = [
            f'{messages.clean(key)}={messages.clean(value)}'
            for key, value in sorted(metadata.items())
            if key.startswith(wanted.project_keys)
        ]
        if items and any(key in metadata for key in wanted.required):
            name = messages.clean(fields.aggregate_name(aggregate))
            found.append(f'aggregate {name} has {" and ".join(items)}')
    return sorted(found)
