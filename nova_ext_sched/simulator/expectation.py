# SPDX-License-Identifier: Apache-2.0

"""Compares the expectation of a step with its outcome."""

import collections
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing

from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import hostnames

Counts = Mapping[str, int]

#: The kinds of failure of a server, which are the values of
#: :attr:`Placement.failure`; :mod:`.document` has the words of scenarios for
#: them.
NO_VALID_HOST = 'no_valid_host'
REFUSED = 'refused'
FAILED = 'failed'

_NAMES = {
    NO_VALID_HOST: document.NO_VALID_HOST_WORDS,
    REFUSED: document.REFUSED_WORDS,
    FAILED: 'failed',
}
_FEW = 4


@dataclasses.dataclass(frozen=True)
class Placement:
    """The host or failure of one server after a step.

    :param server: the server's name; None if the step has no server
    :param host: its host; None if it has none
    :param failure: None, NO_VALID_HOST, REFUSED (nova-api answered with an
        error) or FAILED (anything else)
    :param detail: nova's text about the failure
    """

    server: str | None
    host: str | None = None
    failure: str | None = None
    detail: str = ''


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of a step.

    :param placements: one for each server of the step
    :param reasons: sentences on why the step ended so
    :param unused: sentences on why expected hosts were not used
    :param warnings: the package's warnings
    :param domains: for each metadata key that the step's expectations name,
        the number of group members by failure domain; those on a host in no
        domain are under the empty string
    """

    placements: Sequence[Placement]
    reasons: Sequence[str] = ()
    unused: Sequence[str] = ()
    warnings: Sequence[str] = ()
    domains: Mapping[str, Counts] = dataclasses.field(default_factory=dict)

    @property
    def hosts(self) -> collections.Counter[str]:
        """The number of the step's servers by host."""
        return collections.Counter(
            placement.host for placement in self.placements if placement.host
        )

    @property
    def failures(self) -> list[str]:
        """The failures of the step's servers that failed."""
        return [item.failure for item in self.placements if item.failure]

    def __str__(self) -> str:
        parts = []
        servers = len(self.placements)
        if hosts := self.hosts:
            parts.append(_summary(hosts, servers))
        for failure, name in _NAMES.items():
            if number := self.failures.count(failure):
                parts.append(name + (f' ×{number}' if servers > 1 else ''))
        for key, members in self.domains.items():
            parts += [
                f'{key} {value} ×{number}' if value else f'no {key} ×{number}'
                for value, number in sorted(members.items())
            ]
        return ', '.join(parts) or 'done'


@dataclasses.dataclass(frozen=True)
class Run:
    """The outcomes of a scenario's steps on one cloud.

    :param warnings: the package's warnings before the first step
    """

    outcomes: Sequence[Outcome]
    warnings: Sequence[str] = ()

    @classmethod
    def parse(cls, data: Mapping[str, typing.Any]) -> 'Run':
        """Return the run that :func:`dataclasses.asdict` made a mapping of."""
        outcomes = []
        for one in data['outcomes']:
            placements = [Placement(**item) for item in one['placements']]
            outcomes.append(Outcome(**{**one, 'placements': placements}))
        return cls(outcomes, data['warnings'])


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
    """The expected outcome of a step.

    :param hosts: the hosts that a server may land on; empty for any
    :param per_host: exact number of the step's servers on each named host
    :param max_per_host: largest number of the step's servers on one host
    :param min_hosts: smallest number of hosts that the servers spread over
    :param max_per_domain: by a key of aggregates' metadata, the largest
        number of members of the servers' groups in one failure domain
    :param min_domains: by such a key, the smallest number of failure domains
        that the members spread over
    :param failure: the failure with which servers should end; None if none
        should fail
    :param failures: how many of the servers should fail in this way; None for
        all
    """

    hosts: Sequence[str] = dataclasses.field(default_factory=list)
    per_host: Counts = dataclasses.field(default_factory=dict)
    max_per_host: int | None = None
    min_hosts: int | None = None
    max_per_domain: Counts = dataclasses.field(default_factory=dict)
    min_domains: Counts = dataclasses.field(default_factory=dict)
    failure: str | None = None
    failures: int | None = None

    def find_unused(self, outcome: Outcome) -> list[str]:
        """Return the expected hosts that are missing from the outcome.

        No host counts as missing if a server has a host, and each that has one
        is on one of ``hosts``.
        """
        per_host = (host for host, number in self.per_host.items() if number)
        wanted = [*self.hosts, *per_host]
        used = outcome.hosts
        if self.hosts and used and used.keys() <= set(self.hosts):
            return []
        return [host for host in dict.fromkeys(wanted) if host not in used]

    def met_by(self, outcome: Outcome) -> bool:
        """Return whether an outcome meets the expectation.

        Unless a failure is expected, no server may fail. Besides, each row
        whose expectation is given must be met:

        ==================================  ================================
        expectation                         met if
        ==================================  ================================
        hosts                               each server with a host is on one
                                            of them
        per_host                            each of these hosts has exactly
                                            its number of servers
        max_per_host                        no host has more servers
        min_hosts                           the servers are on at least this
                                            number of hosts
        max_per_domain                      no failure domain has more members
                                            of the groups, and no member is on
                                            a host in no domain
        min_domains                         the members are in at least this
                                            number of failure domains
        ``no valid host``, ``refused by     every server failed in this way
        nova``, as the whole expectation
        ``no_valid_host: N``                exactly N servers failed in this
                                            way
        ==================================  ================================
        """
        number = self._count_failures(len(outcome.placements))
        if outcome.failures != [self.failure] * number:
            return False
        return all(met for _, met in self._compare(outcome))

    def _count_failures(self, servers: int) -> int:
        """Return how many of a step's servers should fail."""
        if self.failure is None:
            return 0
        return servers if self.failures is None else self.failures

    def _compare(self, outcome: Outcome) -> Iterator[tuple[str, bool]]:
        """Yield each expectation of hosts in words, and whether it is met."""
        hosts = outcome.hosts
        if self.hosts:
            yield _either(self.hosts), hosts.keys() <= {*self.hosts}
        for host, number in self.per_host.items():
            yield f'{host} ×{number}', hosts[host] == number
        if (most := self.max_per_host) is not None:
            yield f'at most {most} a host', max([0, *hosts.values()]) <= most
        if (least := self.min_hosts) is not None:
            yield f'on {least} hosts or more', len(hosts) >= least
        for key, most in self.max_per_domain.items():
            members = outcome.domains[key]
            met = '' not in members and max([0, *members.values()]) <= most
            yield f'at most {most} in each {key}', met
        for key, least in self.min_domains.items():
            domains = outcome.domains[key].keys() - {''}
            yield f'at least {least} different {key}', len(domains) >= least

    def __str__(self) -> str:
        if self.failure is not None and self.failures is None:
            return _NAMES[self.failure]
        # Only the words are used, so any outcome will do.
        empty = Outcome((), domains=collections.defaultdict(dict))
        parts = [words for words, _ in self._compare(empty)]
        if self.failure is not None:
            parts.append(f'{_NAMES[self.failure]} ×{self.failures}')
        return ', '.join(parts) or 'any host'


def _either(hosts: Sequence[str]) -> str:
    if len(hosts) <= _FEW:
        return ' or '.join(hosts)
    return f'{hosts[0]} … {hosts[-1]} ({len(hosts)} hosts)'


def parse(value: typing.Any) -> Expectation:
    """Return the expectation that a checked document states.

    :param value: None for any host
    """
    if value == document.NO_VALID_HOST_WORDS:
        return Expectation(failure=NO_VALID_HOST)
    if value == document.REFUSED_WORDS:
        return Expectation(failure=REFUSED)
    rest = dict(value if isinstance(value, dict) else {'hosts': value or ()})
    hosts = rest.pop('hosts', ())
    per_host = rest.pop('per_host', {})
    if 'no_valid_host' in rest:
        rest['failures'] = rest.pop('no_valid_host')
        rest['failure'] = NO_VALID_HOST
    return Expectation(
        hostnames.expand_all(hosts),
        {
            host: number
            for pattern, number in per_host.items()
            for host in hostnames.expand(pattern)
        },
        **rest,
    )
