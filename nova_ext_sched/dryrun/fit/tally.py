# SPDX-License-Identifier: Apache-2.0

"""Makes capacity's document of the counts."""

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
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.fit import answer
from nova_ext_sched.dryrun.fit import count

_Ranked = typing.TypeVar('_Ranked', answer.RoomOnHost, answer.RoomInGroup)


def build(
    wanted: request.Question,
    by: str | None,
    flavors: Iterable[answer.RoomForFlavor],
    hosts: int,
    remarks: Iterable[str],
) -> answer.Tally:
    """Return the tally once some flavors are counted.

    :param wanted: a new server, of no flavor
    :param by: see :class:`.survey.Survey`
    :param hosts: number of compute nodes
    """
    asked = answer.Wanted(
        typing.cast(str | None, wanted.image),
        dict(wanted.image_properties),
        wanted.boot_from_volume,
        wanted.availability_zone,
        wanted.project,
        wanted.server_group,
        [list(pair) for pair in wanted.hints],
    )
    return answer.Tally(
        asked, hosts, by, sorted(flavors, key=_rank_flavor), [*remarks]
    )


@dataclasses.dataclass
class Counted:
    """The counts of a flavor.

    :ivar flavor: nova's
    :ivar judged: explain's stages; None where no host was judged
    :ivar rooms: by the UUID of each host that explain's stages left
    :ivar tied: see :class:`.count.Counts`
    :ivar end: the reason why no host was judged; empty if hosts were
    :ivar fault: the reason of a missing number; empty if there is one
    """

    flavor: typing.Any
    judged: matrix.Matrix | None = None
    rooms: Mapping[str, count.HostCount] = dataclasses.field(
        default_factory=dict
    )
    tied: Sequence[Set[str]] = ()
    end: str = ''
    fault: str = ''

    def add_up(self, uuids: Set[str]) -> count.Fit:
        """Sum the servers that fit on some hosts."""
        fit = count.add_up(
            self.rooms[uuid].fit for uuid in uuids if uuid in self.rooms
        )
        # Where only some of tied hosts are among these, how many servers these
        # alone take is not known.
        is_known = not self.fault and all(
            one.isdisjoint(uuids) or one <= uuids for one in self.tied
        )
        return fit if is_known else fit._replace(state=count.State.UNKNOWN)

    def count_hosts(self, uuids: Set[str]) -> int | None:
        """Count the hosts that take servers.

        :returns: None where the scheduler's order decides
        """
        if not all(one.isdisjoint(uuids) for one in self.tied):
            return None
        return sum(
            self.rooms[uuid].servers > 0 for uuid in uuids & self.rooms.keys()
        )

    def list_ends(self, uuid: str) -> list[str]:
        """List the limits of a host's room, or all its refusals."""
        if room := self.rooms.get(uuid):
            return [room.end.cause] if room.end else []
        causes = self.judged.causes if self.judged else {}
        return sorted(causes.get(uuid, ()))


def make_document(
    counted: Counted,
    hosts: Mapping[str, typing.Any] | None = None,
    groups: Mapping[str, Set[str]] | None = None,
) -> answer.RoomForFlavor:
    """Return a flavor's part of the document.

    :param hosts: every compute node by UUID, if the room of each is wanted
    :param groups: the UUIDs of their hosts by name, if the room of each group
        is wanted; that of hosts in none is empty
    """
    flavor, rooms = counted.flavor, counted.rooms
    refused = counted.judged.count_reasons() if counted.judged else []
    refused += [
        (room.end, 1)
        for room in rooms.values()
        if room.end and not room.servers
    ]
    of_flavor = answer.RoomForFlavor(
        flavor.flavorid,
        messages.clean(flavor.name),
        flavor.vcpus,
        flavor.memory_mb,
        flavor.root_gb,
        flavor.ephemeral_gb,
        *_say(counted.add_up(rooms.keys())),
        counted.count_hosts(rooms.keys()),
        _count_ends(
            room.end.cause
            for room in rooms.values()
            if room.end and room.servers
        ),
        refusals.group(refused),
        messages.clean(counted.end, 1000),
        messages.clean(counted.fault, 1000),
    )
    if hosts is not None:
        of_flavor.rooms = _rank(_list_rooms(counted, hosts), 'host')
    if groups is not None and not counted.fault:
        of_flavor.groups = _rank(_list_groups(counted, groups), 'name')
        times = collections.Counter(itertools.chain(*groups.values()))
        several = {uuid for uuid in rooms if times[uuid] > 1}
        of_flavor.in_several = answer.RoomSum(*_say(counted.add_up(several)))
    return of_flavor


def _list_rooms(
    counted: Counted, hosts: Mapping[str, typing.Any]
) -> Iterator[answer.RoomOnHost]:
    for uuid, host in hosts.items():
        yield answer.RoomOnHost(
            messages.clean(host.name),
            uuid,
            *_say(counted.add_up({uuid})),
            counted.list_ends(uuid),
        )


def _list_groups(
    counted: Counted, groups: Mapping[str, Set[str]]
) -> Iterator[answer.RoomInGroup]:
    for name, uuids in groups.items():
        yield answer.RoomInGroup(
            messages.clean(name),
            *_say(counted.add_up(uuids)),
            counted.count_hosts(uuids),
            _count_ends(
                ' and '.join(end)
                for end in map(counted.list_ends, uuids)
                if end
            ),
        )


def _count_ends(ends: Iterable[str]) -> list[answer.RoomEnd]:
    """List the limits of hosts' room, those of most hosts first."""
    found = itertools.starmap(
        answer.RoomEnd, collections.Counter(ends).items()
    )
    return sorted(found, key=lambda one: (-one.hosts, one.ends))


def _say(fit: count.Fit) -> tuple[int | None, bool]:
    """Return a document's number of servers, and whether it is unlimited."""
    is_known = fit.state in (count.State.COUNTED, count.State.OR_MORE)
    return (
        fit.servers if is_known else None,
        fit.state is count.State.UNLIMITED,
    )


def _rank_flavor(flavor: answer.RoomForFlavor) -> tuple[bool, bool, int, str]:
    """Return a sort key: the least room first, uncounted flavors last."""
    is_unknown = flavor.servers is None and not flavor.unlimited
    return is_unknown, flavor.unlimited, flavor.servers or 0, flavor.name


def _rank(rooms: Iterable[_Ranked], name: str) -> list[_Ranked]:
    """Sort hosts or groups, the most room first.

    :param name: the field that decides between those of as much
    """
    return sorted(
        rooms,
        key=lambda one: (
            not one.unlimited,
            1 if one.servers is None else -one.servers,
            getattr(one, name),
        ),
    )
