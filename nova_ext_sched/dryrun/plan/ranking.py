# SPDX-License-Identifier: Apache-2.0

"""Keeps hosts in the order of nova's weighers while servers come and go.

nova's weighers order a list of hosts as a whole, and in a plan of thousands of
moves the list changes with each. So the hosts that changed are ordered among
themselves, as one run. When there are AT_MOST runs of about one length, their
hosts are ordered anew as one run; its length is AT_MOST times as large. A host
that changes once is then weighed a few times, not with each later move.

Between two runs there is no order: whoever looks for the best host compares
the best ones of each.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import itertools

#: The most runs of about one length.
AT_MOST = 4

#: Returns UUIDs of hosts in the weighers' order, the best first.
Order = Callable[[Collection[str]], Iterable[str]]


class Ranking:
    """The order of the hosts of a shared answer.

    A host is known by its UUID and the version of its state. A run holds for
    a host as long as that version is the open fork's, so that a run that was
    made in a fork says nothing once the fork is dropped.
    """

    def __init__(self) -> None:
        # The versions at which hosts were ordered last.
        self._ordered: dict[str, int] = {}
        # The runs, by about how long they are: the short ones first.
        self._levels: list[list[dict[str, int]]] = []

    def find_changed(
        self, uuids: Iterable[str], versions: Mapping[str, int]
    ) -> list[str]:
        """Return the hosts that changed since they were ordered last.

        :param versions: the versions of all hosts that changed at all
        """
        ordered = self._ordered
        return [uuid for uuid in uuids if ordered.get(uuid) != versions[uuid]]

    def add(
        self, uuids: Collection[str], versions: Mapping[str, int], order: Order
    ) -> None:
        """Order hosts that changed, together with runs of about their length.

        :param versions: as of :meth:`find_changed`
        """
        for level in itertools.count():
            if level == len(self._levels):
                self._levels.append([])
            runs = self._levels[level]
            if len(runs) < AT_MOST - 1:
                break
            uuids = {*uuids}.union(*(_list(run, versions) for run in runs))
            runs.clear()
        made = {uuid: versions[uuid] for uuid in order(uuids)}
        runs.append(made)
        self._ordered |= made

    def read(self, versions: Mapping[str, int]) -> Iterator[Iterator[str]]:
        """Yield the runs: for each the hosts as they were, the best first.

        :param versions: as of :meth:`find_changed`
        """
        for run in itertools.chain.from_iterable(self._levels):
            yield _list(run, versions)


def _list(run: dict[str, int], versions: Mapping[str, int]) -> Iterator[str]:
    """Yield the hosts of a run that did not change since."""
    for uuid, version in run.items():
        if versions.get(uuid) == version:
            yield uuid
