# SPDX-License-Identifier: Apache-2.0

"""Every server of every cell against the policies that are on."""

import argparse
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
import typing

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cmd import kept_hosts
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.audit import destinations
from nova_ext_sched.cmd.audit import policies
from nova_ext_sched.cmd.audit import servers
from nova_ext_sched.cmd.audit import totals


class Auditor:
    """Judges servers, cell by cell and host by host.

    What it holds in memory grows with the hosts and the aggregates, not with
    the servers.

    :param scheduler: what nova-scheduler has in memory
    :param names: the policies to judge by; empty for all that are on
    :param hosts: the hosts to look at; None for all
    :param project: the ID of the project to look at; None for all
    :ivar totals: the servers judged so far, counted
    :raises exception.InvalidValue: a name is not that of a policy that is on
    """

    def __init__(
        self,
        scheduler: kept_hosts.HostManager,
        names: Collection[str] = (),
        hosts: Collection[str] | None = None,
        project: str | None = None,
    ) -> None:
        self.scheduler = scheduler
        self.policies = policies.Policies(scheduler, names)
        self.totals = totals.Totals(self.policies.names)
        self._servers = servers.Servers(scheduler, hosts, project)
        self._destinations = destinations.Destinations(scheduler)
        self._counts: dict[str, dict[str, int]] = {}
        # Why cells cannot be read, by their UUIDs.
        self._silent: dict[str, str] = {}
        # Servers whose hosts are unknown, by the reason.
        self._unknown: dict[str, list[str]] = {}

    @property
    def faults(self) -> list[str]:
        """What could not be read, a sentence each."""
        return [
            f'Cell {self.scheduler.cell_name(cell)} cannot be read, and its '
            f'servers are not judged: {problem}.'
            for cell, problem in self._silent.items()
        ] + [
            f'The hosts for {messages.count("server", len(found))} are '
            f'unknown, {found[0]} for example: {problem}.'
            for problem, found in self._unknown.items()
        ]

    def count(self) -> int:
        """Return the number of servers to judge, for a progress bar."""
        self._counts = self._servers.count()
        self._silent.update(self.scheduler.silent_cells)
        return sum(sum(counts.values()) for counts in self._counts.values())

    def judge(
        self, advance: Callable[[], object] = lambda: None
    ) -> Iterator[servers.Server]:
        """Yield the servers found, as they are found; after :meth:`count`.

        A cell that stops answering goes to ``faults``, and the next one
        follows.

        :param advance: called after each server
        """
        for cell, counts in self._counts.items():
            try:
                for host in counts:
                    for server in self._servers.read(cell, host):
                        server.found = list(self.policies.judge(server))
                        self.totals.add(server)
                        if server.found:
                            yield server
                        advance()
            except nova_scheduler.CellFailed as exc:
                self._silent[cell] = exc.cause

    def find_destinations(
        self, server: servers.Server, policy: str
    ) -> list[str] | None:
        """Return the hosts that would take a server that was found.

        :param policy: with which it was found
        :returns: None where they are unknown; what was found or ``faults``
            then say why
        """
        if policy == totals.NOT_JUDGED:
            return None
        try:
            return self._destinations.find(server.uuid)
        except Exception as exc:
            problem = messages.describe(exc)
            self._unknown.setdefault(problem, []).append(server.uuid)
            return None


def make(wanted: argparse.Namespace) -> Auditor:
    """Return an auditor of what the arguments of the command choose.

    :raises exception.InvalidValue: what they name does not exist, or an
        option is malformed
    """
    nova_scheduler.override(dict(wanted.option))
    scheduler = kept_hosts.HostManager()
    aggregates = scheduler.aggs_by_id.values()
    _change_aggregates(aggregates, wanted)
    hosts = None
    if wanted.host is not None:
        known = {host.host for host in scheduler.hosts.values()}
        if wanted.host not in known and not scheduler.silent_cells:
            raise exception.InvalidValue(
                where='--host',
                expected='a host of a compute node',
                got=wanted.host,
            )
        hosts = {wanted.host}
    if wanted.aggregate is not None:
        found = base.find_aggregate(aggregates, wanted.aggregate)
        hosts = set(found.hosts).intersection(hosts or found.hosts)
    return Auditor(scheduler, wanted.policy, hosts, wanted.project)


def _change_aggregates(
    aggregates: Collection[typing.Any], wanted: argparse.Namespace
) -> None:
    """Change metadata in memory, to judge before it is changed."""
    for name, item in wanted.aggregate_property:
        key, equals, value = item.partition('=')
        if not key or not equals:
            raise exception.InvalidValue(
                where='--aggregate-property', expected='KEY=VALUE', got=item
            )
        aggregate = base.find_aggregate(aggregates, name)
        aggregate.metadata = {**(aggregate.metadata or {}), key: value}
    for name, key in wanted.no_aggregate_property:
        aggregate = base.find_aggregate(aggregates, name)
        metadata = dict(aggregate.metadata or {})
        if metadata.pop(key, None) is None:
            raise exception.InvalidValue(
                where='--no-aggregate-property',
                expected=f'a metadata key of aggregate '
                f'{messages.clean(aggregate.name)}: '
                f'{messages.first_few(sorted(metadata)) or "it has none"}',
                got=key,
            )
        aggregate.metadata = metadata
