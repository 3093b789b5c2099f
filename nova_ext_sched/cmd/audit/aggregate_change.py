# SPDX-License-Identifier: Apache-2.0

"""Changes an aggregate's metadata in memory, to judge before it is changed.

Nothing is saved. ``aggregates`` are nova Aggregate objects, those of a
HostManager.
"""

import argparse
from collections.abc import Collection
import typing

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.cli import aggregate_name
from nova_ext_sched.cli import base


def set_property(
    aggregates: Collection[typing.Any], name: str, item: str
) -> None:
    """Set ``KEY=VALUE``.

    :param name: the aggregate's name, UUID or ID
    :raises exception.InvalidValue: no or several aggregates have the name, or
        the item has another form
    """
    try:
        key, value = base.read_pair(item)
    except argparse.ArgumentTypeError as exc:
        raise exception.InvalidValue(
            where='--aggregate-property', expected='KEY=VALUE', got=item
        ) from exc
    aggregate = aggregate_name.find(aggregates, name)
    aggregate.metadata = {**(aggregate.metadata or {}), key: value}


def remove_property(
    aggregates: Collection[typing.Any], name: str, key: str
) -> None:
    """Remove a key.

    :param name: the aggregate's name, UUID or ID
    :raises exception.InvalidValue: no or several aggregates have the name, or
        the aggregate does not have the key
    """
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
