# SPDX-License-Identifier: Apache-2.0

"""Writes the resource providers of hosts."""

from collections.abc import Collection
import typing

import os_traits

_VERSION = '1.36'


class Providers:
    """Writes providers, each of which has the name of its host.

    :param placement: a client of placement
    """

    def __init__(self, placement: typing.Any) -> None:
        self._placement = placement
        self._uuids: dict[str, str] = {}
        self._traits = set(os_traits.get_traits())

    def uuid(self, host: str) -> str:
        """Return the UUID of a host's provider."""
        if host not in self._uuids:
            url = f'/resource_providers?name={host}'
            (found,) = self._ask('get', url)['resource_providers']
            self._uuids[host] = found['uuid']
        return self._uuids[host]

    def add_traits(self, host: str, names: Collection[str]) -> None:
        """Add traits to a provider, without those that placement refuses."""
        if not names:
            return
        for name in set(names) - self._traits:
            answer = self._placement.put(
                f'/traits/{name}', None, version=_VERSION
            )
            if answer.status < 400:
                self._traits.add(name)
        url = f'/resource_providers/{self.uuid(host)}/traits'
        # The answer has the provider's generation, which the write needs.
        found = self._ask('get', url)
        if more := self._traits.intersection(names) - {*found['traits']}:
            found['traits'] += sorted(more)
            self._ask('put', url, found)

    def set_aggregates(self, host: str, uuids: Collection[str]) -> None:
        """Set the aggregates of a provider."""
        url = f'/resource_providers/{self.uuid(host)}/aggregates'
        # The last version that needs no generation of the provider.
        self._ask('put', url, [*uuids], version='1.18')

    def _ask(
        self, method: str, url: str, *body: typing.Any, version: str = _VERSION
    ) -> typing.Any:
        """Return placement's answer.

        :raises RuntimeError: placement refuses the request
        """
        answer = getattr(self._placement, method)(url, *body, version=version)
        if answer.status >= 400:
            said = answer.body['errors'][0]['detail']
            raise RuntimeError(f'{method} {url}: placement answers {said}')
        return answer.body
