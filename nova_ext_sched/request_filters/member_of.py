# SPDX-License-Identifier: Apache-2.0

"""The aggregates that a placement query requires and forbids.

nova turns them into ``member_of=in:`` and ``member_of=!in:``. Placement's
query string is part of a request line, and every web server limits its length.
Above the limit placement is never reached, and every request ends in
NoValidHost. :mod:`.member_of_plan` decides what goes in; this module reads
what that needs, changes the request spec, and leaves the rest to the host
filters.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Sequence
from collections.abc import Set
import functools
import typing

from nova import objects
import nova.conf
from oslo_log import log as logging

from nova_ext_sched import exception
from nova_ext_sched import fields
from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import aggregates
from nova_ext_sched.queries import placement
from nova_ext_sched.request_filters import member_of_plan

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

LOG_ONCE = log_once.LogOnce(__name__)


class Query:
    """The placement query of a request, for one policy.

    :ivar room: how many entries it can still take. The aggregates that all
        filters, nova's too, require or forbid count as entries, and so do the
        traits of ``forbid_by_trait`` that the request spec forbids

    :param policy: the one that requires or forbids
    """

    def __init__(
        self, request_spec: typing.Any, policy: declaration.Policy
    ) -> None:
        options = CONF.nova_ext_sched
        self._spec = request_spec
        self._policy = policy
        state = request_state.of(request_spec)
        # A spec that is filtered again has nothing of before.
        state.left_out.pop(policy.name, None)
        self._also_judged = state.also_judged
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
        if not fields.host_filters_run(request_spec):
            self._judge = member_of_plan.Judge.FORCED
        elif policy.host_filter in CONF.filter_scheduler.enabled_filters:
            self._judge = member_of_plan.Judge.HOST_FILTER
        else:
            self._judge = member_of_plan.Judge.NOBODY

    @property
    def is_judged(self) -> bool:
        """Whether the policy's host filter judges the hosts let through."""
        return self._judge is member_of_plan.Judge.HOST_FILTER

    def write(
        self,
        ctxt: typing.Any,
        resolved: verdict.Resolution,
        items: Sequence[Collection[typing.Any]] = (),
    ) -> None:
        """Write the policy's aggregates into the query; once, at the end.

        :mod:`.member_of_plan` says what goes in. nova adds a ``member_of=in:``
        for each required set; one that is required already, by nova's
        availability zone filter for example, is not added again.

        What does not go in, for want of room or because a trait stands for
        it, is left to the host filter with its hosts, which are read from the
        API database: see :class:`request_state.LeftOut`.

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
        get_hosts = functools.cache(lambda: aggregates.get_hosts(ctxt))
        plan = member_of_plan.make(
            member_of_plan.Before(
                self._required,
                self._forbidden,
                frozenset(self._also_judged) & self._forbidden,
                self.room,
            ),
            resolved,
            self._judge,
            get_hosts,
            functools.cache(lambda: self._find_forced(ctxt)),
        )
        self._log(resolved, plan, items)
        self._change(plan, resolved)
        self._leave(plan, resolved, items, get_hosts)

    def _find_forced(self, ctxt: typing.Any) -> Set[str]:
        if hosts := fields.get_field(self._spec, 'force_hosts'):
            return aggregates.get_uuids_by_hosts(ctxt, hosts)
        nodes = fields.get_field(self._spec, 'force_nodes')
        return frozenset().union(
            *(placement.get_aggregates_of_node(ctxt, node) for node in nodes)
        )

    def _change(
        self, plan: member_of_plan.Plan, resolved: verdict.Resolution
    ) -> None:
        self._spec.root_forbidden.update(resolved.traits)
        if plan.removed:
            self._spec.requested_destination.forbidden_aggregates = set(
                self._forbidden - plan.removed
            )
        for part in plan.required:
            if part.chosen:
                _get_destination(self._spec).require_aggregates(
                    sorted(part.chosen)
                )
        if plan.forbidden:
            _get_destination(self._spec).append_forbidden_aggregates(
                set(plan.forbidden)
            )

    def _leave(
        self,
        plan: member_of_plan.Plan,
        resolved: verdict.Resolution,
        items: Sequence[Collection[typing.Any]],
        get_hosts: Callable[[], member_of_plan.Hosts],
    ) -> None:
        # To the host filters.
        own_policy = self._policy.name
        for uuid in plan.removed:
            policy, name = self._also_judged.pop(uuid)
            self._forbid_hosts(policy, name, get_hosts().get(uuid, ()))
        if not self.is_judged:
            for uuid in self._also_judged.keys() & set(resolved.forbidden):
                del self._also_judged[uuid]
            return
        names = {uuid: name for uuid, name, *_ in items}
        for uuid in plan.forbidden:
            self._also_judged[uuid] = own_policy, names.get(uuid, uuid)
        for uuid in plan.rest:
            hosts = get_hosts().get(uuid, ())
            self._forbid_hosts(own_policy, names.get(uuid, uuid), hosts)
        for part in plan.required:
            if part.chosen != part.whole:
                self._left_out(own_policy).required.append(
                    (
                        {
                            host
                            for uuid in part.whole
                            for host in get_hosts().get(uuid, ())
                        },
                        str(_Names(items, part.whole)),
                    )
                )

    def _forbid_hosts(
        self, policy: str, name: str, hosts: Collection[str]
    ) -> None:
        self._left_out(policy).forbidden.update(dict.fromkeys(hosts, name))

    def _left_out(self, policy: str) -> request_state.LeftOut:
        return request_state.of(self._spec).left_out.setdefault(
            policy, request_state.LeftOut()
        )

    def _log(
        self,
        resolved: verdict.Resolution,
        plan: member_of_plan.Plan,
        items: Sequence[Collection[typing.Any]],
    ) -> None:
        name = self._policy.request_filter
        for uuids in resolved.required:
            LOG.debug(
                '%s: the request must land in %s', name, _Names(items, uuids)
            )
        LOG.debug(
            '%s: the request must stay out of %s. The placement query '
            'forbids %d of them',
            name,
            _Names(items, resolved.forbidden),
            len(plan.forbidden),
        )
        for kind, number, room in plan.too_many:
            self._warn_unbounded(kind, number, room)
        if not self.is_judged:
            return
        for part in plan.required:
            if part.chosen != part.whole:
                _warn_left_out(part, self._policy.host_filter, items)
        rest = plan.rest.difference(resolved.covered)
        if rest:
            _warn_rest(
                rest, len(plan.forbidden), self._policy.host_filter, items
            )

    def _warn_unbounded(self, kind: str, number: int, room: int) -> None:
        host_filter = self._policy.host_filter
        LOG_ONCE.warning(
            f'A placement query names '
            f'{messages.count(f"{kind} aggregate", number)}, although '
            f'max_forbidden_aggregates has room for {room} only, because '
            f'{host_filter} is not in [filter_scheduler] enabled_filters to '
            'check the hosts of the rest. A web server in front of placement '
            'can refuse the query, and the request then ends in NoValidHost. '
            f'Add {host_filter} to enabled_filters.',
            key=(host_filter, kind, 'unbounded'),
        )


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
    rest: Set[str],
    named: int,
    host_filter: str,
    items: Sequence[Collection[typing.Any]],
) -> None:
    names = {uuid: name for uuid, name, *_ in items}
    others = sorted(names.get(uuid, uuid) for uuid in rest)
    LOG_ONCE.warning(
        f'A request must stay out of '
        f'{messages.count("aggregate", named + len(rest))}. Its placement '
        f'query names {named} of them, those with the most hosts (see '
        f'max_forbidden_aggregates). {host_filter} checks the hosts of the '
        f'other {len(rest)}: {messages.first_few(others)}. If they are '
        f'isolated aggregates, put their traits into forbid_by_trait to leave '
        f'room for others.',
        # A hash, because many UUIDs would be kept with the key.
        key=(host_filter, hash(frozenset(names))),
    )


def _warn_left_out(
    part: member_of_plan.Part,
    host_filter: str,
    items: Sequence[Collection[typing.Any]],
) -> None:
    if part.chosen:
        names = f'{len(part.chosen)} of them, those with the most hosts'
        effect = (
            'Servers get no host if the hosts of these are full, even if '
            'other hosts are empty. Put the hosts into fewer aggregates, or '
            'raise max_forbidden_aggregates together with the limit of the '
            'web server in front of placement.'
        )
    else:
        names = 'none of them'
        effect = (
            f'{host_filter} checks the hosts that placement returns. If '
            'servers cannot be placed, raise [scheduler] '
            'max_placement_results.'
        )
    LOG_ONCE.warning(
        f'A request must land in one of {_Names(items, part.whole)}. Its '
        f'placement query names {names}, because max_forbidden_aggregates '
        f'has no room for all. {effect}',
        key=(host_filter, hash(part.whole)),
    )
