# SPDX-License-Identifier: Apache-2.0

"""Isolated aggregates: who may use them, and what to ask placement.

Follows the specification "Support filtering of allocation_candidates by
forbidden aggregates" (forbidden-aggregates-request-filter) and nova's
nova.scheduler.request_filter.isolate_aggregates.

An aggregate is isolated if its metadata has one or more
``trait:<NAME>=required``. It is forbidden to a request unless the request
requires every one of those traits:

==================  ==================  =========
aggregate requires  request requires    decision
==================  ==================  =========
(no trait key)      anything            allowed
X                   nothing             forbidden
X                   X                   allowed
X                   Y                   forbidden
X                   X, Y                allowed
X, Y                nothing             forbidden
X, Y                X                   forbidden
X, Y                X, Y                allowed
==================  ==================  =========

``trait:X=forbidden`` in a flavor requires nothing. What isolates an aggregate
is read as a person reads it; :func:`read_item` has the table.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Set
import functools
import itertools
import operator
import re
import typing

from nova_ext_sched import messages
from nova_ext_sched.policy import act
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import slips
from nova_ext_sched.policy import verdict

DECLARATION = declaration.Policy(
    name='isolation',
    summary='Aggregates with ``trait:<NAME>=required`` take only requests '
    'that require these traits.',
    refuses='are isolated',
    closes=True,
    acts=(
        act.take_out('requests that do not require its traits'),
        act.unset_item('requests that do not require it'),
    ),
    request_filter='isolate_aggregates',
    host_filter='IsolatedAggregatesFilter',
    turned_on_by='[nova_ext_sched] enable_isolated_aggregate_filtering',
    turned_on=lambda conf: (
        conf.nova_ext_sched.enable_isolated_aggregate_filtering
    ),
    without_request_filter='placement is not asked to leave isolated '
    'aggregates out',
    without_host_filter='a server on an isolated host keeps its host when it '
    'is rebuilt with an image that does not require the traits, and '
    'max_forbidden_aggregates and forbid_by_trait have no effect: from about '
    'a hundred isolated aggregates on, a web server in front of placement can '
    'refuse every query',
)

PREFIX = 'trait:'
REQUIRED = 'required'

#: Prefix of the trait that records that sync gave another trait to a host.
RECORD = 'CUSTOM_NOVA_EXT_SCHED_SYNCED_'

# placement.schemas.trait
_TRAIT_NAME = re.compile(r'[A-Z0-9_]{1,255}')


class Item(typing.NamedTuple):
    """The meaning of one metadata item of an aggregate for isolation.

    :ivar trait: the trait that the aggregate requires; None if none
    :ivar fault: the fault that an operator must correct, without the
        aggregate's name
    """

    trait: str | None
    fault: str = ''


#: An item that has nothing to do with isolation.
NOTHING = Item(None)


# Every request meets the same items.
@functools.lru_cache(maxsize=16384)
def read_item(key: str, value: str | None) -> Item:
    """Interpret a metadata item of an aggregate.

    ==================================  =================  ========  =========
    key                                 value              requires  fault
    ==================================  =================  ========  =========
    ``trait:X``                         ``required``       X         no
    ``trait:X``                         ``Required``,      X         yes
                                        ``" required "``
    ``Trait:X``, ``" trait: X"``        ``required``       X         yes
    ``trait:x``, no name of a trait     ``required``       x         yes
    ``trait:X``                         anything else      nothing   yes
    ``trait :X``, ``traits:X``,         ``required``       nothing   yes
    ``CUSTOM_X``
    any other                           any                nothing   no
    ==================================  =================  ========  =========

    On databases that compare text without case (MySQL), nova's own filter
    isolates by ``Required``, so such a value must not open the aggregate. No
    request can require an impossible trait name: the aggregate takes no
    server.
    """
    value = value or ''
    stripped = key.strip()
    if stripped[: len(PREFIX)].lower() != PREFIX:
        if value.strip().lower() != REQUIRED or not is_slip(key):
            return NOTHING
        return Item(
            None,
            f"metadata {messages.clean(key)}: expected '{PREFIX}<NAME>="
            f"{REQUIRED}', got '{messages.clean(key)}="
            f"{messages.clean(value)}'; the item has no effect",
        )
    if value.strip().lower() != REQUIRED:
        return Item(
            None,
            f'metadata {messages.clean(key)}: expected {REQUIRED!r}, got '
            f"'{messages.clean(value)}'; the item has no effect",
        )
    trait = stripped[len(PREFIX) :].strip()
    if not is_trait_name(trait):
        return Item(
            trait,
            f'metadata {messages.clean(key)}: expected a trait name of A-Z, '
            f"0-9 and _, got '{messages.clean(trait)}'; no request can "
            f'require it, so the aggregate takes no server',
        )
    if (key, value) != (PREFIX + trait, REQUIRED):
        return Item(
            trait,
            f"metadata {messages.clean(key)}: expected '{PREFIX}{trait}="
            f"{REQUIRED}', got '{messages.clean(key)}="
            f"{messages.clean(value)}'; the aggregate is "
            f"isolated anyway, but by nova's own filter on some databases "
            f'only: correct it',
        )
    return Item(trait)


def is_slip(key: str) -> bool:
    """Return whether a key looks like a misspelt ``trait:<NAME>``."""
    name = key.strip()
    # One of an underscore, as every trait that placement knows by itself.
    return slips.resembles(key, PREFIX) or (
        '_' in name and is_trait_name(name)
    )


def is_trait_name(name: str) -> bool:
    """Return whether placement can have a trait of this name."""
    return bool(_TRAIT_NAME.fullmatch(name))


def read(
    items: Iterable[verdict.Item],
) -> tuple[dict[str, set[str]], list[str]]:
    """Read metadata items of any aggregates.

    :returns: the traits that each isolated aggregate requires, by UUID, and a
        message for each item that should be corrected
    """
    traits: dict[str, set[str]] = {}
    faults = []
    for uuid, name, key, value in items:
        trait, fault = read_item(key or '', value)
        if fault:
            faults.append(f'aggregate {messages.clean(name)}: {fault}')
        if trait is not None:
            traits.setdefault(uuid, set()).add(trait)
    return traits, faults


def lacking_traits(
    traits: Mapping[str, Set[str]], required: Set[str]
) -> dict[str, Set[str]]:
    """Return the traits that a request lacks, by forbidden aggregate.

    :param traits: the traits that each aggregate requires, by UUID
    :param required: the traits that the request requires
    """
    return {
        uuid: lacking
        for uuid, mine in traits.items()
        if (lacking := mine - required)
    }


def resolve(
    traits: Mapping[str, Set[str]],
    required: Set[str],
    usable: Set[str],
    room: int,
) -> verdict.Resolution:
    """Decide about all isolated aggregates, for the placement query.

    :param traits: the traits that each aggregate requires, by UUID
    :param required: the traits that the request requires
    :param usable: the traits that may be forbidden in place of aggregates
    :param room: number of these that the query can take
    """
    lacking = lacking_traits(traits, required)
    chosen = choose_traits(lacking, usable, room)
    forbidden = [u for u in lacking if chosen.isdisjoint(lacking[u])]
    return verdict.Resolution(
        forbidden=forbidden,
        traits=chosen,
        covered=lacking.keys() - set(forbidden),
    )


def judge(
    aggregates: Iterable[tuple[str, Mapping[str, str]]],
    required: Collection[str],
) -> verdict.Verdict:
    """Decide whether a host in these aggregates may take the request.

    Of several aggregates that refuse it, the first by name is to blame.

    :param aggregates: name and metadata of each
    :param required: the traits that the request requires
    """
    for name, metadata in sorted(aggregates, key=operator.itemgetter(0)):
        if lacking := find_lacking(metadata, required):
            return verdict.reject(
                f'the request is not allowed in {messages.clean(name)}: it '
                f'does not require '
                f'{messages.first_few(sorted(lacking))}',
                aggregate=name,
            )
    return verdict.PASS


def find_lacking(
    metadata: Mapping[str, str], required: Collection[str]
) -> set[str]:
    """Return the traits that an aggregate requires and a request does not."""
    traits = {
        trait
        for key, value in metadata.items()
        if (trait := read_item(key, value).trait) is not None
    }
    return traits.difference(required)


class DeclaredTraits:
    """The traits that only hosts of isolated aggregates have.

    :param patterns: trait names; ``*`` at the end stands for any ending.
        Elsewhere it is an ordinary character, which no trait name has.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._names = set(patterns)
        self._prefixes = tuple(p[:-1] for p in self._names if p[-1:] == '*')

    def __bool__(self) -> bool:
        return bool(self._names)

    def __contains__(self, trait: str) -> bool:
        return trait in self._names or trait.startswith(self._prefixes)


def choose_traits(
    lacking: Mapping[str, Collection[str]], usable: Set[str], limit: int
) -> set[str]:
    """Choose the traits to forbid in the query in place of aggregates.

    If only isolated hosts have a trait, and the request does not require it,
    all hosts with the trait are forbidden.

    :param lacking: as :func:`lacking_traits` returns it
    :param usable: the traits that may be forbidden in the query
    :param limit: the largest number of traits to forbid; those that cover
        most aggregates are taken
    """
    counts = collections.Counter(itertools.chain(*lacking.values()))
    ranked = sorted(
        counts.keys() & usable, key=lambda trait: (-counts[trait], trait)
    )
    return set(ranked[:limit])


def get_recorded(traits: Iterable[str]) -> set[str]:
    """Return the traits whose records are among the traits."""
    return {
        trait.removeprefix(RECORD)
        for trait in traits
        if trait.startswith(RECORD)
    }
