# SPDX-License-Identifier: Apache-2.0

"""What operators name, found among what there is."""

from collections.abc import Iterable
import typing

from nova_ext_sched import exception
from nova_ext_sched import messages


def find_aggregate(aggregates: Iterable[typing.Any], name: str) -> typing.Any:
    """Return the aggregate that an operator names, by name, UUID or ID.

    The name of one aggregate may be the ID of another.

    :param aggregates: objects with ``name``, ``uuid`` and ``id``: those of
        nova, or of the osc commands
    :raises exception.InvalidValue: no aggregate is meant, or several are
    """
    aggregates = list(aggregates)
    found = [
        aggregate
        for aggregate in aggregates
        if name in (aggregate.name, aggregate.uuid, str(aggregate.id))
    ]
    if len(found) == 1:
        return found[0]
    known = messages.nearest(name, [one.name for one in aggregates])
    expected = f'the name, UUID or ID of an aggregate: {known}'
    if found:
        expected = (
            f'the UUID of one aggregate, such as {found[0].uuid}, because '
            f'{len(found)} aggregates have this name'
        )
    raise exception.InvalidValue(
        where='aggregate', expected=expected, got=name
    )
