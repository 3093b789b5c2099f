# SPDX-License-Identifier: Apache-2.0

"""Remarks on why nova-scheduler may have decided otherwise."""

from collections.abc import Iterator
import contextlib

import nova.conf
from oslo_utils import timeutils

from nova_ext_sched import exception
from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import asking
from nova_ext_sched.dryrun.decision import comparison
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.decision import server
from nova_ext_sched.queries import reservation

CONF = nova.conf.CONF


def add(
    asked: asking.Asking,
    operation: str = 'boot',
    existing: server.Server | None = None,
) -> None:
    """Add remarks on why the scheduler may have decided otherwise.

    :param asked: the request, after it was judged
    :param operation: of :class:`.request.Question`
    :param existing: the server, if it exists
    """
    asked.matrix.remarks += _say_of_request(asked, existing is None)
    if existing is not None:
        asked.matrix.remarks += _say_of_server(
            asked.matrix, operation, existing
        )


def _say_of_request(asked: asking.Asking, is_new: bool) -> Iterator[str]:
    """Yield remarks on a request that its owner may not have meant.

    :param is_new: whether it may still be written otherwise
    """
    cloud, spec_obj = asked.cloud, asked.spec_obj
    if spec_obj.project_id is None:
        closed = []
        # Where it is refused, the request filter says why.
        with contextlib.suppress(exception.RequestRefused):
            wanted = reservation.compile_request(spec_obj)
            closed = sorted(
                f'aggregate {messages.clean(aggregate.name)} has {items}'
                for aggregate in cloud.aggs_by_id.values()
                if any(key in aggregate.metadata for key in wanted.required)
                and (items := wanted.closing_items(aggregate.metadata))
            )
        if closed:
            yield (
                f'No project was given (--project), and the reservation '
                f'depends on it: {messages.first_few(closed)}'
            )
    zone = fields.get_field(spec_obj, 'availability_zone')
    zones = {one.availability_zone for one in cloud.aggs_by_id.values()}
    # Hosts in no aggregate with a zone are in the default zone.
    is_default = zone == CONF.default_availability_zone
    if zone in zones or not zone:
        pass
    elif is_default:
        # Of a server that there is nobody reads it, nor beside a forced host.
        if is_new and not fields.get_field(spec_obj, 'force_hosts'):
            yield (
                f'nova ignores the availability zone {messages.clean(zone)}: '
                f'it is what hosts without a zone are shown in '
                f'(default_availability_zone), and no aggregate has it'
            )
    else:
        yield (
            f'No aggregate has the availability zone {messages.clean(zone)} '
            f'that the request is for: nova ignores it'
        )
    enabled = {type(one).__name__ for one in cloud.enabled_filters}
    hints = fields.get_field(spec_obj, 'scheduler_hints') or {}
    for name, hint in comparison.HINTS.items():
        if hint in hints and name not in enabled:
            yield (
                f'nova ignores the scheduler hint {hint}: {name} is not in '
                f'[filter_scheduler] enabled_filters'
            )
    if not (asked.matrix.names or cloud.silent_cells):
        yield (
            'No nova-compute has registered. Once one has started, '
            '"nova-manage cell_v2 discover_hosts" maps its host'
        )
    if snapshot.is_boot(spec_obj) and cloud.unmapped:
        names = sorted(cloud.unmapped, key=messages.in_order)
        yield (
            f'No cell mapping has {messages.first_few(names)}. nova-scheduler '
            'can still choose such a host, and the server then ends '
            f'in ERROR: run nova-manage cell_v2 discover_hosts'
        )
    if fields.pretends_rebuild(spec_obj):
        yield (
            f'The request has the scheduler hint {fields.CHECK_TYPE}=rebuild '
            f'and is no rebuild. nova asks neither its request filters nor '
            f'placement, and skips host filters that do not run on rebuild. '
            f'Those of nova-ext-sched still check every host'
        )


def _say_of_server(
    judged: matrix.Matrix, operation: str, existing: server.Server
) -> Iterator[str]:
    """Yield remarks on a server's build and its present host."""
    ended = existing.read_build() if operation == 'boot' else None
    if ended and not ended.found_no_host:
        yield f'The server is in ERROR. {ended.say()}'
    elif ended and judged.finds_host:
        yield (
            f'The server is in ERROR: {ended.say()}. It finds one now. '
            f'Either the cloud has changed since (hosts, their use, '
            f'aggregates, the flavor), or the server was created with "host" '
            f'or "hypervisor_hostname", which nova does not store'
        )
    if operation == 'resize' and not judged.order:
        yield from _say_of_own_host(judged, existing.node)
    if existing.building_since is not None:
        seconds = timeutils.delta_seconds(
            existing.building_since, timeutils.utcnow(with_timezone=True)
        )
        yield (
            f'The server is in BUILD for '
            f'{messages.count("minute", int(seconds // 60))}: nova has noted '
            f'neither a host nor a fault. If that lasts, nova-conductor '
            f'did not get the request, ended, or could not store the '
            f'fault: its log says which. nova does not try again: delete '
            f'the server and create it anew'
        )


def _say_of_own_host(judged: matrix.Matrix, node: str | None) -> Iterator[str]:
    """Yield a remark if a resize could stay on its host.

    ==========================  ============================================
    what refuses its host       what is said
    ==========================  ============================================
    only that it is its host    that an option lets nova resize it there
    it is full                  that the old amount counts, too
    anything else, or nothing   nothing
    ==========================  ============================================

    :param node: UUID of its compute node
    """
    refused = [
        refusal
        for column in judged.columns
        for refusal in column.refused.get(node or '', ())
    ]
    causes = {one.cause for one in refused}
    if causes == {refusals.IGNORED.cause}:
        yield (
            'nova resizes the server where it is if [DEFAULT] '
            'allow_resize_to_same_host is on for nova-api and nova-compute'
        )
    full = sorted({one.cause for one in refused if one.is_full})
    if full and refusals.IGNORED.cause not in causes:
        yield (
            f'On its own host the server holds its old '
            f'{" and ".join(full)} until the resize is confirmed: there must '
            f'be room for the new amount beside the old'
        )
