# SPDX-License-Identifier: Apache-2.0

"""Why hosts are refused, in words that can be counted."""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import typing

from nova_ext_sched import document
from nova_ext_sched import messages

#: What stands in a request's way is told first, as disabled hosts do; then
#: what is closed to all that do not ask for it, as isolated hosts are; then
#: what leaves out hosts that the request itself does not want.
IN_THE_WAY, CLOSED, UNWANTED = range(3)

#: The cause where nova does not move a server as it is.
STATE = 'state'
#: The causes where nothing lifts the refusal, by the operation.
NEVER = {
    'evacuate': 'never evacuated',
    'live-migrate': 'never live-migrated',
    'migrate': 'never migrated',
    'resize': 'never migrated',
}

#: The cause of a host whose service is disabled. Whatever else refuses such a
#: host, but another cell, it counts for this: it has one name for requests.
DISABLED = 'disabled service'

#: The cause of a host that is in another cell than nova looks in. Whatever
#: else is so of such a host is no matter of this request.
ELSEWHERE = 'requested cell'

#: The label of what nothing else is said of.
OTHER = 'other'

# Reasons begin with a verb of these, so that they can follow a number.
_SINGULAR = {'are': 'is', 'have': 'has', 'lack': 'lacks', 'get': 'gets'}


class Refusal(typing.NamedTuple):
    """Why a constraint refuses a host.

    :ivar phrase: begins with a verb in the plural, so that it can follow a
        number of hosts: ``are isolated``
    :ivar cause: what to lift; empty for the constraint itself
    :ivar name: what is counted within the kind, an aggregate for example
    :ivar detail: the policy's own words
    :ivar more: why the constraint refuses the host besides
    :ivar lifts: whether the host would pass without the constraint; a host
        that is too small would not
    :ivar label: stands for a cause that members of projects have written
        some of, where words must be few, in the labels of metrics; empty for
        any other cause
    :ivar rank: :data:`IN_THE_WAY`, :data:`CLOSED` or :data:`UNWANTED`
    """

    phrase: str
    cause: str = ''
    name: str = ''
    detail: str = ''
    more: tuple['Refusal', ...] = ()
    lifts: bool = True
    label: str = ''
    rank: int = IN_THE_WAY


#: Why a host is refused that the request leaves out.
IGNORED = Refusal(
    'are excluded by the request', 'ignore_hosts', lifts=False, rank=UNWANTED
)


#: Why a host is refused that servers left, of which nobody knows whether
#: placement would offer it.
NOT_KNOWN = Refusal('may or may not have room', 'not known')


@dataclasses.dataclass(frozen=True)
class Name:
    """What is counted within a kind, and how many hosts it has."""

    name: str
    hosts: int


@dataclasses.dataclass(frozen=True)
class Detail:
    """A policy's own words, and of how many hosts it has them."""

    detail: str
    hosts: int


@dataclasses.dataclass
class Reason:
    """Refusals of one kind, with their names and details counted.

    :ivar reason: begins with a verb in the plural
    :ivar cause: what to lift; several constraints may share one
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
    """Return why claims leave no room on a host.

    :param resources: the classes of which it has too little
    """
    return Refusal(
        f'are full ({", ".join(resources)})', ' and '.join(resources)
    )


# What to do about refusals, by the beginning of their phrase: ``{rest}`` is
# what follows it, ``{names}`` what is counted within it, aggregates for
# example.
_ACTS = (
    ('are disabled', 'enable {hosts}'),
    ('are down', 'start nova-compute on {hosts}'),
    ('are enabled in nova, but disabled', 'restart nova-compute on {hosts}'),
    ('are not in the availability zone ', 'put {hosts} into the zone {rest}'),
    ('are in none of the aggregates ', 'put {hosts} into one of {rest}'),
    ('are isolated', 'take {hosts} out of {names}'),
    ('are isolated', 'take {hosts} out of the isolated aggregates'),
    ('are reserved', 'take {hosts} out of {names}'),
    ('are reserved', 'take {hosts} out of the reserved aggregates'),
    (
        'are in no aggregate that the request names',
        'put {hosts} into an aggregate that the request names',
    ),
    ('are managed by Blazar', 'remove {hosts} from Blazar'),
    (
        'are in no pool that the request names',
        'add {hosts} to a reservation that the request names',
    ),
    (
        'are for other projects',
        'let the project use the aggregates of {hosts}',
    ),
    ('are in an aggregate that ', 'take {hosts} out of {names}'),
    (
        'have aggregates that do not match the flavor',
        'change the flavor, or the metadata of {names}',
    ),
    (
        'have aggregates that do not match the flavor',
        'change the flavor, or the aggregates of {hosts}',
    ),
    (
        'are full for the server group',
        'move a server of the group away from {hosts}',
    ),
    (
        'are in a full failure domain',
        'move a server of the group out of the failure domain of {hosts}',
    ),
    ('are in no failure domain', 'put {hosts} into a failure domain'),
    ('are not where the server group is', 'move the server group to {hosts}'),
    ('are not the requested host', 'request {hosts} instead, or no host'),
    ('are full (', 'free {cause} on {hosts}'),
    ('lack the trait ', 'give {hosts} the trait {rest}'),
    ('have the forbidden trait ', 'take the trait {rest} from {hosts}'),
    ('lack a provider for group ', 'give {hosts} a provider for group {rest}'),
    ('lack ', 'free {rest} on {hosts}'),
    (
        'have no resource provider in placement',
        'restart nova-compute on {hosts}',
    ),
    ('have no nova-compute service', 'restart nova-compute on {hosts}'),
    ('are in no cell mapping', 'run nova-manage cell_v2 discover_hosts'),
    ('are in a disabled cell', 'enable the cell of {hosts}'),
    (
        'are cut off by max_placement_results',
        'raise [scheduler] max_placement_results in nova.conf',
    ),
    ('get no candidates: ', 'correct the request, which placement refuses'),
)
# A phrase that has one of these after a colon says itself what to do.
_REMEDIES = ('run', 'use')
# Where somebody wrote what nobody can read; the detail says where.
_FAULT = 'cannot be read'
# For filters of other packages, which do not say what they want.
_ELSE = 'make {cause} accept {hosts}'
_MOST_HOSTS = 3


def say_act(refused: Collection[Refusal], hosts: Iterable[str]) -> str:
    """Return what to do, so that one cause refuses hosts no more.

    :param refused: the refusals, of one cause; not empty
    :param hosts: names
    """
    first = min(refused)
    for verb in _REMEDIES:
        _, is_remedy, remedy = first.phrase.rpartition(f': {verb} ')
        if is_remedy:
            return f'{verb} {remedy}'
    if _FAULT in first.detail:
        return f'repair what {first.cause} cannot read'
    names = sorted({one.name for one in refused if one.name})
    for start, act in _ACTS:
        if first.phrase.startswith(start) and (names or '{names}' not in act):
            break
    else:
        start, act = '', _ELSE
    return act.format(
        hosts=messages.first_few(
            sorted(hosts, key=messages.in_order), _MOST_HOSTS
        ),
        rest=first.phrase.removeprefix(start),
        names=messages.first_few(names, _MOST_HOSTS, str),
        cause=first.cause,
    )


def is_full(refusal: Refusal) -> bool:
    """Return whether claims leave no room: see :func:`full`."""
    return refusal.phrase.startswith('are full (')


def singular(kind: str) -> str:
    """Return a reason as it is said of one host."""
    verb, _, rest = kind.partition(' ')
    return f'{_SINGULAR.get(verb, verb)} {rest}'


def say_number(number: int, kind: str) -> str:
    """Return a reason with its number of hosts."""
    return f'{number} {singular(kind) if number == 1 else kind}'


def say(refusal: Refusal) -> str:
    """Return a refusal as it is said of one host, with its detail."""
    detail = f' ({refusal.detail})' if refusal.detail else ''
    return singular(refusal.phrase) + detail


def group(
    refusals: Iterable[tuple[Refusal, int]], causes: Sequence[str] = ()
) -> list[Reason]:
    """Return refusals by kind.

    This is how reasons are ranked, wherever a refusal is told by one of them:
    by :attr:`Refusal.rank`, and within by most hosts.

    :param refusals: with numbers of hosts
    :param causes: those that are told first, in this order
    """
    order = {cause: place for place, cause in enumerate(causes)}
    kinds: dict[str, list[tuple[Refusal, int]]] = {}
    for refusal, number in refusals:
        kinds.setdefault(refusal.phrase, []).append((refusal, number))
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
) -> Iterator[tuple[str, int]]:
    """Yield the values of a field, with their hosts, the most first."""
    counts: collections.Counter[str] = collections.Counter()
    for refusal, number in refusals:
        counts[getattr(refusal, word)] += number
    for value, number in sorted(
        counts.items(), key=lambda one: (-one[1], one[0])
    ):
        if value:
            yield value, number
