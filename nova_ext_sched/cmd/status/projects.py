# SPDX-License-Identifier: Apache-2.0

"""Finds keys of projects that this nova's own host filter does not read."""

from collections.abc import Iterator
from collections.abc import Mapping

from nova_ext_sched import messages
from nova_ext_sched.policy import own_hosts
from nova_ext_sched.queries import tenants


def find(aggregates: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield the aggregates with such keys.

    :param aggregates: metadata by the aggregate's name
    """
    name = tenants.FILTER.__name__
    key = own_hosts.TENANTS
    for aggregate, metadata in sorted(aggregates.items()):
        unread = sorted(
            one
            for one in metadata
            if one.startswith(key) and not tenants.reads(one)
        )
        if unread:
            yield (
                f'aggregate {messages.clean(aggregate)}: {name} of this nova '
                f'does not read {messages.first_few(unread)}: it neither '
                f'lets their projects in nor keeps others out. Write all '
                f'projects into {key} too, with commas'
            )
