# SPDX-License-Identifier: Apache-2.0

"""Every server of every cell against the policies that are on."""

from collections.abc import Collection
from collections.abc import Iterator

from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.audit import totals
from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import selection
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot


class Auditor:
    """Judges servers, cell by cell and host by host.

    What it holds in memory grows with the hosts and the aggregates, not with
    the servers.

    :param cloud: what nova-scheduler has in memory
    :param names: the policies to judge by; empty for all that are on
    :param hosts: the hosts to look at; None for all
    :param project: the ID of the project to look at; None for all
    :ivar totals: the servers judged so far, counted
    :raises exception.InvalidValue: a name is not that of a policy that is on
    """

    def __init__(
        self,
        cloud: snapshot.Snapshot,
        names: Collection[str] = (),
        hosts: Collection[str] | None = None,
        project: str | None = None,
    ) -> None:
        self.cloud = cloud
        self.policies = policies.Policies(cloud, names)
        self.totals = totals.Totals(self.policies.names)
        self._servers = servers.Servers(cloud, hosts, project)
        self._counts: dict[str, dict[str, int]] = {}

    @property
    def faults(self) -> list[str]:
        """What could not be read, a sentence each."""
        return self.cloud.faults

    def count(self) -> int:
        """Return the number of servers to judge, for a progress bar."""
        self._counts = self._servers.count()
        return sum(sum(counts.values()) for counts in self._counts.values())

    def judge(
        self, advance: progress.Advance = progress.silent
    ) -> Iterator[servers.Server]:
        """Yield the servers found, as they are found; after :meth:`count`.

        A cell that stops answering goes to ``faults``, and the next one
        follows.

        :param advance: called after each server
        """
        for cell, counts in self._counts.items():
            try:
                for host in counts:
                    for server in self._judge_host(cell, host):
                        self.totals.add(server)
                        if server.found:
                            yield server
                        advance()
            except cells.CellFailed:
                continue

    def _judge_host(self, cell: str, host: str) -> Iterator[servers.Server]:
        """Yield the servers of one host, but those that are gone meanwhile."""
        unknown: dict[str, servers.Server] = {}
        for server in self._servers.read(cell, host):
            server.found = list(self.policies.judge(server))
            if len(server.policies) < len(server.found):
                unknown[server.uuid] = server
            else:
                yield server
        deleted = gone.find(self.cloud, unknown.keys())
        yield from (unknown[uuid] for uuid in unknown if uuid not in deleted)


def make(
    cloud: snapshot.Snapshot,
    policies: Collection[str] = (),
    hosts: Collection[str] = (),
    aggregates: Collection[str] = (),
    project: str | None = None,
) -> Auditor:
    """Return an auditor of the servers that are named.

    :param policies: the names of those to judge by; empty for all that are on
    :param hosts: the names of those to look at
    :param aggregates: names, UUIDs or IDs of those whose hosts to look at too
    :param project: see :class:`Auditor`
    :raises exception.InvalidValue: what is named does not exist
    """
    found = None
    if hosts or aggregates:
        found = selection.find(cloud, hosts, aggregates)
    return Auditor(cloud, policies, found, project)
