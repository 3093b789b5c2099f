# SPDX-License-Identifier: Apache-2.0

"""The resource providers of hosts that have no nova-compute.

placement is in this process, and most of what a request costs is the same
however much it asks for. So what hosts have is written for all of them at
once, and so is what is used of it.
"""

from collections.abc import Collection
from collections.abc import Mapping
import typing

from nova_ext_sched import exception
from nova_ext_sched import schema
from nova_ext_sched.cmd.simulate import scenario

_VERSION = '1.36'
_MOST = 2**31 - 1

Amounts = Mapping[str, int]


class Providers:
    """Writes providers, each of which has the name of its host.

    What placement refuses raises exception.ScenarioInvalid.

    :param placement: a client of placement
    :ivar uuids: of the providers, by host
    """

    def __init__(self, placement: typing.Any) -> None:
        self._placement = placement
        self.uuids: dict[str, str] = {}
        self._inventories: dict[str, scenario.Inventories] = {}
        # As placement said last. Servers that start and end change them.
        self._generations: dict[str, int] = {}

    def add(self, host: str, uuid: str) -> None:
        """Make the provider of a host."""
        url = '/resource_providers'
        made = self._ask(('hosts', host), 'post', url, name=host, uuid=uuid)
        self.uuids[host] = uuid
        self._generations[host] = made['generation']

    def set_traits(self, host: str, traits: Collection[str]) -> None:
        """Let a provider have these traits, which placement knows."""
        self._put(host, 'traits', traits=sorted(traits))

    def set_aggregates(self, uuids: Mapping[str, Collection[str]]) -> None:
        """Let providers be in aggregates, by host."""
        self._read_generations()
        for host, aggregates in uuids.items():
            self._put(host, 'aggregates', aggregates=[*aggregates])

    def set_inventories(
        self, inventories: Mapping[str, scenario.Inventories]
    ) -> None:
        """Let providers have inventories, by host."""
        for host, classes in inventories.items():
            for name, one in classes.items():
                # placement does not look where all are written at once.
                if one.get('reserved', 0) > one['total']:
                    raise _invalid(
                        ('hosts', host, 'inventories', name, 'reserved'),
                        f'at most the total, {one["total"]}',
                        str(one['reserved']),
                    )
        self._write_inventories(inventories)
        self._inventories |= inventories

    def allocate(
        self, host_of: Mapping[str, str], amounts: Mapping[str, Amounts]
    ) -> None:
        """Let consumers use amounts, whatever bounds the inventories have.

        :param host_of: the host of each consumer
        :param amounts: by consumer; zero is left out
        """
        allocations = {}
        for consumer, host in host_of.items():
            resources = {
                name: amount
                for name, amount in amounts[consumer].items()
                if amount
            }
            if resources:
                allocations[consumer] = {
                    'allocations': {
                        self.uuids[host]: {'resources': resources}
                    },
                    'project_id': scenario.DEFAULT_PROJECT,
                    'user_id': 'admin',
                    'consumer_generation': None,
                }
        if not allocations or self._claim(allocations):
            return
        bounded: dict[str, scenario.Inventories] = {}
        for consumer in allocations:
            host = host_of[consumer]
            for name in {*self._inventories[host], *amounts[consumer]}:
                wide = {'total': _MOST, 'max_unit': _MOST}
                bounded.setdefault(host, {})[name] = wide
        self._write_inventories(bounded)
        self._claim(allocations)
        self._write_inventories(
            {host: self._inventories[host] for host in bounded}
        )

    def release(self, consumer: str) -> None:
        """Let a consumer use nothing more."""
        self._placement.delete(f'/allocations/{consumer}')

    def _claim(self, allocations: Mapping[str, typing.Any]) -> bool:
        """Return whether placement takes all of some allocations."""
        answer = self._placement.post(
            '/allocations', allocations, version=_VERSION
        )
        return bool(answer.status < 400)

    def _write_inventories(
        self, inventories: Mapping[str, scenario.Inventories]
    ) -> None:
        for name in {name for one in inventories.values() for name in one}:
            if name.startswith('CUSTOM_'):
                self._placement.put(
                    f'/resource_classes/{name}', None, version=_VERSION
                )
        self._read_generations()
        self._ask(
            ('hosts',),
            'post',
            '/reshaper',
            inventories={
                self.uuids[host]: {
                    'inventories': one,
                    'resource_provider_generation': self._generations[host],
                }
                for host, one in inventories.items()
            },
            allocations={},
        )

    def _put(self, host: str, part: str, **body: typing.Any) -> None:
        """Replace a part of a provider."""
        answer = self._ask(
            ('hosts', host),
            'put',
            f'/resource_providers/{self.uuids[host]}/{part}',
            resource_provider_generation=self._generations[host],
            **body,
        )
        self._generations[host] = answer['resource_provider_generation']

    def _read_generations(self) -> None:
        answer = self._placement.get('/resource_providers', version=_VERSION)
        for one in answer.body['resource_providers']:
            self._generations[one['name']] = one['generation']

    def _ask(
        self, path: schema.Path, method: str, url: str, **body: typing.Any
    ) -> typing.Any:
        """Return what placement answers.

        :param path: of the part of the scenario that it is asked to take
        """
        answer = getattr(self._placement, method)(url, body, version=_VERSION)
        if answer.status >= 400:
            said = answer.body['errors'][0]['detail']
            raise _invalid(path, 'what placement takes', said)
        return answer.body


def _invalid(
    path: schema.Path, expected: str, got: str
) -> exception.ScenarioInvalid:
    finding = schema.Finding(path, expected, got)
    return exception.ScenarioInvalid(path='the scenario', findings=[finding])
