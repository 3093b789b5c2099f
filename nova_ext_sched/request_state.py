# SPDX-License-Identifier: Apache-2.0

"""Passes state of a request from one stage of the scheduler to the next.

nova works on one RequestSpec object from the request filters to the last
pick. What the request filters read or counted is kept here for the host
filters, which do no I/O, as long as that object lives. On rebuild there is
no stage 1, and nothing is here.
"""

from collections.abc import Callable
from collections.abc import Set
import dataclasses
import typing
import weakref

from nova_ext_sched.policy import failure_domain
from nova_ext_sched.policy import round_robin
from nova_ext_sched.policy import verdict


@dataclasses.dataclass
class LeftOut:
    """The aggregates of a policy that the placement query leaves out.

    As the API database has it: the scheduler's memory may not know of it yet,
    or never. nova-api tells it by a message, and there is none where RabbitMQ
    is away.

    :ivar forbidden: the name of a forbidden aggregate by host
    :ivar required: of each set of aggregates that is not in the query as a
        whole, all hosts, and its names for messages
    """

    forbidden: dict[str, str] = dataclasses.field(default_factory=dict)
    required: list[tuple[Set[str], str]] = dataclasses.field(
        default_factory=list
    )

    def __bool__(self) -> bool:
        return bool(self.forbidden or self.required)

    def refused(self, hosts: Set[str]) -> set[str]:
        """Return the hosts that may not be used."""
        found = set(hosts & self.forbidden.keys())
        for allowed, _ in self.required:
            found.update(hosts - allowed)
        return found


@dataclasses.dataclass
class Running:
    """Data of a moving server, for one run of the filters.

    :ivar askers: the request filters that have asked in this run
    :ivar restored: whether the request spec has the server's own image
    :ivar server: the instance and its root volume; None before they are read
    :ivar images: properties of images in Glance, by ID
    """

    askers: set[str] = dataclasses.field(default_factory=set)
    restored: bool = False
    server: typing.Any = None
    images: dict[str, dict[str, typing.Any]] = dataclasses.field(
        default_factory=dict
    )


@dataclasses.dataclass
class Group:
    """The counts and limits of a request's server group.

    :ivar spread: the members by failure domain, which ``failure_domains``
        counted
    :ivar members: where the members are, as ``failure_domains`` found them
        (queries.group_members.Members)
    :ivar hosts_before: how many hosts the group had before the first pick;
        None before anybody asked for :func:`picks`
    :ivar candidates: the hosts for the first server of the request, as
        ``FailureDomainFilter`` saw them: nova only ever drops some, so that
        every pick is one of these
    :ivar counted: number of picks that ``spread`` has counted
    :ivar refused: the host states that host filters refused for the group's
        sake, for whichever of the request's servers: by host and node
    :ivar assignment: the hosts and members of the group, as
        ``ServerGroupRoundRobinWeigher`` found them for the first server
    :ivar servers: the servers of the request that the weigher was asked
        about, in the order of the picks
    """

    spread: failure_domain.Spread | None = None
    members: typing.Any = None
    hosts_before: int | None = None
    candidates: list[typing.Any] | None = None
    counted: int = 0
    refused: dict[tuple[str, str], typing.Any] = dataclasses.field(
        default_factory=dict
    )
    assignment: round_robin.Assignment | None = None
    servers: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class State:
    """The state of one request.

    :ivar running: data of the moving server, of queries.running_image
    :ivar image_keys: the keys of reserved aggregates among the properties of
        its image, which ``reserved_aggregates`` read in Glance
    :ivar left_out: aggregates that the placement query leaves out, by policy
    :ivar also_judged: the aggregates that its query forbids although a host
        filter would judge their hosts: they may make room for others. Policy
        and name, by UUID
    :ivar group: its server group
    :ivar move: the kind of move that it is for, as ``failover_hosts`` found
        it; empty for none
    :ivar judge_standing: of a server that is judged where it is: decides
        about a host that is kept for failures, and refuses others
    """

    running: Running = dataclasses.field(default_factory=Running)
    image_keys: set[str] = dataclasses.field(default_factory=set)
    left_out: dict[str, LeftOut] = dataclasses.field(default_factory=dict)
    also_judged: dict[str, tuple[str, str]] = dataclasses.field(
        default_factory=dict
    )
    group: Group = dataclasses.field(default_factory=Group)
    move: str = ''
    judge_standing: (
        Callable[[str, verdict.Verdict], verdict.Verdict] | None
    ) = None


#: By RequestSpec.
states: weakref.WeakKeyDictionary[typing.Any, State] = (
    weakref.WeakKeyDictionary()
)


def of(request_spec: typing.Any) -> State:
    """Return the state of a request; changes to it are kept."""
    state = states.get(request_spec)
    if state is None:
        state = states[request_spec] = State()
    return state


def forget_group(request_spec: typing.Any) -> None:
    """Forget the state of a request's server group."""
    of(request_spec).group = Group()


def picks(request_spec: typing.Any) -> list[str]:
    """Return the hosts that nova picked for a request's servers, in order.

    Those after the first call, which is to be before the first pick: nova
    appends each to the group's hosts.

    :param request_spec: with a server group
    """
    group = request_spec.instance_group
    hosts = (group.hosts if 'hosts' in group else None) or []
    known = of(request_spec).group
    if known.hosts_before is None:
        known.hosts_before = len(hosts)
    return hosts[known.hosts_before :]
