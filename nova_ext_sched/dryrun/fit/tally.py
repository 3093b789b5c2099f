# SPDX-License-Identifier: Apache-2.0

"""Everything that is known of the capacity, as one document.

``schema.json`` beside this module has its form, and what people read is
written from it alone (:mod:`..cmd.capacity_report`).
"""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import dataclasses
import itertools
import typing

from nova_ext_sched import messages
from nova_ext_sched.dryrun import heading
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import question
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.fit import count
from nova_ext_sched.dryrun.fit import number

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


@dataclasses.dataclass
class Counted:
    """What is known of a flavor.

    :ivar flavor: nova's
    :ivar judged: explain's stages; None where no host was judged
    :ivar rooms: by the UUID of each host that explain's stages left
    :ivar tied: see :class:`.count.Rooms`
    :ivar end: why no host was judged; empty where hosts were
    :ivar fault: why there is no number; empty where there is one
    """

    flavor: typing.Any
    judged: matrix.Matrix | None = None
    rooms: Mapping[str, count.HostRoom] = dataclasses.field(
        default_factory=dict
    )
    tied: Sequence[Set[str]] = ()
    end: str = ''
    fault: str = ''

    def add_up(self, uuids: Set[str]) -> number.Fit:
        """Return how many servers fit on some hosts together."""
        fit = number.add_up(
            self.rooms[uuid].fit for uuid in uuids if uuid in self.rooms
        )
        if self.fault or self.are_tied_to_others(uuids):
            return fit._replace(state=number.State.UNKNOWN)
        return fit

    def are_tied_to_others(self, uuids: Set[str]) -> bool:
        """Return whether some of them and some others share their room."""
        return not all(
            one.isdisjoint(uuids) or one <= uuids for one in self.tied
        )

    def count_hosts(self, uuids: Set[str]) -> int | None:
        """Return how many of some hosts take servers.

        :returns: None where the scheduler's order decides
        """
        if not all(one.isdisjoint(uuids) for one in self.tied):
            return None
        return sum(
            self.rooms[uuid].servers > 0 for uuid in uuids & self.rooms.keys()
        )

    def list_ends(self, uuid: str) -> list[str]:
        """Return what ends the room of a host, or all that refuses it."""
        if room := self.rooms.get(uuid):
            return [room.end.cause] if room.end else []
        causes = self.judged.causes if self.judged else {}
        return sorted(causes.get(uuid, ()))


def describe(
    counted: Counted,
    hosts: Mapping[str, typing.Any] | None = None,
    groups: Mapping[str, Set[str]] | None = None,
) -> dict[str, typing.Any]:
    """Return what the document has of a flavor.

    :param hosts: every compute node by UUID, if the room of each is wanted
    :param groups: the UUIDs of their hosts by name, if the room of each group
        is wanted; that of hosts in none is empty
    """
    flavor, rooms = counted.flavor, counted.rooms
    ends = collections.Counter(
        room.end.cause for room in rooms.values() if room.end and room.servers
    )
    refused = counted.judged.count_reasons() if counted.judged else []
    refused += [
        (room.end, 1)
        for room in rooms.values()
        if room.end and not room.servers
    ]
    return {
        'id': flavor.flavorid,
        'name': messages.clean(flavor.name),
        'vcpus': flavor.vcpus,
        'memory_mb': flavor.memory_mb,
        'root_gb': flavor.root_gb,
        'ephemeral_gb': flavor.ephemeral_gb,
        **_describe_fit(counted.add_up(rooms.keys())),
        'hosts': counted.count_hosts(rooms.keys()),
        'ends': _rank(ends),
        'refused': [
            dataclasses.asdict(one) for one in refusals.group(refused)
        ],
        'end': messages.clean(counted.end, 1000),
        'fault': messages.clean(counted.fault, 1000),
        'rooms': None
        if hosts is None
        else sorted(_describe_rooms(counted, hosts), key=_most_room),
        **_describe_groups(counted, None if counted.fault else groups),
    }


def _describe_rooms(
    counted: Counted, hosts: Mapping[str, typing.Any]
) -> Iterator[dict[str, typing.Any]]:
    for uuid, host in hosts.items():
        yield {
            'host': messages.clean(host.name),
            'uuid': uuid,
            **_describe_fit(counted.add_up({uuid})),
            'ends': counted.list_ends(uuid),
        }


def _describe_groups(
    counted: Counted, groups: Mapping[str, Set[str]] | None
) -> dict[str, typing.Any]:
    """Return the room of groups, and of hosts that are in several."""
    if groups is None:
        return {'groups': None, 'in_several': None}
    described = []
    for name, uuids in groups.items():
        ends = collections.Counter(
            ' and '.join(end) for end in map(counted.list_ends, uuids) if end
        )
        described.append(
            {
                'name': messages.clean(name),
                **_describe_fit(counted.add_up(uuids)),
                'hosts': counted.count_hosts(uuids),
                'ends': _rank(ends),
            }
        )
    times = collections.Counter(itertools.chain(*groups.values()))
    several = {uuid for uuid in counted.rooms if times[uuid] > 1}
    return {
        'groups': sorted(described, key=_most_room),
        'in_several': _describe_fit(counted.add_up(several)),
    }


def _rank(ends: Mapping[str, int]) -> list[dict[str, typing.Any]]:
    return [
        {'ends': name, 'hosts': number}
        for name, number in sorted(
            ends.items(), key=lambda one: (-one[1], one[0])
        )
    ]


def _describe_fit(fit: number.Fit) -> dict[str, typing.Any]:
    is_known = fit.state in (number.State.COUNTED, number.State.OR_MORE)
    return {
        'servers': fit.servers if is_known else None,
        'unlimited': fit.state is number.State.UNLIMITED,
    }


def _most_room(one: Mapping[str, typing.Any]) -> tuple[bool, int, str]:
    """Return what to sort flavors, hosts and groups by."""
    servers = -1 if one['servers'] is None else one['servers']
    name = one['host'] if 'host' in one else one['name']
    return not one['unlimited'], -servers, name
