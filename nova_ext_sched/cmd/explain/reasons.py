# SPDX-License-Identifier: Apache-2.0

"""Why a host is not among those that satisfy a part of the query.

Each begins with a verb in the plural (see :mod:`.funnel`).
"""

from collections.abc import Iterable
import typing

import nova.conf

from nova_ext_sched import messages
from nova_ext_sched.cmd.explain import query
from nova_ext_sched.conf import blazar
from nova_ext_sched.request_filters import blazar_reservations

CONF = nova.conf.CONF

_DISABLED = 'COMPUTE_STATUS_DISABLED'


class Reasons:
    """Words for parts of the query, with the names of nova's aggregates.

    :param aggregates: nova Aggregate objects
    """

    def __init__(self, aggregates: Iterable[typing.Any]) -> None:
        self._aggregates = {
            aggregate.uuid.lower(): aggregate for aggregate in aggregates
        }

    def describe(self, part: query.Part) -> str:
        """Return a part of the query as people read it."""
        if part.key != 'member_of':
            return messages.clean(str(part))
        verb = 'not in' if part.forbids else 'in one of'
        return f'{verb} aggregates {self._names(part)}'

    def lack(self, part: query.Part) -> str:
        """Return what hosts do that do not satisfy a part."""
        value = messages.clean(part.value)
        if part.key == 'resources':
            return f'lack {value.partition(":")[0]}'
        if part.key == 'member_of':
            return f'are in none of the aggregates {self._names(part)}'
        if part.key == 'in_tree':
            return 'are not the requested host'
        if part.key == 'group':
            return f'lack a provider for group {messages.clean(str(part))}'
        if part.value == f'!{_DISABLED}':
            return f'are disabled (trait {_DISABLED})'
        if part.forbids:
            return f'have the forbidden trait {value[1:]}'
        return f'lack the trait {value}'

    def forbidding(self, host: str, part: query.Part) -> str:
        """Return why a host is kept out by the aggregates of a part.

        :param host: its name
        :param part: forbids aggregates
        """
        found = [
            aggregate
            for uuid in part.aggregates
            if (aggregate := self._aggregates.get(uuid.lower()))
            and host in aggregate.hosts
        ]
        if not found:
            return 'are in a forbidden aggregate that only placement knows'
        names = messages.first_few(sorted({one.name for one in found}))
        traits = sorted(
            {
                key[len('trait:') :]
                for aggregate in found
                for key in aggregate.metadata
                if key.lower().startswith('trait:')
            }
        )
        if not traits and _are_blazars(found):
            return f'are managed by Blazar (aggregate {names})'
        if not traits:
            return f'are in the forbidden aggregate {names}'
        kind = 'trait' if len(traits) == 1 else 'traits'
        return (
            f'are isolated by aggregate {names} '
            f'({kind} {messages.first_few(traits)})'
        )

    def _names(self, part: query.Part) -> str:
        known = self._aggregates
        return messages.first_few(
            [
                known[uuid.lower()].name if uuid.lower() in known else uuid
                for uuid in part.aggregates
            ]
        )


def _are_blazars(aggregates: Iterable[typing.Any]) -> bool:
    if not blazar.is_on(CONF):
        return False
    rules = blazar_reservations.rules()
    return all(
        any(rules.why_pool(one.name, one.metadata)) for one in aggregates
    )
