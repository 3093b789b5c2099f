# SPDX-License-Identifier: Apache-2.0

"""The parts of an explanation's document.

The fields are the keys of its document, of which ``schemas/explain.json`` has
the form. Records that are kept may lack what came to it later.
"""

import dataclasses
import typing

from nova_ext_sched import document
from nova_ext_sched.dryrun import heading
from nova_ext_sched.dryrun.decision import refusals

#: Of a host that is judged by a constraint.
PASSES, REFUSED, NOT_JUDGED = 'passes', 'refused', 'not judged'


@dataclasses.dataclass(frozen=True)
class Flavor:
    """A flavor, with the amounts that it gives a server.

    :ivar swap: MiB
    """

    id: str | None
    name: str | None
    vcpus: int
    memory_mb: int
    root_gb: int
    ephemeral_gb: int
    swap: int
    extra_specs: dict[str, str]


@dataclasses.dataclass(frozen=True)
class Identified:
    """An ID and a name; both null if there is none."""

    id: str | None
    name: str | None


@dataclasses.dataclass(frozen=True)
class ServerGroup(Identified):
    """A server group."""

    policy: str | None


@dataclasses.dataclass(frozen=True)
class Request:
    """The request, before the scheduler changed it.

    :ivar server: UUID; null for a new server
    :ivar destination: the requested host
    :ivar stands: where a server is that is asked about as if it were created,
        and nova's last fault; empty for one that is nowhere, or other
        operations
    """

    operation: typing.Annotated[
        str,
        {
            'enum': [
                'boot',
                'migrate',
                'live-migrate',
                'evacuate',
                'unshelve',
                'resize',
                'rebuild',
            ]
        },
    ]
    server: str | None
    server_name: str | None
    project: str | None
    flavor: Flavor
    image: Identified
    boot_from_volume: bool
    availability_zone: str | None
    server_group: ServerGroup | None
    hints: dict[str, list[typing.Any]]
    destination: str | None
    force_hosts: list[str]
    ignore_hosts: list[str]
    instances: document.Positive
    stands: document.MayLack[str] = ''


@dataclasses.dataclass
class Capacity:
    """The amounts of a resource class on the hosts that lack it.

    Numbers of hosts; requested, most_free and amount are in its unit.

    :ivar large_enough: could hold it if they were empty
    :ivar full: of these, those that do not have it free
    :ivar too_small: can never hold it
    :ivar without: have none of it
    :ivar alone: hosts that nothing else refuses
    :ivar most_free: of these, the most that one server could get
    :ivar most_free_host: null where none of them has anything free
    :ivar fits: number of these hosts that fit a flavor of that amount
    """

    resource: str
    requested: int
    large_enough: int
    full: int
    too_small: int
    without: int
    unknown: int
    alone: int = 0
    most_free: int = 0
    most_free_host: str | None = None
    fits: int = 0


@dataclasses.dataclass
class Constraint:
    """One constraint, in the scheduler's order.

    :ivar asks: the constraint in words, or its change of the request
    :ivar judged: hosts that it was asked about
    :ivar left: hosts left after it; null where the request ended later, before
        hosts were judged
    :ivar refused: hosts that it refuses, whether or not another one did
        before; null where it judged none
    :ivar alone: hosts that nothing with another cause refuses, and that would
        pass without it: one that is too small would not; null where it judged
        none
    :ivar causes: the causes to lift; several constraints may share one
    :ivar capacity: of a resource that hosts lack: numbers of hosts; requested,
        most_free and amount in the unit of the resource class
    """

    stage: typing.Annotated[
        str,
        {
            'enum': [
                'nova-api',
                'conductor',
                'request filter',
                'placement',
                'cell',
                'requested host',
                'host filter',
            ]
        },
    ]
    constraint: str
    asks: str
    judged: int
    left: int | None
    refused: int | None = None
    alone: int | None = None
    causes: list[str] = dataclasses.field(default_factory=list)
    reasons: list[refusals.Reason] = dataclasses.field(default_factory=list)
    capacity: Capacity | None = None


@dataclasses.dataclass
class End:
    """The constraint that ended a request before hosts were judged.

    :ivar reason: the text that the owner of the server reads
    :ivar detail: text for operators alone
    :ivar cause: the name of its policy
    """

    stage: str
    name: str
    reason: str
    detail: str
    cause: str


@dataclasses.dataclass
class Place:
    """A host that is left, with the weight of each weigher.

    :ivar weights: by weigher, multiplied; empty where one host is left, which
        nova does not weigh
    """

    host: str
    uuid: str
    weight: float
    weights: dict[str, float]


@dataclasses.dataclass
class Judgement:
    """A constraint's judgement of a host that does not pass it.

    :ivar constraint: index in constraints
    :ivar causes: what to lift
    """

    constraint: int
    verdict: typing.Annotated[str, {'enum': [REFUSED, NOT_JUDGED]}]
    reason: str
    causes: list[str]


@dataclasses.dataclass
class HostAnswer:
    """A host, the constraints that it does not pass, and its place if left.

    :ivar uuid: of the compute node and its resource provider
    :ivar rank: 1 for the scheduler's first choice; null where it is not left
    :ivar loses: by weigher, how much less it gives than to the first choice
    :ivar verdicts: of the constraints that the host does not pass
    """

    host: str
    uuid: str
    left: bool
    rank: document.MayLack[int | None]
    loses: document.MayLack[dict[str, float]]
    verdicts: list[Judgement]


@dataclasses.dataclass(frozen=True)
class Decider:
    """A weigher without which the scheduler may prefer another host.

    :ivar best: of the others, the one that has most then
    :ivar prefers: the preference of its policy; empty if it declares none
    """

    weigher: str
    best: str
    prefers: document.MayLack[str] = ''


@dataclasses.dataclass
class Freed:
    """A cause that is the only one to refuse some hosts."""

    cause: str
    hosts: document.Positive


@dataclasses.dataclass
class Advice:
    """An act after which hosts take the request.

    :ivar kind: ``repair``: it restores what is declared already, or changes
        the request alone; ``policy``: it changes what is declared
    :ivar act: the act, with its hosts
    :ivar hosts: number of hosts that take the request then, by a trial; null
        where it was not tried
    :ivar admits: others that can use the hosts then; empty for a repair
    :ivar commands: what does it, one after the other, as a shell takes them;
        empty where no command does
    :ivar causes: the causes that it lifts
    """

    kind: typing.Annotated[str, {'enum': ['repair', 'policy']}]
    act: str
    hosts: int | None
    admits: str
    commands: list[str]
    causes: list[str]


@dataclasses.dataclass
class Answer:
    """The conclusion from all constraints.

    :ivar sentence: the answer on one line
    :ivar finds_host: whether every instance of the request finds a host
    :ivar hosts: hosts that there are
    :ivar left: hosts that no constraint refuses
    :ivar best: the scheduler's first choice
    :ivar deciders: each weigher without which the scheduler may prefer another
        host
    :ivar cause: what a refusal is told by where there is room for one word:
        the policy that ended the request, or the cause of the first reason;
        null where nothing refuses a host
    :ivar label: the same in words that no member of a project has written
    :ivar reasons: what stands most in the request's way first: what alone
        keeps most hosts from it, then what refuses most. What no request asks
        for (isolated and reserved aggregates) comes after, then what the
        request does not want (another cell, other hosts). Each host that is
        refused counts once, for the cause that comes first; a disabled one
        counts as disabled for every request
    :ivar freed: where no host is left: each cause that lifted alone would free
        hosts. A host that is too small is freed by nothing
    :ivar advice: where no host is left: what would help, those that were
        tried first, repairs before what changes a policy. Records of old
        releases have none
    :ivar unasked: where hosts are closed to requests such as this one: what it
        does not ask for; else empty
    :ivar end: the constraint that ended the request before hosts were judged
    :ivar shortage: the reason why an instance finds no host, though hosts are
        left; else empty
    :ivar refusal: the reason why nova-api does not begin the operation in the
        state of the server, and what to do first; the hosts are those for
        after that; else empty
    :ivar drawn: from how many of the best hosts nova draws one
        (host_subset_size, shuffle_best_same_weighed_hosts)
    :ivar late: of a refusal that was recorded: where it was explained more
        than a minute later, of which time the answer is; else empty
    """

    sentence: str
    finds_host: bool
    hosts: int
    left: int
    best: str | None
    deciders: document.MayLack[list[Decider]]
    cause: str | None
    label: str | None
    reasons: list[refusals.Reason]
    freed: list[Freed]
    end: End | None
    shortage: str
    refusal: document.MayLack[str]
    drawn: document.MayLack[document.Positive]
    late: document.MayLack[str] = ''
    advice: document.MayLack[list[Advice]] = dataclasses.field(
        default_factory=list
    )
    unasked: document.MayLack[str] = ''


@dataclasses.dataclass(frozen=True)
class LeakingHost:
    """A full host with allocations that belong to no server or migration.

    :ivar freed: whether the request would fit without them
    :ivar consumers: their UUIDs in placement
    """

    host: str
    uuid: str
    freed: bool
    consumers: list[str]


@dataclasses.dataclass(frozen=True)
class Unheld:
    """Allocations that belong to no server and no migration of nova.

    :ivar asked: full hosts whose allocations were read
    """

    sentence: str
    asked: int
    hosts: list[LeakingHost]


@dataclasses.dataclass(frozen=True)
class Stray:
    """An allocation on a host of a server that does not run there.

    :ivar consumer: the UUID of the server, or of its migration
    :ivar stands_on: its host; null if it stands on none
    :ivar remedy: the commands that end it, one after the other
    """

    host: str
    uuid: str
    consumer: str
    server: str
    stands_on: str | None
    remedy: str
    sentence: str


@dataclasses.dataclass(frozen=True)
class Subject:
    """The subject of an explanation.

    :ivar request: the request, before the scheduler changed it
    :ivar topology: every host with a compute node, in the order in which
        people count names; empty in what watch records
    """

    request: Request
    topology: list[heading.Host]


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """The conclusion from all constraints, in words and numbers.

    :ivar constraints: in the scheduler's order
    :ivar query: the query strings of GET /allocation_candidates: none, one or
        two
    :ivar hosts: every host, or those of --host
    :ivar order: the hosts left, the scheduler's first choice first
    :ivar unheld: allocations on full hosts that no server and no migration of
        nova has; null where there are none, a cell is silent, or nobody looked
    :ivar elsewhere: allocations on full hosts of servers that stand elsewhere,
        or are kept there and do not run, on which nova does not work; the
        first 20. Empty where a cell is silent, or nobody looked. Records of
        old releases have none
    :ivar faults: the cells that did not answer: the figures lack their hosts.
        The exit status is 1. Records of old releases have none
    :ivar remarks: what could not be seen besides, and why the scheduler may
        have decided otherwise
    """

    answer: Answer
    constraints: list[Constraint]
    query: list[str]
    hosts: list[HostAnswer]
    order: list[Place]
    unheld: document.MayLack[Unheld | None]
    elsewhere: document.MayLack[list[Stray]]
    faults: document.MayLack[list[str]]
    remarks: list[str]
