# SPDX-License-Identifier: Apache-2.0

"""What must change in placement for isolating aggregates to work.

The plan is a list of steps, each a write to placement. It holds what is
lacking and nothing else, so a second plan after the first was carried out is
empty, and one that was carried out in part holds the rest.

To take back later what it gave, and nothing that nova or the operator gave,
sync writes a record: together with trait X, and by the same request, the
provider gets the trait ``CUSTOM_NOVA_EXT_SCHED_SYNCED_X``. nova-compute leaves
custom traits alone that it did not set. A trait that was there before has no
record.

========  ======  ==============  =====================================
required  has it  has the record  the plan
========  ======  ==============  =====================================
yes       no      any             add the trait and its record
yes       yes     any             nothing
no        yes     yes             remove both, where pruning is asked
no        yes     no              nothing, or remove it where its name
                                  and pruning are asked
no        no      yes             remove the record, where pruning is
                                  asked
no        no      no              nothing
========  ======  ==============  =====================================

*Required* is what the isolating aggregates of the provider's host require.
"""

from collections.abc import Collection
from collections.abc import Iterable
import dataclasses
import enum

from nova_ext_sched import exception
from nova_ext_sched.policy import isolation_setup as setup
from nova_ext_sched.policy import syntax

RECORD = 'CUSTOM_NOVA_EXT_SCHED_SYNCED_'

_LONGEST_TRAIT = 255

# Standard traits that say what a host is or can do. nova-compute reports
# those that are true, and takes away what it does not find; the one of MISC_
# would make a host share its inventory.
_REPORTED = ('COMPUTE_', 'HW_', 'OWNER_', 'MISC_SHARES_VIA_AGGREGATE')


class Change(enum.StrEnum):
    """What a step changes. The values are what users and programs read."""

    CREATE_TRAIT = 'create trait'
    ADD_TO_AGGREGATES = 'add to aggregates'
    ADD_TRAITS = 'add traits'
    REMOVE_TRAITS = 'remove traits'


@dataclasses.dataclass(frozen=True)
class Step:
    """One write to placement, or one that is needed and cannot be done.

    :ivar names: exactly what is created, added or removed: traits with their
        records, or names of aggregates
    :ivar targets: the traits without records, or the UUIDs of the aggregates
    :ivar node: whose provider is changed; None for the creation of a trait
        and for a host that has no provider
    :ivar host: empty for the creation of a trait
    :ivar obstacle: why it cannot be done; empty where it can
    """

    change: Change
    names: tuple[str, ...]
    targets: tuple[str, ...]
    host: str = ''
    node: setup.Node | None = None
    obstacle: str = ''


def make(
    cloud: setup.Cloud,
    only: Collection[str] | None = None,
    prune: bool = False,
    named: Collection[str] = (),
) -> list[Step]:
    """Return what must change, in the order in which to do it.

    Hosts are put into placement's aggregates before they get traits: what
    was begun and interrupted keeps requests out and lets none in.

    :param cloud: its nodes' traits are those that :func:`interesting` names
    :param only: UUIDs of the aggregates to set up; None for all
    :param prune: whether to remove traits that no aggregate requires
    :param named: traits to remove without a record, by the operator's word
    """
    aggregates = [
        aggregate
        for aggregate in cloud.aggregates
        if aggregate.traits and (only is None or aggregate.uuid in only)
    ]
    hosts: dict[str, list[setup.Aggregate]] = {}
    for aggregate in aggregates:
        for host in aggregate.hosts:
            hosts.setdefault(host, []).append(aggregate)
    joins: list[Step] = []
    additions: list[Step] = []
    for host in sorted(hosts):
        traits = _traits_of(hosts[host])
        nodes = sorted(cloud.by_host.get(host, ()), key=_order)
        for node in nodes:
            joins += _joins(node, hosts[host])
            additions += _additions(node, traits, cloud.traits)
        if not nodes:
            obstacle = 'the host has no compute node with a resource provider'
            additions.append(_add(tuple(traits), host, obstacle=obstacle))
    removals: list[Step] = []
    for node in sorted(cloud.nodes, key=_order) if prune else ():
        removals += _removals(node, cloud.required(node.host), named)
    wanted = {*_traits_of(aggregates)}.union(
        *(step.names for step in additions if not step.obstacle)
    )
    creations = [_creation(trait) for trait in sorted(wanted - cloud.traits)]
    return [*creations, *joins, *additions, *removals]


def interesting(
    cloud_traits: Iterable[str],
    aggregates: Iterable[setup.Aggregate],
    named: Iterable[str] = (),
) -> set[str]:
    """Return the traits of providers that a plan depends on.

    :param cloud_traits: the traits that placement knows
    """
    known = set(cloud_traits)
    wanted = {*_traits_of(aggregates), *named}
    for trait in known:
        if trait.startswith(RECORD):
            wanted |= {trait, trait[len(RECORD) :]}
    for trait in tuple(wanted):
        wanted |= _records([trait])
    return wanted & known


def with_added(
    current: frozenset[str], traits: Iterable[str]
) -> frozenset[str]:
    """Return the traits of a provider that a step adds traits to.

    A trait that another has added meanwhile gets no record.

    :param current: what the provider has at the time of the write
    """
    lacking = set(traits) - current
    return current | lacking | _records(lacking)


def with_removed(
    current: frozenset[str], traits: Iterable[str], named: Collection[str]
) -> frozenset[str]:
    """Return the traits of a provider that a step removes traits from.

    :param current: what the provider has at the time of the write
    :param named: those among them that need no record to be removed
    """
    gone = {
        trait
        for trait in traits
        if trait in named or not _records([trait]).isdisjoint(current)
    }
    return current - gone - _records(traits)


def check_named(trait: str) -> str:
    """Return ``trait`` if it may be removed by its name.

    :raises exception.InvalidValue: it is no trait, or one that nova-compute
        sets
    """
    syntax.check_trait(trait, 'trait to remove')
    if trait.startswith((*_REPORTED, RECORD)):
        raise exception.InvalidValue(
            where='trait to remove',
            expected='a trait that neither nova-compute nor sync itself sets',
            got=trait,
        )
    return trait


def _order(node: setup.Node) -> tuple[str, str, str]:
    return node.host, node.name, node.uuid


def _traits_of(aggregates: Iterable[setup.Aggregate]) -> list[str]:
    return sorted({t for agg in aggregates for t in agg.traits})


def _records(traits: Iterable[str]) -> set[str]:
    return {
        RECORD + trait
        for trait in traits
        if len(RECORD + trait) <= _LONGEST_TRAIT
    }


def _is_custom(trait: str) -> bool:
    try:
        syntax.check_custom_trait(trait, '')
    except exception.InvalidValue:
        return False
    return True


def _creation(trait: str) -> Step:
    obstacle = (
        ''
        if _is_custom(trait)
        else 'the name is neither that of a standard trait nor CUSTOM_ and '
        'A-Z, 0-9 and _ after it'
    )
    return Step(Change.CREATE_TRAIT, (trait,), (trait,), obstacle=obstacle)


def _joins(
    node: setup.Node, aggregates: Iterable[setup.Aggregate]
) -> Iterable[Step]:
    lacking = sorted(
        (aggregate.name, aggregate.uuid)
        for aggregate in aggregates
        if aggregate.uuid not in node.aggregates
    )
    if lacking:
        names, uuids = zip(*lacking, strict=True)
        yield Step(Change.ADD_TO_AGGREGATES, names, uuids, node.host, node)


def _additions(
    node: setup.Node, traits: Iterable[str], known: Collection[str]
) -> Iterable[Step]:
    lacking = [
        trait
        for trait in traits
        if trait not in node.traits and (trait in known or _is_custom(trait))
    ]
    given = tuple(t for t in lacking if not t.startswith(_REPORTED))
    if given:
        yield _add(given, node.host, node)
    reported = tuple(t for t in lacking if t.startswith(_REPORTED))
    if reported:
        yield _add(
            reported,
            node.host,
            node,
            'it says what the host is or can do: nova-compute sets it '
            'where it is true',
        )


def _add(
    traits: tuple[str, ...],
    host: str,
    node: setup.Node | None = None,
    obstacle: str = '',
) -> Step:
    names = set(traits)
    if node is not None and not obstacle:
        names |= _records(traits) - node.traits
    return Step(
        Change.ADD_TRAITS,
        tuple(sorted(names)),
        traits,
        host,
        node,
        obstacle,
    )


def _removals(
    node: setup.Node, required: Collection[str], named: Collection[str]
) -> Iterable[Step]:
    recorded = {
        trait[len(RECORD) :]
        for trait in node.traits
        if trait.startswith(RECORD)
    }
    traits = recorded.union(node.traits.intersection(named)) - set(required)
    names = node.traits - with_removed(node.traits, traits, named)
    if names:
        yield Step(
            Change.REMOVE_TRAITS,
            tuple(sorted(names)),
            tuple(sorted(traits)),
            node.host,
            node,
        )
