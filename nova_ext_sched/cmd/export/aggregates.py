# SPDX-License-Identifier: Apache-2.0

"""The aggregates, with hosts, metadata and zone."""

from collections.abc import Collection
from collections.abc import Iterable
import typing

from nova_ext_sched.cmd.export import names

_ZONE = 'availability_zone'


def describe(
    aggregates: Iterable[typing.Any], hosts: Collection[str]
) -> dict[str, dict[str, typing.Any]]:
    """Return aggregates by name.

    :param aggregates: nova's
    :param hosts: the names of the document's hosts
    """
    called = names.Names()
    found = {}
    for aggregate in aggregates:
        metadata = dict(aggregate.metadata)
        described = {
            'hosts': [host for host in aggregate.hosts if host in hosts],
            _ZONE: metadata.pop(_ZONE, None),
            'metadata': metadata,
        }
        found[called.give(aggregate.name, aggregate.uuid)] = {
            key: value for key, value in described.items() if value
        }
    return found
