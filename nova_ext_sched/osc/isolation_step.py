# SPDX-License-Identifier: Apache-2.0

"""One write to placement that isolated aggregates need.

sync writes a record, so that it can later take back what it gave and nothing
that nova or the operator gave: with trait X, in the same request, the provider
gets the trait ``CUSTOM_NOVA_EXT_SCHED_SYNCED_X``. nova-compute does not touch
custom traits that it did not set. A trait that was there before has no record.

========  ======  ==============  =====================================
required  has it  has the record  sync
========  ======  ==============  =====================================
yes       no      any             adds the trait and its record
yes       yes     any             changes nothing
no        yes     yes             removes both, with ``--prune``
no        yes     no              changes nothing
no        no      yes             removes the record, with ``--prune``
no        no      no              changes nothing
========  ======  ==============  =====================================

*Required* are the traits that the isolated aggregates of the provider's host
require. A trait that the host has elsewhere, for example on a device's
provider, is not given to the host's own provider: requests would then get the
host's other devices too.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import enum

from nova_ext_sched import exception
from nova_ext_sched import placement
from nova_ext_sched.objects import syntax
from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.policy import isolation

# Standard traits that describe a host. nova-compute sets those that are true,
# and removes the others; MISC_SHARES_VIA_AGGREGATE would make a host share its
# inventory.
_REPORTED = ('COMPUTE_', 'HW_', 'OWNER_', 'MISC_SHARES_VIA_AGGREGATE')


class Change(enum.StrEnum):
    """A kind of change, in the order in which steps are done.

    Hosts are put into placement's aggregates before they get traits: an
    interrupted run keeps requests out and lets none in. Users and programs
    read the values.
    """

    CREATE_TRAIT = 'create trait'
    ADD_TO_AGGREGATES = 'add to aggregates'
    ADD_TRAITS = 'add traits'
    REMOVE_TRAITS = 'remove traits'


class Status(enum.StrEnum):
    """The result of a step; users and programs read the values."""

    DONE = 'done'
    PLANNED = 'planned'
    FAILED = 'failed'
    IMPOSSIBLE = 'not possible'
    NOT_TRIED = 'not tried'


@dataclasses.dataclass
class Step:
    """One write to placement, or one that is needed and cannot be done.

    :ivar wanted: the names that people read, by trait or by UUID of an
        aggregate; that of a trait is the trait itself
    :ivar host: empty for the creation of a trait
    :ivar node: the changed node; None for the creation of a trait and for a
        host that has no provider
    :ivar reason: the reason why it cannot be done, or failed
    """

    change: Change
    wanted: Mapping[str, str]
    host: str = ''
    node: isolation_cloud.Node | None = None
    reason: str = ''
    status: Status = Status.PLANNED

    def __post_init__(self) -> None:
        if self.reason:
            self.status = Status.IMPOSSIBLE

    @property
    def names(self) -> list[str]:
        """The names that are created, added or removed.

        Traits with their records, or names of aggregates.
        """
        node, changed = self.node, frozenset(self.wanted)
        if node is not None and not self.reason:
            to_aggregates = self.change is Change.ADD_TO_AGGREGATES
            current = node.aggregates if to_aggregates else node.traits
            changed = self._decide(current) ^ current
        return sorted(self.wanted.get(one, one) for one in changed)

    @property
    def provider(self) -> str:
        """The name of the provider that is changed; empty if there is none."""
        return self.node.name if self.node else ''

    @property
    def result(self) -> str:
        """The result, with the reason."""
        return f'{self.status}: {self.reason}' if self.reason else self.status

    def write(self, client: placement.PlacementClient) -> None:
        """Make the change."""
        if self.node is None:
            client.ensure_traits(list(self.wanted))
        elif self.change is Change.ADD_TO_AGGREGATES:
            client.update_aggregates(self.node.uuid, self._decide)
        else:
            client.update_traits(self.node.uuid, self._decide)

    def _decide(self, current: frozenset[str]) -> frozenset[str]:
        """Return the traits or aggregates that the provider gets.

        :param current: its names at the time of the write
        """
        return _DECIDE[self.change](current, self.wanted)


def add_traits(
    current: frozenset[str], traits: Iterable[str]
) -> frozenset[str]:
    """Return the traits of a provider that a step adds traits to.

    A trait that somebody else has added meanwhile gets no record.

    :param current: the provider's names at the time of the write
    """
    lacking = set(traits) - current
    return current | lacking | isolation_cloud.get_records(lacking)


def remove_traits(
    current: frozenset[str], traits: Iterable[str]
) -> frozenset[str]:
    """Return the traits of a provider that a step removes traits from.

    A trait that has lost its record meanwhile stays.

    :param current: the provider's names at the time of the write
    """
    records = current & isolation_cloud.get_records(traits)
    return current - records - isolation.get_recorded(records)


# The functions that return a provider's new names from its current ones and
# the wanted ones.
_DECIDE: Mapping[
    Change, Callable[[frozenset[str], Iterable[str]], frozenset[str]]
] = {
    Change.ADD_TO_AGGREGATES: frozenset.union,
    Change.ADD_TRAITS: add_traits,
    Change.REMOVE_TRAITS: remove_traits,
}


def create(trait: str) -> Step:
    """Return the step that creates a trait."""
    reason = ''
    try:
        syntax.check_custom_trait(trait, 'trait')
    except exception.InvalidValue:
        reason = (
            'the name is neither a standard trait nor CUSTOM_ followed by '
            'A-Z, 0-9 and _'
        )
    return Step(Change.CREATE_TRAIT, {trait: trait}, reason=reason)


def give(node: isolation_cloud.Node, trait: str) -> Step:
    """Return the step that gives a provider a trait that it lacks."""
    reason = ''
    if trait.startswith(_REPORTED):
        reason = (
            'nova-compute sets this trait itself, where the host supports it'
        )
    return Step(Change.ADD_TRAITS, {trait: trait}, node.host, node, reason)
