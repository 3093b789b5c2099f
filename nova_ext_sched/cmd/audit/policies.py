# SPDX-License-Identifier: Apache-2.0

"""The policies that are on, judged by the scheduler's own host filters."""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import types
import typing

import nova.conf

from nova_ext_sched import exception
from nova_ext_sched import filters
from nova_ext_sched import messages
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.audit import servers
from nova_ext_sched.filters import base
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import aggregates
from nova_ext_sched.queries import group_members

CONF = nova.conf.CONF


class Policies:
    """The policies that nova.conf turns on, whoever wrote them.

    One of its two filters is enough to keep a request out, so a policy is
    judged by its host filter even where that is not enabled.

    :param ctxt: a nova RequestContext of an administrator
    :param scheduler: its aggregates count, not those of the database
    :param names: the policies to judge by; empty for all that are on
    :ivar names: the names of the policies, in the scheduler's order
    :ivar on: those of all policies that are on
    :ivar counting: those of ``names`` that look at the server group's members
    :raises exception.InvalidValue: a name is not that of a policy that is on
    """

    def __init__(
        self,
        ctxt: typing.Any,
        scheduler: nova_scheduler.ReadOnlyHostManager,
        names: Collection[str] = (),
    ) -> None:
        self._ctxt = ctxt
        aggregates.use(ctxt, scheduler.aggregates_copy)
        found = {policy.name: policy for policy in _find(scheduler)}
        if off := sorted(set(names) - found.keys()):
            raise exception.InvalidValue(
                where='--policy',
                expected=f'a policy that is on ({", ".join(found) or "none"};'
                f' --option judges as if another were)',
                got=', '.join(map(messages.clean, off)),
            )
        self.names = [name for name in found if not names or name in names]
        self.on = frozenset(found)
        self.counting = {
            name for name in self.names if found[name].counts_group
        }
        # Two policies may share a filter.
        self._filters = dict.fromkeys(
            found[name].host_filter for name in self.names
        )
        for name in self._filters:
            self._filters[name] = (
                scheduler.filter_obj_map.get(name)
                or scheduler.filter_cls_map[name]()
            )

    def judge(
        self,
        server: servers.Server,
        moved: Mapping[str, str] = types.MappingProxyType({}),
    ) -> Iterator[tuple[str, verdict.Verdict | Exception]]:
        """Yield what the policies say of a server where it stands.

        :param server: one whose ``request_spec`` is known
        :param moved: names of hosts, by the UUIDs of servers that count there
            and not where they are
        :returns: the name of each policy that applies to it, or of a filter
            that fails, and its verdict or the fault
        """
        spec_obj = server.request_spec
        group_members.use(self._ctxt, moved)
        for name, host_filter in self._filters.items():
            try:
                if isinstance(host_filter, base.PolicyFilter):
                    host_filter.prepare(self._ctxt, spec_obj)
                found = [
                    (policy, judge(server.host_state))
                    for policy, judge in base.judges_of(host_filter, spec_obj)
                    if policy.name in self.names
                ]
            except Exception as exc:
                # Silence would say that all is well.
                yield name, exc
                continue
            for policy, (passes, reason) in found:
                if policy.counts_group:
                    reason = f'not counting this server, {reason}'
                yield policy.name, verdict.Verdict(passes, reason)


def _find(
    scheduler: nova_scheduler.ReadOnlyHostManager,
) -> Iterator[declaration.Policy]:
    declaring = [
        cls
        for cls in scheduler.filter_cls_map.values()
        if getattr(cls, 'policies', ())
    ]
    for policy in filters.declared_policies(declaring):
        if policy.host_filter in scheduler.filter_cls_map and policy.is_on(
            CONF
        ):
            yield policy
