# SPDX-License-Identifier: Apache-2.0

"""Anti-affinity with rules, in place of nova's filter of the same name."""

import typing

from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched.filters import base
from nova_ext_sched.policy import anti_affinity
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import fields

LOG_ONCE = log_once.LogOnce(__name__)


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

    policies = (anti_affinity.DECLARATION,)

    def judge(self, spec_obj: typing.Any) -> base.Judge | None:
        group = fields.get_field(spec_obj, 'instance_group')
        if not group or fields.group_policy(group) != anti_affinity.POLICY:
            return None
        if 'policy' not in group:
            LOG_ONCE.warning(
                f'The request has no policy for server group '
                f'{messages.clean(fields.get_field(group, "uuid"))}: '
                f'ServerGroupAntiAffinityFilter treats it as '
                f'{anti_affinity.POLICY}.'
            )
        return _GroupJudge(spec_obj, group)

    def judge_all(
        self, hosts: list[typing.Any], judge: typing.Any
    ) -> tuple[list[typing.Any], list[typing.Any]]:
        # Most hosts hold no member, and a call of Python code for each of
        # them would cost more than finding that out.
        suspects = judge.group.suspects([host.instances for host in hosts])
        passed: list[typing.Any] = []
        rejected: list[typing.Any] = []
        start = 0
        for index in suspects:
            if not judge(hosts[index]).passes:
                passed += hosts[start:index]
                rejected.append(hosts[index])
                start = index + 1
        passed += hosts[start:]
        return passed, rejected


class _GroupJudge:
    def __init__(self, spec_obj: typing.Any, group: typing.Any) -> None:
        self._instance_uuid = fields.get_field(spec_obj, 'instance_uuid')
        # nova's property ``rules`` drops rules that it does not know and
        # raises on values that are no number: the field itself does neither.
        self.group = anti_affinity.Group(
            fields.get_field(group, 'uuid'),
            fields.get_field(group, 'members'),
            fields.get_field(group, '_rules') or {},
        )
        if self.group.fault:
            LOG_ONCE.warning(
                f'ServerGroupAntiAffinityFilter rejects every host for '
                f'server group {self.group.uuid}: {self.group.fault}'
            )

    def __call__(self, host_state: typing.Any) -> verdict.Verdict:
        return self.group.judge(host_state.instances, self._instance_uuid)
