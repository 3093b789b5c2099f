# SPDX-License-Identifier: Apache-2.0

"""Reads a request's limit and counts its group's members by domain."""

from collections.abc import Sequence
import typing

import nova.conf

from nova_ext_sched import fields
from nova_ext_sched import grouping
from nova_ext_sched import log_once
from nova_ext_sched import request_state
from nova_ext_sched.policy import anti_affinity
from nova_ext_sched.policy import failure_domain
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import aggregates
from nova_ext_sched.queries import group_members

CONF = nova.conf.CONF

LOG_ONCE = log_once.LogOnce(__name__)
# What is asked by a hint alone, which members write.
LOG_HINTS = log_once.LogOnce(__name__, capacity=20)


def count_members(
    ctxt: typing.Any, request_spec: typing.Any, limit: int
) -> tuple[failure_domain.Spread, Sequence[aggregates.HostValue]]:
    """Count the members of a request's group, and keep that for stage 2.

    :param limit: as :func:`read_limit` returns it
    :returns: the group, and what is known of the aggregates with the key
    """
    group = request_spec.instance_group
    key = CONF.nova_ext_sched.failure_domain_key
    server = fields.get_field(request_spec, 'instance_uuid')
    members = group_members.get_members(
        ctxt, group, group_members.get_living(group, server)
    )
    known = request_state.of(request_spec).group
    known.members = members
    most = group_members.MOST_UNCLAIMED
    if sum(None in places for places in members.places.values()) > most:
        warn = LOG_ONCE.warning if read_option(group) else LOG_HINTS.info
        warn(
            f'More than {most} servers of one server group wait for '
            f'nova-compute to claim them. Failure domains count the newest '
            f'{most}; the others count when they are claimed.'
        )
    hosts = members.hosts
    items = (
        aggregates.get_values(ctxt, key, frozenset().union(*hosts.values()))
        if hosts
        else []
    )
    values = grouping.by_key(
        (item.host, item.value) for item in items if item.host is not None
    )
    domains = {
        host: frozenset().union(*map(verdict.split_value, values[host]))
        for host in values
    }
    known.spread = failure_domain.Spread(
        fields.get_field(group, 'uuid') or 'n/a',
        limit,
        key,
        hosts,
        domains,
        read_option(group),
    )
    return known.spread, items


def read_limit(request_spec: typing.Any) -> int | None:
    """Return the request's limit of servers of its group in one domain.

    None and errors: as the function of the policy, and None without a group.
    """
    group = fields.get_field(request_spec, 'instance_group')
    if group is None:
        return None
    return failure_domain.read_limit(
        fields.get_field(request_spec, 'scheduler_hints'), read_option(group)
    )


def read_option(group: typing.Any) -> int:
    """Return the operator's limit for a server group, 0 for none."""
    if fields.group_policy(group) != anti_affinity.POLICY:
        return 0
    return CONF.nova_ext_sched.max_server_per_failure_domain
