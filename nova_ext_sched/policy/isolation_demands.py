# SPDX-License-Identifier: Apache-2.0

"""What the request filters named isolate_aggregates ask placement.

The decision is :mod:`nova_ext_sched.policy.isolation`'s.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence

from nova_ext_sched.policy import explanation
from nova_ext_sched.policy import extra_specs
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import placement_demands
from nova_ext_sched.policy import verdict


def missing_traits(
    aggregates: Sequence[explanation.Aggregate], required: Collection[str]
) -> dict[str, list[str]]:
    """Return the aggregates that a request may not use, by UUID.

    As :func:`nova_ext_sched.policy.isolation.missing_traits`.
    """
    return isolation.missing_traits(
        [
            (aggregate.uuid, aggregate.name, key, value)
            for aggregate in aggregates
            for key, value in aggregate.metadata.items()
        ],
        required,
    )


def of_isolation(
    aggregates: Sequence[explanation.Aggregate],
    missing: Mapping[str, Sequence[str]],
    uuids: Collection[str],
    traits: Collection[str],
) -> placement_demands.Demand:
    """Return the demand to be in no isolated aggregate.

    :param aggregates: every aggregate
    :param missing: by UUID of each forbidden aggregate, the traits that the
        request lacks
    :param uuids: the aggregates that are forbidden by UUID
    :param traits: the traits that are forbidden in place of the others
    """

    def refuse(host: explanation.Host) -> explanation.Refusal:
        return isolated(host, missing) or explanation.Refusal(
            'are isolated in placement alone',
            'its resource provider is in a forbidden aggregate in placement '
            'that nova does not have the host in, or has a trait that '
            'forbid_by_trait names',
        )

    questions = [
        placement_demands.Question(extra_specs.Group(required_traits={trait}))
        for trait in sorted(traits)
    ]
    if uuids:
        questions.append(placement_demands.Question(member_of=sorted(uuids)))
    return placement_demands.Demand(
        'isolation',
        'isolated aggregates whose traits the request lacks: '
        + describe_isolated(aggregates, missing),
        refuse,
        questions,
        of_root=True,
        negative=True,
    )


def isolated(
    host: explanation.Host, missing: Mapping[str, Sequence[str]]
) -> explanation.Refusal | None:
    """Return why a host is isolated from a request, None where it is not."""
    for aggregate in host.aggregates:
        if aggregate.uuid in missing:
            lacking = _traits(missing[aggregate.uuid])
            return explanation.Refusal(
                f'are isolated by aggregate {aggregate.name} ({lacking})',
                f'aggregate {aggregate.name} is isolated and the request '
                f'does not require {lacking}',
            )
    return None


def describe_isolated(
    aggregates: Sequence[explanation.Aggregate],
    missing: Mapping[str, Sequence[str]],
) -> str:
    """Return the names and traits of forbidden aggregates, the first few."""
    described = [
        f'{aggregate.name} ({_traits(missing[aggregate.uuid])})'
        for aggregate in sorted(aggregates, key=lambda a: a.name)
        if aggregate.uuid in missing
    ]
    return verdict.first_few(described, placement_demands.NAMES)


def _traits(names: Sequence[str]) -> str:
    return ('traits ' if len(names) > 1 else 'trait ') + ', '.join(
        sorted(names)
    )
