# SPDX-License-Identifier: Apache-2.0

"""The traits of the simulated hosts' resource providers."""

from collections.abc import Iterable
import typing

import os_traits

from nova_ext_sched.policy import isolation

_VERSION = '1.6'


def implied(
    aggregates: Iterable[dict[str, typing.Any]],
) -> dict[str, set[str]]:
    """Return the traits that isolating aggregates require, by their hosts.

    :param aggregates: aggregates as nova-api shows them
    """
    found: dict[str, set[str]] = {}
    for aggregate in aggregates:
        required = {
            key.removeprefix(isolation.PREFIX)
            for key, value in aggregate['metadata'].items()
            if value == isolation.REQUIRED and key.startswith(isolation.PREFIX)
        }
        for host in aggregate['hosts']:
            found.setdefault(host, set()).update(required)
    return found


class Traits:
    """Adds traits to hosts' root providers in placement.

    :param placement: nova's test client of placement
    """

    def __init__(self, placement: typing.Any) -> None:
        self._placement = placement
        self._known = set(os_traits.get_traits())

    def add(self, host: str, traits: Iterable[str]) -> None:
        """Give a host's provider these traits beside those that it has.

        Custom traits are made where they are missing. A name that is no
        trait is left out: an operator could not set it either.
        """
        wanted = {trait for trait in traits if self._make(trait)}
        if not wanted:
            return
        (provider,) = self._placement.get(
            f'/resource_providers?name={host}'
        ).body['resource_providers']
        url = f'/resource_providers/{provider["uuid"]}/traits'
        body = self._placement.get(url, version=_VERSION).body
        body['traits'] = sorted(wanted.union(body['traits']))
        self._placement.put(url, body, version=_VERSION)

    def _make(self, trait: str) -> bool:
        if trait not in self._known:
            response = self._placement.put(
                f'/traits/{trait}', {}, version=_VERSION
            )
            if response.status not in (201, 204):
                return False
            self._known.add(trait)
        return True
