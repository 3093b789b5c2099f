# SPDX-License-Identifier: Apache-2.0

"""The hosts that a command is about: by names, aggregates or domains."""

import collections
from collections.abc import Collection
from collections.abc import Iterable
import typing

import nova.conf

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import named
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.policy import failure_domain

CONF = nova.conf.CONF


def find(
    cloud: snapshot.Snapshot,
    names: Iterable[str],
    aggregates: Iterable[str],
    domains: Iterable[str] = (),
    where: str = 'host',
) -> set[str]:
    """Return the names of hosts that are named, or in what is named.

    :param names: of hosts
    :param aggregates: names, UUIDs or IDs
    :param domains: values of ``failure_domain_key``
    :param where: what names hosts, for messages
    :raises exception.InvalidValue: it does not exist
    """
    found = {*names}
    known = {host.host for host in cloud.hosts.values()}
    if not found <= known:
        # Servers may stand where there is no compute node any more.
        known = known.union(*servers.Servers(cloud).count().values())
    for name in sorted(found - known):
        # It may be one of a cell that does not answer.
        if not cloud.silent_cells:
            raise exception.InvalidValue(
                where=where,
                expected='a host with a compute node or a server: '
                + messages.nearest(name, known),
                got=name,
            )
    for name in aggregates:
        found |= {*named.find_aggregate(cloud.aggs_by_id.values(), name).hosts}
    by_domain = group(cloud) if domains else {}
    for name in domains:
        if name not in by_domain:
            raise exception.InvalidValue(
                where='--domain',
                expected=f'a value of {CONF.nova_ext_sched.failure_domain_key}'
                f' in the metadata of an aggregate: '
                f'{messages.nearest(name, by_domain)}',
                got=name,
            )
        found |= by_domain[name]
    return found


def find_any(
    cloud: snapshot.Snapshot, names: Iterable[str], where: str
) -> set[str]:
    """Return the names of hosts that are named, or in an aggregate so named.

    :param where: what names them, for messages
    :raises exception.InvalidValue: there is neither of a name
    """
    hosts = {host.host for host in cloud.hosts.values()}
    known = {one.name for one in cloud.aggs_by_id.values()}
    known |= {one.uuid for one in cloud.aggs_by_id.values()}
    aggregates = {*names} & (known - hosts)
    return find(cloud, {*names} - aggregates, aggregates, where=where)


def find_nodes(
    cloud: snapshot.Snapshot, names: Collection[str]
) -> list[str] | None:
    """Return the UUIDs of the compute nodes that are named.

    :param names: of hosts or nodes, ``HOST:NODE`` or UUIDs
    :returns: None without a name
    :raises exception.InvalidValue: there is none of a name
    """
    if not names:
        return None
    hosts = cloud.hosts
    found = {
        uuid: {host.host, host.node, host.name, uuid} & {*names}
        for uuid, host in hosts.items()
    }
    for name in names:
        if not any(name in mine for mine in found.values()):
            raise exception.InvalidValue(
                where='--host',
                expected='a host of a compute node: '
                + messages.nearest(name, [h.name for h in hosts.values()]),
                got=name,
            )
    return [uuid for uuid, mine in found.items() if mine]


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
