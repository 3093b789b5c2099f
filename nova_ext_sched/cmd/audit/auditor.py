# SPDX-License-Identifier: Apache-2.0

"""Every server of every cell against the policies that are on."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
import typing

from nova_ext_sched import messages
from nova_ext_sched.cmd.audit import destinations
from nova_ext_sched.cmd.audit import host_manager
from nova_ext_sched.cmd.audit import policies
from nova_ext_sched.cmd.audit import servers
from nova_ext_sched.cmd.audit import totals

#: Stands for the policy of a server that cannot be judged.
NOT_JUDGED = 'not-judged'


class Finding(typing.NamedTuple):
    """A server that violates a policy where it stands, or cannot be judged.

    ``policy`` is the name of the policy that refuses the host, or
    :data:`NOT_JUDGED`; ``project`` is an ID.
    """

    server: str
    name: str
    project: str
    host: str
    policy: str
    reason: str


class Auditor:
    """Judges servers, cell by cell and host by host.

    What it holds in memory grows with the hosts and the aggregates, not with
    the servers.

    :param ctxt: a nova RequestContext of an administrator
    :param scheduler: what nova-scheduler has in memory
    :param judging: the policies to judge by
    :param hosts: the hosts to look at; None for all
    :param project: the ID of the project to look at; None for all
    :ivar totals: the servers judged so far, counted
    :ivar scheduler: as given; so is ``policies``
    """

    def __init__(
        self,
        ctxt: typing.Any,
        scheduler: host_manager.HostManager,
        judging: policies.Policies,
        hosts: Collection[str] | None = None,
        project: str | None = None,
    ) -> None:
        self.scheduler = scheduler
        self.policies = judging
        self._hosts = hosts
        self._servers = servers.Servers(ctxt, scheduler, project)
        self._destinations = destinations.Destinations(scheduler)
        self._counts: dict[str, dict[str, int]] = {}
        self.totals = totals.Totals(judging.names)
        self._unread: list[str] = []
        # Servers whose hosts are unknown, by the reason.
        self._unknown: dict[str, list[str]] = {}

    @property
    def faults(self) -> list[str]:
        """What could not be read, a sentence each."""
        return self._unread + [
            f'The hosts for {messages.count("server", len(found))} are '
            f'unknown, {found[0]} for example: {problem}.'
            for problem, found in self._unknown.items()
        ]

    def count(self) -> int:
        """Return the number of servers to judge, for a progress bar."""
        for cell, counts in self._servers.count().items():
            self._counts[cell] = {
                host: number
                for host, number in counts.items()
                if self._hosts is None or host in self._hosts
            }
        for cell, problem in self.scheduler.silent_cells.items():
            self._report(cell, problem)
        return sum(sum(counts.values()) for counts in self._counts.values())

    def findings(
        self, advance: Callable[[], object] = lambda: None
    ) -> Iterator[Finding]:
        """Yield what is found, as it is found; after :meth:`count`.

        :param advance: called after each server
        """
        for server, host, found in self.find_servers(advance):
            for why in found:
                yield Finding(
                    server.uuid, server.name, server.project_id, host, *why
                )

    def find_servers(
        self, advance: Callable[[], object] = lambda: None
    ) -> Iterator[tuple[servers.Server, str, Sequence[tuple[str, str]]]]:
        """Yield servers of which something is found; after :meth:`count`.

        A cell that stops answering goes to ``faults``, and the next one
        follows.

        :param advance: called after each server
        :returns: the server, its host, and each policy with its reason as in
            :class:`Finding`
        """
        for cell, counts in self._counts.items():
            try:
                for host in counts:
                    for server in self._servers.read(cell, host):
                        found = list(self._judge(server))
                        self._count(server, host, found)
                        if found:
                            yield server, host, found
                        advance()
            except servers.CellDown as exc:
                self._report(cell, str(exc))

    def find_destinations(self, finding: Finding) -> list[str] | None:
        """Return the hosts that would take a server that was found.

        :returns: None where they are unknown; the finding or ``faults``
            then say why
        """
        if finding.policy == NOT_JUDGED:
            return None
        try:
            return self._destinations.find(finding.server)
        except Exception as exc:
            problem = messages.describe(exc)
            self._unknown.setdefault(problem, []).append(finding.server)
            return None

    @staticmethod
    def get_violated(found: Sequence[tuple[str, str]]) -> list[str]:
        """Return the policies that a server violates.

        :param found: each policy and its reason, of :meth:`find_servers`
        """
        return [policy for policy, _ in found if policy != NOT_JUDGED]

    def _judge(self, server: servers.Server) -> Iterator[tuple[str, str]]:
        """Yield each policy that refuses the host, and its reason."""
        if server.fault:
            yield NOT_JUDGED, server.fault
            return
        for name, found in self.policies.judge(server):
            if isinstance(found, Exception):
                problem = messages.describe(found)
                yield NOT_JUDGED, f'{name} fails: {problem}'
            elif not found.passes:
                yield name, found.reason

    def _count(
        self,
        server: servers.Server,
        host: str,
        found: Sequence[tuple[str, str]],
    ) -> None:
        violated = self.get_violated(found)
        self.totals.add(
            violated,
            len(violated) == len(found),
            [
                *(
                    ('aggregate', aggregate.name)
                    for aggregate in server.host_state.aggregates
                ),
                ('project', server.project_id),
                ('host', host),
            ],
        )

    def _report(self, cell: str, problem: str) -> None:
        self._unread.append(
            f'Cell {self.scheduler.cell_name(cell)} cannot be read, and its '
            f'servers are not judged: {problem}.'
        )
