# SPDX-License-Identifier: Apache-2.0

"""Anti-affinity with rules, in place of nova's filter of the same name."""

import typing

from oslo_log import log as logging

from nova_ext_sched import faults
from nova_ext_sched import messages
from nova_ext_sched.filters import base
from nova_ext_sched.policy import anti_affinity
from nova_ext_sched.policy import verdict

LOG = logging.getLogger(__name__)

_faults = faults.FaultLog(LOG)


class ServerGroupAntiAffinityFilter(base.PolicyFilter):
    """Refuse hosts that hold as many of the server group as its rules allow.

    The decision is :class:`nova_ext_sched.policy.anti_affinity.Group`'s. The
    answers are those of nova's filter of this name, which this one replaces;
    where nova's would raise (a limit in an old database row that is no
    number) every host but the instance's own is rejected, with one warning.

    The name is nova's because nova-conductor refuses anti-affinity groups
    unless a filter of this name is enabled. nova-scheduler takes the class
    that stands later in ``available_filters``.
    """

    # nova skips its own on rebuild too: the server stays where it is. It runs
    # for every instance of a request: the scheduler adds each instance that
    # it places to the host's instances before it asks about the next.
    RUN_ON_REBUILD = False

    def judge(self, spec_obj: typing.Any) -> base.Judge | None:
        """See :meth:`base.PolicyFilter.judge`."""
        group = _get(spec_obj, 'instance_group')
        if not group:
            return None
        if 'policy' in group:
            if group.policy != anti_affinity.POLICY:
                return None
        else:
            _faults.warn(
                f'Server group {messages.quote(_get(group, "uuid"))} comes '
                f'without its policy: ServerGroupAntiAffinityFilter takes it '
                f'for {anti_affinity.POLICY}.'
            )
        return _GroupJudge(group, _get(spec_obj, 'instance_uuid'))

    def sift(
        self, hosts: list[typing.Any], judge: typing.Any
    ) -> tuple[list[typing.Any], list[typing.Any]]:
        """See :meth:`base.PolicyFilter.sift`."""
        # Most hosts hold no member, and a call of Python code for each of
        # them would cost more than finding that out.
        passed: list[typing.Any] = []
        rejected: list[typing.Any] = []
        start = 0
        for index in judge.group.suspects([host.instances for host in hosts]):
            if not judge(hosts[index]).passes:
                passed += hosts[start:index]
                rejected.append(hosts[index])
                start = index + 1
        return passed + hosts[start:], rejected


class _GroupJudge:
    def __init__(self, group: typing.Any, instance_uuid: str | None) -> None:
        self._instance_uuid = instance_uuid
        # nova's property ``rules`` drops rules that it does not know and
        # raises on values that are no number: the field itself does neither.
        self.group = anti_affinity.Group(
            _get(group, 'uuid'),
            _get(group, 'members'),
            _get(group, '_rules') or {},
        )
        if self.group.fault:
            _faults.warn(
                f'ServerGroupAntiAffinityFilter rejects every host for '
                f'server group {self.group.uuid}: {self.group.fault}'
            )

    def __call__(self, host_state: typing.Any) -> verdict.Verdict:
        return self.group.judge(host_state.instances, self._instance_uuid)


def _get(obj: typing.Any, field: str) -> typing.Any:
    # Reading a field that is not set raises.
    return getattr(obj, field) if field in obj else None
