# SPDX-License-Identifier: Apache-2.0

"""The funnel: how many hosts each constraint of a request leaves, and why.

The scheduler answers "No valid host was found" with one word for every
cause. A funnel takes the hosts of a cloud and the constraints of a request in
the scheduler's order; each host is removed by the first constraint that
refuses it. Given the facts, nothing here asks anybody anything.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

# A phrase is written for many hosts; the verb for one host.
_SINGULAR = {
    'are': 'is',
    'do': 'does',
    'have': 'has',
    'lack': 'lacks',
    'stand': 'stands',
}

# How many causes are written out before the rest is counted together.
_CAUSES = 5


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """An aggregate as nova knows it.

    :ivar hosts: names of hosts, as nova-compute's option ``host`` has them
    """

    uuid: str
    name: str
    metadata: Mapping[str, str]
    hosts: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Host:
    """A compute node.

    :ivar name: the host of its nova-compute
    :ivar node: its hypervisor's host name
    :ivar provider: UUID of its resource provider, the root of its tree
    :ivar aggregates: those that nova has the host in
    """

    name: str
    node: str
    provider: str
    up: bool = True
    enabled: bool = True
    disabled_reason: str | None = None
    aggregates: tuple[Aggregate, ...] = ()

    @property
    def label(self) -> str:
        """Host and, where a host has several or another name, the node."""
        if self.name == self.node:
            return self.name
        return f'{self.name} ({self.node})'


@dataclasses.dataclass(frozen=True)
class Refusal:
    """Why a constraint refuses a host.

    :ivar phrase: what hosts with this cause do, to stand behind their number:
        ``lack VCPU``
    :ivar reason: what the operator can change; the same for hosts that are
        refused for one cause
    """

    phrase: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Constraint:
    """Something that a host must meet.

    :ivar stage: the part of the scheduler that enforces it, in a word or two
    :ivar words: what is demanded, in the operator's words
    :ivar judge: decides about a host; None where the host meets it
    """

    stage: str
    words: str
    judge: Callable[[Host], Refusal | None]


@dataclasses.dataclass(frozen=True)
class Step:
    """One constraint of the funnel.

    :ivar removed: the hosts that it removes, of those that came so far
    :ivar left: how many hosts are left behind it
    """

    constraint: Constraint
    removed: Mapping[str, Refusal]
    left: int

    @property
    def why(self) -> str:
        """The causes with the number of hosts of each, most hosts first."""
        reasons = collections.Counter(
            refusal.reason for refusal in self.removed.values()
        )
        return _list_causes(
            [f'{count}: {reason}' for reason, count in _ranked(reasons)], '; '
        )


class Funnel:
    """The hosts of a cloud, and what removes each.

    :param hosts: every compute node
    :param constraints: in the scheduler's order
    """

    def __init__(
        self, hosts: Iterable[Host], constraints: Iterable[Constraint]
    ) -> None:
        self.hosts: Sequence[Host] = sorted(
            hosts, key=lambda host: (host.name, host.node)
        )
        self.steps: list[Step] = []
        left = list(self.hosts)
        for constraint in constraints:
            removed = {}
            passed = []
            for host in left:
                refusal = constraint.judge(host)
                if refusal is None:
                    passed.append(host)
                else:
                    removed[host.provider] = refusal
            left = passed
            self.steps.append(Step(constraint, removed, len(left)))
        self.left: Sequence[Host] = left

    def first_refusals(self) -> list[tuple[Host, Step | None]]:
        """Return each host with the step that removes it, None for none."""
        removed_by = {
            provider: step for step in self.steps for provider in step.removed
        }
        return [(host, removed_by.get(host.provider)) for host in self.hosts]

    def story(self, host: Host) -> list[tuple[Constraint, Refusal | None]]:
        """Return what each constraint says about a host.

        Those behind the one that removes it are asked as well: they show what
        else would have to change.
        """
        return [
            (step.constraint, step.constraint.judge(host))
            for step in self.steps
        ]

    def sentence(self) -> str:
        """Return the funnel in one sentence."""
        causes: collections.Counter[str] = collections.Counter()
        for step in self.steps:
            phrases = collections.Counter(
                refusal.phrase for refusal in step.removed.values()
            )
            written = dict(_ranked(phrases)[:_CAUSES])
            causes.update(written)
            if rest := phrases.total() - sum(written.values()):
                causes[f'are refused by other {step.constraint.words}'] += rest
        head = f'{len(self.left)} of {len(self.hosts)} hosts'
        if not causes:
            return f'{head}: no constraint removes any'
        return f'{head}: ' + ', '.join(
            f'{count} {agree(phrase, count)}'
            for phrase, count in causes.items()
        )


def agree(phrase: str, count: int) -> str:
    """Return a phrase with its verb in the number of ``count``."""
    verb, space, rest = phrase.partition(' ')
    if count == 1:
        verb = _SINGULAR.get(verb, verb)
    return verb + space + rest


def _ranked(counts: collections.Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _list_causes(causes: list[str], separator: str) -> str:
    more = len(causes) - _CAUSES
    if more > 0:
        causes = [*causes[:_CAUSES], f'{more} more causes']
    return separator.join(causes)
