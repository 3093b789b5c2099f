# SPDX-License-Identifier: Apache-2.0

"""Resource providers of a file, into placement's tables."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import re
import typing

import os_traits
from oslo_utils import uuidutils
import sqlalchemy as sa

_NAME = re.compile(r'[A-Z0-9_]{1,255}\Z')
_INVENTORY = (
    *('total', 'reserved', 'min_unit', 'max_unit', 'step_size'),
    'allocation_ratio',
)
_NOBODY = 'unknown'
# nova's trees have three levels.
_DEEPEST = 50

_Thing = dict[str, typing.Any]


class Trees:
    """Keeps providers, and fills the tables when all are there.

    :param engine: placement's, whose tables have what every placement has
    """

    def __init__(self, engine: sa.engine.Engine) -> None:
        self._engine = engine
        self._traits: set[str] = set()
        self._classes: set[str] = set()
        self._providers: dict[str, _Thing] = {}
        self._consumers: dict[str, _Thing] = {}

    def add_traits(self, names: Iterable[typing.Any]) -> None:
        """Know traits."""
        self._traits.update(map(_check_name, names))

    def add_classes(self, names: Iterable[typing.Any]) -> None:
        """Know resource classes."""
        self._classes.update(map(_check_name, names))

    def add(self, provider: _Thing) -> None:
        """Add a provider, or replace it.

        :raises ValueError: it has another form
        """
        for name in ('uuid', 'root', *['parent'] * bool(provider['parent'])):
            _check_uuid(provider[name])
        for uuid in provider['aggregates']:
            _check_uuid(uuid)
        if (
            not isinstance(provider['name'], str)
            or type(provider['generation']) is not int
        ):
            raise ValueError('a provider has a name and a generation')
        self.add_traits(provider['traits'])
        self.add_classes(provider['inventories'])
        for inventory in provider['inventories'].values():
            for field in _INVENTORY:
                _check_amount(inventory[field])
        for consumer, resources in provider['allocations'].items():
            _check_uuid(consumer)
            self.add_classes(resources)
            for amount in resources.values():
                _check_amount(amount)
        self._providers.pop(provider['uuid'], None)
        self._providers[provider['uuid']] = provider

    def remove(self, uuid: str) -> None:
        """Forget a provider that was deleted."""
        self._providers.pop(uuid, None)

    def get(self, uuid: str) -> _Thing | None:
        """Return a provider that is known, which may be changed."""
        return self._providers.get(uuid)

    def copy(self, root: str, rename: Callable[[str], str]) -> dict[str, str]:
        """Know a tree once more, of which nobody holds anything.

        :param root: the UUID of its root, which placement may lack
        :param rename: returns the name of the copy of a provider
        :returns: the UUIDs of the copies by those of the providers
        """
        tree = [o for o in self._providers.values() if o['root'] == root]
        uuids = {
            uuid: uuidutils.generate_uuid()
            for uuid in {root, *(provider['uuid'] for provider in tree)}
        }
        for provider in tree:
            self._providers[uuids[provider['uuid']]] = {
                **provider,
                'uuid': uuids[provider['uuid']],
                'root': uuids[root],
                'parent': provider['parent'] and uuids[provider['parent']],
                'name': rename(provider['name']),
                'inventories': {
                    name: dict(its)
                    for name, its in provider['inventories'].items()
                },
                'traits': [
                    name
                    for name in provider['traits']
                    if name != os_traits.COMPUTE_STATUS_DISABLED
                ],
                'allocations': {},
            }
        return uuids

    def add_consumer(self, consumer: _Thing) -> None:
        """Add the project and user of a consumer's allocations."""
        for name in ('project', 'user', 'type'):
            if not isinstance(consumer[name], str | None):
                raise ValueError(f'consumer {consumer["uuid"]}')
        self._consumers[_check_uuid(consumer['uuid'])] = consumer

    def finish(self, owners: Mapping[str, tuple[str, str]]) -> None:
        """Fill the tables.

        :param owners: project and user of each consumer that nova knows
        :raises ValueError: providers do not make trees
        """
        self._check_trees()
        providers = [*self._providers.values()]
        ids = {one['uuid']: id_ for id_, one in enumerate(providers, 1)}
        consumers = self._consumers | {
            uuid: {'project': project, 'user': user, 'type': None}
            for uuid, (project, user) in owners.items()
        }
        held = {uuid for one in providers for uuid in one['allocations']}
        with self._engine.begin() as connection:
            _fill_providers(connection, providers, ids, self._traits)
            _fill_amounts(connection, providers, ids, self._classes)
            _fill_consumers(
                connection,
                {uuid: consumers.get(uuid, {}) for uuid in sorted(held)},
            )

    def _check_trees(self) -> None:
        """Refuse providers that form no tree.

        :raises ValueError: a provider is above itself, or its root is none
        """
        for uuid, provider in self._providers.items():
            above, seen = provider, {uuid}
            while above['parent']:
                parent = above['parent']
                if (
                    parent in seen
                    or parent not in self._providers
                    or len(seen) > _DEEPEST
                ):
                    raise ValueError(f'provider {uuid}: parent {parent}')
                seen.add(parent)
                above = self._providers[parent]
            if provider['root'] != above['uuid']:
                raise ValueError(f'provider {uuid}: root {provider["root"]}')


def _fill_providers(
    connection: sa.engine.Connection,
    providers: Sequence[_Thing],
    ids: Mapping[str, int],
    traits: Iterable[str],
) -> None:
    traits_ids = _extend(connection, 'traits', 'name', sorted(traits))
    _insert(
        connection,
        'resource_providers',
        'id uuid name generation root_provider_id parent_provider_id',
        (
            (
                ids[provider['uuid']],
                provider['uuid'],
                provider['name'],
                provider['generation'],
                ids[provider['root']],
                ids[provider['parent']] if provider['parent'] else None,
            )
            for provider in providers
        ),
    )
    _insert(
        connection,
        'resource_provider_traits',
        'resource_provider_id trait_id',
        (
            (ids[provider['uuid']], traits_ids[name])
            for provider in providers
            for name in provider['traits']
        ),
    )
    aggregates = {
        uuid for provider in providers for uuid in provider['aggregates']
    }
    aggregate_ids = _extend(
        connection, 'placement_aggregates', 'uuid', sorted(aggregates)
    )
    _insert(
        connection,
        'resource_provider_aggregates',
        'resource_provider_id aggregate_id',
        (
            (ids[provider['uuid']], aggregate_ids[uuid])
            for provider in providers
            for uuid in provider['aggregates']
        ),
    )


def _fill_amounts(
    connection: sa.engine.Connection,
    providers: Sequence[_Thing],
    ids: Mapping[str, int],
    classes: Iterable[str],
) -> None:
    class_ids = _extend(
        connection, 'resource_classes', 'name', sorted(classes)
    )
    _insert(
        connection,
        'inventories',
        f'resource_provider_id resource_class_id {" ".join(_INVENTORY)}',
        (
            (
                ids[provider['uuid']],
                class_ids[name],
                *(inventory[field] for field in _INVENTORY),
            )
            for provider in providers
            for name, inventory in provider['inventories'].items()
        ),
    )
    _insert(
        connection,
        'allocations',
        'resource_provider_id consumer_id resource_class_id used',
        (
            (ids[provider['uuid']], consumer, class_ids[name], amount)
            for provider in providers
            for consumer, resources in provider['allocations'].items()
            for name, amount in resources.items()
        ),
    )


def _fill_consumers(
    connection: sa.engine.Connection, consumers: Mapping[str, _Thing]
) -> None:
    projects, users, types = (
        _extend(
            connection,
            table,
            column,
            sorted(
                {
                    *filter(
                        None, (one.get(key) for one in consumers.values())
                    ),
                    *nobody,
                }
            ),
        )
        for table, column, key, nobody in (
            ('projects', 'external_id', 'project', [_NOBODY]),
            ('users', 'external_id', 'user', [_NOBODY]),
            ('consumer_types', 'name', 'type', []),
        )
    )
    _insert(
        connection,
        'consumers',
        'uuid project_id user_id generation consumer_type_id',
        (
            (
                uuid,
                projects[consumer.get('project') or _NOBODY],
                users[consumer.get('user') or _NOBODY],
                1,
                types[consumer['type']] if consumer.get('type') else None,
            )
            for uuid, consumer in consumers.items()
        ),
    )


def _extend(
    connection: sa.engine.Connection,
    table: str,
    column: str,
    names: Iterable[str],
) -> dict[str, int]:
    """Insert missing names into a table; return all IDs by name."""
    query = f'SELECT {column}, id FROM {table}'
    rows = connection.exec_driver_sql(query).all()
    known = {name for name, _ in rows}
    _insert(
        connection,
        table,
        column,
        ((one,) for one in names if one not in known),
    )
    return {name: id_ for name, id_ in connection.exec_driver_sql(query).all()}


def _insert(
    connection: sa.engine.Connection,
    table: str,
    columns: str,
    rows: Iterable[tuple[typing.Any, ...]],
) -> None:
    names = columns.split()
    marks = ', '.join('?' * len(names))
    statement = f'INSERT INTO {table} ({", ".join(names)}) VALUES ({marks})'
    if found := [*rows]:
        connection.exec_driver_sql(statement, found)


def _check_name(name: typing.Any) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise ValueError(f'name {str(name)[:50]!r} of a trait or class')
    return name


def _check_uuid(uuid: typing.Any) -> str:
    if not uuidutils.is_uuid_like(uuid):
        raise ValueError(f'UUID {str(uuid)[:50]!r}')
    return typing.cast(str, uuid)


def _check_amount(value: typing.Any) -> None:
    if type(value) not in (int, float) or not 0 <= value < 2**63:
        raise ValueError(f'amount {str(value)[:50]!r}')
