# SPDX-License-Identifier: Apache-2.0

"""How many servers violate the policies, and where they are."""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import typing

from nova_ext_sched import messages


class Line(typing.NamedTuple):
    """How many servers of one aggregate, project or host violate a policy.

    :ivar by: ``aggregate``, ``project`` or ``host``
    :ivar name: of the aggregate or host; the ID of the project
    :ivar servers: number of servers that violate a policy
    :ivar policies: number of servers by policy
    """

    by: str
    name: str
    servers: int
    policies: dict[str, int]


class Totals:
    """Counts servers; one that violates two policies counts once.

    What it holds grows with the aggregates, projects and hosts.

    :param policies: the names of the policies that are judged
    :ivar servers: number of servers that were read
    :ivar violating: number of those that violate a policy
    :ivar not_judged: number of those that a policy could not judge
    :ivar policies: number of servers that violate each policy
    """

    def __init__(self, policies: Iterable[str]) -> None:
        self.servers = 0
        self.violating = 0
        self.not_judged = 0
        self.policies = dict.fromkeys(policies, 0)
        self._servers: collections.Counter[tuple[str, str]] = (
            collections.Counter()
        )
        self._policies: dict[tuple[str, str], collections.Counter[str]] = {}

    def add(
        self,
        violated: Sequence[str],
        judged: bool,
        places: Iterable[tuple[str, str]],
    ) -> None:
        """Count one server.

        :param violated: the names of the policies that it violates
        :param judged: whether every policy could judge it
        :param places: its aggregates, project and host, as in :class:`Line`
        """
        self.servers += 1
        self.not_judged += not judged
        if not violated:
            return
        self.violating += 1
        for policy in violated:
            self.policies[policy] += 1
        for place in places:
            self._servers[place] += 1
            self._policies.setdefault(place, collections.Counter()).update(
                violated
            )

    def lines(self) -> Iterator[Line]:
        """Yield the aggregates, then projects, then hosts.

        Each begins with what has the most servers that violate a policy.
        """
        for by in ('aggregate', 'project', 'host'):
            ranked = sorted(
                (-servers, name)
                for (kind, name), servers in self._servers.items()
                if kind == by
            )
            for servers, name in ranked:
                counts = self._policies[by, name]
                policies = {
                    policy: counts[policy]
                    for policy in self.policies
                    if counts[policy]
                }
                yield Line(by, name, -servers, policies)

    @property
    def ranked(self) -> list[tuple[str, int]]:
        """The policies, each with its number of servers, the most first."""
        return sorted(self.policies.items(), key=lambda item: -item[1])

    @property
    def head(self) -> str:
        """How many of the servers violate a policy."""
        return messages.part(
            self.violating,
            self.servers,
            'server',
            'violates a policy',
            'violate a policy',
        )

    @property
    def sentence(self) -> str:
        """What was found, by policy, and how many cannot be judged."""
        if not self.policies:
            return 'No policy is on.'
        text = self.head
        if self.violating:
            counts = [
                f'{name} {count}' for name, count in self.ranked if count
            ]
            text += f': {", ".join(counts)}.'
        else:
            text += f' (judged by {", ".join(self.policies)}).'
        if self.not_judged:
            text += (
                f' {messages.count("server", self.not_judged)} cannot be '
                f'judged.'
            )
        return text
