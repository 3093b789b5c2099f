# SPDX-License-Identifier: Apache-2.0

"""Explains why one host gets far more servers of a plan than others.

nova's weighers can prefer a host the more, the more servers it has taken or
given away: PCIWeigher prefers one whose device was just given back. When such
a host fills up, the reason of its choice is gone; so the weighers are asked on
the way, with each doubling of the number that it has got.
"""

import collections
from collections.abc import Sequence
from collections.abc import Set
import functools
import statistics
import typing

from nova_ext_sched import messages
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans

# A host is crowded that gets so many, and so many times what the others get on
# average.
_FEWEST = 10
_TIMES = 4
# The weighers are asked with this arrival, and whenever that number doubles.
_FIRST_ASKED = 5


class Crowding:
    """The servers that hosts have got, and the weighers that preferred them.

    :param barred: UUIDs of hosts that are no destinations
    """

    def __init__(
        self, places: destinations.Destinations, barred: Set[str]
    ) -> None:
        self._places, self._barred = places, barred
        self._arrived: collections.Counter[str] = collections.Counter()
        self._weighers: dict[str, collections.Counter[str]] = {}

    def note(self, prepared: movable.Movable, target: typing.Any) -> None:
        """Note that a server is about to go to a nova HostState.

        :raises placement.PlacementFailed: placement does not answer
        """
        self._arrived[target.host] += 1
        doubled, rest = divmod(self._arrived[target.host], _FIRST_ASKED)
        # 1, 2, 4, 8 have one bit.
        if rest or doubled.bit_count() != 1:
            return
        weigher = movable.attempt(
            functools.partial(
                self._places.find_weigher, prepared, target, self._barred
            )
        )
        if isinstance(weigher, Exception):
            # The server goes there all the same.
            return
        preferred = self._weighers.setdefault(
            target.host, collections.Counter()
        )
        preferred[weigher] += 1

    def find(self, moves: Sequence[plans.Move]) -> list[plans.Crowded]:
        """Return the hosts that get far more servers than others."""
        counts = collections.Counter(move.expected for move in moves)
        numbers = [number for _, number in counts.most_common()]
        crowded = []
        for place, (host, number) in enumerate(counts.most_common()):
            others = numbers[place + 1 :]
            if (
                not others
                or number < _FEWEST
                or number < _TIMES * statistics.mean(others)
            ):
                break
            weighers = self._weighers.get(host, collections.Counter())
            [(weigher, _)] = weighers.most_common(1) or [('', 0)]
            crowded.append(
                plans.Crowded(messages.clean(host), number, others[0], weigher)
            )
        return crowded
