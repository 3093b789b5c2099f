# SPDX-License-Identifier: Apache-2.0

"""Anti-affinity with rules, in place of nova's filter of the same name."""

from collections.abc import Iterator
import typing

from nova_ext_sched import fields
from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched.filters import base
from nova_ext_sched.policy import anti_affinity
from nova_ext_sched.policy import verdict

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

    def decisions(self, spec_obj: typing.Any) -> Iterator[base.Decision]:
        instance_group = fields.get_field(spec_obj, 'instance_group')
        if (
            not instance_group
            or fields.group_policy(instance_group) != anti_affinity.POLICY
        ):
            return
        if 'policy' not in instance_group:
            LOG_ONCE.warning(
                f'The request has no policy for server group '
                f'{messages.clean(fields.get_field(instance_group, "uuid"))}: '
                f'ServerGroupAntiAffinityFilter treats it as '
                f'{anti_affinity.POLICY}.',
                key='policy',
            )
        group = anti_affinity.Group(
            fields.get_field(instance_group, 'uuid'),
            fields.get_field(instance_group, 'members'),
            # nova's property ``rules`` drops rules that it does not know and
            # raises on values that are no number: the field does neither.
            fields.get_field(instance_group, '_rules') or {},
        )
        if group.fault:
            LOG_ONCE.warning(
                f'ServerGroupAntiAffinityFilter rejects every host for '
                f'server group {group.uuid}: {group.fault}'
            )
        server = fields.get_field(spec_obj, 'instance_uuid')
        holds_none = group.members.isdisjoint

        def judge(host_state: typing.Any) -> verdict.Verdict:
            instances = host_state.instances
            # As most of thousands of hosts do: the call takes a while.
            if holds_none(instances) and not group.fault:
                return verdict.PASS
            return group.judge(instances, server)

        yield anti_affinity.DECLARATION, judge
