# SPDX-License-Identifier: Apache-2.0

"""The aggregate that an operator names on a command line."""

from collections.abc import Iterable
import typing

from nova_ext_sched import exception


def find(aggregates: Iterable[typing.Any], name: str) -> typing.Any:
    """Return the aggregate of a name, UUID or ID.

    The name of one aggregate may be the ID of another.

    :param aggregates: objects with ``name``, ``uuid`` and ``id``: those of
        nova, or of the osc commands
    :raises exception.InvalidValue: no aggregate is meant, or several are
    """
    found = [
        aggregate
        for aggregate in aggregates
        if name in (aggregate.name, aggregate.uuid, str(aggregate.id))
    ]
    if len(found) == 1:
        return found[0]
    expected = 'the name, UUID or ID of an aggregate'
    if found:
        expected = (
            f'the UUID of one aggregate, such as {found[0].uuid}, because '
            f'{len(found)} aggregates have this name'
        )
    raise exception.InvalidValue(
        where='aggregate', expected=expected, got=name
    )
