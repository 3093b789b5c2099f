# SPDX-License-Identifier: Apache-2.0

"""Runs one request through nova-scheduler's steps and notes the refusals.

The steps are those of nova.scheduler.manager.SchedulerManager
(select_destinations, _schedule), run by nova's own functions. A claim in
placement is the one step that is not made.
"""

import argparse
from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import typing

from nova import exception as nova_exception
from nova.scheduler import utils
from oslo_utils import timeutils

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import candidates
from nova_ext_sched.dryrun.decision import hosts
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.decision import server
from nova_ext_sched.queries import fields
from nova_ext_sched.request_filters import reservation


def start(
    scheduler: snapshot.Snapshot,
    whole: bool = True,
    advance: Callable[[], None] = lambda: None,
) -> matrix.Matrix:
    """Return a matrix that has every host and no constraint yet.

    :param whole: see :class:`.matrix.Matrix`; ``advance`` too
    """
    found = matrix.Matrix(
        {uuid: host.name for uuid, host in scheduler.hosts.items()},
        whole,
        advance,
    )
    found.remarks = [
        f'The hosts of cell {scheduler.cell_name(uuid)} are not counted, '
        f'because its database does not answer: {reason}'
        for uuid, reason in scheduler.silent_cells.items()
    ]
    return found


@contextlib.contextmanager
def conducting(found: matrix.Matrix) -> Iterator[None]:
    """Note where nova-conductor refuses without asking the scheduler."""
    try:
        yield
    except nova_exception.NoValidHost as exc:
        found.stop('conductor', 'image traits', candidates.get_reason(exc))
    except nova_exception.UnsupportedPolicyException as exc:
        found.stop('conductor', 'server group', exc.format_message())


def prepare(
    ctxt: typing.Any,
    scheduler: snapshot.Snapshot,
    wanted: argparse.Namespace,
    found: matrix.Matrix,
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
        arguments['destination'] = request.destination(
            scheduler, wanted.destination
        )
    if wanted.server is None:
        flavor = request.get_flavor(ctxt, wanted.flavor)
        image = request.get_image(ctxt, wanted)
        spec_obj = request.build(ctxt, scheduler, wanted, flavor, image)
        spec_obj.num_instances = wanted.num_instances or 1
        spec_obj.requested_destination = arguments.get('destination')
        with conducting(found):
            request.set_up_group(ctxt, spec_obj)
        return spec_obj, None
    mine = server.Server(scheduler, ctxt, wanted.server)
    if wanted.operation == 'resize':
        arguments['flavor'] = request.get_flavor(ctxt, wanted.flavor)
    elif wanted.operation == 'rebuild':
        arguments['image'] = request.get_image(ctxt, wanted)
    with conducting(found):
        getattr(mine, wanted.operation.replace('-', '_'))(**arguments)
    return mine.spec_obj, mine


def explain(
    scheduler: snapshot.Snapshot,
    found: matrix.Matrix,
    ctxt: typing.Any,
    spec_obj: typing.Any,
) -> None:
    """Run a request through the scheduler's steps, unless it has ended.

    :param found: gets the constraints
    :param spec_obj: a nova RequestSpec, which changes as in the scheduler
    :raises reasons.FilterFailed: a filter raised what nova does not
        expect
    :raises placement.PlacementFailed: placement does not answer
    """
    if found.end is not None:
        return
    offered = None
    if not utils.request_is_rebuild(spec_obj):
        offered = candidates.ask(scheduler, found, ctxt, spec_obj)
        if offered is None:
            return
    judging = hosts.Hosts(scheduler, found, ctxt, spec_obj, offered)
    if order := judging.judge():
        judging.weigh(order)
        judging.place(order)


def remark(
    scheduler: snapshot.Snapshot,
    found: matrix.Matrix,
    operation: str,
    spec_obj: typing.Any,
    mine: server.Server | None,
) -> None:
    """Add to the remarks why the scheduler may have decided otherwise.

    :param spec_obj: what :func:`prepare` returned; ``mine`` too
    """
    if spec_obj.project_id is None:
        closed = []
        # The request filter says why it refuses it.
        with contextlib.suppress(exception.RequestRefused):
            wanted = reservation.compile_request(spec_obj)
            closed = sorted(
                f'aggregate {messages.clean(aggregate.name)} has {items}'
                for aggregate in scheduler.aggs_by_id.values()
                if any(key in aggregate.metadata for key in wanted.required)
                and (items := wanted.closing_items(aggregate.metadata))
            )
        if closed:
            found.remarks.append(
                f'No project was given (--project), and the reservation '
                f'depends on it: {messages.first_few(closed)}'
            )
    if fields.pretends_rebuild(spec_obj):
        found.remarks.append(
            f'The request has the scheduler hint {fields.CHECK_TYPE}=rebuild '
            f'and is no rebuild. nova asks neither its request filters nor '
            f'placement, and skips host filters that do not run on rebuild. '
            f'Those of nova-ext-sched judge every host all the same'
        )
    if mine is None:
        return
    if mine.never_landed and found.finds_host and operation == 'boot':
        found.remarks.append(
            'The server is in ERROR, so nova found no host when it was '
            'created, and it finds one now. Either the cloud has changed '
            'since (hosts, their use, aggregates, the flavor), or the '
            'server was created with "host" or "hypervisor_hostname", '
            'which nova does not store'
        )
    if mine.building_since is not None:
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
