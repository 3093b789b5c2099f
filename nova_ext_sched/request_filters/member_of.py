# SPDX-License-Identifier: Apache-2.0

"""The aggregates that a placement query requires and forbids.

nova turns them into ``member_of=in:`` and ``member_of=!in:``. Placement's
query string is part of a request line, and every web server limits its length.
Above the limit placement is never reached, and every request ends in
NoValidHost. Aggregates that do not fit, required or forbidden, are left to a
host filter, if there is one that judges them.
"""

import collections
from collections.abc import Collection
from collections.abc import Mapping
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

    :ivar room: how many entries it may still take. The aggregates that all
        filters, nova's too, require or forbid count as entries, and so do the
        traits of ``forbid_by_trait`` that the request spec forbids
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
        self._required = [
            frozenset(uuids.split(','))
            for uuids in fields.get_field(destination, 'aggregates') or ()
        ]
        declared = isolation.DeclaredTraits(options.forbid_by_trait)
        present = len(self._forbidden) + sum(map(len, self._required))
        present += sum(
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
        not added again. A set goes in before what is forbidden, because it
        leaves fewer hosts, and small sets before large ones. To make room for
        it, forbidden aggregates of the filters before leave the query, those
        with the fewest hosts first, if their host filter judges them too.

        ======== ========= =========== ======================================
        it fits  is judged host forced a required set
        ======== ========= =========== ======================================
        yes      any       any         goes in
        no       yes       no          is left out, with a warning
        no       no        no          goes in, with a warning
        no       any       yes         its aggregates that hold the forced
                                       hosts go in; one that does not if none
                                       does
        ======== ========= =========== ======================================

        What is forbidden goes in as far as there is room then:

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
            may require of any request, or forbid to it. A warning about the
            aggregates left to the host filter is logged once for each change
            of them.
        :raises exception.RequestRefused: the policy leaves no host
        """
        if resolved.unmet:
            raise exception.RequestRefused(
                resolved.unmet, resolved.detail, resolved.by_member
            )
        self.room = max(0, self.room - len(resolved.traits))
        for uuids in sorted(map(frozenset, resolved.required), key=len):
            if uuids not in self._required:
                self._require(ctxt, uuids, items)
            LOG.debug(
                '%s: the request must land in %s',
                self._policy.request_filter,
                _Names(items, uuids),
            )
        self._spec.root_forbidden.update(resolved.traits)
        self._forbid(ctxt, resolved, items)

    def _require(
        self,
        ctxt: typing.Any,
        uuids: frozenset[str],
        items: Sequence[Collection[typing.Any]],
    ) -> None:
        self._make_room(ctxt, len(uuids))
        if len(uuids) > self.room:
            if self.is_judged:
                _warn_left_out(uuids, self._policy.host_filter, items)
                return
            if self._host_filters_run:
                self._warn_unbounded('required', len(uuids))
            elif hosts := fields.get_field(self._spec, 'force_hosts'):
                # nova looks at the forced hosts alone. If no aggregate holds
                # one, any says so.
                held = uuids & aggregates.get_uuids_by_hosts(ctxt, hosts)
                uuids = held or frozenset([min(uuids)])
        self.room = max(0, self.room - len(uuids))
        _get_destination(self._spec).require_aggregates(sorted(uuids))

    def _make_room(self, ctxt: typing.Any, needed: int) -> None:
        also_judged = request_state.of(self._spec).also_judged
        missing = needed - self.room
        if not 0 < missing <= len(also_judged):
            return
        rest = set(_rank(ctxt, also_judged)[-missing:])
        self._forbidden -= rest
        self._spec.requested_destination.forbidden_aggregates = set(
            self._forbidden
        )
        self.room = needed
        for uuid in rest:
            policy, name = also_judged.pop(uuid)
            self._leave(ctxt, policy, {uuid: name})

    def _forbid(
        self,
        ctxt: typing.Any,
        resolved: verdict.Resolution,
        items: Sequence[Collection[typing.Any]],
    ) -> None:
        also_judged = request_state.of(self._spec).also_judged
        forbidden = frozenset(resolved.forbidden)
        chosen = forbidden - self._forbidden
        if len(chosen) > self.room:
            chosen = self._choose(ctxt, chosen, items)
        if chosen:
            _get_destination(self._spec).append_forbidden_aggregates(
                set(chosen)
            )
        LOG.debug(
            '%s: the request must stay out of %s. The placement query '
            'forbids %d of them',
            self._policy.request_filter,
            _Names(items, forbidden),
            len(chosen),
        )
        if not self.is_judged:
            for uuid in forbidden & also_judged.keys():
                del also_judged[uuid]
            return
        names = {uuid: name for uuid, name, *_ in items}
        for uuid in chosen:
            also_judged[uuid] = self._policy.name, names.get(uuid, uuid)
        rest = forbidden.union(resolved.covered) - chosen - self._forbidden
        self._leave(
            ctxt,
            self._policy.name,
            {uuid: names.get(uuid, uuid) for uuid in rest},
        )

    def _leave(
        self, ctxt: typing.Any, policy: str, names: Mapping[str, str]
    ) -> None:
        # The host filter judges by the scheduler's memory, which may not have
        # heard of them.
        if not names:
            return
        hosts = aggregates.get_hosts(ctxt)
        left = request_state.of(self._spec).left_out.setdefault(policy, {})
        for uuid, name in names.items():
            left.update(dict.fromkeys(hosts.get(uuid, ()), name))

    def _choose(
        self,
        ctxt: typing.Any,
        forbidden: frozenset[str],
        items: Sequence[Collection[typing.Any]],
    ) -> frozenset[str]:
        if self.is_judged:
            ranked = _rank(ctxt, forbidden)
            _warn_rest(ranked, self.room, self._policy.host_filter, items)
            return frozenset(ranked[: self.room])
        if self._host_filters_run:
            self._warn_unbounded('forbidden', len(forbidden))
        elif hosts := fields.get_field(self._spec, 'force_hosts'):
            # nova looks at the forced hosts alone.
            return forbidden & aggregates.get_uuids_by_hosts(ctxt, hosts)
        return forbidden

    def _warn_unbounded(self, kind: str, number: int) -> None:
        host_filter = self._policy.host_filter
        LOG_ONCE.warning(
            f'A placement query names '
            f'{messages.count(f"{kind} aggregate", number)}, although '
            f'max_forbidden_aggregates has room for {self.room} only, because '
            f'{host_filter} is not in [filter_scheduler] enabled_filters to '
            f'check the hosts of the rest. A web server in front of placement '
            f'may refuse the query, and the request then ends in NoValidHost. '
            f'Add {host_filter} to enabled_filters.',
            key=(host_filter, kind, 'unbounded'),
        )


def _rank(ctxt: typing.Any, uuids: Collection[str]) -> list[str]:
    # Those that keep most hosts out of placement's answer first.
    counts = _count_hosts(ctxt)
    return sorted(uuids, key=lambda uuid: (-counts[uuid], uuid))


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


def _warn_left_out(
    uuids: frozenset[str],
    host_filter: str,
    items: Sequence[Collection[typing.Any]],
) -> None:
    LOG_ONCE.warning(
        f'A request must land in one of {_Names(items, uuids)}. Its placement '
        f'query does not name them, because max_forbidden_aggregates has no '
        f'room for all. {host_filter} checks the hosts that placement '
        f'returns. If servers find no host, raise [scheduler] '
        f'max_placement_results.',
        key=(host_filter, hash(uuids)),
    )
