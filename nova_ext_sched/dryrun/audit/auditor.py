# SPDX-License-Identifier: Apache-2.0

"""Judges every server of every cell by the enabled policies."""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import functools
import itertools
import typing

from nova_ext_sched import exception
from nova_ext_sched import grouping
from nova_ext_sched import messages
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.audit import totals
from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import holding
from nova_ext_sched.dryrun.cloud import jobs
from nova_ext_sched.dryrun.cloud import selection
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import server
from nova_ext_sched.policy import failover

T = typing.TypeVar('T')

_NO_MOVE = ', and nova cannot move it either'
_CREDENTIALS = (
    '; Glance takes the credentials of OS_CLOUD or other OS_* variables, '
    'Cinder those of [cinder] in nova.conf'
)


class Auditor:
    """Judges servers, cell by cell and host by host.

    What it holds in memory grows with the hosts and the aggregates, not with
    the servers.

    :param cloud: nova-scheduler's memory of the cloud
    :param names: the policies to judge by; empty for all that are on
    :param hosts: the hosts to look at; None for all
    :param project: the ID of the project to look at; None for all
    :ivar totals: the servers judged so far, counted
    :raises exception.UnknownName: no enabled policy has a name
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
        judged = self.policies.names
        is_held = failover.DECLARATION.name in judged
        held = self.policies.held if is_held else frozenset[str]()
        self._make_totals = functools.partial(totals.Totals, judged, held)
        self.totals = self._make_totals()
        self._is_whole = is_held and hosts is None and project is None
        self._reader = servers.Reader(cloud, hosts, project)
        self._counts: dict[str, dict[str, int]] = {}

    @property
    def faults(self) -> list[str]:
        """A sentence for each failed read."""
        return self.cloud.faults

    def count(self) -> int:
        """Return the number of servers to judge, for a progress bar."""
        self._counts = self._reader.count()
        return sum(sum(counts.values()) for counts in self._counts.values())

    def list_cells(self) -> list[str]:
        """Return the cells with servers to judge; after :meth:`count`.

        By UUID; with the most servers first.
        """
        return sorted(
            self._counts, key=lambda cell: -sum(self._counts[cell].values())
        )

    def judge(
        self,
        advance: progress.Advance = progress.silent,
        of_cells: Iterable[str] | None = None,
    ) -> Iterator[policies.Standing]:
        """Yield servers with violations, as they are found; after `count`.

        A cell that stops answering goes to ``faults``, and the next one
        follows.

        :param advance: called after each server
        :param of_cells: UUIDs of the cells; None for all
        """
        for cell in self._counts if of_cells is None else of_cells:
            with contextlib.suppress(cells.CellFailed):
                for standing in self._judge_hosts(cell, self._counts[cell]):
                    self.totals.add(standing)
                    if standing.violated:
                        yield standing
                    advance()

    def judge_in_jobs(
        self,
        number: int,
        collect: Callable[[Iterable[policies.Standing]], T],
        advance: progress.Advance = progress.silent,
    ) -> Iterator[T]:
        """Judge as :meth:`judge`, each cell in one of several processes.

        :param number: of jobs
        :param collect: called with what :meth:`judge` yields of a cell
        :returns: what that returned, in the order of :meth:`judge`
        :raises .jobs.JobFailed: a job died
        """

        def work(
            cell: str, advance: progress.Advance
        ) -> tuple[T, totals.Totals]:
            self.totals = self._make_totals()
            return collect(self.judge(advance, [cell])), self.totals

        parts = self.list_cells()
        ended = {
            parts[index]: found
            for index, found in jobs.run(
                self.cloud, parts, work, number, advance
            )
        }
        for cell in self._counts:
            found, counted = ended[cell]
            self.totals.merge(counted)
            yield found

    def judge_again(
        self, wanted: Iterable[tuple[str, str, str]]
    ) -> Iterator[policies.Standing]:
        """Yield servers with violations among those that another has judged.

        They are not counted again.

        :param wanted: for each, the UUID of its cell, its host and its UUID
        """
        by_cell = grouping.by_key(
            (cell, (host, uuid)) for cell, host, uuid in wanted
        )
        for cell, of_cell in by_cell.items():
            counts = collections.Counter(host for host, _ in of_cell)
            uuids = {uuid for _, uuid in of_cell}
            with contextlib.suppress(cells.CellFailed):
                for standing in self._judge_hosts(cell, counts, uuids):
                    if standing.violated:
                        yield standing

    def judge_hold(self) -> None:
        """Find hosts to keep free besides those that are; after :meth:`judge`.

        Nobody looks for any where not all servers are judged.

        :raises .placement.PlacementFailed: placement does not answer
        """
        if self._is_whole:
            counts = collections.Counter[str]()
            for of_cell in self._counts.values():
                counts.update(of_cell)
            kept = holding.find_kept(self.cloud, counts, self.policies.on)
            if kept is not None:
                self.totals.lacking, self.totals.kept = kept

    def _judge_hosts(
        self,
        cell: str,
        counts: Mapping[str, int],
        wanted: Collection[str] | None = None,
    ) -> Iterator[policies.Standing]:
        """Yield the servers of hosts, without those gone meanwhile.

        :param counts: how many to judge there are about, by host
        :param wanted: UUIDs of the only ones; None for all
        """
        for hosts in servers.in_pages(counts):
            unknown: dict[str, policies.Standing] = {}
            for standing in self._read(cell, hosts, wanted):
                standing.violated = list(self.policies.judge(standing))
                if len(standing.policies) < len(standing.violated):
                    unknown[standing.uuid] = standing
                else:
                    yield standing
            deleted = gone.find(self.cloud, unknown.keys())
            yield from (
                unknown[uuid] for uuid in unknown if uuid not in deleted
            )

    def _read(
        self, cell: str, hosts: Sequence[str], wanted: Collection[str] | None
    ) -> Iterator[policies.Standing]:
        """Yield the servers of hosts, each with its request.

        :raises cells.CellFailed: the database stops answering
        """
        on_hosts = self._reader.list_on(cell, hosts)
        there = [
            uuid
            for uuid in itertools.chain(*on_hosts.values())
            if wanted is None or uuid in wanted
        ]
        for stored in self._reader.read_on(
            cell, hosts, there, ['flavor'], with_disks=True
        ):
            # Where it is now: it may have moved since.
            host = stored.instance.host
            # A HostState as HostManager makes it, but without a compute node,
            # because a host without nova-compute may still hold servers.
            state = self.cloud.host_state_cls(host, host, cell)
            state.aggregates = self.cloud.aggregates_of(host)
            state.instances = dict.fromkeys(on_hosts.get(host, ()))
            state.instances.pop(stored.uuid, None)
            yield policies.Standing(
                stored.uuid,
                stored.instance.display_name or '',
                stored.instance.project_id,
                state,
                *self._make_request(stored),
            )

    def _make_request(self, stored: servers.Stored) -> tuple[typing.Any, str]:
        """Return a server's request, or None and why it is unknown."""
        if stored.text is None:
            return None, f'nova has no request spec of the server{_NO_MOVE}'
        try:
            asked = server.Server(self._reader, stored.uuid, stored)
        except Exception as exc:
            problem = f'its request spec cannot be read{_NO_MOVE}'
            return None, f'{problem}: {messages.say_error(exc)}'
        try:
            asked.stay()
        except exception.RequestRefused as exc:
            # What Glance or Cinder refuses.
            return None, str(exc) + (_CREDENTIALS if exc.detail else '')
        except Exception as exc:
            return None, messages.say_error(exc)
        return asked.spec_obj, ''


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
    is_narrowed = hosts or aggregates
    found = selection.find(cloud, hosts, aggregates) if is_narrowed else None
    return Auditor(cloud, policies, found, project)
