# SPDX-License-Identifier: Apache-2.0

"""Finds requests of server groups whose members take hosts in turn."""

import math
import typing

from nova_ext_sched import exception
from nova_ext_sched import fields
from nova_ext_sched.policy import anti_affinity
from nova_ext_sched.queries import failure_domain


class Turns(typing.NamedTuple):
    """The limits of a group: members on one host, and in one failure domain.

    :ivar rule: of a host; infinite where nothing refuses one
    :ivar limit: of a failure domain; None if the request has no limit
    """

    rule: float
    limit: int | None


def find(spec_obj: typing.Any) -> Turns | None:
    """Return the limits of a request whose servers take hosts in turn.

    =====================================  ==================================
    request                                in turn
    =====================================  ==================================
    no server group                        no
    policy ``anti-affinity`` or            yes
    ``soft-anti-affinity``
    a limit for failure domains, with any  yes
    policy
    another policy                         no
    members or a limit that cannot be      no: the filters refuse every host
    read
    =====================================  ==================================

    :param spec_obj: nova's RequestSpec
    :returns: None for any other request
    """
    group = fields.get_field(spec_obj, 'instance_group')
    if not group or fields.get_field(group, 'members') is None:
        return None
    try:
        limit = failure_domain.read_limit(spec_obj)
    except exception.InvalidValue:
        return None
    policy = fields.group_policy(group)
    if limit is None and policy not in anti_affinity.APART:
        return None
    # Other policies refuse no host, however many members it has.
    rule = _read_rule(group) if policy == anti_affinity.POLICY else math.inf
    return Turns(rule, limit)


def _read_rule(group: typing.Any) -> int:
    try:
        rules = fields.get_field(group, '_rules')
        return anti_affinity.read_limit(rules or {})
    except exception.InvalidValue:
        # ServerGroupAntiAffinityFilter refuses every host.
        return 1
