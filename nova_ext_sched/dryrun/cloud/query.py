# SPDX-License-Identifier: Apache-2.0

"""Divides nova's query for allocation candidates into parts.

The query string is nova's own (``ResourceRequest.to_querystring``). What
placement answers to the whole decides; the parts, asked one by one, say why a
host is not in that answer.
"""

import collections
from collections.abc import Iterable
import copy
import functools
import re
import typing
from urllib import parse

from nova import exception as nova_exception
import nova.conf
from nova.scheduler import utils

CONF = nova.conf.CONF

# The group of a PCI device, by an ID that nova makes anew for each request.
_OF_DEVICE = re.compile(r'_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+')
_OF_GROUP = re.compile(r'(resources|required|member_of|in_tree)(.+)')


class Part(typing.NamedTuple):
    """One constraint of a query.

    ``key`` is a parameter of placement (``resources``, ``required``,
    ``root_required``, ``member_of``, ``in_tree``) and ``value`` one item of
    it, or ``group`` and the query string of a group with a suffix, which is
    left out where it differs from request to request.
    """

    key: str
    value: str

    @property
    def forbids(self) -> bool:
        """Whether the part forbids traits or aggregates."""
        return self.value.startswith('!')

    @property
    def aggregates(self) -> list[str]:
        """UUIDs of the aggregates that a ``member_of`` names."""
        return self.value.removeprefix('!').removeprefix('in:').split(',')

    @property
    def group(self) -> list[tuple[str, str]]:
        """The parameters of a group with a suffix, without it."""
        return parse.parse_qsl(self.value.partition(': ')[2])

    def __str__(self) -> str:
        if self.key == 'group':
            return parse.unquote(self.value.removeprefix(': '))
        return parse.unquote(f'{self.key}={self.value}')


def split(text: str) -> list[Part]:
    """Split nova's query string into parts that can be asked alone.

    Forbidden aggregates are one part each. ``limit``, ``group_policy`` and
    ``same_subtree`` are no parts: they apply to the whole query only.

    :param text: the query string of GET /allocation_candidates
    """
    parts: list[Part] = []
    groups: dict[str, list[tuple[str, str]]] = {}
    for key, value in parse.parse_qsl(text):
        match key:
            case 'resources' | 'required' | 'root_required':
                parts += [Part(key, item) for item in value.split(',')]
            case 'member_of' if value.startswith('!'):
                uuids = Part(key, value).aggregates
                parts += [Part(key, f'!in:{uuid}') for uuid in uuids]
            case 'member_of' | 'in_tree':
                parts.append(Part(key, value))
            case _ if found := _OF_GROUP.fullmatch(key):
                groups.setdefault(found[2], []).append((found[1], value))
    # Groups of equal devices are one part.
    return parts + list(
        dict.fromkeys(
            Part(
                'group',
                ('' if _OF_DEVICE.fullmatch(suffix) else suffix)
                + f': {parse.urlencode(params)}',
            )
            for suffix, params in groups.items()
        )
    )


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

    The second is the form with VCPU in place of PCPU. nova-scheduler asks with
    it, too, if the request pins CPUs and
    ``[workarounds] disable_fallback_pcpu_query`` is off.

    :raises nova.exception.NoValidHost: the requested host does not exist
    """
    make = functools.partial(
        utils.resources_from_request_spec, ctxt, spec_obj, host_manager
    )
    resources = [make(enable_pinning_translate=True)]
    if (
        resources[0].cpu_pinning_requested
        and not CONF.workarounds.disable_fallback_pcpu_query
    ):
        resources.append(make(enable_pinning_translate=False))
    return resources


def key_of(resources: Iterable[typing.Any]) -> tuple[str, ...]:
    """Return a key that is equal for equal queries.

    :param resources: the result of :func:`forms`
    """
    return tuple(form.to_querystring() for form in resources)


def get_unnumbered(form: typing.Any) -> dict[str, int]:
    """Return the amounts that a nova ResourceRequest has in no numbered group.

    nova's own method adds an empty group if there is none.
    """
    group = form._rg_by_id.get(None)
    return dict(group.resources) if group else {}


def keep_numbered(form: typing.Any) -> typing.Any:
    """Return a nova ResourceRequest of the numbered groups alone.

    :returns: None if one of them must be in one subtree with the amounts that
        are in no numbered group
    """
    if any('' in suffixes for suffixes in form._same_subtree):
        return None
    numbered = copy.copy(form)
    numbered._rg_by_id = {
        suffix: group for suffix, group in form._rg_by_id.items() if suffix
    }
    return numbered


def lift_limit(resources: list[typing.Any]) -> None:
    """Lift the limit of candidates from requests, as nova itself does.

    :param resources: the result of :func:`forms`
    """
    for form in resources:
        form._limit = None


def get_parts(
    ctxt: typing.Any, spec_obj: typing.Any, host_manager: typing.Any
) -> list[Part]:
    """Return the parts of a request as it is, from its first form.

    The request does not change, while nova would note in it the node of a
    requested host.
    """
    try:
        first = forms(ctxt, spec_obj.obj_clone(), host_manager)[0]
    except nova_exception.NoValidHost:
        return []
    return split(first.to_querystring())


def by_provider(requests: Iterable[typing.Any]) -> dict[str, list[typing.Any]]:
    """Return allocation requests, in their order, by each provider's UUID.

    For the UUID of any other provider it has an empty list.
    """
    found = collections.defaultdict(list)
    for request in requests:
        for uuid in request['allocations']:
            found[uuid].append(request)
    return found
