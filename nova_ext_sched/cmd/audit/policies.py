# SPDX-License-Identifier: Apache-2.0

"""The policies that are on, judged by the scheduler's own host filters."""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import types

import nova.conf

from nova_ext_sched import exception
from nova_ext_sched import filters
from nova_ext_sched import messages
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.audit import servers
from nova_ext_sched.cmd.audit import totals
from nova_ext_sched.filters import base
from nova_ext_sched.queries import aggregates
from nova_ext_sched.queries import group_members

CONF = nova.conf.CONF


class Policies:
    """The policies that nova.conf turns on, whoever wrote them.

    One of its two filters is enough to keep a request out, so a policy is
    judged by its host filter even where that is not enabled.

    :param scheduler: its aggregates count, not those of the database
    :param names: the policies to judge by; empty for all that are on
    :ivar names: the names of the policies, in the scheduler's order
    :ivar on: all policies that are on, by their names
    :raises exception.InvalidValue: a name is not that of a policy that is on
    """

    def __init__(
        self,
        scheduler: nova_scheduler.ReadOnlyHostManager,
        names: Collection[str] = (),
    ) -> None:
        self._ctxt = nova_scheduler.context()
        aggregates.use(self._ctxt, scheduler.aggregates_copy)
        available = scheduler.filter_cls_map
        self.on = {
            policy.name: policy
            for policy in filters.declared_policies(
                cls
                for cls in available.values()
                if getattr(cls, 'policies', ())
            )
            if policy.host_filter in available and policy.is_on(CONF)
        }
        if off := sorted(set(names) - self.on.keys()):
            raise exception.InvalidValue(
                where='--policy',
                expected=f'a policy that is on ({", ".join(self.on) or "none"}'
                f'; --option judges as if another were)',
                got=', '.join(map(messages.clean, off)),
            )
        self.names = [name for name in self.on if not names or name in names]
        # Two policies may share a filter.
        self._filters = {
            name: scheduler.filter_obj_map.get(name) or available[name]()
            for name in dict.fromkeys(
                self.on[name].host_filter for name in self.names
            )
        }

    def judge(
        self,
        server: servers.Server,
        moved: Mapping[str, str] = types.MappingProxyType({}),
    ) -> Iterator[tuple[str, str]]:
        """Yield what the policies say against a server where it stands.

        :param moved: names of hosts, by the UUIDs of servers that count there
            and not where they are
        :returns: the name of each policy that refuses the host, or
            :data:`.totals.NOT_JUDGED` where nobody knows, and why
        """
        if server.fault:
            yield totals.NOT_JUDGED, server.fault
            return
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
                problem = messages.describe(exc)
                yield totals.NOT_JUDGED, f'{name} fails: {problem}'
                continue
            for policy, (passes, reason) in found:
                if policy.counts_group:
                    reason = f'not counting this server, {reason}'
                if not passes:
                    yield policy.name, reason
