# SPDX-License-Identifier: Apache-2.0

"""Counts servers that violate policies, by place."""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Set
import typing

from nova_ext_sched import messages


class Totals:
    """Counts servers; one that violates two policies counts once.

    What it holds grows with the aggregates, projects and hosts.

    :param policies: the names of the policies that are judged
    :param held: names of hosts that are kept for failures
    :ivar servers: number of servers that were read
    :ivar violating: number of those that violate a policy
    :ivar several: number of those that violate more than one
    :ivar not_judged: number of those that a policy could not judge
    :ivar policies: number of servers that violate each policy
    :ivar in_use: by host that is kept for failures, its number of servers
    :ivar lacking: hosts to keep free besides; None where no policy keeps hosts
        or not all were read
    :ivar kept: number of hosts that are kept for failures, by their state
    """

    def __init__(
        self, policies: Iterable[str], held: Set[str] = frozenset()
    ) -> None:
        self.servers = 0
        self.violating = 0
        self.several = 0
        self.not_judged = 0
        self.policies = dict.fromkeys(policies, 0)
        self._held = held
        self.in_use: dict[str, int] = {}
        self.lacking: list[str] | None = None
        self.kept: dict[str, int] = {}
        # Servers by place, and by place and policy.
        self._servers = collections.Counter[tuple[str, str]]()
        self._policies = collections.Counter[tuple[str, str, str]]()

    def add(self, server: typing.Any) -> None:
        """Count one server, a :class:`.policies.Standing`, that was judged."""
        violated = server.policies
        self.servers += 1
        self.not_judged += len(violated) < len(server.violated)
        if server.host in self._held:
            self.in_use[server.host] = self.in_use.get(server.host, 0) + 1
        if not violated:
            return
        self.violating += 1
        self.several += len(violated) > 1
        for policy in violated:
            # One with a suffix is not there from the start.
            self.policies[policy] = self.policies.get(policy, 0) + 1
        for place in (
            *(('aggregate', one.name) for one in server.host_state.aggregates),
            ('project', server.project_id),
            ('host', server.host),
        ):
            self._servers[place] += 1
            self._policies.update((*place, policy) for policy in violated)

    def merge(self, other: 'Totals') -> None:
        """Count the servers that another has counted, too."""
        self.servers += other.servers
        self.violating += other.violating
        self.several += other.several
        self.not_judged += other.not_judged
        for counts, more in (
            (self.policies, other.policies),
            (self.in_use, other.in_use),
        ):
            for name, number in more.items():
                counts[name] = counts.get(name, 0) + number
        self._servers.update(other._servers)
        self._policies.update(other._policies)

    @property
    def by_host(self) -> dict[str, int]:
        """The numbers of servers that violate a policy, by host."""
        return {
            name: number
            for (kind, name), number in self._servers.items()
            if kind == 'host'
        }

    @property
    def projects(self) -> set[str]:
        """The IDs of the projects of servers that violate a policy."""
        return {name for kind, name in self._servers if kind == 'project'}

    def lines(self) -> Iterator[tuple[str, str, int, dict[str, int]]]:
        """Yield the aggregates, then projects, then hosts.

        Each begins with what has the most servers that violate a policy.

        :returns: ``aggregate``, ``project`` or ``host``; its name, or the ID
            of the project; the number of its servers that violate a policy,
            of all and by policy
        """
        kinds = ('aggregate', 'project', 'host')
        for place, servers in sorted(
            self._servers.items(),
            key=lambda one: (
                kinds.index(one[0][0]),
                -one[1],
                messages.in_order(one[0][1]),
            ),
        ):
            policies = {
                policy: count
                for policy in self.policies
                if (count := self._policies[*place, policy])
            }
            yield (*place, servers, policies)

    @property
    def ranked(self) -> list[tuple[str, int]]:
        """The policies, each with its number of servers, the most first."""
        return sorted(self.policies.items(), key=lambda item: -item[1])

    @property
    def head(self) -> str:
        """The finding as a clause, made of :attr:`counts`."""
        if not self.policies:
            return 'No policy is on'
        head = messages.part(
            self.violating,
            self.servers,
            'server',
            'violates a policy',
            'violate a policy',
        )
        if not self.violating:
            head += f' (policies checked: {", ".join(self.policies)})'
        return head

    @property
    def remarks(self) -> list[str]:
        """Sentences on hosts that are to be free, and on what is counted."""
        said = []
        if self.in_use:
            hosts = messages.count('host', len(self.in_use))
            verb = messages.agree(len(self.in_use), 'is', 'are')
            names = messages.first_few(
                [
                    f'{messages.clean(host)} '
                    f'({messages.count("server", self.in_use[host])})'
                    for host in sorted(self.in_use, key=messages.in_order)
                ]
            )
            said.append(f'{hosts} kept for failures {verb} in use: {names}.')
        if several := self.several:
            verb = messages.agree(several, 'violates', 'violate')
            counts = messages.agree(several, 'counts', 'count')
            said.append(
                f'{messages.count("server", several)} {verb} several '
                f'policies, and {counts} in each.'
            )
        if self.policies and self.not_judged:
            servers = messages.count('server', self.not_judged)
            said.append(f'{servers} could not be checked.')
        return said

    @property
    def counts(self) -> list[tuple[int, str]]:
        """The number of servers that violate each policy."""
        return [(count, name) for name, count in self.ranked if count]
