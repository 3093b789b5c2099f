# SPDX-License-Identifier: Apache-2.0

"""nova's query for allocation candidates, as a whole and part by part.

The query string is nova's own (``ResourceRequest.to_querystring``). What
placement answers to the whole decides; the parts, asked one by one, say why a
host is not in that answer.
"""

import collections
from collections.abc import Iterable
import functools
import re
import sys
import typing
from urllib import parse

from nova import exception as nova_exception
import nova.conf
from nova.scheduler import utils
from nova.scheduler.client import report
import os_traits

CONF = nova.conf.CONF

# Answers are kept until they have as many allocation requests: with its
# summary one takes some kilobytes, and in a large cloud an answer has
# thousands.
_MOST_REQUESTS = 10_000

# What is kept of a summary; the traits of all hosts would be large.
_OF_SUMMARY = ('root_provider_uuid', 'resources')

_OF_GROUP = re.compile(r'(resources|required|member_of|in_tree)(.+)')


class Part(typing.NamedTuple):
    """One constraint of a query.

    ``key`` is a parameter of placement (``resources``, ``required``,
    ``root_required``, ``member_of``, ``in_tree``) and ``value`` one item of
    it, or ``group`` and the query string of a group with a suffix.
    """

    key: str
    value: str

    @property
    def forbids(self) -> bool:
        """Whether the part names what a host must not have."""
        return self.value.startswith('!')

    @property
    def aggregates(self) -> list[str]:
        """UUIDs of the aggregates that a ``member_of`` names."""
        return self.value.removeprefix('!').removeprefix('in:').split(',')

    def __str__(self) -> str:
        return parse.unquote(
            self.value if self.key == 'group' else f'{self.key}={self.value}'
        )


def split(text: str) -> list[Part]:
    """Split nova's query string into what can be asked by itself.

    Forbidden aggregates are one part each. ``limit``, ``group_policy`` and
    ``same_subtree`` are no parts: they mean something to the whole alone.

    :param text: of the form of GET /allocation_candidates
    """
    parts: list[Part] = []
    groups: dict[str, list[tuple[str, str]]] = {}
    for key, value in parse.parse_qsl(text):
        if key in ('resources', 'required', 'root_required'):
            parts += [Part(key, item) for item in value.split(',')]
        elif key == 'member_of' and value.startswith('!'):
            uuids = Part(key, value).aggregates
            parts += [Part(key, f'!in:{uuid}') for uuid in uuids]
        elif key in ('member_of', 'in_tree'):
            parts.append(Part(key, value))
        elif match := _OF_GROUP.fullmatch(key):
            groups.setdefault(match[2], []).append((match[1], value))
    return parts + [
        Part('group', f'{suffix}: {parse.urlencode(params)}')
        for suffix, params in groups.items()
    ]


def merge(parts: Iterable[Part]) -> list[Part]:
    """Put the forbidden aggregates into one part, the last."""
    merged: list[Part] = []
    forbidden: list[str] = []
    for part in parts:
        if part.key == 'member_of' and part.forbids:
            forbidden += part.aggregates
        else:
            merged.append(part)
    if forbidden:
        merged.append(Part('member_of', f'!in:{",".join(forbidden)}'))
    return merged


def forms(
    ctxt: typing.Any, spec_obj: typing.Any, host_manager: typing.Any
) -> list[typing.Any]:
    """Return nova's ResourceRequests for a request: one, or two.

    The second is the form with VCPU in place of PCPU, which nova-scheduler
    asks too where the request pins CPUs and
    ``[workarounds] disable_fallback_pcpu_query`` is off.

    :raises nova.exception.NoValidHost: the host that is asked for does not
        exist
    """
    make = functools.partial(
        utils.resources_from_request_spec, ctxt, spec_obj, host_manager
    )
    found = [make(enable_pinning_translate=True)]
    if (
        found[0].cpu_pinning_requested
        and not CONF.workarounds.disable_fallback_pcpu_query
    ):
        found.append(make(enable_pinning_translate=False))
    return found


def lift_limit(resources: list[typing.Any]) -> None:
    """Let placement answer with every candidate, as nova itself does.

    :param resources: what :func:`forms` returned
    """
    for form in resources:
        form._limit = None


def get_parts(
    ctxt: typing.Any, spec_obj: typing.Any, host_manager: typing.Any
) -> list[Part]:
    """Return the parts that a request has as it stands, of its first form.

    The request is left as it is, where nova would note in it the node of the
    host that is asked for.
    """
    try:
        first = forms(ctxt, spec_obj.obj_clone(), host_manager)[0]
    except nova_exception.NoValidHost:
        return []
    return split(first.to_querystring())


def by_provider(requests: Iterable[typing.Any]) -> dict[str, list[typing.Any]]:
    """Return allocation requests, in their order, by each provider's UUID.

    A UUID that none of them has gets an empty list.
    """
    found = collections.defaultdict(list)
    for request in requests:
        for uuid in request['allocations']:
            found[uuid].append(request)
    return found


class Candidates:
    """What nova-scheduler gets from placement for a request.

    :param client: a ReportClient of :mod:`.nova_scheduler`
    :param resources: what :func:`forms` returned
    :ivar requests: allocation requests of nova's form
    :ivar summaries: by UUID of the provider
    :ivar refusals: what placement said in place of an answer
    :ivar is_full: whether ``max_placement_results`` may have cut the answer
    """

    def __init__(
        self, ctxt: typing.Any, client: typing.Any, resources: list[typing.Any]
    ) -> None:
        self.requests: list[typing.Any] = []
        self.summaries: dict[str, typing.Any] = {}
        self.refusals: list[str] = []
        self.is_full = False
        for form in resources:
            requests, summaries, _version = client.get_allocation_candidates(
                ctxt, form
            )
            if requests is None:
                # nova's method logs the reason and keeps it to itself.
                self.refusals.append(client.refusal)
                continue
            self.requests += requests
            self.summaries.update(summaries)
            if form._limit is not None and len(requests) >= form._limit:
                self.is_full = True


class Providers:
    """Which hosts satisfy a part, asked of placement once each.

    :param client: a ReportClient of :mod:`.nova_scheduler`
    """

    def __init__(self, client: typing.Any) -> None:
        self._client = client
        self._ask = functools.cache(self._get_roots)
        #: Returns the summaries of all providers that have one unit of a
        #: resource class free, and of those in their trees, by UUID.
        self.get_summaries = functools.cache(self._get_summaries)
        #: Returns what the provider of a host itself has and uses of each
        #: resource class, as summaries have it, by its UUID.
        self.get_inventories = functools.cache(self._get_inventories)
        self._answers: dict[tuple[str, ...], Candidates] = {}

    def get_candidates(
        self, ctxt: typing.Any, resources: list[typing.Any]
    ) -> Candidates:
        """Return what placement answers; equal queries are asked once.

        :param resources: what :func:`forms` returned
        """
        key = tuple(form.to_querystring() for form in resources)
        if key not in self._answers:
            kept = sum(len(one.requests) for one in self._answers.values())
            if kept >= _MOST_REQUESTS:
                self._answers = {}
            self._answers[key] = Candidates(ctxt, self._client, resources)
        return self._answers[key]

    def roots(self, *params: tuple[str, str]) -> set[str]:
        """Return the root providers that satisfy parameters; by default all.

        Hosts are among them.
        """
        return {
            uuid for uuid, root in self._ask(*params).items() if uuid == root
        }

    def find_lacking(self, part: Part, hosts: set[str]) -> set[str]:
        """Return the hosts that do not satisfy a part.

        :param part: if it forbids, a trait or aggregates (``!in:a,b``)
        :param hosts: UUIDs
        """
        key = 'required' if part.key == 'root_required' else part.key
        if part.forbids:
            return hosts & self.roots((key, part.value[1:]))
        if part.key in ('root_required', 'member_of'):
            return hosts - self.roots((key, part.value))
        # It may stand anywhere in the tree, or in a provider that is shared.
        params = [(key, part.value)]
        if part.key == 'group':
            params = parse.parse_qsl(part.value.partition(': ')[2])
        found = self._ask(*params)
        return hosts.difference(
            found.values(), *(self.served.get(uuid, ()) for uuid in found)
        )

    def knows(self, part: Part) -> bool:
        """Return whether placement knows the trait that a part requires."""
        if part.forbids or part.key not in ('required', 'root_required'):
            return True
        url = f'/traits?name=in:{parse.quote(part.value)}'
        return bool(self._get(url)['traits'])

    @functools.cached_property
    def served(self) -> dict[str, set[str]]:
        """The roots that each sharing provider serves, by its UUID."""
        found = {}
        trait = os_traits.MISC_SHARES_VIA_AGGREGATE
        for uuid in self._ask(('required', trait)):
            url = f'/resource_providers/{uuid}/aggregates'
            if aggregates := self._get(url)['aggregates']:
                members = ('member_of', f'in:{",".join(aggregates)}')
                found[uuid] = {*self._ask(members).values()}
        return found

    def _get(self, url: str) -> dict[str, typing.Any]:
        """Return what placement answers; nothing where that is 400."""
        response = self._client.get(url, version=report.SAME_SUBTREE_VERSION)
        return response.json() if response.status_code == 200 else {}

    def _get_roots(self, *params: tuple[str, str]) -> dict[str, str]:
        """Return the root of each provider that satisfies parameters."""
        # No host has a trait or resource class that placement does not know.
        found = self._get(f'/resource_providers?{parse.urlencode(params)}')
        # There may be many of them, and they are kept.
        return {
            sys.intern(one['uuid']): sys.intern(one['root_provider_uuid'])
            for one in found.get('resource_providers', ())
        }

    def _get_inventories(self, uuid: str) -> dict[str, dict[str, typing.Any]]:
        url = f'/resource_providers/{uuid}'
        found = self._get(f'{url}/inventories').get('inventories', {})
        used = self._get(f'{url}/usages').get('usages', {})
        return {
            name: {
                **one,
                'capacity': int(
                    (one['total'] - one['reserved']) * one['allocation_ratio']
                ),
                'used': used.get(name, 0),
            }
            for name, one in found.items()
        }

    def _get_summaries(self, resource: str) -> dict[str, typing.Any]:
        found = self._get(f'/allocation_candidates?resources={resource}:1')
        return {
            uuid: {key: summary[key] for key in _OF_SUMMARY}
            for uuid, summary in found.get('provider_summaries', {}).items()
        }
