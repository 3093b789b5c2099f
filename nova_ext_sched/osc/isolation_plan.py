# SPDX-License-Identifier: Apache-2.0

"""What must change in placement for isolated aggregates to work.

The plan is a list of steps, each a write to placement. It has only what is
missing, so it is idempotent: after a complete run the next plan is empty, and
after a partial run it has the rest.

sync writes a record, so that it can later take back what it gave and nothing
that nova or the operator gave: with trait X, in the same request, the provider
gets the trait ``CUSTOM_NOVA_EXT_SCHED_SYNCED_X``. nova-compute does not touch
custom traits that it did not set. A trait that was there before has no record.

========  ======  ==============  =====================================
required  has it  has the record  the plan
========  ======  ==============  =====================================
yes       no      any             add the trait and its record
yes       yes     any             nothing
no        yes     yes             remove both, where pruning is asked
no        yes     no              nothing
no        no      yes             remove the record, where pruning is
                                  asked
no        no      no              nothing
========  ======  ==============  =====================================

*Required* is what the isolated aggregates of the provider's host require.
What the host has elsewhere, as on the provider of a device, is not given to
its own: requests would then get the host's other devices too.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
import functools

from nova_ext_sched import exception
from nova_ext_sched import placement
from nova_ext_sched.objects import syntax
from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.policy import isolation

# Standard traits that say what a host is or can do. nova-compute reports
# those that are true, and takes away what it does not find; the one of MISC_
# would make a host share its inventory.
_REPORTED = ('COMPUTE_', 'HW_', 'OWNER_', 'MISC_SHARES_VIA_AGGREGATE')

#: Why a trait that placement does not know cannot be created.
NAME_FAULT = (
    'the name is neither a standard trait nor CUSTOM_ followed by A-Z, 0-9 '
    'and _'
)


class Change(enum.StrEnum):
    """What a step changes, in the order in which it is done.

    The values are what users and programs read.
    """

    CREATE_TRAIT = 'create trait'
    ADD_TO_AGGREGATES = 'add to aggregates'
    ADD_TRAITS = 'add traits'
    REMOVE_TRAITS = 'remove traits'


class Status(enum.StrEnum):
    """What became of a step. The values are what users and programs read."""

    DONE = 'done'
    PLANNED = 'planned'
    FAILED = 'failed'
    IMPOSSIBLE = 'not possible'
    NOT_TRIED = 'not tried'


@dataclasses.dataclass
class Step:
    """One write to placement, or one that is needed and cannot be done.

    :ivar names: exactly what is created, added or removed: traits with their
        records, or names of aggregates
    :ivar host: empty for the creation of a trait
    :ivar provider: name of the one that is changed; empty for the creation of
        a trait and for a host that has none
    :ivar write: makes the change; None where it cannot be done
    :ivar reason: why it failed or cannot be done
    """

    change: Change
    names: list[str]
    host: str = ''
    provider: str = ''
    write: Callable[[placement.PlacementClient], object] | None = None
    status: Status = Status.PLANNED
    reason: str = ''

    def __post_init__(self) -> None:
        if self.write is None:
            self.status = Status.IMPOSSIBLE

    @property
    def result(self) -> str:
        """What became of it, and why."""
        return f'{self.status}: {self.reason}' if self.reason else self.status


def make(
    cloud: isolation_cloud.Cloud,
    selected: Sequence[isolation_cloud.Aggregate] = (),
    prune: bool = False,
) -> list[Step]:
    """Return what must change, in the order in which to do it.

    Hosts are put into placement's aggregates before they get traits: what
    was begun and interrupted keeps requests out and lets none in.

    :param selected: the aggregates to set up, and to whose nodes pruning is
        bounded; empty for all
    :param prune: whether to remove traits that no aggregate requires
    """
    aggregates = selected or [agg for agg in cloud.aggregates if agg.traits]
    by_host = isolation_cloud.index(
        (host, agg) for agg in aggregates for host in agg.hosts
    )
    steps: list[Step] = []
    for host, mine in sorted(by_host.items()):
        traits = sorted(isolation_cloud.get_traits(mine))
        usable = [t for t in traits if t in cloud.traits or can_be_created(t)]
        names = {agg.uuid: agg.name for agg in mine}
        nodes = sorted(cloud.nodes_by_host.get(host, ()))
        for node in nodes:
            join = frozenset(names).union
            steps += _update(Change.ADD_TO_AGGREGATES, node, join, names)
            steps += _add(node, usable)
        if not nodes:
            reason = 'the host has no compute node with a resource provider'
            steps.append(Step(Change.ADD_TRAITS, traits, host, reason=reason))
    wanted = isolation_cloud.get_traits(aggregates).union(
        *(
            step.names
            for step in steps
            if step.write and step.change == Change.ADD_TRAITS
        )
    )
    steps += [_create(trait) for trait in sorted(wanted - cloud.traits)]
    uuids = {agg.uuid for agg in selected}
    for node in sorted(cloud.nodes) if prune else ():
        if not selected or node.host in by_host or node.aggregates & uuids:
            required = cloud.get_required_traits(node.host)
            steps += _remove(node, required)
    order = list(Change)
    return sorted(steps, key=lambda step: order.index(step.change))


def add_traits(
    current: frozenset[str], traits: Iterable[str]
) -> frozenset[str]:
    """Return the traits of a provider that a step adds traits to.

    A trait that another has added meanwhile gets no record.

    :param current: what the provider has at the time of the write
    """
    lacking = set(traits) - current
    return current | lacking | isolation_cloud.get_records(lacking)


def remove_traits(
    current: frozenset[str], traits: Iterable[str]
) -> frozenset[str]:
    """Return the traits of a provider that a step removes traits from.

    A trait that has lost its record meanwhile stays.

    :param current: what the provider has at the time of the write
    """
    records = current & isolation_cloud.get_records(traits)
    return current - records - isolation.get_recorded(records)


def is_reported(trait: str) -> bool:
    """Return whether nova-compute alone says who has a trait."""
    return trait.startswith(_REPORTED)


def can_be_created(trait: str) -> bool:
    """Return whether sync can create a trait of the name."""
    try:
        return bool(syntax.check_custom_trait(trait, 'trait'))
    except exception.InvalidValue:
        return False


def _create(trait: str) -> Step:
    if not can_be_created(trait):
        return Step(Change.CREATE_TRAIT, [trait], reason=NAME_FAULT)
    return Step(
        Change.CREATE_TRAIT,
        [trait],
        write=lambda client: client.ensure_traits([trait]),
    )


def _add(node: isolation_cloud.Node, traits: list[str]) -> Iterable[Step]:
    reported = list(filter(is_reported, traits))
    given = set(traits).difference(reported, node.elsewhere)
    decide = functools.partial(add_traits, traits=given)
    yield from _update(Change.ADD_TRAITS, node, decide)
    if lacking := [name for name in reported if not node.offers(name)]:
        yield Step(
            Change.ADD_TRAITS,
            lacking,
            node.host,
            node.name,
            reason='nova-compute sets this trait itself where it is true',
        )


def _remove(
    node: isolation_cloud.Node, required: Collection[str]
) -> Iterable[Step]:
    traits = isolation.get_recorded(node.traits).difference(required)
    decide = functools.partial(remove_traits, traits=traits)
    return _update(Change.REMOVE_TRAITS, node, decide)


def _update(
    change: Change,
    node: isolation_cloud.Node,
    decide: Callable[[frozenset[str]], frozenset[str]],
    names: Mapping[str, str] | None = None,
) -> Iterable[Step]:
    """Yield the step that gives a provider what ``decide`` returns, if any.

    :param names: of aggregates, by UUID; None for traits
    """

    def write(client: placement.PlacementClient) -> object:
        update = client.update_aggregates if names else client.update_traits
        return update(node.uuid, decide)

    current = node.aggregates if names else node.traits
    if changed := decide(current) ^ current:
        shown = sorted((names or {}).get(name, name) for name in changed)
        yield Step(change, shown, node.host, node.name, write)
