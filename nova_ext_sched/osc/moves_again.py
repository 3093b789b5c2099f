# SPDX-License-Identifier: Apache-2.0

"""Decides whether to ask nova again for a move without a valid host."""

import dataclasses

#: How long it is waited before, in seconds, and how often nova is asked anew.
AGAIN = 60
MOST = 3


@dataclasses.dataclass
class Again:
    """Counts refusals, because one may be a fault that passes.

    nova-scheduler says "No valid host was found" too where placement does not
    answer in time, or a nova-compute counts as down for a moment.

    =======================  ======================  ====================
    nova and placement       so far                  nova is asked anew
    =======================  ======================  ====================
    one does not answer      fewer than three times  after a minute
    both answer              never refused so        after a minute
    both answer              refused so              no: that is the
                                                     answer
    any                      three times             no
    =======================  ======================  ====================

    :ivar then: when nova is asked anew; None where it is not
    """

    then: float | None = None
    _made: int = 0
    _was_answered: bool = False

    def note_refusal(self, answers: bool, now: float) -> bool:
        """Return whether nova is asked anew.

        :param answers: whether nova and placement answer
        """
        is_final = self._made == MOST or (answers and self._was_answered)
        self._was_answered = self._was_answered or answers
        if not is_final:
            self._made += 1
            self.then = now + AGAIN
        return not is_final

    def is_due(self, now: float) -> bool:
        """Return whether nothing is waited for before a request."""
        return self.then is None or now >= self.then
