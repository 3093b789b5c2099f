# SPDX-License-Identifier: Apache-2.0

"""nova's query for allocation candidates, as a whole and part by part.

The query string is nova's own (``ResourceRequest.to_querystring``). What
placement answers to the whole decides; the parts, asked one by one, say why a
host is not in that answer.
"""

from collections.abc import Collection
from collections.abc import Iterable
import re
import typing
from urllib import parse

from nova import exception as nova_exception
import nova.conf
from nova.scheduler import utils
from nova.scheduler.client import report
import os_traits

from nova_ext_sched import messages
from nova_ext_sched.explain import faults

CONF = nova.conf.CONF

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

    def __str__(self) -> str:
        return parse.unquote(
            self.value if self.key == 'group' else f'{self.key}={self.value}'
        )


class Query(typing.NamedTuple):
    """One form of nova's query: its string and its parts."""

    text: str
    parts: list[Part]


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
        elif key == 'member_of' and value.startswith('!in:'):
            uuids = value.removeprefix('!in:').split(',')
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
    listed = list(parts)
    forbidden = [
        part.value.removeprefix('!in:')
        for part in listed
        if part.key == 'member_of' and part.forbids
    ]
    found = [
        part
        for part in listed
        if not (part.key == 'member_of' and part.forbids)
    ]
    if forbidden:
        found.append(Part('member_of', f'!in:{",".join(forbidden)}'))
    return found


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
    found = [
        utils.resources_from_request_spec(
            ctxt, spec_obj, host_manager, enable_pinning_translate=True
        )
    ]
    if (
        found[0].cpu_pinning_requested
        and not CONF.workarounds.disable_fallback_pcpu_query
    ):
        found.append(
            utils.resources_from_request_spec(
                ctxt, spec_obj, host_manager, enable_pinning_translate=False
            )
        )
    return found


def parts_of(
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


class Candidates:
    """What nova-scheduler gets from placement for a request.

    :param ctxt: a nova RequestContext
    :param client: nova's SchedulerReportClient
    :param resources: what :func:`forms` returned
    """

    def __init__(
        self, ctxt: typing.Any, client: typing.Any, resources: list[typing.Any]
    ) -> None:
        #: Allocation requests of nova's form.
        self.requests: list[typing.Any] = []
        #: Summaries by UUID of the provider.
        self.summaries: dict[str, typing.Any] = {}
        #: What placement said in place of an answer.
        self.refusals: list[str] = []
        #: Whether ``max_placement_results`` may have cut the answer.
        self.is_full = False
        for form in resources:
            answer = client.get_allocation_candidates(ctxt, form)
            if not answer or answer[0] is None:
                self.refusals.append(_refusal(client, form.to_querystring()))
                continue
            requests, summaries, _version = answer
            self.requests += requests
            self.summaries.update(summaries)
            if form._limit is not None and len(requests) >= form._limit:
                self.is_full = True


def _refusal(client: typing.Any, text: str) -> str:
    # nova's method logs the reason and keeps it to itself.
    query = f'/allocation_candidates?{text}'
    response = client.get(query, version=report.SAME_SUBTREE_VERSION)
    if response is None or response.status_code != 400:
        raise faults.PlacementFault(query=query, cause=_error(response))
    return _error(response)


def _error(response: typing.Any) -> str:
    if response is None:
        return 'nothing'
    try:
        detail = response.json()['errors'][0]['detail']
    except (ValueError, LookupError, TypeError):
        detail = response.text
    return f'{response.status_code} {messages.quote(detail.strip())}'


class Providers:
    """Which hosts satisfy a part, asked of placement once each.

    :param client: nova's SchedulerReportClient
    """

    def __init__(self, client: typing.Any) -> None:
        self._client = client
        self._answers: dict[tuple[tuple[str, str], ...], typing.Any] = {}
        self._reach: dict[str, set[str]] | None = None

    @property
    def roots(self) -> set[str]:
        """UUIDs of all root providers, hosts among them."""
        return self._roots([], nested=False)

    def satisfying(self, part: Part) -> set[str]:
        """Return the root providers that satisfy a part.

        :param part: one that requires something
        """
        if part.key == 'root_required':
            return self._roots([('required', part.value)], nested=False)
        if part.key == 'group':
            params = parse.parse_qsl(part.value.partition(': ')[2])
            return self._roots(params, nested=True)
        return self._roots(
            [(part.key, part.value)], nested=part.key != 'member_of'
        )

    def having(self, part: Part) -> set[str]:
        """Return the root providers that have what a part forbids.

        :param part: forbids a trait or aggregates (``!in:a,b``)
        """
        key = 'member_of' if part.key == 'member_of' else 'required'
        return self._roots([(key, part.value[1:])], nested=False)

    def _roots(
        self, params: Collection[tuple[str, str]], nested: bool
    ) -> set[str]:
        found = set()
        for provider in self._ask(params):
            uuid, root = provider['uuid'], provider['root_provider_uuid']
            if nested or uuid == root:
                found.add(root)
            if nested and self._sharing:
                found |= self._sharing.get(uuid, set())
        return found

    @property
    def _sharing(self) -> dict[str, set[str]]:
        """Return the roots that each sharing provider serves."""
        if self._reach is None:
            # Set first: what follows asks without sharing.
            self._reach = {}
            trait = os_traits.MISC_SHARES_VIA_AGGREGATE
            for provider in self._ask([('required', trait)]):
                aggregates = self._client.get(
                    f'/resource_providers/{provider["uuid"]}/aggregates',
                    version=report.SAME_SUBTREE_VERSION,
                ).json()['aggregates']
                if aggregates:
                    members = ('member_of', f'in:{",".join(aggregates)}')
                    self._reach[provider['uuid']] = self._roots(
                        [members], nested=True
                    )
        return self._reach

    def _ask(self, params: Collection[tuple[str, str]]) -> typing.Any:
        key = tuple(params)
        if key not in self._answers:
            query = f'/resource_providers?{parse.urlencode(key)}'
            response = self._client.get(
                query, version=report.SAME_SUBTREE_VERSION
            )
            if response is not None and response.status_code == 400:
                # A trait or resource class that placement does not know: no
                # host has it.
                self._answers[key] = []
            elif response is None or response.status_code != 200:
                raise faults.PlacementFault(
                    query=query, cause=_error(response)
                )
            else:
                self._answers[key] = response.json()['resource_providers']
        return self._answers[key]
