# SPDX-License-Identifier: Apache-2.0

"""The parts of plans: moves, and servers without a place."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import typing

from nova_ext_sched import document
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

    :ivar server: UUID
    :ivar project: ID
    :ivar host: where it stands; of a server that a migration holds elsewhere,
        that host
    :ivar policies: the policies that it violates; empty in a plan of drain
    """

    server: str
    name: str
    project: str
    host: str
    policies: list[str]


def make_leaving(instance: typing.Any, host: str) -> Leaving:
    """Make a server that must leave a host from its nova Instance."""
    name = messages.clean(instance.display_name or '')
    return Leaving(instance.uuid, name, instance.project_id, host, [])


def take_leaving(one: Leaving) -> Leaving:
    """Return the fields of a server that all leaving ones have."""
    names = [field.name for field in dataclasses.fields(Leaving)]
    return Leaving(*(getattr(one, name) for name in names))


@dataclasses.dataclass(frozen=True)
class Move(Leaving):
    """The move of a server.

    Until it is written, ``needs`` has the UUIDs of servers in place of turns
    (:func:`.ending.settle`).

    :ivar to: host; null where only nova can choose it, because a request that
        names a host gets no provider that hosts share: name none, and plan
        anew unless it went where expected
    :ivar expected: host that the moves after it take for granted
    :ivar batch: moves of the same batch do not need each other, and may be
        under way at once once those of the batches before have ended
    :ivar why_cold: the reason of a cold move: it is stopped, has a device,
        or nova-api refuses it for another reason; empty unless it is cold
    :ivar needs: turns of the moves before it without which it may not be
        possible: they leave its host, are of its group, or go where nova
        chooses
    :ivar paused: whether its guest is paused while nova moves it live: QEMU
        7.2 ends such a guest if it is moved a second time before it is resumed
    :ivar lacks: CPU features that nova compares before a live migration, and
        that the host where it is expected lacks: nova may refuse the move
    :ivar newer: whether that host has some that the one before lacks: nova may
        refuse a live migration back
    :ivar turn: its place in the order, from 1, which ``needs`` names
    :ivar from_image: of an evacuation: whether its root disk is on its host.
        Unless the hosts' disks are shared it starts from its image there
    """

    to: str | None
    expected: str
    method: plan_format.Method
    batch: plan_format.Turn = 1
    why_cold: plan_format.WhyCold = plan_format.NOT_COLD
    needs: typing.Annotated[Sequence[str], plan_format.TURNS] = ()
    paused: bool = False
    lacks: list[str] = dataclasses.field(default_factory=list)
    newer: bool = False
    turn: plan_format.Turn = 1
    from_image: document.MayLack[bool] = False


@dataclasses.dataclass(frozen=True)
class Stuck(Leaving):
    """A server without a place after all moves.

    :ivar reason: the answer of explain
    :ivar cause: the same in a word; state: nova does not move it as it is;
        never evacuated, never migrated: in no state; left out: by the
        operator's choice; fault: it could not be asked; not known: hosts
        that others left may take it
    :ivar would_help: an act to do first; empty where nothing is
        known
    :ivar name_of_cause: what is counted within it, such as an aggregate; empty
        where nothing is
    :ivar cause_then: beside the cause state: why it has no place even if nova
        moved it, in a word; empty where it has one, or nobody asked
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
    def is_left_out(self) -> bool:
        """Whether the operator leaves it where it is."""
        return self.cause == plan_format.LEFT_OUT

    @property
    def has_no_room(self) -> bool:
        """Whether it has no place even if moved, or that is unknown."""
        if self.is_never_moved or self.is_left_out:
            return False
        return bool(self.cause_then) or not self.is_refused

    @property
    def is_lost(self) -> bool:
        """Whether no change of its state alone gives it a place."""
        return self.has_no_room or self.is_never_moved


@dataclasses.dataclass(frozen=True)
class Group:
    """A server group with less redundancy after the moves.

    :ivar group: UUID
    :ivar hosts: on how many hosts its members stand after the moves
    :ivar domains: failure domains of these hosts
    """

    group: str
    name: str
    hosts: int
    hosts_before: int
    domains: int
    domains_before: int


@dataclasses.dataclass(frozen=True)
class Crowded:
    """A host that gets far more servers than others of a plan.

    :ivar servers: number of servers that move there
    :ivar next: number of servers that move to the next host by this number
    :ivar weigher: puts it before the next best host; empty where none does
    """

    host: str
    servers: int
    next: int
    weigher: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """Moves, one after the other, and the servers that they leave.

    :ivar moves: in the order in which each is valid
    :ivar without_place: servers that must leave and have no place after all
        moves
    :ivar mended_by_others: servers that violate nothing any more after the
        moves
    :ivar groups: server groups that are closer together after the moves
    :ivar deleted_meanwhile: servers that were deleted, or were being deleted,
        while the plan was made; they are nothing else of it
    :ivar moved_meanwhile: servers that were moved away while the plan was
        made; they are nothing else of it
    :ivar to_be_empty: hosts that the moves are to empty
    :ivar not_empty_after: the hosts of them that are not empty after the
        moves, or of which nobody knows
    :ivar still_enabled: the hosts of them that can get new servers
    :ivar services: by which the cloud is known: the UUID of nova-compute, by
        host, of each host that is to be empty, fails, or is one of a move
    :ivar room_for_last: hosts that the last server could go to when its turn
        came, about: it has found the others' places taken; null where nobody
        knows
    :ivar crowded: hosts that get far more servers than others, the most first
    :ivar seconds: about how long the moves take, one after the other; null
        where no migration of before was like one of them
    :ivar remarks: a sentence on what was left out of account
    """

    moves: list[Move]
    without_place: list[Stuck] = dataclasses.field(default_factory=list)
    mended_by_others: list[Leaving] = dataclasses.field(default_factory=list)
    groups: list[Group] = dataclasses.field(default_factory=list)
    deleted_meanwhile: list[Leaving] = dataclasses.field(default_factory=list)
    moved_meanwhile: list[Leaving] = dataclasses.field(default_factory=list)
    to_be_empty: list[str] = dataclasses.field(default_factory=list)
    not_empty_after: list[str] = dataclasses.field(default_factory=list)
    still_enabled: list[str] = dataclasses.field(default_factory=list)
    services: dict[str, str] = dataclasses.field(default_factory=dict)
    room_for_last: int | None = None
    crowded: list[Crowded] = dataclasses.field(default_factory=list)
    seconds: int | None = None
    remarks: document.MayLack[list[str]] = dataclasses.field(
        default_factory=list
    )

    @property
    def hosts(self) -> set[str]:
        """The names of the hosts that it is about."""
        ends = (
            name for one in self.moves for name in (one.host, one.expected)
        )
        return {*ends, *self.to_be_empty}

    @property
    def sources(self) -> set[str]:
        """The names of the hosts of its servers."""
        return {one.host for one in (*self.moves, *self.without_place)}


@dataclasses.dataclass(frozen=True)
class Room(Plan):
    """Moves after which new servers of one request fit.

    :ivar flavor: that of the new servers
    :ivar count: number of new servers that must fit
    :ivar fit_now: number of them that fit without a move
    :ivar room_on: the host of each new server that fits after the moves, those
        that fit now first; null where only nova can choose it, as it takes
        what hosts share. Whoever creates them names it
    :ivar in_the_way: the reasons why not all fit
    :ivar would_help: acts after which one more fits; empty where nothing is
        known
    :ivar never: the reason why no empty host takes one; empty if one may
    """

    flavor: str
    count: int
    fit_now: int
    room_on: list[str | None]
    in_the_way: list[str] = dataclasses.field(default_factory=list)
    never: str = ''
    would_help: document.MayLack[str] = ''

    @property
    def hosts(self) -> set[str]:
        """See :class:`Plan`; where the new servers come, too."""
        return super().hosts.union(filter(None, self.room_on))


@dataclasses.dataclass(frozen=True)
class NotEmptied:
    """A host that cannot be emptied, and the servers that keep it so.

    :ivar without_place: servers that must leave and have no place
    :ivar lost: with --keep-failover: a host that could not fail any more while
        this one is empty; else empty
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
class Held:
    """A host to keep free for failures.

    :ivar servers: number of servers that have to leave it
    :ivar replaces: number of hosts that it can replace
    :ivar is_marked: whether an aggregate keeps it already
    """

    host: str
    servers: int
    replaces: int
    is_marked: bool


@dataclasses.dataclass(frozen=True)
class Alone:
    """A host that no host that can be kept free replaces.

    :ivar failure: the failure that it is of: its own name, or a domain
    :ivar reason: why no host replaces it; empty after the first twenty
    """

    host: str
    failure: str
    reason: str


@dataclasses.dataclass(frozen=True)
class NotSaved:
    """A kind of servers that no host kept free saves.

    :ivar kind: in a word
    :ivar reason: which servers, and why
    """

    kind: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Price:
    """The servers of a flavor that do not fit where hosts are kept free.

    :ivar servers: number of them; 2,000 are counted at most
    """

    id: str
    name: str
    servers: int


@dataclasses.dataclass(frozen=True)
class Hold(Plan):
    """The hosts to keep free for failures, and the moves that empty them.

    :ivar hold: full: whatever the other hosts get; now: for the servers that
        there are
    :ivar mark: the hosts to keep free, besides those that are
    :ivar held: the hosts that are kept free, empty and can take servers
    :ivar alone: hosts that nothing replaces, whatever is kept free
    :ivar not_emptied: hosts that would have been chosen, and cannot be emptied
    :ivar kinds: kinds of servers that no host kept free saves
    :ivar not_saved: servers that are there of which one is not saved
    :ivar price: by flavor, the servers that fit on the hosts to mark
    :ivar commands: that mark the hosts
    """

    hold: typing.Annotated[str, {'enum': ['full', 'now']}]
    mark: list[Held]
    held: list[str]
    alone: list[Alone]
    not_emptied: list[NotEmptied]
    kinds: list[NotSaved]
    not_saved: list[Stuck]
    price: list[Price]
    commands: list[str]


@dataclasses.dataclass(frozen=True)
class Round:
    """Hosts that are empty together; after it they take servers again.

    :ivar hosts: empty together
    :ivar moves: in the order in which each is valid
    :ivar groups: server groups that are closer together after the moves
    """

    hosts: list[str]
    moves: list[Move]
    groups: list[Group]


@dataclasses.dataclass(frozen=True)
class Rounds:
    """Rounds, one after the other, in which hosts are empty once.

    :ivar rounds: one after the other; after each its hosts take servers again
    :ivar not_emptied: hosts that are in no round
    :ivar deleted_meanwhile: servers that were deleted, or were being deleted,
        while the rounds were planned; they are nothing else of them
    :ivar services: by which the cloud is known: the UUID of nova-compute, by
        host, of each host that is to be empty, or is one of a move
    :ivar being_built: servers that no round moves yet; drain moves them when
        their host is disabled
    :ivar seconds: about how long the moves of all rounds take, one after the
        other; null where no migration of before was like one of them
    :ivar remarks: a sentence on what was left out of account
    """

    rounds: list[Round]
    not_emptied: list[NotEmptied]
    deleted_meanwhile: list[Leaving]
    services: dict[str, str]
    being_built: list[Leaving] = dataclasses.field(default_factory=list)
    seconds: int | None = None
    remarks: document.MayLack[list[str]] = dataclasses.field(
        default_factory=list
    )

    @property
    def judged(self) -> set[str]:
        """The names of the hosts that are emptied, or cannot be."""
        emptied = (host for one in self.rounds for host in one.hosts)
        return {*emptied, *(one.host for one in self.not_emptied)}


@dataclasses.dataclass(frozen=True)
class Cause:
    """A cause for which servers have no place, with their number.

    :ivar cause: in a word: of one that nova does not move as it is, why it has
        no place even then
    :ivar name: what is counted within it, such as an aggregate; empty where
        nothing is
    """

    cause: str
    name: str
    servers: int


def count_causes(stuck: Iterable[Stuck]) -> list[Cause]:
    """Return the causes of servers that have no place, the most first."""
    counts = collections.Counter(
        (one.cause_then or one.cause, one.name_of_cause) for one in stuck
    )
    return [Cause(*named, count) for named, count in counts.most_common()]


@dataclasses.dataclass(frozen=True)
class Failure:
    """Hosts that fail at once, and the destinations of their servers.

    :ivar failure: host or failure domain
    :ivar moves: in the order in which each is valid
    :ivar without_place: servers that cannot be placed
    :ivar room_for_last: hosts that the last server could go to when its turn
        came, about; null where nobody knows
    :ivar causes: of the servers that cannot be placed: how many there are of
        each cause, with the name of what is counted within it
    :ivar enabled: of the hosts of --spare, the fewest to enable for it
    """

    failure: str
    hosts: list[str]
    moves: list[Move]
    without_place: list[Stuck]
    room_for_last: int | None = None
    causes: list['Cause'] = dataclasses.field(default_factory=list)
    enabled: document.MayLack[list[str]] = dataclasses.field(
        default_factory=list
    )

    @property
    def servers(self) -> int:
        """The number of servers on the hosts."""
        return len(self.moves) + len(self.without_place)

    @property
    def without_room(self) -> list[Stuck]:
        """The servers without room, as they are or once nova moves them."""
        return [one for one in self.without_place if one.has_no_room]

    @property
    def lost(self) -> list[Stuck]:
        """The servers without room, and those that nova never evacuates."""
        return [one for one in self.without_place if one.is_lost]


@dataclasses.dataclass(frozen=True)
class FlavorRoom:
    """The number of new servers of a flavor after which hosts can still fail.

    :ivar fit: number of servers that still fit now; 2,000 are counted at most
    :ivar or_more: whether perhaps more fit than are counted
    :ivar spare: how many of them may come, so that no failure leaves more
        servers without a host than now
    :ivar failure: the one that is worse with one more; empty where all may
        come
    :ivar reason: why not one fits now, the answer of explain; empty where one
        does
    :ivar cause: the same in a word; empty where one fits
    """

    id: str
    name: str
    fit: int
    or_more: bool
    spare: int
    failure: str
    reason: str
    cause: str


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of failures, each as if nothing else had failed.

    :ivar failures: each as if nothing else had failed
    :ivar flavors: the flavors of --flavor, each as if no other came
    :ivar deleted_meanwhile: servers that were deleted, or were being deleted,
        while the plan was made; they are nothing else of it
    :ivar remarks: a sentence on what was not asked, or left out of account
    :ivar faults: a sentence for each failed read
    :ivar services: by which the cloud is known: the UUID of nova-compute, by
        host, of each host that fails, or is one of a move
    :ivar topology: every host with a compute node, in the order in which
        people count names
    :ivar lacking: hosts to keep free besides those that are, until a failure
        is replaced however full the others are; null where no policy keeps
        hosts, or not all were asked about
    """

    failures: list[Failure]
    flavors: list[FlavorRoom]
    deleted_meanwhile: list[Leaving]
    remarks: list[str]
    faults: list[str]
    services: dict[str, str] = dataclasses.field(default_factory=dict)
    topology: list[dict[str, typing.Any]] = dataclasses.field(
        default_factory=list
    )
    lacking: document.MayLack[list[str] | None] = None

    @property
    def refused(self) -> dict[str, Stuck]:
        """The servers that nova would not evacuate as they are, by UUID."""
        return self._find(lambda one: one.is_refused)

    @property
    def never_evacuated(self) -> dict[str, Stuck]:
        """The servers that nova evacuates in no state, by UUID."""
        return self._find(lambda one: one.is_never_moved)

    @property
    def left_out(self) -> dict[str, Stuck]:
        """The servers that the operator leaves out, by UUID."""
        return self._find(lambda one: one.is_left_out)

    @property
    def without_room(self) -> dict[str, Stuck]:
        """The servers that cannot be placed, by UUID."""
        return self._find(lambda one: one.has_no_room)

    @property
    def lost(self) -> dict[str, Stuck]:
        """The servers without room and those never evacuated, by UUID."""
        return self._find(lambda one: one.is_lost)

    def _find(self, has: Callable[[Stuck], bool]) -> dict[str, Stuck]:
        return {
            server.server: server
            for failure in self.failures
            for server in failure.without_place
            if has(server)
        }


def name_hosts(parts: Iterable[Round | Failure]) -> Iterator[str]:
    """Yield the hosts of rounds or failures, and those that servers go to."""
    for one in parts:
        yield from one.hosts
        yield from (move.expected for move in one.moves)
