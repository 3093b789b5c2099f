# SPDX-License-Identifier: Apache-2.0

"""Why a host is not among those that satisfy a part of the query.

Each begins with a verb in the plural (see :mod:`.funnel`).
"""

from collections.abc import Iterable
import typing

from nova_ext_sched import messages
from nova_ext_sched.explain import query

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
            return messages.quote(str(part))
        names = [self._name(uuid) for uuid in uuids_of(part)]
        verb = 'not in' if part.forbids else 'in one of'
        return f'{verb} aggregates {messages.first_few(names)}'

    def lack(self, part: query.Part) -> str:
        """Return what hosts do that do not satisfy a part."""
        value = messages.quote(part.value)
        if part.key == 'resources':
            return f'lack {value.partition(":")[0]}'
        if part.key in ('required', 'root_required'):
            if part.value == f'!{_DISABLED}':
                return f'are disabled (trait {_DISABLED})'
            if part.forbids:
                return f'have the forbidden trait {value[1:]}'
            return f'lack the trait {value}'
        if part.key == 'member_of':
            names = [self._name(uuid) for uuid in uuids_of(part)]
            return f'are in none of the aggregates {messages.first_few(names)}'
        if part.key == 'in_tree':
            return 'are not the requested host'
        return f'lack a provider for group {messages.quote(str(part))}'

    def forbidding(self, host: str, part: query.Part) -> str:
        """Return why a host is kept out by the aggregates of a part.

        :param host: its name
        :param part: forbids aggregates
        """
        found = [
            aggregate
            for uuid in uuids_of(part)
            if (aggregate := self._aggregates.get(uuid.lower()))
            and host in aggregate.hosts
        ]
        if not found:
            return 'are in a forbidden aggregate that only placement knows'
        isolating = {
            aggregate.name: [
                key[len('trait:') :]
                for key in sorted(aggregate.metadata)
                if key.lower().startswith('trait:')
            ]
            for aggregate in found
        }
        names = messages.first_few(sorted(isolating))
        traits = sorted({t for some in isolating.values() for t in some})
        if not traits:
            return f'are in the forbidden aggregate {names}'
        kind = 'trait' if len(traits) == 1 else 'traits'
        return (
            f'are isolated by aggregate {names} '
            f'({kind} {messages.first_few(traits)})'
        )

    def _name(self, uuid: str) -> str:
        aggregate = self._aggregates.get(uuid.lower())
        return uuid if aggregate is None else aggregate.name


def uuids_of(part: query.Part) -> list[str]:
    """Return the UUIDs of a part that requires or forbids aggregates."""
    text = part.value.removeprefix('!')
    return text.removeprefix('in:').split(',')
