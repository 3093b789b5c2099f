# SPDX-License-Identifier: Apache-2.0

"""The hosts of a server group's members, including those under way."""

from collections.abc import Collection
import typing

from nova.scheduler.client import report
from oslo_log import log as logging

from nova_ext_sched import faults
from nova_ext_sched import instances

LOG = logging.getLogger(__name__)

_faults = faults.FaultLog(LOG)

# Members under way that placement is asked about, one by one.
MOST_UNDER_WAY = 50


def get_hosts(
    ctxt: typing.Any, uuids: Collection[str]
) -> dict[str, frozenset[str]]:
    """Return the hosts of members, by UUID.

    =====================================  ==================================
    member                                 hosts
    =====================================  ==================================
    claimed by nova-compute                its host
    moves, or its resize is unconfirmed    source and destination
    placed, and not yet claimed, at boot   that of its allocation in placement
    or when it is unshelved
    not placed, in ERROR without a host,   none: it is not in the result
    shelved, or deleted
    =====================================  ==================================

    Two selects a cell. While members wait to be claimed, a request to
    placement for each, up to :data:`MOST_UNDER_WAY`, and a select a cell.

    :param ctxt: a nova RequestContext
    :raises Exception: as :func:`nova_ext_sched.instances.get_places`, and as
        nova's report client where placement does not answer
    """
    places = instances.get_places(ctxt, uuids)
    found = {
        uuid: place.hosts for uuid, place in places.items() if place.hosts
    }
    under_way = sorted(
        uuid for uuid, place in places.items() if place.is_under_way
    )
    if not under_way:
        return found
    if len(under_way) > MOST_UNDER_WAY:
        _faults.warn(
            f'More than {MOST_UNDER_WAY} servers of one server group wait '
            f'for nova-compute to claim them. Failure domains count '
            f'{MOST_UNDER_WAY} of them; the others count when they are '
            f'claimed.'
        )
    client = report.report_client_singleton()
    providers = {
        uuid: client.get_allocs_for_consumer(ctxt, uuid)['allocations']
        for uuid in under_way[:MOST_UNDER_WAY]
    }
    hosts = instances.get_compute_hosts(ctxt, set().union(*providers.values()))
    for uuid, held in providers.items():
        # Other providers of the tree (of devices) are no compute nodes.
        on = frozenset(hosts[rp] for rp in held if rp in hosts)
        if on:
            found[uuid] = on
    return found
