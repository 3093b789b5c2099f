# SPDX-License-Identifier: Apache-2.0

"""The aggregates that a placement query requires and forbids.

nova turns them into ``member_of=in:`` and ``member_of=!in:``. Placement's
query string is part of a request line, and every web server limits its length.
Above the limit placement is never reached, and every request ends in
NoValidHost. Aggregates that do not fit are left to a host filter.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
import typing

from nova import objects
import nova.conf
from oslo_log import log as logging

from nova_ext_sched import exception
from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import aggregates
from nova_ext_sched.queries import fields
from nova_ext_sched.request_filters import base

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

LOG_ONCE = log_once.LogOnce(__name__)

COUNTS_SECONDS = 60.0


@base.cached(COUNTS_SECONDS)
def _count_hosts(ctxt: typing.Any) -> collections.Counter[str]:
    # They decide only how many hosts come back, never who may use them: an
    # old count does no harm.
    return collections.Counter(aggregates.get_host_counts(ctxt))


def apply(
    ctxt: typing.Any,
    request_spec: typing.Any,
    resolved: verdict.Resolution,
    policy: declaration.Policy,
    items: Iterable[verdict.Item],
) -> None:
    """Ask placement for the hosts that a policy leaves.

    :param items: as :func:`forbid` takes them
    :raises exception.RequestRefused: it leaves none
    """
    if resolved.unmet:
        raise exception.RequestRefused(resolved.unmet, resolved.detail)
    for uuids in resolved.required:
        require(request_spec, uuids)
        LOG.debug(
            '%s: the request must land in %s',
            policy.request_filter,
            _Names(items, uuids),
        )
    forbid(ctxt, request_spec, resolved.forbidden, policy, items)


def require(request_spec: typing.Any, uuids: Collection[str]) -> None:
    """Keep the request in one of these aggregates, besides earlier demands.

    nova adds a ``member_of=in:`` for each set. A set that is already required,
    by nova's availability zone filter for example, is not added again.

    :param uuids: UUIDs of aggregates, at least one
    """
    destination = _get_destination(request_spec)
    required = destination.aggregates or []
    if set(uuids) not in [set(one.split(',')) for one in required]:
        destination.require_aggregates(sorted(uuids))


def forbid(
    ctxt: typing.Any,
    request_spec: typing.Any,
    forbidden: Collection[str],
    policy: declaration.Policy,
    items: Iterable[Collection[typing.Any]],
) -> set[str]:
    """Keep the request out of aggregates, as far as the query has room.

    ======== ============= =========== =====================================
    all fit  filter judges host forced what goes in
    ======== ============= =========== =====================================
    yes      any           any         all
    no       yes           no          those with most hosts, up to the bound
    no       no            no          all, with a warning
    no       any           yes         all that hold the forced hosts
    ======== ============= =========== =====================================

    :param forbidden: UUIDs; with none the request is left as it was
    :param policy: the one that forbids them
    :param items: UUID and name, first, of the aggregates that the policy may
        forbid to any request. A warning about the aggregates left to the host
        filter is logged once for each change of them.
    :returns: the UUIDs that went in, besides those of earlier filters
    """
    host_filter = policy.host_filter
    chosen = set(forbidden) - _get_forbidden(request_spec)
    limit = remaining_entries(request_spec)
    if len(chosen) > limit:
        if host_filter_judges(request_spec, policy):
            counts = _count_hosts(ctxt)
            ranked = sorted(chosen, key=lambda uuid: (-counts[uuid], uuid))
            _warn_rest(ranked, limit, host_filter, items)
            chosen = set(ranked[:limit])
        elif fields.host_filters_run(request_spec):
            LOG_ONCE.warning(
                f'A placement query names '
                f'{messages.count("forbidden aggregate", len(chosen))}, '
                f'although max_forbidden_aggregates has room for {limit} '
                f'only, because {host_filter} is not in [filter_scheduler] '
                f'enabled_filters to check the hosts of the rest. A web '
                f'server in front of placement may refuse the query, and the '
                f'request then ends in NoValidHost. Add {host_filter} to '
                f'enabled_filters.',
                key=(host_filter, 'unbounded'),
            )
        elif hosts := fields.get_field(request_spec, 'force_hosts'):
            # nova looks at the forced hosts alone.
            chosen &= aggregates.get_uuids_by_hosts(ctxt, hosts)
    if chosen:
        _get_destination(request_spec).append_forbidden_aggregates(chosen)
    LOG.debug(
        '%s: the request must stay out of %s. The placement query forbids '
        '%d of them',
        policy.request_filter,
        _Names(items, forbidden),
        len(chosen),
    )
    return chosen


class _Names:
    """Names of aggregates, found where the line of the log is written."""

    def __init__(
        self, items: Iterable[Collection[typing.Any]], uuids: Collection[str]
    ) -> None:
        self._items = items
        self._uuids = uuids

    def __str__(self) -> str:
        uuids = set(self._uuids)
        names = {name for uuid, name, *_ in self._items if uuid in uuids}
        return messages.count('aggregate', len(uuids)) + (
            f': {messages.first_few(sorted(names))}' if names else ''
        )


def host_filter_judges(
    request_spec: typing.Any, policy: declaration.Policy
) -> bool:
    """Return whether stage 2 will judge what the query lets through."""
    return (
        policy.host_filter in CONF.filter_scheduler.enabled_filters
        and fields.host_filters_run(request_spec)
    )


def remaining_entries(request_spec: typing.Any) -> int:
    """Return how many entries the query of this request may still take.

    The forbidden aggregates of all filters count as entries, and so do the
    traits of ``forbid_by_trait`` that the request spec forbids.
    """
    declared = isolation.DeclaredTraits(CONF.nova_ext_sched.forbid_by_trait)
    present = len(_get_forbidden(request_spec)) + sum(
        trait in declared for trait in request_spec.root_forbidden
    )
    return max(0, CONF.nova_ext_sched.max_forbidden_aggregates - present)


def _get_destination(request_spec: typing.Any) -> typing.Any:
    if fields.get_field(request_spec, 'requested_destination') is None:
        request_spec.requested_destination = objects.Destination()
    return request_spec.requested_destination


def _get_forbidden(request_spec: typing.Any) -> set[str]:
    # By the filters before.
    destination = fields.get_field(request_spec, 'requested_destination')
    return set(fields.get_field(destination, 'forbidden_aggregates') or ())


def _warn_rest(
    ranked: list[str],
    limit: int,
    host_filter: str,
    items: Iterable[Collection[typing.Any]],
) -> None:
    names = {uuid: name for uuid, name, *_ in items}
    rest = sorted(names[uuid] for uuid in ranked[limit:])
    LOG_ONCE.warning(
        f'A request must stay out of '
        f'{messages.count("aggregate", len(ranked))}. Its placement query '
        f'names {limit} of them, those with the most hosts (see '
        f'max_forbidden_aggregates). {host_filter} checks the hosts of the '
        f'other {len(rest)}: {messages.first_few(rest)}. If they are isolated '
        f'aggregates, put their traits into forbid_by_trait to leave room for '
        f'others.',
        # A hash, because many UUIDs would be kept with the key.
        key=(host_filter, hash(frozenset(names))),
    )
