# SPDX-License-Identifier: Apache-2.0

"""Records which constraint of a request refuses which host.

Every constraint is asked about every host, whether or not another constraint
has refused it before: a matrix of constraints and hosts. From it come how
many hosts a constraint refuses, how many it alone refuses, how many are left
after it, and what lifting constraints would free (:mod:`.conclusion`).

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
from collections.abc import Iterator
from collections.abc import Mapping
import copy
import dataclasses
import functools
import itertools
import typing

from nova_ext_sched import messages
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import refusals


class Column(typing.NamedTuple):
    """The verdicts of a constraint on each host.

    :ivar refused: its refusals of hosts, by UUID
    :ivar judged: UUIDs of the hosts that it was asked about
    :ivar free: the amount that one server could get, by UUID of the host
    """

    refused: Mapping[str, tuple[refusals.Refusal, ...]]
    judged: Collection[str]
    free: Mapping[str, int]


@dataclasses.dataclass(eq=False)
class Matrix:
    """All constraints of a request, and the hosts that remain.

    :ivar names: names of all compute nodes, by UUID
    :ivar with_reasons: whether each constraint is asked about every host and
        says why it refuses it; else only the order counts
    :ivar advance: called after each constraint
    :ivar columns: the constraints with their refusals
    :ivar remaining: UUIDs of the hosts that no constraint refused
    :ivar order: the hosts that remain, the best first
    :ivar query: the query to placement
    :ivar end: None unless a constraint ended the request
    :ivar failure: the error of a request filter that ended the request; None
        if each one decided
    :ivar shortage: why not every instance of the request finds a host, though
        hosts remain
    :ivar refusal: why nova-api does not begin the operation in the server's
        state; the hosts are those for when it does
    :ivar drawn: from how many of the best hosts nova draws one
    :ivar preferences: the preferences of weighers' policies, by weigher
    :ivar unknown: UUIDs of hosts of which nobody knows whether they have room
    :ivar unheld: leaked allocations, from :func:`.orphaned.find`
    :ivar elsewhere: allocations of servers that are on other hosts
    :ivar faults: sentences about cells that did not answer: the numbers lack
        their hosts
    :ivar remarks: sentences about anything else that could not be seen
    :ivar advice: acts that help, from :func:`.advice.find`
    """

    names: Mapping[str, str]
    with_reasons: bool = True
    advance: Callable[..., object] = lambda: None
    constraints: list[conclusion.Constraint] = dataclasses.field(
        default_factory=list
    )
    columns: list[Column] = dataclasses.field(default_factory=list)
    remaining: set[str] = dataclasses.field(init=False)
    order: list[conclusion.Place] = dataclasses.field(default_factory=list)
    query: list[str] = dataclasses.field(default_factory=list)
    end: conclusion.End | None = None
    failure: BaseException | None = None
    shortage: str = ''
    refusal: str = ''
    drawn: int = 1
    preferences: dict[str, str] = dataclasses.field(default_factory=dict)
    unknown: set[str] = dataclasses.field(default_factory=set)
    unheld: conclusion.Unheld | None = None
    elsewhere: list[conclusion.Stray] = dataclasses.field(default_factory=list)
    faults: list[str] = dataclasses.field(default_factory=list)
    remarks: list[str] = dataclasses.field(default_factory=list)
    advice: list[conclusion.Advice] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.remaining = {*self.names}

    def add(
        self,
        stage: str,
        name: str,
        asks: str = '',
        refused: Mapping[str, refusals.Refusal] | None = None,
        judged: Collection[str] | None = None,
        capacity: conclusion.Capacity | None = None,
        free: Mapping[str, int] | None = None,
    ) -> None:
        """Append a constraint.

        :param stage: ``nova-api``, ``conductor``, ``request filter``,
            ``placement``, ``cell``, ``requested host`` or ``host filter``
        :param asks: what it asks, or what it changed in the request
        :param refused: why it refuses hosts, by UUID
        :param judged: UUIDs of the hosts that it was asked about; None for
            all
        :param capacity: the amounts of a resource class that hosts have
        :param free: the most that one server could get of it, by UUID
        """
        refused = refused or {}
        # Which cause is listed first depends on the order of the hosts, and
        # filters refuse them in no order.
        cells = {
            uuid: _split(refused[uuid], name)
            for uuid in self.names
            if uuid in refused
        }
        self.remaining -= cells.keys()
        judged = self.names if judged is None else judged
        self.columns.append(Column(cells, judged, free or {}))
        counts = collections.Counter(itertools.chain(*cells.values()))
        self.constraints.append(
            conclusion.Constraint(
                stage,
                name,
                asks,
                judged=len(judged),
                left=len(self.remaining),
                # Otherwise the number is unknown.
                refused=len(cells) if judged else None,
                causes=list(dict.fromkeys(one.cause for one in counts)),
                reasons=refusals.group(counts.items()),
                capacity=capacity,
            )
        )
        self.advance()

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
        self.end = conclusion.End(stage, name, text, detail, cause or name)
        self.remaining = set()
        for one in self.constraints:
            if not one.judged:
                one.left = None
        self.add(stage, name, 'ends the request', judged=())

    def copy(self, without: Collection[str]) -> 'Matrix':
        """Copy the matrix without its order; constraints can be added.

        :param without: UUIDs of hosts whose refusals are dropped, unless they
            are disabled
        """
        columns = [
            column._replace(
                refused={
                    uuid: said
                    for uuid, refused in column.refused.items()
                    if (
                        said := tuple(
                            refusal
                            for refusal in refused
                            if uuid not in without
                            or refusal.cause == refusals.DISABLED
                        )
                    )
                }
            )
            for column in self.columns
        ]
        # A new one has none of the answers that were derived from all columns.
        copied = dataclasses.replace(
            self,
            constraints=[copy.copy(one) for one in self.constraints],
            columns=columns,
            order=[],
            unknown=self.unknown.difference(without),
            advice=[],
        )
        copied.remaining = {*self.remaining, *without}
        return copied

    def prefer(self, uuid: str, weight: float) -> conclusion.Place:
        """Append a remaining host to the scheduler's order."""
        place = conclusion.Place(self._name(uuid), uuid, weight, {})
        self.order.append(place)
        return place

    @property
    def finds_host(self) -> bool:
        """Whether the scheduler would find a host for each instance."""
        return bool(self.order) and not (self.shortage or self.refusal)

    def conclude(
        self,
        answer: conclusion.Answer,
        detailed: Collection[str] | None = None,
    ) -> conclusion.Conclusion:
        """Conclude from the whole matrix, once all constraints are in.

        :param answer: the result of :func:`.document.make_answer`
        :param detailed: UUIDs of the hosts to list; None for all
        """
        for constraint, column in zip(
            self.constraints, self.columns, strict=True
        ):
            if column.judged:
                # By cause: another constraint of the same cause may refuse it
                # too.
                constraint.alone = sum(
                    uuid in self._only for uuid in column.refused
                )
            if constraint.capacity:
                self._complete(constraint.capacity, column.free)
        listed = self.names if detailed is None else detailed
        return conclusion.Conclusion(
            answer,
            self.constraints,
            self.query,
            [
                self._describe(uuid)
                for uuid in sorted(listed, key=self.names.__getitem__)
            ],
            self.order,
            self.unheld,
            self.elsewhere,
            self.faults,
            self.remarks,
        )

    def make_answer(self) -> conclusion.Answer:
        """Return the answer alone, still without its sentence."""
        reasons = refusals.group(self.count_reasons(), self.ranked)
        cause = label = None
        if self.end:
            cause = label = self.end.cause
        elif self.refusal:
            cause = label = refusals.STATE
        elif reasons:
            cause, label = reasons[0].cause, reasons[0].label
        is_found = bool(self.remaining or self.end)
        return conclusion.Answer(
            sentence='',
            finds_host=self.finds_host,
            hosts=len(self.names),
            left=len(self.remaining),
            best=self.order[0].host if self.finds_host else None,
            deciders=[] if self.shortage else self._find_deciders(),
            cause=cause,
            label=label,
            reasons=reasons,
            freed=[] if is_found else self.count_freed(),
            advice=self.advice,
            unasked='' if is_found else self._find_unasked(),
            end=self.end,
            shortage=self.shortage,
            refusal=self.refusal,
            drawn=self.drawn,
        )

    def _complete(
        self, capacity: conclusion.Capacity, free: Mapping[str, int]
    ) -> None:
        # Hosts that nothing but a smaller flavor would open.
        alone = {
            uuid
            for uuid, causes in self.causes.items()
            if causes == {capacity.resource}
        }
        amounts = {u: n for u, n in free.items() if n > 0 and u in alone}
        capacity.alone = len(alone)
        capacity.most_free = most = max(amounts.values(), default=0)
        hosts = [self._name(uuid) for uuid, n in amounts.items() if n == most]
        capacity.most_free_host = min(hosts, default=None)
        capacity.fits = len(hosts)

    def _describe(self, uuid: str) -> conclusion.HostAnswer:
        host = conclusion.HostAnswer(
            self._name(uuid), uuid, uuid in self.remaining, None, {}, []
        )
        if uuid in self._ranks:
            host.rank = self._ranks[uuid]
            first, mine = self.order[0], self.order[host.rank - 1]
            host.loses = {
                weigher: weight - mine.weights[weigher]
                for weigher, weight in first.weights.items()
                if weight > mine.weights[weigher]
            }
        for number, column in enumerate(self.columns):
            refused = column.refused.get(uuid, ())
            if refused or uuid not in column.judged:
                verdict = (
                    conclusion.REFUSED if refused else conclusion.NOT_JUDGED
                )
                reason = '; '.join(map(refusals.say, refused))
                causes = [one.cause for one in refused]
                host.verdicts.append(
                    conclusion.Judgement(number, verdict, reason, causes)
                )
        return host

    @functools.cached_property
    def _ranks(self) -> dict[str, int]:
        return {one.uuid: n for n, one in enumerate(self.order, 1)}

    def _find_deciders(self) -> list[conclusion.Decider]:
        """Return the weighers without which another host may be first."""
        deciders: list[conclusion.Decider] = []
        if not self.order:
            return deciders
        first, *others = self.order
        for weigher in first.weights if others else ():
            # Rounded: sums that differ by less count as equal.
            without = {
                one.host: round(one.weight - one.weights[weigher], 6)
                for one in self.order
            }
            best = max(others, key=lambda one: without[one.host]).host
            if without[best] >= without[first.host]:
                prefers = self.preferences.get(weigher, '')
                deciders.append(conclusion.Decider(weigher, best, prefers))
        return deciders

    def _name(self, uuid: str) -> str:
        return messages.clean(self.names[uuid])

    def get_unheld(self) -> dict[str, list[str]]:
        """Return the consumers that fill hosts, and are of no server."""
        hosts = self.unheld.hosts if self.unheld else ()
        return {one.uuid: one.consumers for one in hosts if one.freed}

    @functools.cached_property
    def causes(self) -> dict[str, frozenset[str]]:
        """The cause of each refused host, by UUID.

        Use it when all constraints are in.
        """
        found: dict[str, set[str]] = collections.defaultdict(set)
        for uuid, refusal in self._list_refusals():
            found[uuid].add(refusal.cause)
        return {uuid: frozenset(causes) for uuid, causes in found.items()}

    def _list_refusals(self) -> Iterator[tuple[str, refusals.Refusal]]:
        """Yield each refusal of each host, with the UUID of the host."""
        for column in self.columns:
            for uuid, refused in column.refused.items():
                for refusal in refused:
                    yield uuid, refusal

    @functools.cached_property
    def _only(self) -> dict[str, str]:
        """The only cause to refuse each host that it would free, by UUID."""
        fixed = {
            uuid
            for column in self.columns
            for uuid, refused in column.refused.items()
            if not refused[0].lifts
        }
        return {
            uuid: next(iter(causes))
            for uuid, causes in self.causes.items()
            if uuid not in fixed and len(causes) == 1
        }

    def count_freed(self) -> list[conclusion.Freed]:
        """Return each cause that would free hosts, with their number.

        It is the only one that refuses them. The one that frees most comes
        first. A host that a filter could not be asked about counts as one
        that passes it. Nothing frees a host that is too small.
        """
        freed = collections.Counter(self._only.values())
        return [
            conclusion.Freed(cause, freed[cause])
            for cause in self.ranked
            if cause in freed
        ]

    def _find_unasked(self) -> str:
        """Name the traits or reservations that close hosts to the request."""
        closed = {
            refusal.name
            for _, refusal in self._list_refusals()
            if refusal.rank == refusals.CLOSED and refusal.name
        }
        return messages.first_few(sorted(closed))

    def count_reasons(self) -> list[tuple[refusals.Refusal, int]]:
        """Count the reasons of refused hosts; each host counts once.

        A host that several causes refuse counts for the first of
        :attr:`ranked`: where no host is large enough, every host counts for
        that. One that the request does not want counts for that alone,
        because nothing else could open it. One that is disabled counts for
        that for every request that looks in its cell. A full host counts with
        all that it lacks.
        """
        chosen = {
            uuid: refusals.DISABLED
            if refusals.DISABLED in causes and refusals.ELSEWHERE not in causes
            else self._unwanted.get(uuid) or min(causes, key=self.ranked.index)
            for uuid, causes in self.causes.items()
        }
        counts: collections.Counter[refusals.Refusal] = collections.Counter()
        for uuid, refusal in self._list_refusals():
            if refusal.cause == chosen.get(uuid):
                del chosen[uuid]
                lacking = self._lacking.get(uuid, ())
                if refusal.is_full and len(lacking) > 1:
                    refusal = refusals.full(sorted(lacking))._replace(
                        cause=refusal.cause, label=refusal.label
                    )
                counts[refusal] += 1
        return list(counts.items())

    @functools.cached_property
    def _lacking(self) -> dict[str, set[str]]:
        """The resource classes that each full host lacks."""
        lacking = collections.defaultdict[str, set[str]](set)
        for uuid, refusal in self._list_refusals():
            if refusal.is_full:
                lacking[uuid] |= refusal.lacking
        return lacking

    @functools.cached_property
    def _unwanted(self) -> dict[str, str]:
        """The cause of each host that the request itself leaves out."""
        return {
            uuid: refusal.cause
            for uuid, refusal in self._list_refusals()
            if refusal.rank == refusals.UNWANTED
        }

    @functools.cached_property
    def ranked(self) -> list[str]:
        """The causes, those that block most hosts first.

        That is the cause that would free most hosts if it were lifted alone;
        among equals the cause that refuses most hosts, then the first in the
        scheduler's order. Causes of hosts that are closed, and of hosts that
        the request itself leaves out, come after all others, whatever they
        refuse (:attr:`.refusals.Refusal.rank`).
        """
        ranks: dict[str, int] = {}
        for column in self.columns:
            # A constraint is not in the way of hosts that are not wanted.
            of_column = {
                (
                    refusal.cause,
                    refusals.UNWANTED
                    if uuid in self._unwanted
                    else refusal.rank,
                )
                for uuid, refused in column.refused.items()
                for refusal in refused
            }
            for cause, rank in sorted(of_column):
                ranks[cause] = min(rank, ranks.get(cause, rank))
        freed = collections.Counter(self._only.values())
        counts = collections.Counter(
            itertools.chain.from_iterable(
                causes
                for uuid, causes in self.causes.items()
                if uuid not in self._unwanted
            )
        )
        return sorted(
            ranks,
            key=lambda cause: (ranks[cause], -freed[cause], -counts[cause]),
        )


@functools.lru_cache(maxsize=4096)
def _split(
    refusal: refusals.Refusal, constraint: str
) -> tuple[refusals.Refusal, ...]:
    first = refusal._replace(cause=refusal.cause or constraint, more=())
    return first, *refusal.more
