# SPDX-License-Identifier: Apache-2.0

"""Hosts that are full, told apart from hosts that are too small.

Placement says only which hosts have an amount free. The capacity and the use
of a resource class stand in the summaries of allocation candidates for one
unit of it, a single request for all hosts. A host that has not one unit free
is in none of them; candidates for the other classes of the request have its
summary too. The few hosts that are then left are asked one by one.
"""

import collections
from collections.abc import Collection
from collections.abc import Mapping
import typing

from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import query

# Hosts that are asked one by one, and inventories whose limits are read.
_MOST = 32

# What there is of each resource class, as placement's summaries have it.
_Resources = Mapping[str, Mapping[str, int]]


class Inventory(typing.NamedTuple):
    """What a provider of a host's tree has of a resource class."""

    provider: str
    capacity: int
    free: int


def explain(
    providers: query.Providers,
    part: query.Part,
    classes: Collection[str],
    refused: Collection[str],
    hosts: int,
) -> tuple[dict[str, funnel.Refusal], dict[str, typing.Any]]:
    """Return why hosts lack an amount, by UUID, and what they have.

    What they have is in the form of the document (``capacity``), except for
    what depends on other constraints: in place of that stands ``free``, the
    most that one server could get, by UUID of the hosts.

    :param providers: what placement says of them
    :param part: of the query, with the resource class and the amount
    :param classes: the names of the request's resource classes
    :param refused: UUIDs of the hosts that lack it
    :param hosts: how many there are in all
    """
    resource, _, number = part.value.partition(':')
    amount = int(number)
    found = _read(providers, resource, classes, refused)
    limits = _read_limits(providers, resource, amount, found)
    kinds = {
        'full': f'are full ({resource})',
        'too_small': f'are too small ({resource})',
        'without': f'have no {resource}',
        'unknown': f'lack {resource}',
    }
    answers = dict.fromkeys(refused, 'unknown')
    free: dict[str, int] = {}
    for uuid, inventories in found.items():
        answers[uuid] = 'without'
        for one in inventories:
            # The most that one server gets where the host is empty.
            most = min(one.capacity, limits.get(one.capacity, one.capacity))
            free[uuid] = max(free.get(uuid, 0), min(one.free, most))
            if most >= amount:
                answers[uuid] = 'full'
            elif answers[uuid] != 'full':
                answers[uuid] = 'too_small'
    counts = collections.Counter(answers.values())
    refusals = {
        name: funnel.Refusal(
            kind, resource, lifts=name not in ('too_small', 'without')
        )
        for name, kind in kinds.items()
    }
    return {uuid: refusals[answer] for uuid, answer in answers.items()}, {
        'resource': resource,
        'requested': amount,
        'large_enough': hosts - len(refused) + counts['full'],
        **{name: counts[name] for name in kinds},
        'free': free,
    }


def _read(
    providers: query.Providers,
    resource: str,
    classes: Collection[str],
    hosts: Collection[str],
) -> dict[str, list[Inventory]]:
    """Return what each host has of a class, by UUID.

    A host of which nothing could be read is missing.
    """
    found: dict[str, list[Inventory]] = {}
    missing = set(hosts)

    def note(host: str, provider: str, resources: _Resources) -> None:
        mine = found.setdefault(host, [])
        if one := resources.get(resource):
            free = max(0, one['capacity'] - one['used'])
            mine.append(Inventory(provider, one['capacity'], free))

    for name in (resource, *sorted(set(classes) - {resource})):
        if not missing:
            break
        for uuid, summary in providers.get_summaries(name).items():
            root = summary['root_provider_uuid']
            served = providers.served.get(uuid, ())
            for host in missing.intersection((root, *served)):
                note(host, uuid, summary['resources'])
        missing -= found.keys()
    for host in missing if len(missing) <= _MOST else ():
        note(host, host, providers.get_inventories(host))
    return found


def _read_limits(
    providers: query.Providers,
    resource: str,
    amount: int,
    found: Mapping[str, Collection[Inventory]],
) -> dict[int, int]:
    """Return the most that one server may have, by capacity.

    An overcommitted host has a greater capacity than it gives a single
    server (``max_unit``). Hosts of the same capacity are taken for hosts
    of the same kind: one of each is asked.
    """
    samples = {
        one.capacity: one.provider
        for inventories in found.values()
        for one in inventories
        if one.capacity >= amount
    }
    limits = {}
    for capacity in sorted(samples)[:_MOST]:
        inventories = providers.get_inventories(samples[capacity])
        if resource in inventories:
            limits[capacity] = inventories[resource]['max_unit']
    return limits
