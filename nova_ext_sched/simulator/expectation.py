# SPDX-License-Identifier: Apache-2.0

"""What a step should do, what it did, and whether the two agree."""

import collections
from collections.abc import Sequence
import dataclasses
import typing

from nova_ext_sched.simulator import hostnames
from nova_ext_sched.simulator import schema

#: Ways in which a server may end without a host.
NO_VALID_HOST = 'no_valid_host'
REFUSED = 'refused'
FAILED = 'failed'

_FEW = 4


@dataclasses.dataclass(frozen=True)
class Placement:
    """Where one server is after a step.

    :param server: the server's name; None where a step has no server
    :param host: its host, or None
    :param failure: None, NO_VALID_HOST, REFUSED (nova-api answered with an
        error) or FAILED (anything else)
    :param detail: what nova said about the failure
    """

    server: str | None
    host: str | None = None
    failure: str | None = None
    detail: str = ''


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a step did.

    :param placements: one for each server of the step
    :param reasons: what the scheduler logged meanwhile
    """

    placements: tuple[Placement, ...]
    reasons: tuple[str, ...] = ()

    @property
    def hosts(self) -> collections.Counter[str]:
        """The number of the step's servers by host."""
        return collections.Counter(
            placement.host
            for placement in self.placements
            if placement.host is not None and placement.failure is None
        )

    def count(self, failure: str) -> int:
        """Return the number of servers that ended in this failure."""
        return sum(item.failure == failure for item in self.placements)

    def __str__(self) -> str:
        parts = []
        if hosts := self.hosts:
            parts.append(_summary(hosts, len(self.placements)))
        words = {
            NO_VALID_HOST: schema.NO_VALID_HOST,
            REFUSED: schema.REFUSED,
            FAILED: 'failed',
        }
        for failure, text in words.items():
            if number := self.count(failure):
                many = f' ×{number}' if len(self.placements) > 1 else ''
                parts.append(text + many)
        return ', '.join(parts) or 'done'


def _summary(hosts: collections.Counter[str], servers: int) -> str:
    if servers == 1:
        return next(iter(hosts))
    if len(hosts) <= _FEW:
        return ', '.join(f'{host} ×{hosts[host]}' for host in sorted(hosts))
    least, most = min(hosts.values()), max(hosts.values())
    each = f'{least}' if least == most else f'{least} to {most}'
    return f'{hosts.total()} servers on {len(hosts)} hosts, {each} each'


@dataclasses.dataclass(frozen=True)
class Expectation:
    """What a step should do.

    :param hosts: the hosts that a server may land on; None for any
    :param per_host: exact number of the step's servers on each named host
    :param max_per_host: largest number of the step's servers on one host
    :param min_hosts: smallest number of hosts that the servers spread over
    :param failure: what servers should end in instead of on a host
    :param failures: how many of them; None for all
    """

    hosts: tuple[str, ...] | None = None
    per_host: tuple[tuple[str, int], ...] = ()
    max_per_host: int | None = None
    min_hosts: int | None = None
    failure: str | None = None
    failures: int | None = None

    def met_by(self, outcome: Outcome) -> bool:
        """Return whether the step did what it should.

        ==================================  ================================
        expected                            met where
        ==================================  ================================
        nothing in particular               no server failed
        hosts                               and each is on one of them
        per_host                            and each of these has as many
        max_per_host, min_hosts             and no host has more, and the
                                            servers are on as many hosts
        no valid host, refused              every server ended so
        no_valid_host: N                    just N did, and the others meet
                                            the rest
        ==================================  ================================
        """
        total = len(outcome.placements)
        failing = 0
        if self.failure is not None:
            failing = total if self.failures is None else self.failures
            if outcome.count(self.failure) != failing:
                return False
        failed = sum(item.failure is not None for item in outcome.placements)
        if failed != failing:
            return False
        hosts = outcome.hosts
        return (
            (self.hosts is None or hosts.keys() <= set(self.hosts))
            and all(hosts[host] == number for host, number in self.per_host)
            and (
                self.max_per_host is None
                or max(hosts.values(), default=0) <= self.max_per_host
            )
            and (self.min_hosts is None or len(hosts) >= self.min_hosts)
        )

    def __str__(self) -> str:
        words = {
            NO_VALID_HOST: schema.NO_VALID_HOST,
            REFUSED: schema.REFUSED,
        }
        if self.failure is not None and self.failures is None:
            return words[self.failure]
        parts = []
        if self.hosts is not None:
            parts.append(_either(self.hosts))
        parts.extend(f'{host} ×{number}' for host, number in self.per_host)
        if self.max_per_host is not None:
            parts.append(f'at most {self.max_per_host} a host')
        if self.min_hosts is not None:
            parts.append(f'on {self.min_hosts} hosts or more')
        if self.failure is not None:
            parts.append(f'{words[self.failure]} ×{self.failures}')
        return ', '.join(parts) or 'any host'


def _either(hosts: Sequence[str]) -> str:
    if len(hosts) <= _FEW:
        return ' or '.join(hosts)
    return f'{hosts[0]} … {hosts[-1]} ({len(hosts)} hosts)'


def parse(value: typing.Any) -> Expectation:
    """Return the expectation that a checked document states.

    :param value: what :data:`schema.EXPECT` accepts, or None for any host
    """
    if value is None:
        return Expectation()
    if value == schema.NO_VALID_HOST:
        return Expectation(failure=NO_VALID_HOST)
    if value == schema.REFUSED:
        return Expectation(failure=REFUSED)
    if not isinstance(value, dict):
        return Expectation(hosts=tuple(hostnames.expand_all(value)))
    hosts = value.get('hosts')
    failures = value.get('no_valid_host')
    return Expectation(
        hosts=None if hosts is None else tuple(hostnames.expand_all(hosts)),
        per_host=tuple(
            (host, number)
            for pattern, number in value.get('per_host', {}).items()
            for host in hostnames.expand(pattern)
        ),
        max_per_host=value.get('max_per_host'),
        min_hosts=value.get('min_hosts'),
        failure=None if failures is None else NO_VALID_HOST,
        failures=failures,
    )
