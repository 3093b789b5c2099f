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
from collections.abc import Iterator
from collections.abc import Mapping
import typing

from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import query

# Hosts that are asked one by one, and inventories whose limits are read.
_MOST = 32


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
    # A host gets the first of these that is so of one of its providers.
    kinds = {
        'full': f'are full ({resource})',
        'too_small': f'are too small ({resource})',
        'without': f'have no {resource}',
        'unknown': f'lack {resource}',
    }
    answers = dict.fromkeys(refused, 'unknown')
    free: dict[str, int] = {}
    # An overcommitted host has a greater capacity than it gives a single
    # server (max_unit). Hosts of the same capacity are taken for hosts of the
    # same kind: one of each is asked.
    limits: dict[int, int] = {}
    for uuid, provider, one in _read(providers, resource, classes, refused):
        answer = 'without'
        if one is not None:
            most = one['capacity']
            if most >= amount and len(limits) < _MOST and most not in limits:
                asked = providers.get_inventories(provider)
                limits[most] = asked.get(resource, {}).get('max_unit', most)
            most = min(most, limits.get(most, most))
            left = min(most, one['capacity'] - one['used'])
            free[uuid] = max(free.get(uuid, 0), left)
            answer = 'full' if most >= amount else 'too_small'
        answers[uuid] = min(answers[uuid], answer, key=list(kinds).index)
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
) -> Iterator[tuple[str, str, Mapping[str, int] | None]]:
    """Yield what the providers of hosts have of a class; None for nothing.

    Nothing is yielded of a host of which nothing could be read.

    :returns: UUIDs of the host and the provider, and its capacity and use
    """
    missing = set(hosts)
    for name in (resource, *sorted(set(classes) - {resource})):
        if not missing:
            return
        found = set()
        for uuid, summary in providers.get_summaries(name).items():
            root = summary['root_provider_uuid']
            served = providers.served.get(uuid, ())
            for host in missing.intersection((root, *served)):
                found.add(host)
                yield host, uuid, summary['resources'].get(resource)
        missing -= found
    for host in missing if len(missing) <= _MOST else ():
        yield host, host, providers.get_inventories(host).get(resource)
