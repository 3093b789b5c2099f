# SPDX-License-Identifier: Apache-2.0

"""Anti-affinity with rules, in place of nova's filter of the same name."""

from collections.abc import Collection
import typing
import weakref

import nova.conf

from nova_ext_sched import claims
from nova_ext_sched import faults
from nova_ext_sched import messages
from nova_ext_sched.filters import base
from nova_ext_sched.policy import anti_affinity
from nova_ext_sched.policy import slots
from nova_ext_sched.policy import verdict
from nova_ext_sched.request_filters import base as request_filters

CONF = nova.conf.CONF

_faults = faults.FaultLog(__name__)

# What is under way, found once for each request.
_claims: weakref.WeakKeyDictionary[typing.Any, claims.Claims] = (
    weakref.WeakKeyDictionary()
)


class ServerGroupAntiAffinityFilter(base.PolicyFilter):
    """Reject hosts that hold as many of the group's servers as allowed.

    This filter replaces nova's filter of the same name and gives the same
    answers. :class:`nova_ext_sched.policy.anti_affinity.Group` makes the
    decision. Nova's filter raises if the limit in an old database row is not
    a number; this one rejects every host but the instance's own, with one
    warning.

    It has nova's name because nova-conductor refuses anti-affinity groups
    unless a filter of this name is enabled. nova-scheduler takes the class
    that comes later in ``available_filters``.
    """

    # nova skips its own on rebuild too: the server stays where it is. It runs
    # for every instance of a request: the scheduler adds each instance that
    # it places to the host's instances before it asks about the next.
    RUN_ON_REBUILD = False

    def judge(self, spec_obj: typing.Any) -> base.Judge | None:
        group = request_filters.get_field(spec_obj, 'instance_group')
        if not group:
            return None
        if 'policy' in group:
            if group.policy != anti_affinity.POLICY:
                return None
        else:
            _faults.warn(
                f'The request has no policy for server group '
                f'{messages.quote(request_filters.get_field(group, "uuid"))}: '
                f'ServerGroupAntiAffinityFilter treats it as '
                f'{anti_affinity.POLICY}.'
            )
        return _GroupJudge(spec_obj, group)

    def sift(
        self, hosts: list[typing.Any], judge: typing.Any
    ) -> tuple[list[typing.Any], list[typing.Any]]:
        # Most hosts hold no member, and a call of Python code for each of
        # them would cost more than finding that out.
        suspects = judge.group.suspects([host.instances for host in hosts])
        claimed = judge.find_claims([hosts[index] for index in suspects])
        if claimed:
            suspects = sorted(
                set(suspects).union(
                    index
                    for index, host in enumerate(hosts)
                    if host.uuid in claimed
                )
            )
        passed: list[typing.Any] = []
        rejected: list[typing.Any] = []
        start = 0
        for index in suspects:
            if not judge(hosts[index]).passes:
                passed += hosts[start:index]
                rejected.append(hosts[index])
                start = index + 1
        passed += hosts[start:]
        return judge.share(passed), rejected


class _GroupJudge:
    def __init__(self, spec_obj: typing.Any, group: typing.Any) -> None:
        self._spec = spec_obj
        self._instance_uuid = request_filters.get_field(
            spec_obj, 'instance_uuid'
        )
        self._claims = _claims.get(spec_obj, claims.NONE)
        # nova's property ``rules`` drops rules that it does not know and
        # raises on values that are no number: the field itself does neither.
        self.group = anti_affinity.Group(
            request_filters.get_field(group, 'uuid'),
            request_filters.get_field(group, 'members'),
            request_filters.get_field(group, '_rules') or {},
        )
        if self.group.fault:
            _faults.warn(
                f'ServerGroupAntiAffinityFilter rejects every host for '
                f'server group {self.group.uuid}: {self.group.fault}'
            )

    def __call__(self, host_state: typing.Any) -> verdict.Verdict:
        return self.group.judge(
            self._get_instances(host_state), self._instance_uuid
        )

    def _get_instances(self, host_state: typing.Any) -> Collection[str]:
        claimed = self._claims.by_provider.get(host_state.uuid)
        if claimed:
            return claimed.union(host_state.instances)
        return host_state.instances

    def find_claims(self, hosts: list[typing.Any]) -> Collection[str]:
        """Find the members that are under way, once for each request.

        :param hosts: the nova HostStates that hold members
        :returns: UUIDs of the resource providers that are claimed
        """
        if self._spec not in _claims:
            unseen = (self.group.members - {self._instance_uuid}).difference(
                *(host.instances for host in hosts)
            )
            # The later picks of this request are in the host states.
            self._claims = claims.find(unseen) if unseen else claims.NONE
            _claims[self._spec] = self._claims
        return self._claims.by_provider.keys()

    def share(self, hosts: list[typing.Any]) -> list[typing.Any]:
        """Leave some hosts to other members that wait for a host right now.

        Only if nova weighs exactly these hosts: a later filter might reject
        the few that are left. Only for a request of one server: the next
        server of the request gets what this one leaves.

        :param hosts: nova HostStates that pass
        """
        waiting = self._claims.waiting
        if (
            not waiting
            or not hosts
            or request_filters.get_field(self._spec, 'num_instances') != 1
            or not _is_last()
        ):
            return hosts
        free_slots = {
            host.uuid: self.group.count_free_slots(self._get_instances(host))
            for host in hosts
        }
        mine = slots.share(
            {uuid: count for uuid, count in free_slots.items() if count},
            waiting,
            self._instance_uuid,
        )
        return [host for host in hosts if host.uuid in mine] or hosts


def _is_last() -> bool:
    names = CONF.filter_scheduler.enabled_filters
    index = names.index('ServerGroupAntiAffinityFilter')
    # nova's filter for the policy affinity has no say for this one.
    return set(names[index + 1 :]) <= {'ServerGroupAffinityFilter'}
