# SPDX-License-Identifier: Apache-2.0

"""The aggregates that a placement query requires and forbids.

nova turns them into ``member_of=in:`` and ``member_of=!in:``. Placement's
query string is part of a request line, and every web server limits its length.
Above the limit placement is never reached, and every request ends in
NoValidHost. Aggregates that do not fit are left to a host filter.
"""

import collections
from collections.abc import Collection
from collections.abc import Sequence
import typing

from nova import objects
import nova.conf
from oslo_log import log as logging

from nova_ext_sched import exception
from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched import request_state
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


class Query:
    """The placement query of a request, for one policy.

    :ivar room: how many entries it may still take. The forbidden aggregates
        of all filters count as entries, and so do the traits of
        ``forbid_by_trait`` that the request spec forbids
    :ivar is_judged: whether the policy's host filter will judge what the
        query lets through

    :param policy: the one that requires or forbids
    """

    def __init__(
        self, request_spec: typing.Any, policy: declaration.Policy
    ) -> None:
        options = CONF.nova_ext_sched
        self._spec = request_spec
        self._policy = policy
        # A spec that is filtered again has nothing of before.
        request_state.of(request_spec).left_out.pop(policy.name, None)
        destination = fields.get_field(request_spec, 'requested_destination')
        # By the filters before.
        self._forbidden = frozenset(
            fields.get_field(destination, 'forbidden_aggregates') or ()
        )
        declared = isolation.DeclaredTraits(options.forbid_by_trait)
        present = len(self._forbidden) + sum(
            trait in declared for trait in request_spec.root_forbidden
        )
        self.room = max(0, options.max_forbidden_aggregates - present)
        self._host_filters_run = fields.host_filters_run(request_spec)
        self.is_judged = (
            self._host_filters_run
            and policy.host_filter in CONF.filter_scheduler.enabled_filters
        )

    def write(
        self,
        ctxt: typing.Any,
        resolved: verdict.Resolution,
        items: Sequence[Collection[typing.Any]] = (),
    ) -> None:
        """Ask for the hosts that the policy leaves; once, at the end.

        nova adds a ``member_of=in:`` for each required set. One that is
        required already, by nova's availability zone filter for example, is
        not added again. What is forbidden goes in as far as there is room:

        ======== ========= =========== ======================================
        all fit  is judged host forced forbidden aggregates that go in
        ======== ========= =========== ======================================
        yes      any       any         all
        no       yes       no          those with most hosts, up to the bound
        no       no        no          all, with a warning
        no       any       yes         all that hold the forced hosts
        ======== ========= =========== ======================================

        The hosts of aggregates that are left to the host filter, by the
        bound or by a trait in their place, are read and left to it too.

        :param items: UUID and name, first, of the aggregates that the policy
            may forbid to any request. A warning about the aggregates left to
            the host filter is logged once for each change of them.
        :raises exception.RequestRefused: the policy leaves no host
        """
        if resolved.unmet:
            raise exception.RequestRefused(resolved.unmet, resolved.detail)
        name = self._policy.request_filter
        for uuids in resolved.required:
            destination = _get_destination(self._spec)
            present = [{*x.split(',')} for x in destination.aggregates or ()]
            if set(uuids) not in present:
                destination.require_aggregates(sorted(uuids))
            LOG.debug(
                '%s: the request must land in %s', name, _Names(items, uuids)
            )
        forbidden = chosen = set(resolved.forbidden) - self._forbidden
        room = self.room - len(resolved.traits)
        if len(chosen) > room:
            chosen = self._choose(ctxt, chosen, room, items)
        self._spec.root_forbidden.update(resolved.traits)
        if chosen:
            _get_destination(self._spec).append_forbidden_aggregates(chosen)
        LOG.debug(
            '%s: the request must stay out of %s. The placement query '
            'forbids %d of them',
            name,
            _Names(items, resolved.forbidden),
            len(chosen),
        )
        if self.is_judged:
            rest = (forbidden | set(resolved.covered)) - chosen
            self._leave(ctxt, rest - self._forbidden, items)

    def _leave(
        self,
        ctxt: typing.Any,
        uuids: set[str],
        items: Sequence[Collection[typing.Any]],
    ) -> None:
        # The host filter judges by the scheduler's memory, which may not have
        # heard of them.
        if not uuids:
            return
        names = {uuid: name for uuid, name, *_ in items}
        hosts = aggregates.get_hosts(ctxt)
        left: dict[str, str] = {}
        for uuid in uuids:
            left.update(
                dict.fromkeys(hosts.get(uuid, ()), names.get(uuid, uuid))
            )
        request_state.of(self._spec).left_out[self._policy.name] = left

    def _choose(
        self,
        ctxt: typing.Any,
        forbidden: set[str],
        room: int,
        items: Sequence[Collection[typing.Any]],
    ) -> set[str]:
        host_filter = self._policy.host_filter
        if self.is_judged:
            counts = _count_hosts(ctxt)
            ranked = sorted(forbidden, key=lambda uuid: (-counts[uuid], uuid))
            _warn_rest(ranked, room, host_filter, items)
            return set(ranked[:room])
        if self._host_filters_run:
            LOG_ONCE.warning(
                f'A placement query names '
                f'{messages.count("forbidden aggregate", len(forbidden))}, '
                f'although max_forbidden_aggregates has room for {room} '
                f'only, because {host_filter} is not in [filter_scheduler] '
                f'enabled_filters to check the hosts of the rest. A web '
                f'server in front of placement may refuse the query, and the '
                f'request then ends in NoValidHost. Add {host_filter} to '
                f'enabled_filters.',
                key=(host_filter, 'unbounded'),
            )
        elif hosts := fields.get_field(self._spec, 'force_hosts'):
            # nova looks at the forced hosts alone.
            return forbidden & aggregates.get_uuids_by_hosts(ctxt, hosts)
        return forbidden


class _Names:
    """Names of aggregates, found where the line of the log is written."""

    def __init__(
        self, items: Sequence[Collection[typing.Any]], uuids: Collection[str]
    ) -> None:
        self._items = items
        self._uuids = uuids

    def __str__(self) -> str:
        uuids = set(self._uuids)
        names = {name for uuid, name, *_ in self._items if uuid in uuids}
        return messages.count('aggregate', len(uuids)) + (
            f': {messages.first_few(sorted(names))}' if names else ''
        )


def _get_destination(request_spec: typing.Any) -> typing.Any:
    if fields.get_field(request_spec, 'requested_destination') is None:
        request_spec.requested_destination = objects.Destination()
    return request_spec.requested_destination


def _warn_rest(
    ranked: list[str],
    limit: int,
    host_filter: str,
    items: Sequence[Collection[typing.Any]],
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
