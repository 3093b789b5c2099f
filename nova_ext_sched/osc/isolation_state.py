# SPDX-License-Identifier: Apache-2.0

"""Reads what the isolation commands judge, in few requests."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
import typing

from nova_ext_sched import placement
from nova_ext_sched.policy import isolation_plan
from nova_ext_sched.policy import isolation_setup as setup

# The least that gives aggregates and compute nodes their UUIDs. From 2.88 on
# the list of hypervisors asks each compute service for its uptime.
_MICROVERSION = '2.53'


def read(
    compute: typing.Any,
    client: placement.PlacementClient,
    named: Collection[str] = (),
    advance: Callable[[], None] = lambda: None,
) -> setup.Cloud:
    """Return what nova and placement say about isolation.

    The number of requests grows with the number of isolating aggregates and
    their traits, and with that of hosts only by the pages of nova's list.

    :param compute: the compute proxy of openstacksdk
    :param named: traits that matter beside those of the aggregates
    :param advance: called after each of the three parts
    """
    aggregates = tuple(
        setup.Aggregate(
            id=found.id,
            uuid=found.uuid,
            name=found.name,
            hosts=tuple(sorted(found.hosts or ())),
            metadata=dict(found.metadata or {}),
        )
        for found in compute.aggregates(microversion=_MICROVERSION)
    )
    advance()
    hypervisors = [
        (found.service_details['host'], found.name, found.id)
        for found in compute.hypervisors(
            details=True, microversion=_MICROVERSION
        )
    ]
    advance()
    known = client.traits()
    nodes = _nodes(client, hypervisors, aggregates, known, named)
    advance()
    return setup.Cloud(aggregates, nodes, known)


def _nodes(
    client: placement.PlacementClient,
    hypervisors: Iterable[tuple[str, str, str]],
    aggregates: Iterable[setup.Aggregate],
    known: Collection[str],
    named: Collection[str],
) -> tuple[setup.Node, ...]:
    listed = {
        found.provider.uuid: found
        for found in client.list_providers(
            traits=isolation_plan.interesting(known, aggregates, named),
            aggregates=[agg.uuid for agg in aggregates if agg.concerned],
        )
    }
    return tuple(
        setup.Node(
            host=host,
            name=name,
            uuid=uuid,
            traits=listed[uuid].traits,
            aggregates=listed[uuid].aggregates,
        )
        for host, name, uuid in hypervisors
        if uuid in listed
    )
