# SPDX-License-Identifier: Apache-2.0

"""Finds servers that no host takes, even if it were empty."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import itertools
import typing

from nova_ext_sched.dryrun.cloud import ledger
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.cloud import snapshot

# How people say amounts of resource classes.
_UNITS: Mapping[str, str] = {
    'VCPU': 'vCPUs',
    'PCPU': 'pinned CPUs',
    'MEMORY_MB': 'MB',
    'DISK_GB': 'GB of disk',
}


def say(
    cloud: snapshot.Snapshot,
    resources: Sequence[typing.Any],
    elsewhere: Set[str] = frozenset(),
) -> str:
    """Describe why no empty host takes a server; empty if one may.

    By what inventories give to one server: the traits of a host, filters and
    numbered groups are not asked.

    :param resources: the result of :func:`.query.forms`
    :param elsewhere: UUIDs of hosts that it may not come to
    """
    providers = cloud.providers
    givers = {
        node: providers.get_givers(node)
        for node in cloud.states.keys() - elsewhere
    }
    said = ''
    for form in resources:
        amounts = query.get_unnumbered(form)
        giving = [
            {
                node
                for node in givers
                if _give(providers, givers[node], name, amount)
            }
            for name, amount in amounts.items()
        ]
        if not giving or set.intersection(*giving):
            return ''
        said = said or _say(providers, givers, amounts)
    return said


def _give(
    providers: placement.Providers,
    givers: Iterable[str],
    name: str,
    amount: int,
) -> bool:
    return any(
        _find_most(providers, giver, name) >= amount
        and providers.gives(giver, name, amount)
        for giver in givers
    )


def _find_most(
    providers: placement.Providers, provider: str, name: str
) -> int:
    """Return the largest amount that an empty provider gives to one server."""
    inventory = providers.get_stored(provider).get(name)
    if inventory is None:
        return 0
    capacity = ledger.count_capacity(inventory)
    return min(capacity, int(inventory['max_unit']))


def _say(
    providers: placement.Providers,
    givers: Mapping[str, Iterable[str]],
    amounts: Mapping[str, int],
) -> str:
    """Word the first amount that is too large, and the largest host's."""
    for name, amount in amounts.items():
        most = max(
            (
                _find_most(providers, giver, name)
                for giver in itertools.chain(*givers.values())
            ),
            default=0,
        )
        if most < amount:
            return f'the largest host gives one server {_count(most, name)}'
    wanted = [_count(amount, name) for name, amount in amounts.items()]
    return f'no host gives one server {", ".join(wanted)} together'


def _count(amount: int, name: str) -> str:
    return f'{amount:,} {_UNITS.get(name, f"of {name}")}'
