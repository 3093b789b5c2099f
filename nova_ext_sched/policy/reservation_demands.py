# SPDX-License-Identifier: Apache-2.0

"""What the request filter reserved_aggregates asks placement.

The decision is :mod:`nova_ext_sched.policy.reservation`'s.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import typing

from nova_ext_sched.policy import explanation
from nova_ext_sched.policy import placement_demands
from nova_ext_sched.policy import reservation
from nova_ext_sched.policy import scheduling
from nova_ext_sched.policy import verdict

STAGE = 'reservation'


def compile_request(
    request: scheduling.Request, options: scheduling.Options
) -> reservation.Request | None:
    """Return what the keys of a request mean, None without any prefix."""
    rules = reservation.Rules.of(options)
    if not rules.prefixes:
        return None
    keys: set[str] = set()
    if 'flavor' in options.member_sources:
        keys |= rules.keys_among(request.extra_specs)
    if 'image' in options.member_sources:
        keys |= rules.keys_among(request.image_properties)
    if 'hint' in options.member_sources:
        keys |= rules.keys_in_hints(_lists(request.hints))
    return rules.request(keys, request.project_id)


def resolve(
    compiled: reservation.Request,
    aggregates: Sequence[explanation.Aggregate],
) -> reservation.Resolution:
    """Return what a request means for the aggregates of the cloud."""
    return compiled.resolve(
        (aggregate.uuid, aggregate.name, key, value)
        for aggregate in aggregates
        for key, value in aggregate.metadata.items()
    )


def of_image_that_is_gone() -> placement_demands.Demand:
    """Return the demand of a server whose image Glance does not have.

    The scheduler reads the keys of an image there, and fails closed.
    """
    return placement_demands.never(
        STAGE,
        'keys of the image: not in Glance any more',
        'are refused, because the keys of the image cannot be read',
        'Glance does not have the image of the server any more, and '
        'member_sources has image',
    )


def of_reservation(
    compiled: reservation.Request,
    resolution: reservation.Resolution,
    aggregates: Sequence[explanation.Aggregate],
) -> list[placement_demands.Demand]:
    """Return the demands of a resolution, in the filter's order."""
    if not resolution.verdict.passes:
        return [
            placement_demands.never(
                STAGE,
                f'reservation {resolution.unmet}: no usable aggregate',
                f'are refused, because no aggregate can be used for '
                f'{resolution.unmet}',
                resolution.verdict.reason,
            )
        ]
    found = [
        _of_key(key, [a for a in aggregates if a.uuid in uuids])
        for key, uuids in resolution.required.items()
    ]
    if resolution.forbidden:
        found.append(_of_forbidden(compiled, resolution.forbidden))
    return found


def _of_key(
    key: str, aggregates: Sequence[explanation.Aggregate]
) -> placement_demands.Demand:
    demand = placement_demands.of_member(f'reservation {key}', aggregates)
    demand.stage = STAGE
    return demand


def _of_forbidden(
    compiled: reservation.Request, forbidden: Mapping[str, str]
) -> placement_demands.Demand:
    def refuse(host: explanation.Host) -> explanation.Refusal:
        for aggregate in host.aggregates:
            if aggregate.uuid in forbidden:
                found = compiled.judge([(aggregate.name, aggregate.metadata)])
                return explanation.Refusal(
                    f'are reserved by aggregate {aggregate.name}',
                    found.reason,
                )
        return explanation.Refusal(
            'are reserved in placement alone',
            'its resource provider is in a reserved aggregate in placement '
            'that nova does not have the host in',
        )

    names = sorted(forbidden.values())
    return placement_demands.Demand(
        STAGE,
        'reserved aggregates that the request does not name: '
        + verdict.first_few(names, placement_demands.NAMES),
        refuse,
        [placement_demands.Question(member_of=sorted(forbidden))],
        of_root=True,
        negative=True,
    )


def _lists(hints: Mapping[str, typing.Any]) -> dict[str, list[str]]:
    return {
        name: value if isinstance(value, list) else [value]
        for name, value in hints.items()
    }
