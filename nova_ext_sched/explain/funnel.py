# SPDX-License-Identifier: Apache-2.0

"""What each constraint of a request takes away, in the scheduler's order."""

import collections
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing

from nova_ext_sched import messages

# Reasons begin with a verb of these, so that they can follow a number.
_SINGULAR = {'are': 'is', 'have': 'has', 'lack': 'lacks'}

# How many reasons the sentence names, and how many hosts of the order.
_REASONS = 10


@dataclasses.dataclass
class Constraint:
    """One constraint, and the hosts that it refuses.

    :ivar stage: ``request filter``, ``placement``, ``cell``,
        ``requested host`` or ``host filter``
    :ivar effect: what it asks, or what it changed in the request
    :ivar refused: the reason by the UUID of the compute node; begins with a
        verb in the plural: ``lack VCPU``
    :ivar judged: the hosts that were asked about; None for all
    """

    stage: str
    name: str
    effect: str = ''
    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)
    judged: frozenset[str] | None = None


class Line(typing.NamedTuple):
    """One line of the funnel."""

    stage: str
    name: str
    effect: str
    refused: int | None
    left: int | None


class Word(typing.NamedTuple):
    """What one constraint says of one host."""

    host: str
    stage: str
    name: str
    verdict: str
    reason: str


@dataclasses.dataclass
class Funnel:
    """All constraints, and where the request would go.

    :ivar hosts: every compute node that there is, its name by UUID
    :ivar constraints: in the scheduler's order
    :ivar order: UUID and weight of the hosts left, the best first
    :ivar shortage: why not every instance of the request finds a host, though
        hosts are left
    :ivar remarks: sentences about what could not be seen
    """

    hosts: Mapping[str, str]
    constraints: list[Constraint] = dataclasses.field(default_factory=list)
    order: Sequence[tuple[str, float]] = ()
    shortage: str = ''
    remarks: list[str] = dataclasses.field(default_factory=list)

    def add(
        self,
        stage: str,
        name: str,
        effect: str = '',
        refused: Mapping[str, str] | None = None,
        judged: frozenset[str] | None = None,
    ) -> Constraint:
        """Append a constraint and return it; see :class:`Constraint`."""
        constraint = Constraint(stage, name, effect, refused or {}, judged)
        self.constraints.append(constraint)
        return constraint

    def end(self, stage: str, name: str, reason: str) -> None:
        """Append the constraint that ends the request.

        :param reason: nova's text
        """
        text = messages.quote(reason.rstrip('.'), 1000)
        refused = dict.fromkeys(
            self.left, f'are not considered ({name}: {text})'
        )
        self.add(stage, name, f'ends the request: {text}', refused)

    @property
    def left(self) -> set[str]:
        """UUIDs of the hosts that no constraint refuses."""
        return set(self.hosts).difference(
            *(constraint.refused for constraint in self.constraints)
        )

    @property
    def finds_host(self) -> bool:
        """Whether the scheduler would find a host for each instance."""
        return bool(self.order) and not self.shortage

    @property
    def lines(self) -> list[Line]:
        """The funnel, then the first hosts of the scheduler's order."""
        left = set(self.hosts)
        lines = [Line('', 'all hosts', '', 0, len(left))]
        for constraint in self.constraints:
            refused = left & constraint.refused.keys()
            left -= refused
            lines.append(
                Line(
                    constraint.stage,
                    constraint.name,
                    constraint.effect,
                    len(refused),
                    len(left),
                )
            )
        for place, (uuid, weight) in enumerate(self.order[:_REASONS], 1):
            effect = f'choice {place}, weight {weight:g}'
            name = messages.quote(self.hosts[uuid])
            lines.append(Line('weight', name, effect, None, None))
        return lines

    def words(self, uuids: Sequence[str]) -> Iterator[Word]:
        """Yield what every constraint says of hosts, not only the first."""
        for uuid in uuids:
            host = messages.quote(self.hosts[uuid])
            for constraint in self.constraints:
                reason = constraint.refused.get(uuid)
                judged = constraint.judged
                if reason is not None:
                    verdict = 'refused'
                elif judged is None or uuid in judged:
                    verdict = 'passes'
                else:
                    verdict = 'not judged'
                yield Word(
                    host,
                    constraint.stage,
                    constraint.name,
                    verdict,
                    one(reason) if reason else '',
                )

    @property
    def sentence(self) -> str:
        """How many hosts are left, and what took the others away."""
        reasons: collections.Counter[str] = collections.Counter()
        left = set(self.hosts)
        for constraint in self.constraints:
            for uuid in left & constraint.refused.keys():
                reasons[constraint.refused[uuid]] += 1
            left -= constraint.refused.keys()
        parts = [
            f'{count} {one(reason) if count == 1 else reason}'
            for reason, count in reasons.most_common(_REASONS)
        ]
        rest = sum(n for _, n in reasons.most_common()[_REASONS:])
        if rest:
            parts.append(f'{rest} are refused for other reasons')
        total = len(self.hosts)
        found = f'{len(left)} of {total} host{"" if total == 1 else "s"}'
        text = f'{found}: {", ".join(parts)}' if parts else found
        sentences = [text, self.shortage, *self.remarks]
        if self.order and not self.shortage:
            best = messages.quote(self.hosts[self.order[0][0]])
            sentences.insert(1, f'The scheduler prefers {best}')
        return ' '.join(f'{text}.' for text in sentences if text)


def one(reason: str) -> str:
    """Return a reason as it is said of one host."""
    verb, _, rest = reason.partition(' ')
    return f'{_SINGULAR.get(verb, verb)} {rest}'
