# SPDX-License-Identifier: Apache-2.0

"""The bound on forbidden aggregates in one placement query.

Placement's query string is a request line, and every web server limits that:
past the limit placement is never reached and every request ends in
NoValidHost. What does not fit is left to a host filter, where one judges it.
"""

import collections
from collections.abc import Callable
from collections.abc import Collection
import typing

import nova.conf
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ext_sched import aggregates
from nova_ext_sched import faults
from nova_ext_sched.policy import isolation
from nova_ext_sched.request_filters import base

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

_faults = faults.FaultLog(LOG)

# How many names a message lists: enough to recognize, short enough to read.
_NAMES = 10

# How long counts of hosts are believed.
_COUNTS_SECONDS = 60.0


class _HostCounts:
    """The number of hosts of each aggregate, remembered a while.

    Which aggregates go into the query is a matter of how many hosts come
    back, never of who may use them: an old count does no harm.
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
            self._until = now + _COUNTS_SECONDS
        return self._counts


_host_counts = _HostCounts()


def host_filter_judges(request_spec: typing.Any, host_filter: str) -> bool:
    """Return whether a host filter will judge what the query lets through."""
    return (
        host_filter in CONF.filter_scheduler.enabled_filters
        and base.host_filters_run(request_spec)
    )


def room(request_spec: typing.Any) -> int:
    """Return how many entries the query of this request may still take.

    Forbidden aggregates of whatever filter take it, and the traits of
    ``forbid_by_trait`` that the request spec forbids.
    """
    declared = isolation.DeclaredTraits(CONF.nova_ext_sched.forbid_by_trait)
    taken = len(base.forbidden_aggregates(request_spec)) + sum(
        trait in declared for trait in request_spec.root_forbidden
    )
    return max(0, CONF.nova_ext_sched.max_forbidden_aggregates - taken)


def within_bound(
    ctxt: typing.Any,
    request_spec: typing.Any,
    forbidden: Collection[str],
    host_filter: str,
    entries: int = 0,
    candidates: Callable[[], Collection[str]] | None = None,
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
    :param entries: number of entries of the bound that are used otherwise
    :param candidates: called for the UUIDs of all aggregates that the policy
        may forbid, whatever a request names; by default those of this request
    :returns: UUIDs
    """
    present = base.forbidden_aggregates(request_spec)
    wanted = set(forbidden) - present
    limit = max(0, room(request_spec) - entries)
    if len(wanted) <= limit:
        return set(wanted)
    if not base.host_filters_run(request_spec):
        # nova then looks at the forced hosts alone, so other aggregates
        # cannot matter.
        if 'force_hosts' in request_spec and request_spec.force_hosts:
            wanted &= aggregates.get_uuids_by_hosts(
                ctxt, request_spec.force_hosts
            )
        return set(wanted)
    if not host_filter_judges(request_spec, host_filter):
        _faults.warn(
            f'{len(wanted)} forbidden aggregates go into one placement '
            f'query, more than the {limit} that max_forbidden_aggregates '
            f'leaves, because {host_filter} is not in [filter_scheduler] '
            f'enabled_filters to judge the rest. A web server before '
            f'placement may refuse the query, and the request then ends in '
            f'NoValidHost. Enable {host_filter}.',
            key=(host_filter, 'unbounded'),
        )
        return set(wanted)

    ranked = _by_hosts(ctxt, wanted)
    unlisted = ranked[limit:]
    # Requests differ in what is left; the log has it once for each change of
    # the aggregates. A hash, because many UUIDs would be kept with the key.
    over = _by_hosts(ctxt, candidates() if candidates else forbidden)[
        CONF.nova_ext_sched.max_forbidden_aggregates :
    ]
    if _faults.is_new(key := (host_filter, hash(frozenset(over)))):
        names = sorted(aggregates.get_names(ctxt, unlisted[:_NAMES]))
        more = len(unlisted) - _NAMES
        _faults.warn(
            f'{len(wanted)} aggregates are forbidden to a request; the '
            f'{limit} with most hosts go into its placement query (the bound '
            f'is max_forbidden_aggregates) and {len(unlisted)} are left to '
            f'{host_filter}: {", ".join(names)}'
            + (f' and {more} more' if more > 0 else '')
            + '. For isolating aggregates, naming their traits in '
            'forbid_by_trait leaves more room.',
            key=key,
        )
    return set(ranked[:limit])


def _by_hosts(ctxt: typing.Any, uuids: Collection[str]) -> list[str]:
    # Those with most hosts first.
    counts = _host_counts.get(ctxt)
    ranked = sorted(uuids)
    ranked.sort(key=counts.__getitem__, reverse=True)
    return ranked
