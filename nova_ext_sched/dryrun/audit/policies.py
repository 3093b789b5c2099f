# SPDX-License-Identifier: Apache-2.0

"""Judges servers by the enabled policies, with their own host filters."""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
from collections.abc import Set
import contextlib
import dataclasses
import functools
import typing

import nova.conf
from nova.scheduler.filters import affinity_filter

from nova_ext_sched import exception
from nova_ext_sched import filters
from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.dryrun.cloud import holding
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.filters import anti_affinity
from nova_ext_sched.filters import base
from nova_ext_sched.policy import failover

CONF = nova.conf.CONF

#: Stands for the policy of a server that could not be checked.
NOT_JUDGED = 'not-judged'

#: Follows the name of a policy where only the scheduler hint of a server asks
#: for what it violates: a member of a project can make such findings.
BY_HINT = '-by-hint'

#: Follows the name of a policy of a server that did no wrong, and is to leave.
TO_LEAVE = '-to-leave'

#: What judges in place of a filter of nova's: by the same rule, with a reason.
_WITH_REASON = {
    affinity_filter.ServerGroupAntiAffinityFilter: (
        anti_affinity.ServerGroupAntiAffinityFilter
    )
}


@dataclasses.dataclass(eq=False)
class Standing:
    """A server, its host, and the policies that it violates there.

    ``host_state`` is a nova HostState with the host's aggregates and with its
    instances but this one, as if the server were to be placed there now.
    ``request_spec`` is what the scheduler would be asked for its move; where
    that is unknown it is None, and ``fault`` says why and what to do.
    ``violated`` is what the policies say against its host, once they are
    asked: names and reasons.
    """

    uuid: str
    name: str
    project_id: str
    host_state: typing.Any
    request_spec: typing.Any
    fault: str = ''
    violated: Sequence[tuple[str, str]] = ()

    @property
    def host(self) -> str:
        """The name of its host."""
        return str(self.host_state.host)

    @property
    def policies(self) -> list[str]:
        """The policies that it violates."""
        return [name for name, _ in self.violated if name != NOT_JUDGED]


class Policies:
    """The policies that nova.conf enables, third-party ones included.

    One of its two filters is enough to keep a request out, so a policy is
    judged by its host filter even where that is not enabled. So is nova's own
    anti-affinity, where nova.conf has no line of this package.

    :param cloud: its aggregates count, not those of the database
    :param names: the policies to judge by; empty for all that are on
    :ivar names: the names of the policies, in the scheduler's order
    :ivar on: all policies that are on, by their names
    :raises exception.UnknownName: no enabled policy has a name
    """

    def __init__(
        self,
        cloud: snapshot.Snapshot,
        names: Collection[str] = (),
    ) -> None:
        self._ctxt = process.context()
        self._cloud = cloud
        available = {
            name: _WITH_REASON.get(cls, cls)
            for name, cls in cloud.filter_cls_map.items()
        }
        self.on = {
            policy.name: policy
            for policy in filters.declared_policies(
                cls
                for cls in available.values()
                if getattr(cls, 'policies', ())
            )
            if policy.host_filter in available and policy.is_on(CONF)
        }
        # An alert names what a metric has.
        names = {name.removesuffix(TO_LEAVE) for name in names}
        if off := sorted(names - self.on.keys()):
            raise exception.UnknownName(
                'enabled policy',
                off[0],
                self.on,
                place=f' (enabled: {", ".join(self.on) or "none"}; --option '
                'judges as if another were)',
            )
        self.names = [name for name in self.on if not names or name in names]
        enabled = {type(one): one for one in cloud.filter_obj_map.values()}
        # Two policies may share a filter.
        self._filters = {
            name: enabled.get(available[name]) or available[name]()
            for name in dict.fromkeys(
                self.on[name].host_filter for name in self.names
            )
        }

    def judge(self, server: Standing) -> Iterator[tuple[str, str]]:
        """Yield the violations of a server on its host.

        In a fork, members of its group count where they are then.

        :returns: the name of each policy that refuses the host, with
            :data:`BY_HINT` where only a hint asks for that, or
            :data:`TO_LEAVE`; :data:`NOT_JUDGED` where nobody knows; and why
        """
        if server.fault:
            yield NOT_JUDGED, server.fault
            return
        spec_obj = server.request_spec
        for name, host_filter in self._filters.items():
            try:
                if isinstance(host_filter, base.PolicyFilter):
                    with self._read_aggregates():
                        host_filter.prepare(self._ctxt, spec_obj)
                decisions = [
                    (policy, judge(server.host_state))
                    for policy, judge in base.decisions_of(
                        host_filter, spec_obj
                    )
                    if policy.name in self.names
                ]
            except Exception as exc:
                # To say nothing would mean that all is well.
                problem = messages.say_error(exc)
                yield NOT_JUDGED, f'{name} fails: {problem}'
                continue
            for policy, answer in decisions:
                name = policy.name + (
                    (BY_HINT if answer.by_hint else '')
                    or (TO_LEAVE if answer.is_leaving else '')
                )
                reason = answer.reason
                if policy.counts_group:
                    reason = f'not counting this server, {reason}'
                if not answer.passes:
                    yield name, reason

    def _read_aggregates(self) -> contextlib.AbstractContextManager[None]:
        if self._cloud.open_fork:
            # A fork that is open lets aggregates be read already.
            return contextlib.nullcontext()
        return change.used(self._cloud.aggregates_copy, {})

    def counts_group(self, name: str) -> bool:
        """Return whether only the servers beside one decide.

        :param name: of a policy, as :meth:`judge` yields it
        """
        name = name.removesuffix(BY_HINT).removesuffix(TO_LEAVE)
        return self.on[name].counts_group

    @functools.cached_property
    def held(self) -> Set[str]:
        """The names of the hosts that are kept for failures."""
        if failover.DECLARATION.name not in self.on:
            return frozenset()
        return holding.find_marked(self._cloud)
