# SPDX-License-Identifier: Apache-2.0

"""Finds aggregates and flavors that the policies cannot read.

The filters report such data when a request meets it. The status check reads
all of it beforehand. Both call the same functions, so the check reports
exactly what the filters refuse.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set
import re
import typing

from nova_ext_sched import messages
from nova_ext_sched.conf import blazar as blazar_options
from nova_ext_sched.conf import weighers
from nova_ext_sched.policy import aggregate_instance_type
from nova_ext_sched.policy import blazar
from nova_ext_sched.policy import failover
from nova_ext_sched.policy import force_metadata_check
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import own_hosts
from nova_ext_sched.policy import preferred_aggregates
from nova_ext_sched.policy import reservation
from nova_ext_sched.policy import slips
from nova_ext_sched.policy import special_hosts
from nova_ext_sched.queries import tenants

Named = Mapping[str, Mapping[str, str]]

# A flavor's key may name a granular request group: trait1:X, trait_NET:X.
_TRAIT = re.compile(r'trait[a-zA-Z0-9_-]{0,64}:')
_TRAIT_VALUES = ('required', 'forbidden')

_INSTANCE_TYPE = aggregate_instance_type.DECLARATION


class OperatorsData(typing.NamedTuple):
    """Metadata and extra specs of operators, checked under the options.

    :ivar conf: nova's configuration with our options registered
    :ivar aggregates: metadata by the aggregate's name
    :ivar flavors: extra specs by the flavor's name
    """

    conf: typing.Any
    aggregates: Named
    flavors: Named

    def check_aggregates(self) -> Iterator[str]:
        """Yield the faults in the metadata of aggregates."""
        ours = self.conf.nova_ext_sched
        if ours.enable_isolated_aggregate_filtering:
            _, faults = isolation.read(self._items)
            yield from faults
        if self._rules.prefixes:
            yield from self._rules.find_faults(self._items)
        if _INSTANCE_TYPE.is_on(self.conf):
            for name, metadata in sorted(self.aggregates.items()):
                yield from aggregate_instance_type.find_slips(name, metadata)
            yield from self._check_instance_types('aggregate ')
            yield from self._check_forced()
        yield from self._check_preferences()

    def check_uses(self) -> Iterator[str]:
        """Yield aggregates that nothing can use, and what helps."""
        ours = self.conf.nova_ext_sched
        if (
            ours.enable_isolated_aggregate_filtering
            and 'image' not in ours.isolation_trait_sources
        ):
            yield from self._check_openers(isolation.read(self._items)[0])
        if not _INSTANCE_TYPE.is_on(self.conf) and (
            forcing := sorted(
                name
                for name, metadata in self.aggregates.items()
                if force_metadata_check.read(metadata)
            )
        ):
            yield (
                f'force_metadata_check is on in '
                f'{messages.first_few(forcing)}, but '
                f'{_INSTANCE_TYPE.host_filter} is not in [filter_scheduler] '
                f'enabled_filters, so nothing is forced. Add the filter.'
            )
        idle = weighers.find_idle(self.conf)
        for name, metadata in sorted(self.aggregates.items()):
            for option in sorted(metadata.keys() & idle):
                yield (
                    f'aggregate {messages.clean(name)} has {option}, but '
                    f'[nova_ext_sched] weighers does not have its weigher, so '
                    f'it has no effect.'
                )
        group = blazar_options.GROUP.name
        pool = self.conf[group].aggregate_freepool_name
        if blazar.DECLARATION.is_on(self.conf) and pool not in self.aggregates:
            yield (
                f'BlazarFilter is enabled, but there is no aggregate '
                f'{messages.clean(pool)}: any server can land on the hosts '
                f'that Blazar manages and nobody has reserved. Set [{group}] '
                f"aggregate_freepool_name to the name of Blazar's pool of "
                f'free hosts.'
            )

    def check_projects(self) -> Iterator[str]:
        """Yield keys of projects that this nova's own filter does not read."""
        key = own_hosts.TENANTS
        for name, metadata in sorted(self.aggregates.items()):
            unread = sorted(
                one
                for one in metadata
                if one.startswith(key) and not tenants.reads(one)
            )
            if unread:
                yield (
                    f'aggregate {messages.clean(name)}: '
                    f'{tenants.FILTER.__name__} of this nova does not read '
                    f'{messages.first_few(unread)}: it neither lets their '
                    f'projects in nor keeps others out. Write all projects '
                    f'into {key} too, with commas'
                )

    def check_flavors(self) -> Iterator[str]:
        """Yield the faults in the extra specs of flavors.

        nova ignores a ``trait:`` extra spec of another value, so the flavor
        requires less than it says. A flavor may name a reservation that no
        aggregate has.
        """
        rules = self._rules
        if 'flavor' not in self.conf.nova_ext_sched.member_sources:
            rules = reservation.Rules()
        carried = set().union(*self.aggregates.values())
        for name, specs in sorted(self.flavors.items()):
            subject = f'flavor {messages.clean(name)}: extra spec '
            for key, value in sorted(specs.items()):
                if _TRAIT.match(key) and value not in _TRAIT_VALUES:
                    yield (
                        f'{subject}{messages.quoted(key)}: expected required '
                        f'or forbidden, got {messages.quoted(value)}; nova '
                        f'ignores it'
                    )
                elif value in _TRAIT_VALUES and _is_slip(key):
                    yield (
                        f'{subject}{messages.quoted(key)}: expected a key '
                        f'like trait:<NAME>; nova ignores it'
                    )
            for key in sorted(specs):
                if rules.prefixes and (
                    fault := rules.find_fault(key) or rules.find_slip(key)
                ):
                    yield f'{subject}{fault}; it names no reservation'
            for key in rules.request(rules.keys_among(specs), None).required:
                if key not in carried:
                    yield (
                        f'{subject}{messages.quoted(key)}: no aggregate has '
                        f'this metadata key, so servers with the flavor find '
                        f'no host'
                    )
        if _INSTANCE_TYPE.is_on(self.conf):
            yield from self._check_instance_types('flavor ')
            for decision in self._decide():
                yield from decision.find_unmet(self.aggregates.values())

    def _check_preferences(self) -> Iterator[str]:
        """Yield the values that enabled weighers cannot read."""
        ours = self.conf.nova_ext_sched
        for name, metadata in sorted(self.aggregates.items()):
            for policy, key in (
                (preferred_aggregates, ours.preference_key),
                (special_hosts, ours.special_hosts_key),
            ):
                if policy.DECLARATION.is_on(self.conf):
                    yield from (
                        f'aggregate {messages.clean(name)}: {fault}; it '
                        f'counts for nothing'
                        for fault in policy.find_faults(metadata, key)
                    )
            if failover.DECLARATION.is_on(self.conf):
                yield from (
                    f'aggregate {messages.clean(name)}: {fault}'
                    for fault in failover.find_faults(
                        metadata, ours.failover_key
                    )
                )

    @property
    def _items(self) -> Iterator[tuple[str, str, str, str]]:
        return (
            (name, name, key, value)
            for name, metadata in sorted(self.aggregates.items())
            for key, value in sorted(metadata.items())
        )

    @property
    def _rules(self) -> reservation.Rules:
        return reservation.Rules.from_options(self.conf.nova_ext_sched)

    def _check_openers(
        self, required: Mapping[str, Set[str]]
    ) -> Iterator[str]:
        """Yield the isolated aggregates that no flavor opens.

        For clouds where the traits of images do not count.

        :param required: the traits that each isolated aggregate requires
        """
        offered = [
            {
                key.partition(':')[2]
                for key, value in specs.items()
                if _TRAIT.match(key) and value == isolation.REQUIRED
            }
            for specs in self.flavors.values()
        ]
        for name, traits in sorted(required.items()):
            if not any(traits <= mine for mine in offered):
                yield (
                    f'aggregate {messages.clean(name)}: no flavor requires '
                    f'{messages.first_few(sorted(traits))} in its extra '
                    f'specs, and isolation_trait_sources does not have image, '
                    f'so only traits of ports and device profiles open it. '
                    f'Make a flavor that requires them'
                )

    def _decide(self) -> Iterator[aggregate_instance_type.Decision]:
        """Yield the decision for a flavor without extra specs, then each."""
        for name, specs in [
            ('without extra specs', {}),
            *sorted(self.flavors.items()),
        ]:
            yield aggregate_instance_type.Decision(
                name,
                specs,
                self.conf.nova_ext_sched.force_metadata_check_ignored_keys,
                self._rules.prefixes,
            )

    def _check_forced(self) -> Iterator[str]:
        """Yield the aggregates that force keys no flavor agrees with."""
        # The first decision is of no flavor of the cloud.
        _, *decisions = self._decide()
        flag = force_metadata_check.FLAG

        def refuses_all(metadata: Mapping[str, str]) -> bool:
            refused = [one.is_refused_by(metadata) for one in decisions]
            return bool(refused) and all(refused)

        for name, metadata in sorted(self.aggregates.items()):
            if force_metadata_check.read(metadata) and refuses_all(metadata):
                # The keys that refuse all flavors alone, or else all together.
                alone = {
                    key: value
                    for key, value in metadata.items()
                    if refuses_all({flag: metadata[flag], key: value})
                }
                keys = messages.first_few(
                    [
                        f'{key}={value}'
                        for key, value in sorted((alone or metadata).items())
                    ]
                )
                yield (
                    f'aggregate {messages.clean(name)}: {flag} is on, and no '
                    f'flavor agrees with {keys}, so no server can land on '
                    f'its hosts'
                )

    def _check_instance_types(self, subject: str) -> Iterator[str]:
        """Yield the values that AggregateInstanceTypeFilter cannot read.

        Each flavor meets each aggregate, because a value may be malformed only
        for a flavor that compares it as a number.
        """
        # A dictionary: every flavor meets a fault of an aggregate.
        faults: dict[str, None] = {}
        for decision in self._decide():
            faults |= dict.fromkeys(decision.request_faults)
            for aggregate, metadata in sorted(self.aggregates.items()):
                # The lowest bit says that there is something to report.
                if decision.read(metadata) & 1:
                    faults |= dict.fromkeys(
                        decision.faults(aggregate, metadata)
                    )
        return (fault for fault in faults if fault.startswith(subject))


def _is_slip(key: str) -> bool:
    # A key with the scope says what aggregates are to have.
    return not (
        _TRAIT.match(key) or key.startswith(aggregate_instance_type.SCOPE)
    ) and (
        isolation.is_slip(key) or slips.nearly_begins(key, [isolation.PREFIX])
    )
