# SPDX-License-Identifier: Apache-2.0

"""Describes each host: cell, zone, domains, and whether it is open."""

from collections.abc import Iterable
import dataclasses
import typing

from nova import servicegroup
import nova.conf

from nova_ext_sched import messages
from nova_ext_sched.dryrun import heading
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import selection
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import reservation

CONF = nova.conf.CONF

UP, DOWN, DISABLED = 'up', 'down', 'disabled'
ISOLATED, RESERVED = 'isolated', 'reserved'


def make_documents(cloud: snapshot.Snapshot) -> list[dict[str, typing.Any]]:
    """Return the entry of each host with a compute node for documents.

    The map of hosts is drawn from it. In the order in which people count.
    """
    states = cloud.get_host_states_by_uuids(process.context(), None, None)
    services = {state.host: state.service for state in states}
    group = servicegroup.API()
    hosts = {}
    for node in cloud.nodes.values():
        service = services.get(node.host)
        if service is None or service['disabled']:
            # nova-scheduler asks no disabled cell.
            state = DISABLED
        else:
            state = UP if group.service_is_up(service) else DOWN
        aggregates = cloud.aggregates_of(node.host)
        hosts[node.host] = heading.Host(
            host=node.host,
            cell=cloud.cell_name(node.cell_uuid),
            zone=zone_of(aggregates),
            aggregates=sorted(
                (one.name for one in aggregates), key=messages.in_order
            ),
            domains=sorted(
                selection.domains_of(aggregates), key=messages.in_order
            ),
            state=state,
            closed=_find_closed(one.metadata for one in aggregates),
        )
    return [
        dataclasses.asdict(hosts[host])
        for host in sorted(hosts, key=messages.in_order)
    ]


def zone_of(aggregates: Iterable[typing.Any]) -> str:
    """Return the availability zone of a host in some nova Aggregates."""
    zones = (one.availability_zone for one in aggregates)
    return next(filter(None, zones), CONF.default_availability_zone)


def _find_closed(metadata: Iterable[dict[str, str]]) -> str:
    """Return the reason that closes a host to requests that do not name it."""
    options = CONF.nova_ext_sched
    reserving = reservation.Rules.from_options(options).forbidden_prefixes
    closed = ''
    for items in metadata:
        if options.enable_isolated_aggregate_filtering and any(
            isolation.read_item(*item).trait for item in items.items()
        ):
            return ISOLATED
        if any(key.startswith(reserving) for key in items):
            closed = RESERVED
    return closed
