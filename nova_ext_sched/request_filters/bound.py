# SPDX-License-Identifier: Apache-2.0

"""The bound on forbidden aggregates in one placement query.

Placement's query string is part of a request line, and every web server limits
its length. Above the limit placement is never reached, and every request ends
in NoValidHost. Aggregates that do not fit are left to a host filter.
"""

import collections
from collections.abc import Collection
import typing

import nova.conf
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ext_sched import aggregates
from nova_ext_sched import faults
from nova_ext_sched import messages
from nova_ext_sched.policy import isolation
from nova_ext_sched.request_filters import base

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

_faults = faults.FaultLog(LOG)

# How long the counts are cached.
COUNTS_SECONDS = 60.0


class _HostCounts:
    """The number of hosts of each aggregate, cached for a while.

    The counts decide only how many hosts come back, never who may use them:
    an old count does no harm.
    """

    def __init__(self) -> None:
        self._until = 0.0
        self._counts: collections.Counter[str] = collections.Counter()

    def get(self, ctxt: typing.Any) -> collections.Counter[str]:
        now = timeutils.now()
        if now >= self._until:
            self._counts = collections.Counter(
                aggregates.get_host_counts(ctxt)
            )
            self._until = now + COUNTS_SECONDS
        return self._counts


_host_counts = _HostCounts()


def choose_aggregates(
    ctxt: typing.Any,
    request_spec: typing.Any,
    forbidden: Collection[str],
    host_filter: str,
    candidates: Collection[str] | None = None,
) -> set[str]:
    """Choose the forbidden aggregates that go into the placement query.

    ======== ============= =========== =====================================
    all fit  filter judges host forced what goes in
    ======== ============= =========== =====================================
    yes      any           any         all
    no       yes           no          those with most hosts, up to the bound
    no       no            no          all, with a warning
    no       any           yes         all that hold the forced hosts
    ======== ============= =========== =====================================

    :param ctxt: a nova RequestContext
    :param request_spec: a nova RequestSpec
    :param forbidden: UUIDs of aggregates
    :param host_filter: the host filter that applies the same policy
    :param candidates: UUIDs of all aggregates that the policy may forbid,
        whatever a request names; by default those of this request. A warning
        about the aggregates left to the host filter is logged once for each
        change of them.
    :returns: UUIDs
    """
    wanted = set(forbidden) - base.forbidden_aggregates(request_spec)
    limit = remaining_entries(request_spec)
    if len(wanted) <= limit:
        return wanted
    if host_filter_judges(request_spec, host_filter):
        counts = _host_counts.get(ctxt)
        ranked = sorted(wanted, key=lambda uuid: (-counts[uuid], uuid))
        _warn_rest(ctxt, ranked, limit, host_filter, candidates or forbidden)
        return set(ranked[:limit])
    if base.host_filters_run(request_spec):
        _faults.warn(
            f'A placement query names '
            f'{messages.count("forbidden aggregate", len(wanted))}, although '
            f'max_forbidden_aggregates has room for {limit} only, because '
            f'{host_filter} is not in [filter_scheduler] enabled_filters to '
            f'check the hosts of the rest. A web server in front of placement '
            f'may refuse the query, and the request then ends in NoValidHost. '
            f'Add {host_filter} to enabled_filters.',
            key=(host_filter, 'unbounded'),
        )
    elif 'force_hosts' in request_spec and request_spec.force_hosts:
        # nova looks at the forced hosts alone: only their aggregates matter.
        wanted &= aggregates.get_uuids_by_hosts(ctxt, request_spec.force_hosts)
    return wanted


def host_filter_judges(request_spec: typing.Any, host_filter: str) -> bool:
    """Return whether a host filter will judge what the query lets through."""
    return (
        host_filter in CONF.filter_scheduler.enabled_filters
        and base.host_filters_run(request_spec)
    )


def remaining_entries(request_spec: typing.Any) -> int:
    """Return how many entries the query of this request may still take.

    The forbidden aggregates of all filters count as entries, and so do the
    traits of ``forbid_by_trait`` that the request spec forbids.
    """
    declared = isolation.DeclaredTraits(CONF.nova_ext_sched.forbid_by_trait)
    present = len(base.forbidden_aggregates(request_spec)) + sum(
        trait in declared for trait in request_spec.root_forbidden
    )
    return max(0, CONF.nova_ext_sched.max_forbidden_aggregates - present)


def _warn_rest(
    ctxt: typing.Any,
    ranked: list[str],
    limit: int,
    host_filter: str,
    candidates: Collection[str],
) -> None:
    # A hash, because many UUIDs would be kept with the key.
    key = (host_filter, hash(frozenset(candidates)))
    if not _faults.is_new(key):
        return
    rest = ranked[limit:]
    names = sorted(aggregates.get_names(ctxt, rest[:10]))
    more = len(rest) - len(names)
    _faults.warn(
        f'A request must stay out of '
        f'{messages.count("aggregate", len(ranked))}. Its placement query '
        f'names {limit} of them, those with the most hosts (see '
        f'max_forbidden_aggregates). {host_filter} checks the hosts of the '
        f'other {len(rest)}: {messages.first_few(names)}'
        + (f' and {more} more' if more else '')
        + '. If they are isolated aggregates, put their traits into '
        'forbid_by_trait to leave room for others.',
        key=key,
    )
