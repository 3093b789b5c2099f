# SPDX-License-Identifier: Apache-2.0

"""Answers for placement as if nova-api had mirrored a change.

nova-api mirrors in placement which hosts an aggregate holds, and nova-compute
whether it is disabled. Where a query names an aggregate or a trait that would
change, placement is asked without that parameter, and hosts are taken out of
its answer here.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set
import contextlib
import re
import types
import typing
from urllib import parse

from nova.scheduler.client import report

from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import query

#: Whether an aggregate would hold a host: by UUID, and name of the host.
Changes = dict[str, dict[str, bool]]

#: Whether a provider would have a trait: by trait, and UUID of the provider.
Traits = dict[str, dict[str, bool]]

_PROVIDERS = '/resource_providers'
# The parameters of a query that name traits, with the suffix of their group.
_TRAITS = re.compile(r'(root_)?required(.*)')
# The beginnings of a list of traits of which one is enough, or none may be.
_ANY = ('in:', '!in:')


class _Condition(typing.NamedTuple):
    """A part of a query that some providers would satisfy after the change.

    :ivar providers: UUIDs of all that have what the part names, then
    """

    part: query.Part
    providers: set[str]

    def admits(self, uuids: Set[str]) -> bool:
        """Return whether providers, together, are as the part asks."""
        if self.part.key == 'member_of' and not self.part.forbids:
            return uuids <= self.providers
        return self.providers.isdisjoint(uuids) == self.part.forbids

    def select(
        self, request: Mapping[str, typing.Any], roots: Mapping[str, str]
    ) -> set[str]:
        """Return the providers of an allocation request that count for it.

        Of a group, those that it takes something of; of a tree, its root.
        """
        match = _TRAITS.fullmatch(self.part.key)
        if match and not match[1]:
            return {*request['mappings'].get(match[2], ())}
        return {roots[uuid] for uuid in request['allocations']}


class MirroringClient(placement.ReportClient):
    """nova's client of placement, as if nova-api had mirrored a change."""

    changes: typing.ClassVar[Changes] = {}
    traits: typing.ClassVar[Traits] = {}

    def get(
        self, url: str, *args: typing.Any, **kwargs: typing.Any
    ) -> typing.Any:
        """Ask placement; see the base class."""
        path, _, text = url.partition('?')
        asked, changed = self._take_changed(text)
        if not changed:
            return super().get(url, *args, **kwargs)
        limits = [int(value) for key, value in asked if key == 'limit']
        rest = [one for one in asked if one[0] != 'limit']
        response = super().get(
            f'{path}?{parse.urlencode(rest)}', *args, **kwargs
        )
        if response.status_code != 200:
            return response
        conditions = [_Condition(part, self._find(part)) for part in changed]
        body = response.json()
        if path == _PROVIDERS:
            body['resource_providers'] = [
                one
                for one in body['resource_providers']
                if all(part.admits({one['uuid']}) for part in conditions)
            ]
        else:
            _narrow(body, conditions, *limits)
        return types.SimpleNamespace(status_code=200, json=lambda: body)

    def _take_changed(
        self, text: str
    ) -> tuple[list[tuple[str, str]], list[query.Part]]:
        """Return the parameters of a query, and the parts that would change.

        The parameters are without these parts.
        """
        asked: list[tuple[str, str]] = []
        changed: list[query.Part] = []
        for key, value in parse.parse_qsl(text):
            items = [value]
            if _TRAITS.fullmatch(key) and not value.startswith(_ANY):
                items = value.split(',')
            parts = [query.Part(key, item) for item in items]
            same = [one for one in parts if not self._would_change(one)]
            changed += [one for one in parts if one not in same]
            if same:
                asked.append((key, ','.join(one.value for one in same)))
        return asked, changed

    def _would_change(self, part: query.Part) -> bool:
        if part.key == 'member_of':
            return not self.changes.keys().isdisjoint(part.aggregates)
        is_trait = _TRAITS.fullmatch(part.key) is not None
        return is_trait and part.value.removeprefix('!') in self.traits

    def _find(self, part: query.Part) -> set[str]:
        """Return the providers that would have what a part names, by UUID."""
        if part.key == 'member_of':
            return self._find_members(part)
        trait = part.value.removeprefix('!')
        providers = self._ask('required', trait)
        for uuid, has in self.traits[trait].items():
            (providers.add if has else providers.discard)(uuid)
        return providers

    def _find_members(self, part: query.Part) -> set[str]:
        """Return the providers in any aggregate of a part, by UUID."""
        changed = self.changes.keys() & {*part.aggregates}
        providers: set[str] = set()
        if same := sorted({*part.aggregates} - changed):
            providers = self._ask('member_of', f'in:{",".join(same)}')
        for uuid in changed:
            members = self._ask('member_of', f'in:{uuid}')
            for host, holds in self.changes[uuid].items():
                # By the host's name, as nova-api looks for it.
                provider = self._ask('name', host)
                members = members | provider if holds else members - provider
            providers |= members
        return providers

    def _ask(self, key: str, value: str) -> set[str]:
        url = f'{_PROVIDERS}?{parse.urlencode({key: value})}'
        response = super().get(url, version=report.SAME_SUBTREE_VERSION)
        # Placement answers 400 to a trait that it does not know.
        found = response.json() if response.status_code == 200 else {}
        return {one['uuid'] for one in found.get('resource_providers', ())}


def _narrow(
    body: dict[str, typing.Any],
    conditions: Iterable[_Condition],
    limit: int | None = None,
) -> None:
    """Keep the candidates that satisfy conditions, and their trees."""
    roots = {
        uuid: summary['root_provider_uuid']
        for uuid, summary in body['provider_summaries'].items()
    }
    requests = [
        request
        for request in body['allocation_requests']
        if all(one.admits(one.select(request, roots)) for one in conditions)
    ][:limit]
    kept = {roots[uuid] for one in requests for uuid in one['allocations']}
    body['allocation_requests'] = requests
    body['provider_summaries'] = {
        uuid: summary
        for uuid, summary in body['provider_summaries'].items()
        if roots[uuid] in kept
    }


@contextlib.contextmanager
def used(changes: Changes, traits: Traits | None = None) -> Iterator[None]:
    """Make every client of this process answer as if hosts had changed.

    What is changed already stays so, unless it changes again.
    """
    before = MirroringClient.changes, MirroringClient.traits
    MirroringClient.changes = _merge(before[0], changes)
    MirroringClient.traits = _merge(before[1], traits or {})
    try:
        yield
    finally:
        MirroringClient.changes, MirroringClient.traits = before


def _merge(
    before: dict[str, dict[str, bool]], more: dict[str, dict[str, bool]]
) -> dict[str, dict[str, bool]]:
    return {
        key: {**before.get(key, {}), **more.get(key, {})}
        for key in before.keys() | more.keys()
    }
