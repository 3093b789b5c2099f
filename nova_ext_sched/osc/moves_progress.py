# SPDX-License-Identifier: Apache-2.0

"""Reports the progress of moves, and the time left."""

from collections.abc import Callable
from collections.abc import Sequence
import time

from nova_ext_sched import messages
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc.moves_plan import Result

#: Seconds after which a wait is first reported; then each time after it has
#: lasted twice as long.
WAITS = 60


class Progress:
    """Writes a line for each finished move, and for each wait.

    :param moves: all of the plan
    :param say: called with a line
    :param advance: advances the bar, if there is one; called with a number of
        moves and the label beside the bar
    """

    def __init__(
        self,
        moves: Sequence[moves_plan.Move],
        say: Callable[[str], object],
        advance: Callable[..., object] = lambda *_, **__: None,
    ) -> None:
        self._total, self._say, self._advance = len(moves), say, advance
        self._ended = self._made = 0
        self._began = time.monotonic()
        # For each turn: when its wait began, when it is reported next, and
        # the reason that was reported last.
        self._waits: dict[int, tuple[float, float, str]] = {}

    def end(self, move: moves_plan.Move) -> None:
        """Report the result of a move that has ended, and the time left."""
        self._ended += 1
        self._made += move.result == Result.MOVED
        self._waits.pop(move.turn, None)
        left = self._say_left()
        self._advance(1, label=f'Moving servers{left}')
        text = f'{self._ended} of {self._total}: {move.shown}, {move.result}'
        if move.result == Result.MOVED:
            text += f' from {move.host} to {move.expected}'
        self._say(f'{messages.clean(text, 1000)}{left}.')

    def wait(self, move: moves_plan.Move, reason: str) -> None:
        """Report what a move waits for, if it has for a while.

        Called at each look.
        """
        now = time.monotonic()
        since, then, said = self._waits.setdefault(
            move.turn, (now, now + WAITS, '')
        )
        if now >= then or (said and said != reason):
            later = max(then, now + (now - since))
            self._waits[move.turn] = since, later, reason
            self._say(
                f'Move {move.turn} ({move.shown}): '
                f'{messages.clean(reason, 1000)}, '
                f'for {messages.say_time(now - since)}.'
            )

    def _say_left(self) -> str:
        """Estimate the time left from the time of the moves made so far."""
        left = self._total - self._ended
        if not self._made or not left:
            return ''
        seconds = (time.monotonic() - self._began) / self._made * left
        return f', about {messages.say_time(seconds)} left'
