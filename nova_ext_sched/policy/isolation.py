# SPDX-License-Identifier: Apache-2.0

"""Isolated aggregates: who may use them, and what placement is asked.

Follows specs "Support filtering of allocation_candidates by forbidden
aggregates" (forbidden-aggregates-request-filter) and nova's
nova.scheduler.request_filter.isolate_aggregates.

An aggregate is isolating where its metadata holds one or more
``trait:<NAME>=required``. It is forbidden to a request unless the request
requires every one of those traits:

=================  ==================  =========
aggregate requires request requires    decision
=================  ==================  =========
(no trait key)     anything            allowed
X                  nothing             forbidden
X                  X                   allowed
X                  Y                   forbidden
X                  X, Y                allowed
X, Y               nothing             forbidden
X, Y               X                   forbidden
X, Y               X, Y                allowed
=================  ==================  =========

``trait:X=forbidden`` in a flavor requires nothing. Values are compared
exactly: ``trait:X=Required`` in an aggregate isolates nothing, and is
reported as a fault.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from nova_ext_sched.policy import verdict

PREFIX = 'trait:'
REQUIRED = 'required'


def unread_value(name: str, key: str, value: str) -> str:
    """Return the fault of a ``trait:`` item whose value is not ``required``.

    :param name: the aggregate's name
    """
    return (
        f'aggregate {name}: metadata {key}: expected {REQUIRED!r}, got '
        f'{value!r}; the item isolates nothing'
    )


def missing_traits(
    items: Iterable[tuple[str, str, str, str]], required: Collection[str]
) -> dict[str, list[str]]:
    """Return the aggregates that are forbidden to a request, and why.

    :param items: metadata items of any aggregates, as (UUID, name, key,
        value); an aggregate of two traits has two of them
    :param required: the traits that the request requires
    :returns: for the UUID of each forbidden aggregate the traits that the
        request lacks; an aggregate that the request may use is not in it
    """
    allowed = {PREFIX + trait for trait in required}
    missing: dict[str, list[str]] = {}
    for uuid, _name, key, value in items:
        if value == REQUIRED and key not in allowed and key.startswith(PREFIX):
            missing.setdefault(uuid, []).append(key[len(PREFIX) :])
    return missing


def judge(
    aggregates: Iterable[tuple[str, Mapping[str, str]]],
    required: Collection[str],
) -> verdict.Verdict:
    """Decide whether a host in these aggregates may take the request.

    :param aggregates: name and metadata of each aggregate of the host
    :param required: the traits that the request requires
    """
    for name, metadata in aggregates:
        items = ((name, name, key, value) for key, value in metadata.items())
        for lacking in missing_traits(items, required).values():
            return verdict.reject(
                f'aggregate {name} is isolated and the request does not '
                f'require {", ".join(sorted(lacking))}'
            )
    return verdict.PASS


class DeclaredTraits:
    """The traits that only hosts of isolating aggregates carry.

    :param patterns: trait names; ``*`` at the end stands for any ending.
        Elsewhere it is an ordinary character, which no trait name has.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._names: set[str] = set()
        prefixes = []
        for pattern in patterns:
            if pattern.endswith('*'):
                prefixes.append(pattern[:-1])
            else:
                self._names.add(pattern)
        self._prefixes = tuple(prefixes)

    def __bool__(self) -> bool:
        return bool(self._names or self._prefixes)

    def __contains__(self, trait: str) -> bool:
        return trait in self._names or trait.startswith(self._prefixes)


def split_by_trait(
    missing: Mapping[str, Collection[str]],
    usable: Collection[str],
    limit: int,
) -> tuple[set[str], set[str]]:
    """Divide forbidden aggregates into those that a trait covers and others.

    A host that carries a trait which only isolated hosts carry, and which the
    request does not require, is forbidden: placement can be told the trait
    instead of the aggregate.

    :param missing: as :func:`missing_traits` returns it
    :param usable: the traits that may be forbidden in the query
    :param limit: the largest number of traits to forbid; those that cover
        most aggregates are taken
    :returns: the traits to forbid, and the aggregates that none of them
        covers
    """
    covering = {
        uuid: [trait for trait in lacking if trait in usable]
        for uuid, lacking in missing.items()
    }
    counts = collections.Counter(
        trait for traits in covering.values() for trait in traits
    )
    ranked = sorted(counts, key=lambda trait: (-counts[trait], trait))
    forbidden = set(ranked[:limit])
    uncovered = {
        uuid
        for uuid, traits in covering.items()
        if forbidden.isdisjoint(traits)
    }
    return forbidden, uncovered
