# SPDX-License-Identifier: Apache-2.0

"""Changes of an aggregate's metadata that are supposed and never made."""

from collections.abc import Collection
import typing

from nova_ext_sched import exception
from nova_ext_sched import messages


def find(aggregates: Collection[typing.Any], name: str) -> typing.Any:
    """Return the aggregate that an operator names.

    :param aggregates: nova Aggregate objects
    :param name: its name, UUID or ID
    :raises exception.InvalidValue: no aggregate or several have the name
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


def suppose_property(
    aggregates: Collection[typing.Any], name: str, item: str
) -> None:
    """Set ``KEY=VALUE`` in memory; nothing is saved.

    :param aggregates: nova Aggregate objects, those of a HostManager
    :raises exception.InvalidValue: see :func:`find`; or the item has another
        form
    """
    key, equals, value = item.partition('=')
    if not key or not equals:
        raise exception.InvalidValue(
            where='--aggregate-property', expected='KEY=VALUE', got=item
        )
    aggregate = find(aggregates, name)
    aggregate.metadata = {**(aggregate.metadata or {}), key: value}


def suppose_no_property(
    aggregates: Collection[typing.Any], name: str, key: str
) -> None:
    """Remove a key in memory, as :func:`suppose_property` sets one.

    :raises exception.InvalidValue: see :func:`find`; or the key is not there
    """
    aggregate = find(aggregates, name)
    metadata = dict(aggregate.metadata or {})
    if metadata.pop(key, None) is None:
        raise exception.InvalidValue(
            where='--no-aggregate-property',
            expected=f'a metadata key of aggregate '
            f'{messages.clean(aggregate.name)}: '
            f'{messages.first_few(sorted(metadata)) or "it has none"}',
            got=key,
        )
    aggregate.metadata = metadata
