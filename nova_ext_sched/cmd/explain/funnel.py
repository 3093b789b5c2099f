# SPDX-License-Identifier: Apache-2.0

"""What each constraint of a request takes away, in the scheduler's order."""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from nova_ext_sched import messages

#: The columns of :attr:`Funnel.lines`.
COLUMNS = ('Stage', 'Constraint', 'Effect', 'Refused', 'Left')
#: The columns of :attr:`Funnel.words`.
HOST_COLUMNS = ('Host', 'Stage', 'Constraint', 'Verdict', 'Reason')

# Reasons begin with a verb of these, so that they can follow a number.
_SINGULAR = {'are': 'is', 'have': 'has', 'lack': 'lacks'}

# How many reasons the sentence names, and how many hosts of the order.
_MOST = 10


class Funnel:
    """All constraints, and where the request would go.

    :param hosts: every compute node that there is, its name by UUID
    :param detailed: UUIDs of the hosts of which every constraint says its
        word, not only the first that refuses
    :param advance: called after each constraint
    :ivar left: UUIDs of the hosts that no constraint refused
    :ivar order: UUID and weight of the hosts left, the best first
    :ivar shortage: why not every instance of the request finds a host, though
        hosts are left
    :ivar remarks: sentences about what could not be seen
    """

    def __init__(
        self,
        hosts: Mapping[str, str],
        detailed: Iterable[str] = (),
        advance: Callable[[], None] = lambda: None,
    ) -> None:
        self.hosts = hosts
        self.left = set(hosts)
        self.order: Sequence[tuple[str, float]] = ()
        self.shortage = ''
        self.remarks: list[str] = []
        self._lines: list[Sequence[object]] = [
            ('', 'all hosts', '', 0, len(hosts))
        ]
        self._words: dict[str, list[Sequence[object]]] = {
            uuid: [] for uuid in detailed
        }
        self.detailed: Collection[str] = self._words.keys()
        self._reasons: collections.Counter[str] = collections.Counter()
        self._advance = advance

    def add(
        self,
        stage: str,
        name: str,
        effect: str = '',
        refused: Mapping[str, str] | None = None,
        judged: Collection[str] | None = None,
    ) -> None:
        """Append a constraint.

        :param stage: ``conductor``, ``request filter``, ``placement``,
            ``cell``, ``requested host`` or ``host filter``
        :param effect: what it asks, or what it changed in the request
        :param refused: the reason by UUID of the host; begins with a verb in
            the plural: ``lack VCPU``
        :param judged: the hosts that were asked about; None for all
        """
        refused = refused or {}
        taken = self.left & refused.keys()
        self.left -= taken
        self._reasons.update(refused[uuid] for uuid in taken)
        self._lines.append((stage, name, effect, len(taken), len(self.left)))
        for uuid, words in self._words.items():
            verdict = 'not judged'
            if uuid in refused:
                verdict = 'refused'
            elif judged is None or uuid in judged:
                verdict = 'passes'
            reason = _one(refused[uuid]) if uuid in refused else ''
            host = messages.clean(self.hosts[uuid])
            words.append((host, stage, name, verdict, reason))
        self._advance()

    def end(self, stage: str, name: str, reason: str) -> None:
        """Append the constraint that ends the request.

        :param reason: nova's text
        """
        text = messages.clean(reason.rstrip('.'), 1000)
        refused = dict.fromkeys(
            self.left, f'are not considered ({name}: {text})'
        )
        self.add(stage, name, f'ends the request: {text}', refused)

    @property
    def finds_host(self) -> bool:
        """Whether the scheduler would find a host for each instance."""
        return bool(self.order) and not self.shortage

    @property
    def lines(self) -> list[Sequence[object]]:
        """The funnel, then the first hosts of the scheduler's order."""
        return self._lines + [
            (
                'weight',
                messages.clean(self.hosts[uuid]),
                f'choice {place}, weight {weight:g}',
                None,
                None,
            )
            for place, (uuid, weight) in enumerate(self.order[:_MOST], 1)
        ]

    @property
    def words(self) -> list[Sequence[object]]:
        """What every constraint says of each detailed host."""
        return [word for words in self._words.values() for word in words]

    @property
    def sentence(self) -> str:
        """How many hosts are left, and what took the others away."""
        ranked = self._reasons.most_common()
        parts = [
            f'{count} {_one(reason) if count == 1 else reason}'
            for reason, count in ranked[:_MOST]
        ]
        rest = sum(count for _, count in ranked[_MOST:])
        if rest:
            parts.append(f'{rest} are refused for other reasons')
        found = (
            f'{len(self.left)} of {messages.count("host", len(self.hosts))}'
        )
        sentences = [f'{found}: {", ".join(parts)}' if parts else found]
        if self.finds_host:
            best = messages.clean(self.hosts[self.order[0][0]])
            sentences.append(f'The scheduler prefers {best}')
        sentences += [self.shortage, *self.remarks]
        return ' '.join(f'{text}.' for text in sentences if text)


def _one(reason: str) -> str:
    """Return a reason as it is said of one host."""
    verb, _, rest = reason.partition(' ')
    return f'{_SINGULAR.get(verb, verb)} {rest}'
