# SPDX-License-Identifier: Apache-2.0

"""Everything that is known of the capacity, as one document.

``schema.json`` beside this module has its form, and what people read is
written from it alone (:mod:`.answer`).
"""

import argparse
import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import math
import types
import typing

from nova_ext_sched import messages
from nova_ext_sched.cli import lister
from nova_ext_sched.cmd.capacity import room
from nova_ext_sched.cmd.explain import funnel

#: Changes when a reader of the document must change.
FORMAT = 1


def build(
    wanted: argparse.Namespace,
    flavors: Sequence[dict[str, typing.Any]],
    hosts: int,
    remarks: Iterable[str],
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
    flavor: typing.Any,
    hosts: Mapping[str, typing.Any] | None = None,
    found: funnel.Funnel | None = None,
    rooms: Mapping[str, room.Room] = types.MappingProxyType({}),
    end: str = '',
    fault: str = '',
) -> dict[str, typing.Any]:
    """Return what the document has of a flavor.

    :param flavor: nova's
    :param hosts: every compute node by UUID, if the room of each is wanted
    :param found: explain's stages; None where no host was judged
    :param rooms: by the UUID of each host that explain's stages left
    :param end: why no host was judged; empty where hosts were
    :param fault: why there is no number; empty where there is one
    """
    servers = sum(one.servers for one in rooms.values())
    ends = collections.Counter(
        one.end.cause for one in rooms.values() if one.end and one.servers
    )
    refused = [] if found is None else found.count_reasons()
    refused += [
        (one.end, 1) for one in rooms.values() if one.end and not one.servers
    ]
    causes = {} if found is None else found.causes
    return {
        'id': flavor.flavorid,
        'name': messages.clean(flavor.name),
        'vcpus': flavor.vcpus,
        'memory_mb': flavor.memory_mb,
        'root_gb': flavor.root_gb,
        'ephemeral_gb': flavor.ephemeral_gb,
        **_describe_number(None if fault else servers),
        'hosts': sum(one.servers > 0 for one in rooms.values()),
        'ends': [
            {'ends': name, 'hosts': number}
            for name, number in sorted(
                ends.items(), key=lambda one: (-one[1], one[0])
            )
        ],
        'refused': funnel.group(refused),
        'end': messages.clean(end, 1000),
        'fault': messages.clean(fault, 1000),
        'rooms': None
        if hosts is None
        else sorted(_describe_rooms(hosts, causes, rooms), key=_most_room),
    }


def _describe_rooms(
    hosts: Mapping[str, typing.Any],
    causes: Mapping[str, Iterable[str]],
    rooms: Mapping[str, room.Room],
) -> Iterator[dict[str, typing.Any]]:
    for uuid, host in hosts.items():
        servers: float = 0
        ends = sorted(causes.get(uuid, ()))
        if one := rooms.get(uuid):
            servers, ends = one.servers, [one.end.cause] if one.end else []
        yield {
            'host': messages.clean(host.name),
            'uuid': uuid,
            **_describe_number(servers),
            'ends': ends,
        }


def _describe_number(servers: float | None) -> dict[str, typing.Any]:
    """Return a number of servers; None where it is not known."""
    unlimited = servers == math.inf
    return {'servers': None if unlimited else servers, 'unlimited': unlimited}


def _most_room(one: Mapping[str, typing.Any]) -> tuple[float, str]:
    """Return what to sort flavors, and hosts, by."""
    servers = one['servers']
    if servers is None:
        servers = math.inf if one['unlimited'] else -1
    return -servers, one['host'] if 'host' in one else one['name']
