# SPDX-License-Identifier: Apache-2.0

"""Everything that is known of the capacity, as one document.

``schema.json`` beside this module has its form, and what people read is
written from it alone (:mod:`.answer`).
"""

import argparse
import collections
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import typing

from nova_ext_sched import messages
from nova_ext_sched.cli import lister
from nova_ext_sched.cmd.capacity import survey
from nova_ext_sched.cmd.explain import funnel

#: Changes when a reader of the document must change.
FORMAT = 1


def build(
    wanted: argparse.Namespace,
    flavors: Sequence[dict[str, typing.Any]],
    hosts: int,
    remarks: Sequence[str],
) -> dict[str, typing.Any]:
    """Return the document.

    :param wanted: the arguments of :mod:`nova_ext_sched.cmd.request_options`
    :param flavors: what :func:`describe` returned of each
    :param hosts: how many compute nodes there are
    """
    return {
        **lister.begin_document(FORMAT),
        'request': {
            'image': wanted.image,
            'image_properties': dict(wanted.image_property),
            'boot_from_volume': wanted.boot_from_volume,
            'availability_zone': wanted.availability_zone,
            'project': wanted.project,
            'server_group': wanted.server_group,
            'hints': [list(pair) for pair in wanted.hint],
        },
        'hosts': hosts,
        'flavors': sorted(flavors, key=_most_room),
        'remarks': list(remarks),
    }


def describe(
    count: survey.Count, hosts: Mapping[str, typing.Any], by_host: bool
) -> dict[str, typing.Any]:
    """Return what the document has of a flavor.

    :param hosts: every compute node, by UUID
    :param by_host: whether to list the room of each host
    """
    flavor = count.flavor
    servers = None if count.fault else count.servers
    ends = collections.Counter(
        one.end.cause
        for one in count.rooms.values()
        if one.servers and one.end is not None
    )
    return {
        'id': flavor.flavorid,
        'name': messages.clean(flavor.name),
        'vcpus': flavor.vcpus,
        'memory_mb': flavor.memory_mb,
        'root_gb': flavor.root_gb,
        'ephemeral_gb': flavor.ephemeral_gb,
        'servers': servers,
        'unlimited': servers is None and not count.fault,
        'hosts': count.hosts,
        'ends': [
            {'ends': name, 'hosts': number}
            for name, number in sorted(
                ends.items(), key=lambda one: (-one[1], one[0])
            )
        ],
        'refused': funnel.group(_count_refused(count)),
        'end': messages.clean(count.end, 1000),
        'fault': messages.clean(count.fault, 1000),
        'rooms': sorted(_describe_rooms(count, hosts), key=_most_room)
        if by_host
        else None,
    }


def _most_room(one: Mapping[str, typing.Any]) -> tuple[float, str]:
    """Return what to sort flavors, and hosts, by."""
    servers = one['servers']
    if servers is None:
        servers = float('inf') if one['unlimited'] else -1
    return -servers, one['host'] if 'host' in one else one['name']


def _count_refused(
    count: survey.Count,
) -> Iterator[tuple[funnel.Refusal, int]]:
    """Yield why hosts take no server, with numbers of hosts."""
    if count.found is None or count.end:
        return
    yield from count.found.count_reasons()
    for one in count.rooms.values():
        if one.servers == 0 and one.end is not None:
            yield one.end, 1


def _describe_rooms(
    count: survey.Count, hosts: Mapping[str, typing.Any]
) -> Iterator[dict[str, typing.Any]]:
    for uuid, host in hosts.items():
        servers: int | None = 0
        causes: list[str] = []
        if uuid in count.rooms:
            servers, end = count.rooms[uuid]
            causes = [] if end is None else [end.cause]
        elif count.found is not None and not count.end:
            causes = sorted(count.found.causes.get(uuid, ()))
        yield {
            'host': messages.clean(host.name),
            'uuid': uuid,
            'servers': servers,
            'unlimited': servers is None,
            'ends': causes,
        }
