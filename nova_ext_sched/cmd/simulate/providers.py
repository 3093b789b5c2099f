# SPDX-License-Identifier: Apache-2.0

"""The resource providers of hosts."""

from collections.abc import Collection
from collections.abc import Mapping
import typing

import fixtures
import os_traits

from nova_ext_sched import exception
from nova_ext_sched import schema
from nova_ext_sched.cmd.simulate import scenario

_VERSION = '1.36'


class Providers:
    """Writes providers, each of which has the name of its host.

    What placement refuses raises exception.ScenarioInvalid.

    :param placement: a client of placement
    """

    def __init__(self, placement: typing.Any) -> None:
        self._placement = placement
        self._uuids: dict[str, str] = {}
        # Those of a host that has no nova-compute.
        self._classes: dict[str, Collection[str]] = {}
        self._traits = set(os_traits.get_traits())

    def uuid(self, host: str) -> str:
        """Return the UUID of a host's provider."""
        if host not in self._uuids:
            url = f'/resource_providers?name={host}'
            (found,) = self._ask(host, 'get', url)['resource_providers']
            self._uuids[host] = found['uuid']
        return self._uuids[host]

    def add(
        self, host: str, uuid: str, inventories: scenario.Inventories
    ) -> None:
        """Make the provider of a host that has no nova-compute."""
        for name, one in inventories.items():
            if one.get('reserved', 0) > one['total']:
                raise _invalid(
                    ('hosts', host, 'inventories', name, 'reserved'),
                    f'at most the total, {one["total"]}',
                    str(one['reserved']),
                )
            if name.startswith('CUSTOM_'):
                self._ask(host, 'put', f'/resource_classes/{name}', None)
        self._uuids[host] = uuid
        self._classes[host] = inventories.keys()
        body = {'name': host, 'uuid': uuid}
        self._ask(host, 'post', '/resource_providers', body)
        url = f'/resource_providers/{uuid}/inventories'
        inventory = {
            'inventories': inventories,
            'resource_provider_generation': 0,
        }
        self._ask(host, 'put', url, inventory)

    def add_traits(self, host: str, names: Collection[str]) -> None:
        """Let a provider have traits too, but for those that cannot exist."""
        if not names:
            return
        for name in set(names) - self._traits:
            answer = self._placement.put(
                f'/traits/{name}', None, version=_VERSION
            )
            if answer.status < 400:
                self._traits.add(name)
        url = f'/resource_providers/{self.uuid(host)}/traits'
        # With the provider's generation.
        found = self._ask(host, 'get', url)
        if more := self._traits.intersection(names) - {*found['traits']}:
            found['traits'] += sorted(more)
            self._ask(host, 'put', url, found)

    def set_aggregates(self, host: str, uuids: Collection[str]) -> None:
        """Let a provider be in aggregates."""
        url = f'/resource_providers/{self.uuid(host)}/aggregates'
        # Later versions want to know the provider's generation.
        self._placement.put(url, [*uuids], version='1.18')

    def allocate(
        self, uses: Mapping[str, tuple[str, Mapping[str, int]]]
    ) -> None:
        """Let consumers use amounts, whatever bounds the inventories have.

        :param uses: the host of each consumer, and amounts by resource class
        """
        allocations = {}
        for consumer, (host, amounts) in uses.items():
            resources = {name: n for name, n in amounts.items() if n}
            for name in sorted(resources.keys() - self._classes.get(host, ())):
                raise _invalid(
                    ('hosts', host, 'inventories'),
                    f'{name}, which is used there',
                    'no such class',
                )
            if resources:
                allocations[consumer] = {
                    'allocations': {self.uuid(host): {'resources': resources}},
                    'project_id': scenario.DEFAULT_PROJECT,
                    'user_id': 'admin',
                    'consumer_generation': None,
                }
        if allocations:
            with fixtures.MonkeyPatch(
                'placement.objects.allocation._check_capacity_exceeded',
                _providers,
            ):
                self._ask('', 'post', '/allocations', allocations)

    def release(self, consumer: str) -> None:
        """Let a consumer use nothing more."""
        self._placement.delete(f'/allocations/{consumer}')

    def _ask(
        self, host: str, method: str, url: str, *body: typing.Any
    ) -> typing.Any:
        """Return what placement answers."""
        answer = getattr(self._placement, method)(url, *body, version=_VERSION)
        if answer.status >= 400:
            said = answer.body['errors'][0]['detail']
            raise _invalid(('hosts', host), 'what placement takes', said)
        return answer.body


def _providers(
    context: typing.Any, allocations: Collection[typing.Any], *rest: typing.Any
) -> dict[str, typing.Any]:
    """Stand for what compares allocations with what their providers have."""
    return {
        one.resource_provider.uuid: one.resource_provider
        for one in allocations
    }


def _invalid(
    path: schema.Path, expected: str, got: str
) -> exception.ScenarioInvalid:
    finding = schema.Finding(path, expected, got)
    return exception.ScenarioInvalid(path='the scenario', findings=[finding])
