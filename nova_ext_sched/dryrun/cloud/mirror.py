# SPDX-License-Identifier: Apache-2.0

"""Placement's aggregates after a change of nova's that is not made.

nova-api mirrors in placement which hosts an aggregate holds. Where a query's
``member_of`` names an aggregate that would change, placement is asked without
that parameter, and hosts are taken out of its answer here.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import types
import typing
from urllib import parse

from nova.scheduler.client import report

from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import query

#: Whether an aggregate would hold a host: by UUID, and name of the host.
Changes = dict[str, dict[str, bool]]

_PROVIDERS = '/resource_providers'


class MirroringClient(placement.ReportClient):
    """nova's client of placement, as if nova-api had mirrored a change."""

    changes: typing.ClassVar[Changes] = {}

    def get(
        self, url: str, *args: typing.Any, **kwargs: typing.Any
    ) -> typing.Any:
        """Ask placement; see the base class."""
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
    """Leave of candidates those whose trees of providers all fit."""
    roots = {
        uuid: summary['root_provider_uuid']
        for uuid, summary in body['provider_summaries'].items()
    }
    requests = [
        request
        for request in body['allocation_requests']
        if all(fits(roots[uuid]) for uuid in request['allocations'])
    ][:limit]
    kept = {roots[uuid] for one in requests for uuid in one['allocations']}
    body['allocation_requests'] = requests
    body['provider_summaries'] = {
        uuid: summary
        for uuid, summary in body['provider_summaries'].items()
        if roots[uuid] in kept
    }


@contextlib.contextmanager
def used(changes: Changes) -> Iterator[None]:
    """Let every client of this process answer as if hosts had changed."""
    before = MirroringClient.changes
    MirroringClient.changes = changes
    try:
        yield
    finally:
        MirroringClient.changes = before
