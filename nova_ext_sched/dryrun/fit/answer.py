# SPDX-License-Identifier: Apache-2.0

"""The parts of capacity's document.

The fields are the keys of its document, of which ``schemas/capacity.json`` has
the form.
"""

import dataclasses
import typing

from nova_ext_sched.dryrun.decision import refusals

Servers = typing.Annotated[
    int | None,
    {
        'minimum': 0,
        'description': 'null where unlimited, or not known; of a host or a '
        "group of hosts, where the scheduler's order decides how many it gets "
        'of a server group, or of what hosts share',
    },
]


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Further parts of the request of each server.

    :ivar image: UUID
    :ivar server_group: UUID
    :ivar hints: names and values
    """

    image: str | None
    image_properties: dict[str, str]
    boot_from_volume: bool
    availability_zone: str | None
    project: str | None
    server_group: str | None
    hints: list[typing.Annotated[list[str], {'minItems': 2, 'maxItems': 2}]]


@dataclasses.dataclass(frozen=True)
class RoomEnd:
    """A limit on the room of hosts.

    :ivar ends: resource classes, a policy or a filter
    """

    ends: str
    hosts: int


@dataclasses.dataclass(frozen=True)
class RoomSum:
    """The number of servers that fit on hosts together."""

    servers: Servers
    unlimited: bool


@dataclasses.dataclass(frozen=True)
class RoomOnHost:
    """The room of a host.

    :ivar ends: the limits of its room, or all its refusals
    """

    host: str
    uuid: str
    servers: Servers
    unlimited: bool
    ends: list[str]


@dataclasses.dataclass(frozen=True)
class RoomInGroup:
    """The room of a group of hosts.

    :ivar name: empty for the hosts that are in none
    :ivar hosts: hosts that take one at least; null where the scheduler's order
        decides, for a server group or what hosts share
    :ivar ends: the limits of its hosts' room, or all their refusals; the
        most hosts first
    """

    name: str
    servers: Servers
    unlimited: bool
    hosts: int | None
    ends: list[RoomEnd]


@dataclasses.dataclass
class RoomForFlavor:
    """The room for servers of a flavor.

    :ivar unlimited: whether a host takes any number
    :ivar hosts: hosts that take one at least; null where the scheduler's order
        decides, for a server group or what hosts share
    :ivar ends: the limits of the room of hosts that have some; the most hosts
        first
    :ivar refused: the reasons of hosts without room, as explain has them; the
        most hosts first
    :ivar end: the end of every request before hosts are judged; empty where
        they are
    :ivar fault: the reason of a failed count; empty if it was counted
    :ivar rooms: every host, the most room first; null without --hosts and
        --map
    :ivar groups: every group, the most room first; null without --by, or where
        the flavor could not be counted
    :ivar in_several: the servers that fit on hosts in several groups, counted
        in each
    """

    id: str
    name: str
    vcpus: int
    memory_mb: int
    root_gb: int
    ephemeral_gb: int
    servers: Servers
    unlimited: bool
    hosts: int | None
    ends: list[RoomEnd]
    refused: list[refusals.Reason]
    end: str = ''
    fault: str = ''
    rooms: list[RoomOnHost] | None = None
    groups: list[RoomInGroup] | None = None
    in_several: RoomSum | None = None


@dataclasses.dataclass(frozen=True)
class Tally:
    """The part of capacity's document that is its own.

    :ivar request: further parts of the request of each server
    :ivar hosts: every compute node
    :ivar by: the kind of the groups
    :ivar flavors: the least room first; each number is that flavor's alone, if
        nothing else is created
    :ivar remarks: a sentence for each thing that could not be seen
    """

    request: Wanted
    hosts: int
    by: typing.Annotated[
        str | None, {'enum': ['zone', 'aggregate', 'domain', None]}
    ]
    flavors: list[RoomForFlavor]
    remarks: list[str]
