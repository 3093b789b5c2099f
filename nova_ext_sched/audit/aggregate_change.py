# SPDX-License-Identifier: Apache-2.0

"""A change of an aggregate's metadata that is supposed and never made."""

from collections.abc import Iterable
import dataclasses
import typing

from nova_ext_sched import exception
from nova_ext_sched import messages


def find(aggregates: Iterable[typing.Any], name: str) -> typing.Any:
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
    if not found:
        raise exception.InvalidValue(
            where='aggregate',
            expected='the name, UUID or ID of an aggregate',
            got=name,
        )
    if len(found) > 1:
        raise exception.InvalidValue(
            where='aggregate',
            expected=f'the UUID of one aggregate, such as {found[0].uuid}, '
            f'because {len(found)} aggregates have this name',
            got=name,
        )
    return found[0]


@dataclasses.dataclass(frozen=True)
class AggregateChange:
    """One item of metadata as it would be.

    :ivar aggregate: the aggregate's name, UUID or ID
    :ivar value: None where the item is removed
    """

    aggregate: str
    key: str
    value: str | None = None

    @classmethod
    def parse(cls, aggregate: str, item: str) -> 'AggregateChange':
        """Read ``KEY=VALUE``.

        :raises exception.InvalidValue: it has another form
        """
        key, equals, value = item.partition('=')
        if not key or not equals:
            raise exception.InvalidValue(
                where='--aggregate-property', expected='KEY=VALUE', got=item
            )
        return cls(aggregate, key, value)

    def apply(self, aggregates: Iterable[typing.Any]) -> None:
        """Change the metadata in memory; nothing is saved.

        :param aggregates: nova Aggregate objects, those of a HostManager
        :raises exception.InvalidValue: see :func:`find`; or an item is
            removed that is not there
        """
        aggregate = find(aggregates, self.aggregate)
        metadata = dict(aggregate.metadata or {})
        if self.value is not None:
            metadata[self.key] = self.value
        elif metadata.pop(self.key, None) is None:
            raise exception.InvalidValue(
                where='--no-aggregate-property',
                expected=f'a metadata key of aggregate '
                f'{messages.quote(aggregate.name)}: '
                f'{messages.first_few(sorted(metadata)) or "it has none"}',
                got=self.key,
            )
        aggregate.metadata = metadata
