# SPDX-License-Identifier: Apache-2.0

"""Hosts that are full, told apart from hosts that are too small.

Placement says only which hosts have an amount free. The capacity and the use
of a resource class stand in the summaries of allocation candidates for one
unit of it, a single request for all hosts. A host that has not one unit free
is in none of them; candidates for the other classes of the request have its
summary too. The few hosts that are then left are asked one by one.
"""

from collections.abc import Collection
from collections.abc import Mapping
import typing

from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import query

# Hosts that are asked one by one, and inventories whose limits are read.
_MOST = 32


class Provider(typing.NamedTuple):
    """What a provider of a host's tree has of a resource class."""

    uuid: str
    capacity: int
    used: int

    @property
    def free(self) -> int:
        return max(0, self.capacity - self.used)


class Shortages:
    """Why hosts lack what one request asks for, and what they have of it.

    :param providers: what placement says of them
    :param classes: the names of the request's resource classes
    :param hosts: the names of all hosts, by UUID
    """

    def __init__(
        self,
        providers: query.Providers,
        classes: Collection[str],
        hosts: Mapping[str, str],
    ) -> None:
        self._providers = providers
        self._classes = classes
        self._hosts = hosts

    def explain(
        self, resource: str, amount: int, refused: Collection[str]
    ) -> tuple[dict[str, funnel.Refusal], funnel.Capacity]:
        """Return why hosts lack an amount, and what they have.

        :param refused: UUIDs of the hosts that lack it
        """
        found = self._read(resource, refused)
        limits = self._read_limits(resource, amount, found)
        kinds = {
            'full': f'are full ({resource})',
            'too_small': f'are too small ({resource})',
            'without': f'have no {resource}',
            'unknown': f'lack {resource}',
        }
        refusals = {
            name: funnel.Refusal(
                kind, resource, lifts=name not in ('too_small', 'without')
            )
            for name, kind in kinds.items()
        }
        counts = dict.fromkeys(kinds, 0)
        reasons = {}
        free = {
            uuid: max(
                min(one.free, limits.get(one.capacity, one.free))
                for one in found[uuid]
            )
            for uuid in refused
            if found.get(uuid)
        }
        for uuid in refused:
            answer = 'too_small'
            if uuid not in found:
                answer = 'unknown'
            elif not found[uuid]:
                answer = 'without'
            elif any(
                one.capacity >= amount
                and limits.get(one.capacity, amount) >= amount
                for one in found[uuid]
            ):
                answer = 'full'
            counts[answer] += 1
            reasons[uuid] = refusals[answer]
        return reasons, funnel.Capacity(
            resource=resource,
            requested=amount,
            large_enough=len(self._hosts) - len(refused) + counts['full'],
            free=free,
            **counts,
        )

    def _read(
        self, resource: str, hosts: Collection[str]
    ) -> dict[str, list[Provider]]:
        """Return the providers of each host that have a class, by UUID.

        A host of which nothing could be read is missing.
        """
        found: dict[str, list[Provider]] = {}
        missing = set(hosts)
        for name in (resource, *sorted(set(self._classes) - {resource})):
            if not missing:
                break
            read = self._providers.get_summaries(name)
            for uuid, summary in read.items():
                root = summary['root_provider_uuid']
                served = self._providers.served.get(uuid, ())
                for host in missing.intersection((root, *served)):
                    mine = found.setdefault(host, [])
                    inventory = summary['resources'].get(resource)
                    if inventory:
                        mine.append(
                            Provider(
                                uuid, inventory['capacity'], inventory['used']
                            )
                        )
            missing -= found.keys()
        if len(missing) <= _MOST:
            for host in missing:
                found[host] = self._read_host(resource, host)
        return found

    def _read_host(self, resource: str, uuid: str) -> list[Provider]:
        found = self._providers.get_inventories(uuid).get(resource)
        if not found:
            return []
        return [Provider(uuid, found['capacity'], found['used'])]

    def _read_limits(
        self,
        resource: str,
        amount: int,
        found: Mapping[str, Collection[Provider]],
    ) -> dict[int, int]:
        """Return the most that one server may have, by capacity.

        An overcommitted host has a greater capacity than it gives a single
        server (``max_unit``). Hosts of the same capacity are taken for hosts
        of the same kind: one of each is asked.
        """
        samples = {
            one.capacity: one.uuid
            for providers in found.values()
            for one in providers
            if one.capacity >= amount
        }
        limits = {}
        for capacity in sorted(samples)[:_MOST]:
            inventories = self._providers.get_inventories(samples[capacity])
            if resource in inventories:
                limits[capacity] = inventories[resource]['max_unit']
        return limits
