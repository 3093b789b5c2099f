# SPDX-License-Identifier: Apache-2.0

"""Selects hosts by names, aggregates or failure domains; describes each."""

import collections
from collections.abc import Collection
from collections.abc import Iterable
import dataclasses
import typing

from nova import servicegroup
import nova.conf

from nova_ext_sched import exception
from nova_ext_sched import grouping
from nova_ext_sched import messages
from nova_ext_sched import named
from nova_ext_sched.dryrun import heading
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.policy import failure_domain
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import reservation

CONF = nova.conf.CONF


def find(
    cloud: snapshot.Snapshot,
    names: Iterable[str],
    aggregates: Iterable[str],
    domains: Iterable[str] = (),
) -> set[str]:
    """Return the names of the selected hosts.

    :param names: of hosts
    :param aggregates: names, UUIDs or IDs
    :param domains: values of ``failure_domain_key``
    :raises exception.UnknownName: it does not exist
    """
    known = {node.host for node in cloud.nodes.values()}
    if not {*names} <= known:
        # A host of servers may have no compute node any more.
        known = known.union(*servers.Reader(cloud).count().values())
    hosts = {find_host(cloud, name, known) for name in names}
    for name in aggregates:
        hosts |= {*named.find_aggregate(cloud.aggs_by_id.values(), name).hosts}
    by_domain = group(cloud) if domains else {}
    for name in domains:
        if name not in by_domain:
            raise exception.UnknownName('failure domain', name, by_domain)
        hosts |= by_domain[name]
    return hosts


def find_host(
    cloud: snapshot.Snapshot, name: str, known: Collection[str]
) -> str:
    """Return the host that is named, perhaps without its domain.

    :param known: the hosts that there are, of the cells that answer
    :raises exception.UnknownName: there is none
    """
    try:
        return named.find_host(name, known)
    except exception.UnknownName:
        # It may be a host of a cell that does not answer.
        if cloud.silent_cells:
            return name
        raise


def find_any(cloud: snapshot.Snapshot, names: Iterable[str]) -> set[str]:
    """Return the names of hosts that are named, or in an aggregate so named.

    :raises exception.UnknownName: there is neither of a name
    """
    hosts = {node.host for node in cloud.nodes.values()}
    known = {one.name for one in cloud.aggs_by_id.values()}
    known |= {one.uuid for one in cloud.aggs_by_id.values()}
    aggregates = {*names} & (known - hosts)
    return find(cloud, {*names} - aggregates, aggregates)


def find_spares(
    cloud: snapshot.Snapshot, names: Iterable[str]
) -> tuple[set[str], set[str]]:
    """Return the disabled hosts among those of :func:`find_any`.

    :returns: those that are up, and those that are down
    :raises exception.UnknownName: there is neither of a name
    """
    hosts = find_any(cloud, names)
    is_up = servicegroup.API().service_is_up
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for state in cloud.get_host_states_by_uuids(None, None, None):
        if state.host in hosts and state.service.get('disabled'):
            found[bool(is_up(state.service))].add(state.host)
    return found[True], found[False]


def find_nodes(
    cloud: snapshot.Snapshot, names: Collection[str]
) -> list[str] | None:
    """Return the UUIDs of the compute nodes that are named.

    :param names: of hosts or nodes, ``HOST:NODE`` or UUIDs
    :returns: None without a name
    :raises exception.UnknownName: there is none of a name
    """
    if not names:
        return None
    by_name = grouping.by_key(
        (name, uuid)
        for uuid, node in cloud.nodes.items()
        for name in (node.host, node.node, node.name, uuid)
    )
    of_hosts = {node.host for node in cloud.nodes.values()}
    chosen: set[str] = set()
    for name in names:
        known = name if name in by_name else named.find_host(name, of_hosts)
        chosen.update(by_name[known])
    return [uuid for uuid in cloud.nodes if uuid in chosen]


def group(cloud: snapshot.Snapshot) -> dict[str, set[str]]:
    """Return the names of hosts by failure domain."""
    found = collections.defaultdict(set)
    for aggregate in cloud.aggs_by_id.values():
        for name in domains_of([aggregate]):
            found[name].update(aggregate.hosts)
    return found


def domains_of(aggregates: Iterable[typing.Any]) -> frozenset[str]:
    """Return the failure domains of a host in some nova Aggregates."""
    return failure_domain.read_domains(
        (one.metadata for one in aggregates),
        CONF.nova_ext_sched.failure_domain_key,
    )


def zones_of(aggregates: Iterable[typing.Any]) -> frozenset[str]:
    """Return the availability zone of a host in some nova Aggregates."""
    found = {one.availability_zone for one in aggregates} - {None}
    return frozenset(found or {CONF.default_availability_zone})


def make_documents(cloud: snapshot.Snapshot) -> list[dict[str, typing.Any]]:
    """Return the entry of each host with a compute node for documents.

    The map of hosts is drawn from it. In the order in which people count.
    """
    states = cloud.get_host_states_by_uuids(process.context(), None, None)
    services = {state.host: state.service for state in states}
    is_up = servicegroup.API().service_is_up
    hosts = {}
    for node in cloud.nodes.values():
        service = services.get(node.host)
        if service is None or service['disabled']:
            # nova-scheduler asks no disabled cell.
            state = 'disabled'
        else:
            state = 'up' if is_up(service) else 'down'
        aggregates = cloud.aggregates_of(node.host)
        hosts[node.host] = heading.Host(
            host=node.host,
            cell=cloud.cell_name(node.cell_uuid),
            zone=min(zones_of(aggregates)),
            aggregates=sorted(
                (one.name for one in aggregates), key=messages.in_order
            ),
            domains=sorted(domains_of(aggregates), key=messages.in_order),
            state=state,
            closed=_find_closed(one.metadata for one in aggregates),
        )
    return [
        dataclasses.asdict(hosts[host])
        for host in sorted(hosts, key=messages.in_order)
    ]


def _find_closed(metadata: Iterable[dict[str, str]]) -> str:
    """Return the reason that closes a host to requests that do not name it."""
    options = CONF.nova_ext_sched
    reserving = reservation.Rules.from_options(options).forbidden_prefixes
    closed = ''
    for items in metadata:
        if options.enable_isolated_aggregate_filtering and any(
            isolation.read_item(*item).trait for item in items.items()
        ):
            return 'isolated'
        if any(key.startswith(reserving) for key in items):
            closed = 'reserved'
    return closed
