# SPDX-License-Identifier: Apache-2.0

"""Every server of every cell against the policies that are on."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
import typing

from nova_ext_sched import messages
from nova_ext_sched.audit import destinations
from nova_ext_sched.audit import policies
from nova_ext_sched.audit import servers
from nova_ext_sched.explain import scheduler as nova_scheduler

#: The policy of a server that no policy could judge.
UNJUDGED = '-'


class Finding(typing.NamedTuple):
    """A server that the scheduler would not put where it stands.

    :ivar policy: the name of the policy that refuses the host, or
        :data:`UNJUDGED`
    """

    server: str
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
    """

    def __init__(
        self,
        ctxt: typing.Any,
        scheduler: nova_scheduler.Scheduler,
        judging: Sequence[type[policies.Policy]],
        hosts: Collection[str] | None = None,
        project: str | None = None,
    ) -> None:
        self._policies = [policy(ctxt, scheduler) for policy in judging]
        self._hosts = hosts
        #: Numbers of servers: judged so far, and found.
        self.judged = 0
        self.found = 0
        #: What could not be read: a sentence each.
        self.faults: list[str] = []
        self._cells = [
            (mapping, servers.Cell(ctxt, scheduler, mapping, project))
            for mapping in scheduler.host_manager.cells.values()
        ]
        self._counts: dict[str, dict[str, int]] = {}

    def count(self) -> int:
        """Return the number of servers to judge, for a progress bar."""
        for mapping, cell in self._cells:
            try:
                counts = cell.count()
            except servers.CellDown as exc:
                self._report(mapping, str(exc))
            else:
                self._counts[mapping.uuid] = {
                    host: number
                    for host, number in counts.items()
                    if self._hosts is None or host in self._hosts
                }
        return sum(sum(counts.values()) for counts in self._counts.values())

    def findings(
        self, advance: Callable[[], object] | None = None
    ) -> Iterator[Finding]:
        """Yield what is found, as it is found; after :meth:`count`.

        A cell that stops answering goes to ``faults``, and the next one
        follows.

        :param advance: called after each server
        """
        for mapping, cell in self._cells:
            for host in self._counts.get(mapping.uuid, ()):
                try:
                    for server in cell.read(host):
                        found = list(self._judge(server))
                        self.judged += 1
                        self.found += bool(found)
                        yield from found
                        if advance:
                            advance()
                except servers.CellDown as exc:
                    self._report(mapping, str(exc))
                    break

    def find_destinations(
        self, finding: Finding, where: destinations.Destinations
    ) -> list[str] | None:
        """Return the hosts that would take a server that was found.

        :returns: None where they are unknown; the finding or ``faults``
            then say why
        """
        if finding.policy == UNJUDGED:
            return None
        try:
            return where.find(finding.server)
        except Exception as exc:
            self.faults.append(
                f'the hosts for server {finding.server} are unknown: '
                f'{messages.describe(exc)}'
            )
            return None

    @property
    def sentence(self) -> str:
        """What was found, by which policies, and what could not be read."""
        names = ', '.join(policy.name for policy in self._policies)
        said = (
            f'{self.found} of {self.judged} servers stand where the policies '
            f'would not put them ({names})'
            if names
            else 'No policy is on'
        )
        return ' '.join(f'{text}.' for text in (said, *self.faults))

    def _judge(self, server: servers.Server) -> Iterator[Finding]:
        def finding(policy: str, reason: str) -> Finding:
            return Finding(
                server.uuid,
                server.project_id,
                server.host_state.host,
                policy,
                reason,
            )

        if server.fault:
            yield finding(UNJUDGED, f'cannot be judged: {server.fault}')
            return
        for policy in self._policies:
            try:
                passes, reason = policy.judge(server)
            except Exception as exc:
                # Silence would say that all is well.
                passes, reason = False, messages.describe(exc)
                reason = f'cannot be judged: {reason}'
            if not passes:
                yield finding(policy.name, reason)

    def _report(self, mapping: typing.Any, problem: str) -> None:
        name = messages.quote(nova_scheduler.cell_name(mapping))
        self.faults.append(
            f'cell {name} cannot be read, and servers of it are not judged: '
            f'{problem}'
        )
