# SPDX-License-Identifier: Apache-2.0

"""Writes placement's data to a file, read by its API."""

from collections.abc import Callable
from collections.abc import Collection
import typing
from urllib import parse

from nova.scheduler.client import report
import os_traits

from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.saved import container

_URL = '/resource_providers'
_CONSUMER_TYPE_VERSION = '1.38'
_GENERATION = 'resource_provider_generation'

_Body = dict[str, typing.Any]


class Providers:
    """Reads resource providers, and writes each with all that it has.

    :param write: takes what is to be a line of the file
    :param advance: called for each provider
    :param roots: the UUIDs of the only compute nodes whose trees are wanted,
        besides providers that share; None for all
    :ivar unsettled: the names of providers that changed whenever they were
        read
    """

    def __init__(
        self,
        write: Callable[[container.Record], None],
        advance: Callable[..., None],
        roots: Collection[str] | None,
    ) -> None:
        self._write, self._advance = write, advance
        self._client = placement.ReportClient()
        self._roots = roots
        self._read: dict[str, int] = {}
        self._consumers: set[str] = set()
        self.unsettled: list[str] = []

    def write_words(self) -> None:
        """Write the names of all traits and resource classes."""
        classes = self._get('/resource_classes')['resource_classes']
        self._write({'traits': self._get('/traits')['traits']})
        self._write({'classes': [one['name'] for one in classes]})

    def write(self) -> bool:
        """Write the providers that are new or changed since they were read.

        :returns: whether there was any
        """
        wanted = self._list()
        changed = [
            one
            for one in wanted.values()
            if self._read.get(one['uuid']) != one['generation']
        ]
        self._advance(total=len(changed), label='Reading providers')
        self.unsettled = [one['name'] for one in changed]
        for provider in changed:
            self._write_one(provider)
            self._advance()
        for uuid in self._read.keys() - wanted.keys():
            del self._read[uuid]
            self._write({'without': uuid})
        return bool(changed)

    def write_consumers(self, known: Collection[str]) -> None:
        """Write the consumers of allocations without an owner in nova.

        :param known: the UUIDs of servers and migrations
        """
        unknown = sorted(self._consumers.difference(known))
        self._advance(total=len(unknown), label='Reading consumers')
        for uuid in unknown:
            body = self._get(f'/allocations/{uuid}', _CONSUMER_TYPE_VERSION)
            self._write(
                {
                    'consumer': {
                        'uuid': uuid,
                        'project': body.get('project_id'),
                        'user': body.get('user_id'),
                        'type': body.get('consumer_type'),
                    }
                }
            )
            self._advance()

    def _list(self) -> dict[str, _Body]:
        """Return the providers that are wanted, as placement lists them."""
        wanted = self._get(_URL)['resource_providers']
        if self._roots is not None:
            trait = os_traits.MISC_SHARES_VIA_AGGREGATE
            sharing = self._get(
                f'{_URL}?{parse.urlencode({"required": trait})}'
            )['resource_providers']
            roots = {*self._roots, *(one['uuid'] for one in sharing)}
            wanted = [
                one for one in wanted if one['root_provider_uuid'] in roots
            ]
        return {one['uuid']: one for one in wanted}

    def _write_one(self, provider: _Body) -> None:
        uuid = provider['uuid']
        try:
            parts = {
                name: self._get(f'{_URL}/{uuid}/{name}')
                for name in (
                    'inventories',
                    'traits',
                    'aggregates',
                    'allocations',
                )
            }
        except placement.QueryRefused:
            # It was deleted meanwhile, and is not listed the next time.
            return
        generations = {part[_GENERATION] for part in parts.values()}
        # What changed while it was read is read again.
        self._read[uuid] = generations.pop() if len(generations) == 1 else -1
        held = parts['allocations']['allocations']
        self._consumers.update(held)
        for inventory in parts['inventories']['inventories'].values():
            inventory.pop(_GENERATION, None)
        self._write(
            {
                'provider': {
                    'uuid': uuid,
                    'name': provider['name'],
                    'generation': provider['generation'],
                    'parent': provider['parent_provider_uuid'],
                    'root': provider['root_provider_uuid'],
                    **{
                        name: parts[name][name]
                        for name in ('inventories', 'traits', 'aggregates')
                    },
                    'allocations': {
                        consumer: one['resources']
                        for consumer, one in held.items()
                    },
                }
            }
        )

    def _get(
        self, url: str, version: str = report.SAME_SUBTREE_VERSION
    ) -> _Body:
        return self._client.get(url, version=version).json()
