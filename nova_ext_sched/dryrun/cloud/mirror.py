# SPDX-License-Identifier: Apache-2.0

"""Answers for placement as if nova-api had mirrored a change.

nova-api mirrors in placement which hosts an aggregate holds, and nova-compute
whether it is disabled. Where a query names an aggregate or a trait that would
change, placement is asked without that parameter, and hosts are taken out of
its answer here.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
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

# A parameter, whether it forbids the trait, and the trait.
_Wanted = tuple[re.Match[str], bool, str]


class MirroringClient(placement.ReportClient):
    """nova's client of placement, as if nova-api had mirrored a change."""

    changes: typing.ClassVar[Changes] = {}
    traits: typing.ClassVar[Traits] = {}

    def get(
        self, url: str, *args: typing.Any, **kwargs: typing.Any
    ) -> typing.Any:
        """Ask placement; see the base class."""
        url, wanted = self._take_traits(url)
        if not wanted:
            return self._get_by_aggregates(url, *args, **kwargs)
        path, _, text = url.partition('?')
        asked = parse.parse_qsl(text)
        limits = [int(value) for key, value in asked if key == 'limit']
        rest = [one for one in asked if one[0] != 'limit']
        response = self._get_by_aggregates(
            f'{path}?{parse.urlencode(rest)}', *args, **kwargs
        )
        if response.status_code != 200:
            return response
        body = response.json()
        having = [
            (match, forbids, self._find_having(trait))
            for match, forbids, trait in wanted
        ]
        if path == _PROVIDERS:
            body['resource_providers'] = [
                one
                for one in body['resource_providers']
                if all(
                    (one['uuid'] in found) != forbids
                    for _, forbids, found in having
                )
            ]
        else:
            _narrow_by_traits(body, having, *limits)
        return types.SimpleNamespace(status_code=200, json=lambda: body)

    def _take_traits(self, url: str) -> tuple[str, list[_Wanted]]:
        """Return a URL without the traits that would change, and these."""
        path, _, text = url.partition('?')
        rest: list[tuple[str, str]] = []
        wanted: list[_Wanted] = []
        for key, value in parse.parse_qsl(text) if self.traits else ():
            match = _TRAITS.fullmatch(key)
            if match is None or value.startswith(('in:', '!in:')):
                rest.append((key, value))
                continue
            items = value.split(',')
            same = [one for one in items if one.lstrip('!') not in self.traits]
            wanted += [
                (match, one.startswith('!'), one.lstrip('!'))
                for one in items
                if one not in same
            ]
            rest += [(key, ','.join(same))] * bool(same)
        if not wanted:
            return url, wanted
        return f'{path}?{parse.urlencode(rest)}', wanted

    def _find_having(self, trait: str) -> set[str]:
        """Return the providers that would have a trait, by UUID."""
        response = super().get(
            f'{_PROVIDERS}?{parse.urlencode({"required": trait})}',
            version=report.SAME_SUBTREE_VERSION,
        )
        # Placement answers 400 to a trait that it does not know.
        known = response.json() if response.status_code == 200 else {}
        providers = {
            one['uuid'] for one in known.get('resource_providers', ())
        }
        for uuid, has in self.traits[trait].items():
            (providers.add if has else providers.discard)(uuid)
        return providers

    def _get_by_aggregates(
        self, url: str, *args: typing.Any, **kwargs: typing.Any
    ) -> typing.Any:
        path, _, text = url.partition('?')
        asked = parse.parse_qsl(text)
        parts = [
            part
            for part in (query.Part(*one) for one in asked)
            if part.key == 'member_of'
            and not self.changes.keys().isdisjoint(part.aggregates)
        ]
        if not parts:
            return super().get(url, *args, **kwargs)
        rest = [one for one in asked if one not in parts]
        limits = [int(value) for key, value in rest if key == 'limit']
        rest = [one for one in rest if one[0] != 'limit']
        response = super().get(
            f'{path}?{parse.urlencode(rest)}', *args, **kwargs
        )
        if response.status_code != 200:
            return response
        sets = [(part.forbids, self._find_members(part)) for part in parts]

        def fits(uuid: str) -> bool:
            return all((uuid in found) != forbids for forbids, found in sets)

        body = response.json()
        if path == _PROVIDERS:
            key = 'resource_providers'
            body[key] = [one for one in body[key] if fits(one['uuid'])]
        else:
            _narrow(body, fits, *limits)
        return types.SimpleNamespace(status_code=200, json=lambda: body)

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
        found = super().get(url, version=report.SAME_SUBTREE_VERSION)
        return {one['uuid'] for one in found.json()['resource_providers']}


def _narrow(
    body: dict[str, typing.Any],
    fits: Callable[[str], bool],
    limit: int | None = None,
) -> None:
    """Keep the candidates whose trees of providers all fit."""
    roots = {
        uuid: summary['root_provider_uuid']
        for uuid, summary in body['provider_summaries'].items()
    }
    requests = [
        request
        for request in body['allocation_requests']
        if all(fits(roots[uuid]) for uuid in request['allocations'])
    ][:limit]
    _keep(body, requests, roots)


def _keep(
    body: dict[str, typing.Any],
    requests: list[typing.Any],
    roots: Mapping[str, str],
) -> None:
    """Keep some requests of candidates, and their trees of providers."""
    kept = {roots[uuid] for one in requests for uuid in one['allocations']}
    body['allocation_requests'] = requests
    body['provider_summaries'] = {
        uuid: summary
        for uuid, summary in body['provider_summaries'].items()
        if roots[uuid] in kept
    }


def _narrow_by_traits(
    body: dict[str, typing.Any],
    having: Collection[tuple[re.Match[str], bool, set[str]]],
    limit: int | None = None,
) -> None:
    """Keep the candidates whose providers have, or lack, traits.

    Of a group, the providers that it takes something of; of a tree, its root.
    """
    roots = {
        uuid: summary['root_provider_uuid']
        for uuid, summary in body['provider_summaries'].items()
    }

    def fits(request: typing.Any) -> bool:
        for match, forbids, providers in having:
            if match[1]:
                named = {roots[uuid] for uuid in request['allocations']}
            else:
                named = {*request['mappings'].get(match[2], ())}
            if named.isdisjoint(providers) != forbids:
                return False
        return True

    requests = [one for one in body['allocation_requests'] if fits(one)]
    _keep(body, requests[:limit], roots)


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
