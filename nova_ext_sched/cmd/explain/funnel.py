# SPDX-License-Identifier: Apache-2.0

"""Which constraint of a request refuses which host.

Every constraint is asked about every host, whether or not another constraint
has refused it before: a matrix of constraints and hosts. From it come how
many hosts a constraint refuses, how many it alone refuses, how many are left
after it, and what lifting constraints would free.

What is lifted is a *cause*. One policy may refuse a host twice: isolation
forbids the host's aggregate in placement's query, and
IsolatedAggregatesFilter refuses the same host. Lifting either constraint
alone would never free a host, so both refusals have the cause ``isolation``.
Likewise the disabled hosts of nova's request filter and of ComputeFilter, and
the requested host in placement's query and after it. A refusal that shares
its cause with no other constraint has the constraint's name as its cause.
"""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
import itertools
import typing

from nova_ext_sched import messages

# What leaves out hosts that the request does not want: where anything else
# refuses a host, that is the answer.
REQUESTED_HOST = 'requested host'
IGNORED_HOST = 'ignore_hosts'
_UNWANTED = (IGNORED_HOST, REQUESTED_HOST)

# How many pairs of causes are named.
_MOST_PAIRS = 10


class Refusal(typing.NamedTuple):
    """Why a constraint refuses a host.

    :ivar kind: begins with a verb in the plural, so that it can follow a
        number of hosts: ``are isolated``
    :ivar cause: what to lift; empty for the constraint itself
    :ivar name: what is counted within the kind, an aggregate for example
    :ivar detail: the policy's own words
    :ivar more: why the constraint refuses the host besides
    :ivar lifts: whether the host would pass without the constraint; a host
        that is too small would not
    """

    kind: str
    cause: str = ''
    name: str = ''
    detail: str = ''
    more: tuple['Refusal', ...] = ()
    lifts: bool = True


def full(resources: Sequence[str]) -> Refusal:
    """Return why claims leave no room on a host.

    :param resources: the classes of which it has too little
    """
    return Refusal(
        f'are full ({", ".join(resources)})', ' and '.join(resources)
    )


@dataclasses.dataclass
class Constraint:
    """One constraint, in the scheduler's order.

    :ivar stage: ``conductor``, ``request filter``, ``placement``, ``cell``,
        ``requested host`` or ``host filter``
    :ivar asks: what it asks, or what it changed in the request
    :ivar refused: each refusal of the hosts that it refuses, with its cause,
        by UUID
    :ivar judged: the hosts that it was asked about
    :ivar left: number of hosts that neither it nor one before it refuses
    :ivar capacity: what hosts have of a resource class
        (:meth:`.shortage.Shortages.explain`); None for other constraints
    """

    stage: str
    name: str
    asks: str
    refused: Mapping[str, tuple[Refusal, ...]]
    judged: Collection[str]
    left: int
    capacity: dict[str, typing.Any] | None = None


class End(typing.NamedTuple):
    """The constraint that ended a request before hosts were judged.

    :ivar reason: what the owner of the server reads
    :ivar detail: what only operators read
    :ivar cause: the name of its policy
    """

    stage: str
    name: str
    reason: str
    detail: str
    cause: str


@dataclasses.dataclass(eq=False)
class Funnel:
    """All constraints, and where the request would go.

    :param hosts: every compute node that there is, its name by UUID
    :param whole: whether each constraint is to be asked about every host;
        else only the order counts
    :param advance: called after each constraint
    :ivar left: UUIDs of the hosts that no constraint refused
    :ivar order: UUID and weight of the hosts left, the best first
    :ivar weights: by UUID, what each weigher gave, multiplied
    :ivar query: what placement was asked
    :ivar end: None unless a constraint ended the request
    :ivar failure: what kept a request filter from deciding, which ended the
        request; None where each one decided
    :ivar shortage: why not every instance of the request finds a host, though
        hosts are left
    :ivar remarks: sentences about what could not be seen
    """

    hosts: Mapping[str, str]
    whole: bool = True
    advance: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.constraints: list[Constraint] = []
        self.left = set(self.hosts)
        self.order: Sequence[tuple[str, float]] = ()
        self.weights: dict[str, dict[str, float]] = {}
        self.query: list[str] = []
        self.end: End | None = None
        self.failure: BaseException | None = None
        self.shortage = ''
        self.remarks: list[str] = []

    def add(
        self,
        stage: str,
        name: str,
        asks: str = '',
        refused: Mapping[str, Refusal] | None = None,
        judged: Collection[str] | None = None,
        capacity: dict[str, typing.Any] | None = None,
    ) -> None:
        """Append a constraint; see :class:`Constraint`.

        :param refused: why it refuses hosts, by UUID
        :param judged: None for all hosts
        """
        split = {
            uuid: _split(refusal, name)
            for uuid, refusal in (refused or {}).items()
            if uuid in self.hosts
        }
        self.left -= split.keys()
        judged = self.hosts if judged is None else judged
        self.constraints.append(
            Constraint(
                stage, name, asks, split, judged, len(self.left), capacity
            )
        )
        self.advance()

    def readmit(self, uuids: Collection[str]) -> None:
        """Take back every refusal of some hosts."""
        for constraint in self.constraints:
            constraint.refused = {
                uuid: refusal
                for uuid, refusal in constraint.refused.items()
                if uuid not in uuids
            }
        self.left.update(uuids)

    def stop(
        self,
        stage: str,
        name: str,
        reason: str,
        detail: str = '',
        cause: str = '',
    ) -> None:
        """Append the constraint that ends the request.

        :param reason: nova's text
        :param cause: the name of its policy; empty for its own
        """
        text = messages.clean(reason.rstrip('.'), 1000)
        detail = messages.clean(detail, 1000)
        self.end = End(stage, name, text, detail, cause or name)
        self.left = set()
        self.add(stage, name, 'ends the request', judged=())

    @property
    def finds_host(self) -> bool:
        """Whether the scheduler would find a host for each instance."""
        return bool(self.order) and not self.shortage

    @functools.cached_property
    def causes(self) -> dict[str, frozenset[str]]:
        """Why each host that is refused is refused, by UUID.

        Use it when all constraints are in.
        """
        found: dict[str, set[str]] = collections.defaultdict(set)
        for constraint in self.constraints:
            for uuid, refusals in constraint.refused.items():
                found[uuid].update(one.cause for one in refusals)
        return {uuid: frozenset(causes) for uuid, causes in found.items()}

    def count_alone(self, constraint: Constraint) -> int:
        """Return how many hosts would be free but for this constraint.

        What refuses them elsewhere has the same cause.
        """
        return sum(
            len(self.causes.get(uuid, ())) == 1 for uuid in constraint.refused
        )

    def count_freed(self) -> list[dict[str, typing.Any]]:
        """Return the ``causes`` to lift, and how many ``hosts`` each frees.

        Each cause that would free a host by itself, the one that frees most
        first. Where none does, pairs of causes that would together. A host
        that a filter could not be asked about counts as one that passes it.
        Nothing frees a host that is too small.
        """
        fixed = self.find_fixed()
        counts = collections.Counter(
            causes for uuid, causes in self.causes.items() if uuid not in fixed
        )
        rank = self._rank()
        for size, most in ((1, None), (2, _MOST_PAIRS)):
            found = sorted(
                (-number, sorted(map(rank.index, causes)))
                for causes, number in counts.items()
                if len(causes) == size
            )
            if found:
                return [
                    {'causes': [rank[n] for n in ranks], 'hosts': -number}
                    for number, ranks in found[:most]
                ]
        return []

    def find_fixed(self) -> set[str]:
        """Return the hosts, by UUID, that no lifted constraint would free."""
        return {
            uuid
            for constraint in self.constraints
            for uuid, refusals in constraint.refused.items()
            if not refusals[0].lifts
        }

    def count_reasons(self) -> list[tuple[Refusal, int]]:
        """Return why hosts are refused, with causes; each host counts once.

        A host that several causes refuse counts for the cause that refuses
        the most hosts of all: where no host is large enough, every host
        counts for that.
        """
        totals = collections.Counter(
            itertools.chain.from_iterable(self.causes.values())
        )
        rank = self._rank()
        # Of as many hosts, the first in the scheduler's order.
        rank.sort(key=totals.__getitem__, reverse=True)
        chosen = {
            uuid: min(causes, key=rank.index)
            for uuid, causes in self.causes.items()
        }
        counts: collections.Counter[Refusal] = collections.Counter()
        for constraint in self.constraints:
            for uuid, refusals in constraint.refused.items():
                for refusal in refusals:
                    if refusal.cause == chosen.get(uuid):
                        del chosen[uuid]
                        counts[refusal] += 1
        return list(counts.items())

    def _rank(self) -> list[str]:
        """Return the causes in the scheduler's order."""
        rank: dict[str, None] = {}
        for constraint in self.constraints:
            causes = {
                one.cause
                for refusals in {*constraint.refused.values()}
                for one in refusals
            }
            rank |= dict.fromkeys(sorted(causes))
        return list(rank)


@functools.lru_cache(maxsize=4096)
def _split(refusal: Refusal, constraint: str) -> tuple[Refusal, ...]:
    first = refusal._replace(cause=refusal.cause or constraint, more=())
    return first, *refusal.more


def group(
    refusals: Iterable[tuple[Refusal, int]],
) -> list[dict[str, typing.Any]]:
    """Return refusals by kind, with their names and details counted.

    This is how reasons are ranked, wherever a refusal is told by one of them:
    by most hosts. That the request itself leaves hosts out comes last.

    :param refusals: with numbers of hosts
    :returns: ``reason``, ``cause``, ``hosts``, ``names`` and ``details``
    """
    kinds: dict[str, list[tuple[Refusal, int]]] = {}
    for refusal, number in refusals:
        kinds.setdefault(refusal.kind, []).append((refusal, number))
    return sorted(
        (
            {
                'reason': kind,
                'cause': found[0][0].cause,
                'hosts': sum(number for _, number in found),
                'names': _ranked('name', found),
                'details': _ranked('detail', found),
            }
            for kind, found in kinds.items()
        ),
        key=lambda one: (
            one['cause'] in _UNWANTED,
            -one['hosts'],
            one['reason'],
        ),
    )


def _ranked(
    word: str, refusals: Iterable[tuple[Refusal, int]]
) -> list[dict[str, typing.Any]]:
    counts: collections.Counter[str] = collections.Counter()
    for refusal, number in refusals:
        counts[getattr(refusal, word)] += number
    return [
        {word: value, 'hosts': number}
        for value, number in sorted(
            counts.items(), key=lambda one: (-one[1], one[0])
        )
        if value
    ]
