# SPDX-License-Identifier: Apache-2.0

"""Finds aggregates and flavors that the policies cannot read.

The filters report such data when a request meets it. The status check reads
all of it beforehand. Both call the same functions, so the check reports
exactly what the filters refuse.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Set
import re

from nova_ext_sched import messages
from nova_ext_sched.policy import aggregate_instance_type
from nova_ext_sched.policy import force_metadata_check
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import reservation

Named = Mapping[str, Mapping[str, str]]

# A flavor's key may name a granular request group: trait1:X, trait_NET:X.
_TRAIT = re.compile(r'trait[a-zA-Z0-9_-]{0,64}:')
_TRAIT_VALUES = ('required', 'forbidden')


def read_isolation(
    aggregates: Named,
) -> tuple[dict[str, set[str]], list[str]]:
    """Return the isolated aggregates, and what is wrong in their metadata.

    :param aggregates: metadata by the aggregate's name
    """
    return isolation.read(
        (name, name, key, value)
        for name, metadata in sorted(aggregates.items())
        for key, value in sorted(metadata.items())
    )


def check_traits(flavors: Named) -> list[str]:
    """Return what is wrong in the ``trait:`` extra specs of flavors.

    nova ignores such an extra spec, so the flavor requires less than it says.

    :param flavors: extra specs by the flavor's name
    """
    return [
        f'flavor {messages.clean(name)}: extra spec {messages.quoted(key)}: '
        f'expected required or forbidden, got {messages.quoted(value)}; nova '
        f'ignores it'
        for name, specs in sorted(flavors.items())
        for key, value in sorted(specs.items())
        if _TRAIT.match(key) and value not in _TRAIT_VALUES
    ]


def check_openers(
    required: Mapping[str, Set[str]], flavors: Named
) -> list[str]:
    """Return which isolated aggregates no flavor opens.

    For clouds where the traits of images do not count.

    :param required: the traits that each isolated aggregate requires, by name
    :param flavors: extra specs by the flavor's name
    """
    offered = [
        {
            key.partition(':')[2]
            for key, value in specs.items()
            if _TRAIT.match(key) and value == isolation.REQUIRED
        }
        for specs in flavors.values()
    ]
    return [
        f'aggregate {messages.clean(name)}: no flavor requires '
        f'{messages.first_few(sorted(traits))} in its extra specs, and '
        f'isolation_trait_sources does not have image, so only traits of '
        f'ports and device profiles open it'
        for name, traits in sorted(required.items())
        if not any(traits <= mine for mine in offered)
    ]


def check_reservations(
    aggregates: Named, flavors: Named, rules: reservation.Rules
) -> list[str]:
    """Return which flavors name a reservation that no aggregate has."""
    carried = {key for metadata in aggregates.values() for key in metadata}
    return [
        f'flavor {messages.clean(name)}: extra spec {messages.quoted(key)}: '
        f'no aggregate has this metadata key, so servers with the flavor '
        f'find no host'
        for name, specs in sorted(flavors.items())
        for key in rules.request(rules.keys_among(specs), None).required
        if key not in carried
    ]


def check_instance_types(
    aggregates: Named,
    flavors: Named,
    ignored: Collection[str] = (),
    reserved_prefixes: Collection[str] = (),
) -> list[str]:
    """Return what AggregateInstanceTypeFilter cannot read.

    Each flavor meets each aggregate, because a value may be malformed only
    for a flavor that compares it as a number.

    :param ignored: ``force_metadata_check_ignored_keys``
    :param reserved_prefixes: prefixes of keys of reserved aggregates
    """
    # A fault of an aggregate is met by every flavor.
    found: dict[str, None] = {}
    for name, specs in [('without extra specs', {}), *sorted(flavors.items())]:
        decision = aggregate_instance_type.Decision(
            name, specs, ignored, reserved_prefixes
        )
        found |= dict.fromkeys(decision.request_faults)
        for aggregate, metadata in sorted(aggregates.items()):
            # Odd where there is something to report.
            if decision.read(metadata) & 1:
                found |= dict.fromkeys(decision.faults(aggregate, metadata))
    return list(found)


def forcing_aggregates(aggregates: Named) -> list[str]:
    """Return the names of the aggregates that force their metadata."""
    return sorted(
        name
        for name, metadata in aggregates.items()
        if force_metadata_check.read(metadata)
    )
