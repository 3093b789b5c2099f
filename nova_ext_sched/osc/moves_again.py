# SPDX-License-Identifier: Apache-2.0

"""Decides whether to ask nova again for a move without a valid host."""

import dataclasses

#: Seconds between a refusal and the next request.
AGAIN = 60
#: The most requests after the first one.
MOST = 3


@dataclasses.dataclass
class Again:
    """Decides whether to ask again after "No valid host was found".

    nova-scheduler also says that if placement does not answer in time, or a
    nova-compute counts as down for a moment.

    ===================  ============================  ====================
    nova and placement   before this refusal           ask nova again
    ===================  ============================  ====================
    any                  it was asked again 3 times    no
    both answer          a refusal while both          no: that is the
                         answered                      answer
    both answer          any other                     after a minute
    one does not answer  any other                     after a minute
    ===================  ============================  ====================

    :ivar due: when to ask again; None if nothing was refused
    """

    due: float | None = None
    _repeated: int = 0
    _was_answered: bool = False

    def note_refusal(self, answers: bool, now: float) -> bool:
        """Return whether to ask nova again.

        :param answers: whether nova and placement answer
        """
        is_final = self._repeated == MOST or (answers and self._was_answered)
        self._was_answered = self._was_answered or answers
        if not is_final:
            self._repeated += 1
            self.due = now + AGAIN
        return not is_final

    def is_due(self, now: float) -> bool:
        """Return whether nova can be asked now."""
        return self.due is None or now >= self.due
