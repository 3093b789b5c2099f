# SPDX-License-Identifier: Apache-2.0

"""Words and counts refusals of hosts."""

import collections
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import typing

from nova_ext_sched import document
from nova_ext_sched import grouping
from nova_ext_sched.policy import act

#: Ranks of refusals. Listed first are hosts that refuse any request, such as
#: disabled ones; then hosts closed to requests that do not ask for them, such
#: as isolated ones; then hosts that the request itself leaves out.
IN_THE_WAY, CLOSED, UNWANTED = range(3)

#: The cause if nova does not move a server in its present state.
STATE = 'state'
#: The causes if nova never allows an operation, by the operation.
NEVER = {
    'evacuate': 'never evacuated',
    'live-migrate': 'never live-migrated',
    'migrate': 'never migrated',
    'resize': 'never migrated',
}

#: The cause of a host whose service is disabled. Such a host always counts for
#: this cause, unless it is in another cell than nova looks in.
DISABLED = 'disabled service'

#: The cause of a host that is in another cell than nova looks in. Nothing else
#: about such a host matters to the request.
ELSEWHERE = 'requested cell'

#: The label of a cause that has no other label.
OTHER = 'other'

# Reasons begin with a verb of these, so that they can follow a number.
_SINGULAR = {'are': 'is', 'have': 'has', 'lack': 'lacks', 'get': 'gets'}


class Refusal(typing.NamedTuple):
    """A refusal of a host by a constraint.

    :ivar phrase: begins with a verb in the plural, so that it can follow a
        number of hosts: ``are isolated``
    :ivar cause: the cause to lift; empty for the constraint itself
    :ivar name: an object counted within the kind, such as an aggregate
    :ivar detail: the policy's own words
    :ivar more: further reasons of the constraint
    :ivar lifts: whether the host would pass without the constraint; a host
        that is too small would not
    :ivar label: replaces a cause with text that project members wrote in the
        labels of metrics, which must be few; empty for any other cause
    :ivar rank: :data:`IN_THE_WAY`, :data:`CLOSED` or :data:`UNWANTED`
    :ivar acts: acts that make the host take the request; empty if none
    :ivar is_full: whether the host would have room if it were empty
    """

    phrase: str
    cause: str = ''
    name: str = ''
    detail: str = ''
    more: tuple['Refusal', ...] = ()
    lifts: bool = True
    label: str = ''
    rank: int = IN_THE_WAY
    acts: tuple[act.Act, ...] = ()
    is_full: bool = False

    @property
    def lacking(self) -> set[str]:
        """The resource classes to free on the host."""
        freeing = (one for one in self.acts if one.supposes == act.ROOM)
        return {name for one in freeing for name in one.names}


#: The act where there is too little room, or none that is large enough.
SMALLER = act.Act(
    act.REPAIR, 'ask for flavor {names}', act.FLAVOR, by_command=False
)

#: The act that frees a host of allocations that nobody has.
UNHELD = act.Act(
    act.REPAIR, 'delete the leaked allocations on {hosts}', act.UNHELD
)

#: The act that frees a host that claims have filled.
ROOM = (
    act.Act(act.REPAIR, 'free {names} on {hosts}', act.ROOM),
    act.ADD_HOST,
    SMALLER,
)

#: Why a host is refused that the request leaves out.
IGNORED = Refusal(
    'are excluded by the request', 'ignore_hosts', lifts=False, rank=UNWANTED
)


#: Why a host is refused that servers left, of which nobody knows whether
#: placement would offer it.
NOT_KNOWN = Refusal('may or may not have room', 'not known')


@dataclasses.dataclass(frozen=True)
class Name:
    """A name within a kind of refusals, with its number of hosts."""

    name: str
    hosts: int


@dataclasses.dataclass(frozen=True)
class Detail:
    """A policy's own words, with their number of hosts."""

    detail: str
    hosts: int


@dataclasses.dataclass
class Reason:
    """Refusals of one kind, with their names and details counted.

    :ivar reason: begins with a verb in the plural
    :ivar cause: the cause to lift; several constraints may share one
    :ivar label: the cause in words that no member of a project has written:
        required traits, custom resource, other in place of these
    :ivar names: aggregates, for example
    :ivar details: the policies' own words
    """

    reason: str
    cause: str
    label: str
    hosts: document.Positive
    names: list[Name]
    details: list[Detail]

    def say(self) -> str:
        """Return the reason with its number of hosts."""
        return say_number(self.hosts, self.reason)


def full(resources: Sequence[str]) -> Refusal:
    """Return a refusal by a host without room.

    :param resources: the classes that it lacks
    """
    return Refusal(
        f'are full ({", ".join(resources)})',
        ' and '.join(resources),
        acts=free(*resources),
        is_full=True,
    )


def free(*resources: str) -> tuple[act.Act, ...]:
    """Return :data:`ROOM` for resource classes."""
    return tuple(
        one.named(*resources) if one.supposes == act.ROOM else one
        for one in ROOM
    )


def singular(kind: str) -> str:
    """Word a reason for one host."""
    verb, _, rest = kind.partition(' ')
    return f'{_SINGULAR.get(verb, verb)} {rest}'


def say_number(number: int, kind: str) -> str:
    """Return a reason with its number of hosts."""
    return f'{number} {singular(kind) if number == 1 else kind}'


def say(refusal: Refusal) -> str:
    """Word a refusal of one host, with its detail."""
    detail = f' ({refusal.detail})' if refusal.detail else ''
    return singular(refusal.phrase) + detail


def group(
    refusals: Iterable[tuple[Refusal, int]], causes: Sequence[str] = ()
) -> list[Reason]:
    """Return refusals by kind.

    They are sorted by ``causes``, then by :attr:`Refusal.rank`, then by most
    hosts. Wherever only one reason is named, it is the first of these.

    :param refusals: each with its number of hosts
    :param causes: causes to list first, in this order
    """
    order = {cause: place for place, cause in enumerate(causes)}
    kinds = grouping.by_key((one[0].phrase, one) for one in refusals)
    reasons = [
        Reason(
            kind,
            counted[0][0].cause,
            counted[0][0].label or counted[0][0].cause,
            sum(number for _, number in counted),
            [Name(*one) for one in _rank('name', counted)],
            [Detail(*one) for one in _rank('detail', counted)],
        )
        for kind, counted in kinds.items()
    ]
    return sorted(
        reasons,
        key=lambda one: (
            order.get(one.cause, len(order)),
            kinds[one.reason][0][0].rank,
            -one.hosts,
            one.reason,
        ),
    )


def _rank(
    word: str, refusals: Iterable[tuple[Refusal, int]]
) -> list[tuple[str, int]]:
    """Return the values of a field, with their hosts, the most first."""
    counts: collections.Counter[str] = collections.Counter()
    for refusal, number in refusals:
        if value := getattr(refusal, word):
            counts[value] += number
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))
