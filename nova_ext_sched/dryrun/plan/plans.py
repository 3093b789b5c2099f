# SPDX-License-Identifier: Apache-2.0

"""A plan: moves, one after the other, and what has no place."""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import typing

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.dryrun.decision import refusals

#: The cause of a server that nova or a filter could not be asked about.
FAULT = 'fault'
#: The cause of a server that nova does not move as it is.
STATE = refusals.STATE
#: The cause of a server that may have a place on a host that others left.
NOT_KNOWN = 'not known'


@dataclasses.dataclass(frozen=True)
class Leaving:
    """A server that must leave its host.

    :ivar server: its UUID
    :ivar project: the ID of its project
    :ivar policies: those that it violates
    """

    server: str
    name: str
    project: str
    host: str
    policies: list[str]


def describe(instance: typing.Any, host: str) -> Leaving:
    """Return a nova Instance that must leave a host."""
    name = messages.clean(instance.display_name or '')
    return Leaving(instance.uuid, name, instance.project_id, host, [])


@dataclasses.dataclass(frozen=True)
class Move(Leaving):
    """The move of a server.

    :ivar to: the host; None where only nova can choose it, because a request
        that names a host gets no provider that hosts share. Whoever carries
        the move out names none, and plans anew unless it went where the moves
        after it take for granted
    :ivar expected: the host that the moves after it take for granted
    :ivar method: ``live``, ``cold`` or ``evacuate``
    :ivar why_cold: as of :class:`.plan_format.Move`
    :ivar batch: moves of the same one do not need each other, and may be under
        way at once; those of the batches before it have ended
    :ivar needs: the UUIDs of servers whose moves, all before it, have to be
        made for it to be possible (:func:`.batches.link`)
    """

    to: str | None
    expected: str
    method: str
    batch: int = 1
    why_cold: str = plan_format.NOT_COLD
    needs: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Stuck(Leaving):
    """A server that has no place after all moves.

    :ivar reason: the answer of explain
    :ivar cause: the same in a word: :data:`STATE` where nova does not move
        it as it is, one of :data:`.refusals.NEVER` where no state lets it,
        :data:`FAULT` where it could not be asked, :data:`NOT_KNOWN` where
        nobody knows what placement would answer
    :ivar would_help: what to lift; empty where nothing is known
    :ivar name_of_cause: what is counted within it, such as an aggregate
    :ivar cause_then: of one with the cause :data:`STATE`, why it has no place
        even if nova moved it, in a word; empty where it has one, or nobody
        asked
    """

    reason: str
    cause: str
    would_help: str
    name_of_cause: str = ''
    cause_then: str = ''

    @property
    def is_refused(self) -> bool:
        """Whether nova does not move it as it is."""
        return self.cause == STATE

    @property
    def is_never_moved(self) -> bool:
        """Whether nova does not move it in any state."""
        return self.cause in refusals.NEVER.values()

    @property
    def has_no_room(self) -> bool:
        """Whether it has no place even if nova moved it, or nobody knows."""
        if self.is_never_moved:
            return False
        return bool(self.cause_then) or not self.is_refused

    @property
    def is_lost(self) -> bool:
        """Whether no change of its state alone gives it a place."""
        return self.has_no_room or self.is_never_moved


@dataclasses.dataclass(frozen=True)
class Group:
    """A server group that stands less apart after the moves.

    :ivar group: its UUID
    :ivar hosts: on how many hosts its members stand after the moves
    :ivar domains: in how many failure domains
    """

    group: str
    name: str
    hosts: int
    hosts_before: int
    domains: int
    domains_before: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """Moves, one after the other, and what they leave as it is.

    :ivar moves: in the order in which each is valid
    :ivar mended_by_others: servers that may stay after the moves
    :ivar deleted_meanwhile: servers that are nothing of these any more
    :ivar to_be_empty: names of hosts that are empty after the moves
    :ivar services: the UUID of nova-compute of each host of the moves, and of
        those that are to be empty, by name: no other cloud has these
    :ivar room_for_last: how many hosts the last server could go to when its
        turn came, about: it has found the others' places taken; None where
        nobody knows
    """

    moves: list[Move]
    without_place: list[Stuck] = dataclasses.field(default_factory=list)
    mended_by_others: list[Leaving] = dataclasses.field(default_factory=list)
    groups: list[Group] = dataclasses.field(default_factory=list)
    deleted_meanwhile: list[Leaving] = dataclasses.field(default_factory=list)
    to_be_empty: list[str] = dataclasses.field(default_factory=list)
    services: dict[str, str] = dataclasses.field(default_factory=dict)
    room_for_last: int | None = None


@dataclasses.dataclass(frozen=True)
class Room(Plan):
    """Moves after which new servers of one request fit.

    :ivar flavor: the name of theirs
    :ivar count: how many are to fit
    :ivar fit_now: how many fit without a move
    :ivar room_on: the host of each that fits after the moves, those that fit
        now first; None where nova takes of it what hosts share, so that only
        nova can choose it
    :ivar in_the_way: sentences on why not all fit
    """

    flavor: str = ''
    count: int = 0
    fit_now: int = 0
    room_on: list[str | None] = dataclasses.field(default_factory=list)
    in_the_way: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Round:
    """Hosts that are empty together; after it they take servers again.

    :ivar hosts: names
    :ivar moves: one after the other
    """

    hosts: list[str]
    moves: list[Move]
    groups: list[Group]


@dataclasses.dataclass(frozen=True)
class Kept:
    """A host that cannot be emptied, and the servers that keep it so.

    :ivar lost: a host that could not fail any more while it is empty; empty
        where that is not the reason
    """

    host: str
    without_place: list[Stuck]
    lost: str = ''

    @property
    def is_known(self) -> bool:
        """Whether it is known that the host cannot be emptied."""
        causes = {one.cause for one in self.without_place}
        return bool(self.lost) or causes != {NOT_KNOWN}


@dataclasses.dataclass(frozen=True)
class Rounds:
    """Rounds, one after the other, in which hosts are empty once.

    :ivar not_emptied: hosts that are in no round
    :ivar deleted_meanwhile: servers that are nothing of these any more
    :ivar services: as of :class:`Plan`
    :ivar being_built: servers that no round moves yet
    """

    rounds: list[Round]
    not_emptied: list[Kept]
    deleted_meanwhile: list[Leaving]
    services: dict[str, str]
    being_built: list[Leaving] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Failure:
    """Hosts that fail at once, and where their servers would go.

    :ivar failure: the name of the host, or of the failure domain
    :ivar hosts: names
    :ivar moves: one after the other
    :ivar room_for_last: as of :class:`Plan`
    """

    failure: str
    hosts: list[str]
    moves: list[Move]
    without_place: list[Stuck]
    room_for_last: int | None = None

    @property
    def servers(self) -> int:
        """How many stand there."""
        return len(self.moves) + len(self.without_place)

    @property
    def without_room(self) -> list[Stuck]:
        """Those that find no host, as they are or once nova moves them."""
        return [one for one in self.without_place if one.has_no_room]

    @property
    def lost(self) -> list[Stuck]:
        """Those without room, and those that nova never evacuates."""
        return [one for one in self.without_place if one.is_lost]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What comes of failures, each as if nothing else had failed.

    :ivar flavors: what the document has of those whose servers may still come
    :ivar deleted_meanwhile: servers that are nothing of these any more
    :ivar remarks: sentences on what was not asked
    :ivar faults: sentences on what could not be read
    :ivar services: as of :class:`Plan`
    :ivar topology: what documents have of the hosts
    """

    failures: list[Failure]
    flavors: list[dict[str, typing.Any]]
    deleted_meanwhile: list[Leaving]
    remarks: list[str]
    faults: list[str]
    services: dict[str, str] = dataclasses.field(default_factory=dict)
    topology: list[dict[str, typing.Any]] = dataclasses.field(
        default_factory=list
    )

    @property
    def refused(self) -> dict[str, Stuck]:
        """The servers that nova would not evacuate as they are, by UUID."""
        return self._find(lambda one: one.is_refused)

    @property
    def never_evacuated(self) -> dict[str, Stuck]:
        """The servers that nova evacuates in no state, by UUID."""
        return self._find(lambda one: one.is_never_moved)

    @property
    def without_room(self) -> dict[str, Stuck]:
        """The servers that find no host, by UUID."""
        return self._find(lambda one: one.has_no_room)

    @property
    def lost(self) -> dict[str, Stuck]:
        """Those without room and those never evacuated, by UUID."""
        return self._find(lambda one: one.is_lost)

    def _find(self, has: Callable[[Stuck], bool]) -> dict[str, Stuck]:
        return {
            one.server: one
            for failure in self.failures
            for one in failure.without_place
            if has(one)
        }
