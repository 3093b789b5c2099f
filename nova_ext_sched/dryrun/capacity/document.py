# SPDX-License-Identifier: Apache-2.0

"""Everything that is known of the capacity, as one document.

``schema.json`` beside this module has its form, and what people read is
written from it alone (:mod:`.answer`).
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import dataclasses
import itertools
import math
import types
import typing

from nova_ext_sched import messages
from nova_ext_sched.dryrun import heading
from nova_ext_sched.dryrun.capacity import room
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import question
from nova_ext_sched.dryrun.decision import refusals

#: Changes when a reader of the document must change.
FORMAT = 2


def build(
    wanted: question.Question,
    by: str | None,
    flavors: Sequence[dict[str, typing.Any]],
    hosts: int,
    remarks: Iterable[str],
    topology: Sequence[dict[str, typing.Any]],
) -> dict[str, typing.Any]:
    """Return the document.

    :param wanted: a new server, of no flavor
    :param by: see :class:`.survey.Survey`
    :param flavors: what :func:`describe` returned of each
    :param hosts: how many compute nodes there are
    :param topology: what :func:`..cloud.topology.describe` returned
    """
    return {
        **heading.make(FORMAT),
        'request': {
            'image': wanted.image,
            'image_properties': dict(wanted.image_properties),
            'boot_from_volume': wanted.boot_from_volume,
            'availability_zone': wanted.availability_zone,
            'project': wanted.project,
            'server_group': wanted.server_group,
            'hints': [list(pair) for pair in wanted.hints],
        },
        'hosts': hosts,
        'by': by,
        'topology': topology,
        'flavors': sorted(flavors, key=_most_room),
        'remarks': list(remarks),
    }


def describe(
    flavor: typing.Any,
    hosts: Mapping[str, typing.Any] | None = None,
    groups: Mapping[str, Collection[str]] | None = None,
    found: matrix.Matrix | None = None,
    rooms: Mapping[str, room.Room] = types.MappingProxyType({}),
    tied: Sequence[Set[str]] = (),
    end: str = '',
    fault: str = '',
) -> dict[str, typing.Any]:
    """Return what the document has of a flavor.

    :param flavor: nova's
    :param hosts: every compute node by UUID, if the room of each is wanted
    :param groups: the UUIDs of their hosts by name, if the room of each group
        is wanted; that of hosts in none is empty
    :param found: explain's stages; None where no host was judged
    :param rooms: by the UUID of each host that explain's stages left
    :param tied: see :class:`.room.Rooms`
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
    hosts_with_room = sum(one.servers > 0 for one in rooms.values())
    by_host = {
        uuid: dataclasses.replace(
            one, servers=_add_up({uuid: one.servers}, tied)
        )
        for uuid, one in rooms.items()
    }
    return {
        'id': flavor.flavorid,
        'name': messages.clean(flavor.name),
        'vcpus': flavor.vcpus,
        'memory_mb': flavor.memory_mb,
        'root_gb': flavor.root_gb,
        'ephemeral_gb': flavor.ephemeral_gb,
        **_describe_number(None if fault else servers),
        'hosts': None if tied else hosts_with_room,
        'ends': _rank(ends),
        'refused': [
            dataclasses.asdict(one) for one in refusals.group(refused)
        ],
        'end': messages.clean(end, 1000),
        'fault': messages.clean(fault, 1000),
        'rooms': None
        if hosts is None
        else sorted(_describe_rooms(hosts, causes, by_host), key=_most_room),
        **_describe_groups(None if fault else groups, causes, rooms, tied),
    }


def _describe_rooms(
    hosts: Mapping[str, typing.Any],
    causes: Mapping[str, Iterable[str]],
    rooms: Mapping[str, room.Room],
) -> Iterator[dict[str, typing.Any]]:
    for uuid, host in hosts.items():
        servers, ends = _read_room(uuid, causes, rooms)
        yield {
            'host': messages.clean(host.name),
            'uuid': uuid,
            **_describe_number(servers),
            'ends': ends,
        }


def _read_room(
    uuid: str,
    causes: Mapping[str, Iterable[str]],
    rooms: Mapping[str, room.Room],
) -> tuple[float, list[str]]:
    """Return how many servers a host takes, and what ends that."""
    if one := rooms.get(uuid):
        return one.servers, [one.end.cause] if one.end else []
    return 0, sorted(causes.get(uuid, ()))


def _describe_groups(
    groups: Mapping[str, Collection[str]] | None,
    causes: Mapping[str, Iterable[str]],
    rooms: Mapping[str, room.Room],
    tied: Sequence[Set[str]],
) -> dict[str, typing.Any]:
    """Return the room of groups, and of hosts that are in several."""
    if groups is None:
        return {'groups': None, 'in_several': None}
    described = []
    for name, uuids in groups.items():
        mine = {uuid: _read_room(uuid, causes, rooms) for uuid in uuids}
        ends = collections.Counter(
            ' and '.join(end) for _, end in mine.values() if end
        )
        numbers = {uuid: servers for uuid, (servers, _) in mine.items()}
        hosts = sum(servers > 0 for servers in numbers.values())
        is_sure = all(one.isdisjoint(uuids) for one in tied)
        described.append(
            {
                'name': messages.clean(name),
                **_describe_number(_add_up(numbers, tied)),
                'hosts': hosts if is_sure else None,
                'ends': _rank(ends),
            }
        )
    times = collections.Counter(itertools.chain(*groups.values()))
    several = {
        uuid: one.servers for uuid, one in rooms.items() if times[uuid] > 1
    }
    return {
        'groups': sorted(described, key=_most_room),
        'in_several': _describe_number(_add_up(several, tied)),
    }


def _add_up(numbers: Mapping[str, float], tied: Iterable[Set[str]]) -> float:
    """Return the sum of hosts, NaN where one is tied to another host."""
    if all(one.isdisjoint(numbers) or one <= numbers.keys() for one in tied):
        return sum(numbers.values())
    return math.nan


def _rank(ends: Mapping[str, int]) -> list[dict[str, typing.Any]]:
    return [
        {'ends': name, 'hosts': number}
        for name, number in sorted(
            ends.items(), key=lambda one: (-one[1], one[0])
        )
    ]


def _describe_number(servers: float | None) -> dict[str, typing.Any]:
    """Return a number of servers; None or NaN where it is not known."""
    is_known = servers is not None and math.isfinite(servers)
    return {
        'servers': servers if is_known else None,
        'unlimited': servers == math.inf,
    }


def _most_room(one: Mapping[str, typing.Any]) -> tuple[float, str]:
    """Return what to sort flavors, and hosts, by."""
    servers = one['servers']
    if servers is None:
        servers = math.inf if one['unlimited'] else -1
    return -servers, one['host'] if 'host' in one else one['name']
