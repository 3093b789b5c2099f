# SPDX-License-Identifier: Apache-2.0

"""Finds the object that an operator names.

What is the ID of something is never a name: members choose the names of their
servers and groups.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import typing

from nova_ext_sched import exception


def find(
    noun: str, wanted: str, names: Mapping[str, str], place: str = ''
) -> str:
    """Return the ID of an object named by its ID or its name.

    :param noun: the kind of object, for messages
    :param names: the names of existing objects by ID
    :param place: where they exist, for messages, with a blank before it
    :raises exception.UnknownName: nothing is meant, or several things are
    """
    if wanted in names:
        return wanted
    found = [id_ for id_, name in names.items() if name == wanted]
    if len(found) == 1:
        return found[0]
    raise exception.UnknownName(noun, wanted, names.values(), found, place)


def find_host(wanted: str, hosts: Collection[str], place: str = '') -> str:
    """Return the host that an operator names, perhaps without its domain.

    ``cmp-0101`` is ``cmp-0101.az1.prod.example.net`` where no other host of
    that name is in another domain.

    :raises exception.UnknownName: there is none, or several are meant
    """
    if wanted in hosts:
        return wanted
    found = [host for host in hosts if host.startswith(f'{wanted}.')]
    if len(found) == 1 and wanted:
        return found[0]
    raise exception.UnknownName('host', wanted, found or hosts, place=place)


def find_aggregate(aggregates: Iterable[typing.Any], name: str) -> typing.Any:
    """Return the aggregate that an operator names, by name, UUID or ID.

    The name of one aggregate may be the ID of another.

    :param aggregates: objects with ``name``, ``uuid`` and ``id``: those of
        nova, or of the osc commands
    :raises exception.UnknownName: no aggregate is meant, or several are
    """
    aggregates = list(aggregates)
    matching = [
        aggregate
        for aggregate in aggregates
        if name in (aggregate.name, aggregate.uuid, str(aggregate.id))
    ]
    if len(matching) == 1:
        return matching[0]
    raise exception.UnknownName(
        'aggregate',
        name,
        [one.name for one in aggregates],
        [one.uuid for one in matching],
    )
