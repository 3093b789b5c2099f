# SPDX-License-Identifier: Apache-2.0

"""What a scenario cannot say, counted."""

import collections
from collections.abc import Iterator

from nova_ext_sched import messages


class Unsaid:
    """Counts what is left out, for the comment above the document."""

    def __init__(self) -> None:
        self._counts: collections.Counter[tuple[str, str]] = (
            collections.Counter()
        )

    def add(self, noun: str, what: str = '', number: int = 1) -> None:
        """Count things that are left out.

        :param noun: what they are, in the singular
        :param what: follows the noun: which of them
        """
        if number:
            self._counts[noun, what] += number

    def __iter__(self) -> Iterator[str]:
        """Yield a line for each kind."""
        for (noun, what), number in self._counts.items():
            yield ' '.join(filter(None, (messages.count(noun, number), what)))
