# SPDX-License-Identifier: Apache-2.0

"""Changes aggregates' metadata in memory, to judge before it is changed.

Nothing is saved.
"""

from collections.abc import Collection
from collections.abc import Iterable
import typing

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.cli import aggregate_name


def change(
    aggregates: Collection[typing.Any],
    wanted: Iterable[tuple[str, str]],
    unwanted: Iterable[tuple[str, str]],
) -> None:
    """Set and remove metadata.

    :param aggregates: nova Aggregate objects, those of a HostManager
    :param wanted: names, UUIDs or IDs of aggregates, each with ``KEY=VALUE``
    :param unwanted: likewise, each with a key
    :raises exception.InvalidValue: no or several aggregates have a name, an
        item has another form, or an aggregate does not have the key
    """
    for name, item in wanted:
        key, equals, value = item.partition('=')
        if not key or not equals:
            raise exception.InvalidValue(
                where='--aggregate-property', expected='KEY=VALUE', got=item
            )
        aggregate = aggregate_name.find(aggregates, name)
        aggregate.metadata = {**(aggregate.metadata or {}), key: value}
    for name, key in unwanted:
        aggregate = aggregate_name.find(aggregates, name)
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
