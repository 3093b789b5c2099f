# SPDX-License-Identifier: Apache-2.0

"""Failure domains: how many servers of a group may fail together.

A failure domain is a value of one metadata key of aggregates: a rack, a power
feed, an availability zone. A value is split at commas, as nova splits it, and
names one domain or several. Names are compared exactly.

**What a request asks for.** Without a server group it asks for nothing,
whatever its hints say. A group of any policy may use the hints. The option is
for groups of the policy ``anti-affinity``. If several apply, the strictest
wins: a hint never lifts the operator's limit.

=====================================  =================================
set for a server of a group            most members in a domain
=====================================  =================================
nothing, and the option is 0           any number
``different_failure_domain`` true      1
``different_failure_domain`` false     any number
``max_server_per_failure_domain=n``    n
the option is n, ``anti-affinity``     n
the option is n, any other policy      any number
several of these                       the lowest
a hint in another form                 the request is refused
=====================================  =================================

**Which hosts it gets.** *Held* is the number of members in a
domain, without the server that the request places or moves:

==================  =====================================  ========
domains of host     held                                   decision
==================  =====================================  ========
none                any                                    rejected
one                 below the limit                        passes
one                 the limit, or more                     rejected
several             below the limit in each                passes
several             the limit, or more, in any             rejected
==================  =====================================  ========

**How members count.**

=======================================  ==================================
host of the member                       the member counts
=======================================  ==================================
in one domain                            in it
in several, of one or more aggregates    in each
in none                                  nowhere
not known (not placed, or deleted)       nowhere
two hosts, while it moves                in the domains of both, once each
=======================================  ==================================

A server alone in its group may use every host that is in a domain.
"""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import typing

from oslo_utils import strutils

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.policy import act
from nova_ext_sched.policy import amount
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import verdict

#: The hint that asks for one member a domain; vexxhost's filter has it too.
DIFFERENT = 'different_failure_domain'
#: A hint, and the operator's option.
LIMIT = 'max_server_per_failure_domain'

HOST_FILTER = 'FailureDomainFilter'

DECLARATION = declaration.Policy(
    name='failure-domain',
    summary='A failure domain, such as a rack, holds only so many servers of '
    'a server group.',
    refuses='are in a full failure domain',
    lacks='are in no failure domain',
    acts=(
        act.Act(
            act.REPAIR,
            'move a server of the group out of the failure domain of {hosts}',
            act.AWAY,
        ),
        act.Act(
            act.REPAIR,
            'add a failure domain, with a host like {hosts}',
            act.DOMAIN,
            by_command=False,
        ),
        act.WITHOUT_GROUP,
    ),
    acts_lacking=(
        act.put_into('servers that are spread over failure domains'),
    ),
    request_filter='failure_domains',
    host_filter=HOST_FILTER,
    turned_on_by=f'[nova_ext_sched] {LIMIT}',
    turned_on=lambda conf: (
        conf.nova_ext_sched.max_server_per_failure_domain > 0
        or HOST_FILTER in conf.filter_scheduler.enabled_filters
    ),
    by_hint=True,
    without_request_filter='FailureDomainFilter rejects every host for '
    'requests that ask to be spread, and without that filter they are not '
    'spread',
    without_host_filter='hosts in no failure domain are accepted, and several '
    'servers of one request can land in one domain',
    counts_group=True,
)


def read_limit(
    hints: Mapping[str, typing.Any] | None, option: int
) -> int | None:
    """Return how many members of a server group one domain may hold.

    :param hints: values as nova stores them: lists of strings
    :param option: the operator's limit for the group, 0 for none
    :returns: None if nothing is asked
    :raises exception.InvalidValue: a hint is malformed
    """
    hints = hints or {}
    limits = (
        _read_hint(
            hints,
            DIFFERENT,
            'true or false',
            lambda text: int(strutils.bool_from_string(text, strict=True)),
        ),
        _read_hint(
            hints,
            LIMIT,
            amount.EXPECTED,
            lambda text: amount.check(text, LIMIT),
        ),
        option,
    )
    return min(filter(None, limits), default=None)


def _read_hint(
    hints: Mapping[str, typing.Any],
    name: str,
    expected: str,
    parse: Callable[[str], int],
) -> int | None:
    if name not in hints:
        return None
    raw = hints[name]
    values = raw if isinstance(raw, (list, tuple)) else [raw]
    try:
        (value,) = values
        return parse(str(value))
    except ValueError as exc:
        raise exception.InvalidValue(
            where=f'scheduler hint {name}',
            expected=f'one value, {expected}',
            got=', '.join(map(str, values)),
        ) from exc


def read_domains(
    aggregates: Iterable[Mapping[str, str | None] | None], key: str
) -> frozenset[str]:
    """Return the failure domains of a host, given its aggregates' metadata."""
    return frozenset(
        name
        for metadata in aggregates
        for name in verdict.split_value((metadata or {}).get(key))
    )


class Spread:
    """A server group of one request, and where its members stand.

    :ivar held: the number of members in each domain
    :ivar without_domain: members whose host is known and in no domain, sorted

    :param group: the UUID of the server group, for reasons
    :param limit: the lowest that is asked for
    :param option: the operator's for this group, 0 for none
    :param hosts: by the UUID of a member, without the request's server, the
        hosts that it is on: none where it is not placed, two while it moves
    :param domains: by host its failure domains
    """

    def __init__(
        self,
        group: str,
        limit: int,
        key: str,
        hosts: Mapping[str, Collection[str]],
        domains: Mapping[str, frozenset[str]],
        option: int = 0,
    ) -> None:
        self.group = group
        self.limit = limit
        self._option = option
        self.key = key
        self.domains = domains
        self.held: collections.Counter[str] = collections.Counter()
        self.without_domain: list[str] = []
        # Many members share what hosts they are on.
        members = collections.defaultdict(list)
        for member, on in hosts.items():
            members[frozenset(on)].append(member)
        for hosts_of, alike in members.items():
            mine = {name for one in hosts_of for name in domains.get(one, ())}
            self.held.update(dict.fromkeys(mine, len(alike)))
            if hosts_of and not mine:
                self.without_domain += alike
        self.without_domain.sort()

    def add(self, domains: Iterable[str]) -> None:
        """Count one more member, on a host in these domains."""
        self.held.update(set(domains))

    def find_full(self, domains: Iterable[str]) -> list[str]:
        """Return the ``domains`` that are full, sorted."""
        return sorted(d for d in domains if self.held[d] >= self.limit)

    def __str__(self) -> str:
        """Return the numbers by domain, for one line of a log."""
        return messages.first_few(self.find_above(0)) or 'none'

    def find_above(self, limit: int) -> list[str]:
        """Return the domains with more members, and how many, sorted."""
        return sorted(
            f'{messages.clean(domain)}: {held}'
            for domain, held in self.held.items()
            if held > limit
        )

    def resolve(self, values: Mapping[str, str]) -> verdict.Resolution:
        """Decide about all aggregates of a cloud, for the placement query.

        :param values: by UUID, of the metadata key
        """
        return verdict.Resolution(
            forbidden={
                uuid
                for uuid, value in values.items()
                if self.find_full(verdict.split_value(value))
            }
        )

    def judge(
        self, aggregates: Iterable[verdict.Aggregate]
    ) -> verdict.Verdict:
        """Decide about a host in these aggregates.

        :param aggregates: name and metadata of each
        """
        domains = {
            domain: name
            for name, metadata in aggregates
            for domain in verdict.split_value(metadata.get(self.key))
        }
        if not domains:
            return verdict.reject(
                f'the host is in no failure domain: none of its aggregates '
                f'has a value for the metadata key '
                f'{messages.clean(self.key)}',
                lacks=True,
                by_hint=not self._option,
            )
        by_hint = not self._option or all(
            self.held[domain] < self._option for domain in domains
        )
        for domain in self.find_full(domains):
            return verdict.reject(
                f'failure domain {messages.clean(domain)} holds '
                f'{messages.count("server", self.held[domain])} of server '
                f'group {self.group} and the limit is {self.limit}',
                aggregate=domains[domain],
                by_hint=by_hint,
                acts=(*DECLARATION.acts, *self._raise(self.held[domain] + 1)),
            )
        return verdict.PASS

    def _raise(self, limit: int) -> Iterator[act.Act]:
        """Yield the act of an option that is to allow one more."""
        if self._option and self._option < limit:
            yield act.raise_option('nova_ext_sched', LIMIT, limit)
