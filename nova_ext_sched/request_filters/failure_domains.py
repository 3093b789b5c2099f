# SPDX-License-Identifier: Apache-2.0

"""Stage 1 of failure domains: count a group's members, forbid full domains."""

import collections
import typing

import nova.conf
from oslo_log import log as logging

from nova_ext_sched import exception
from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.policy import anti_affinity
from nova_ext_sched.policy import failure_domains as policy
from nova_ext_sched.queries import aggregates
from nova_ext_sched.queries import fields
from nova_ext_sched.queries import group_members
from nova_ext_sched.request_filters import base
from nova_ext_sched.request_filters import member_of

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

HOST_FILTER = 'FailureDomainFilter'

LOG_ONCE = log_once.LogOnce(__name__)


@base.fail_closed
def failure_domains(ctxt: typing.Any, request_spec: typing.Any) -> bool:
    """Keep a server out of failure domains that are full for its group.

    :mod:`nova_ext_sched.policy.failure_domains` makes the decision, and
    :mod:`.group_members` finds the hosts of the members. The server of the
    request itself does not count.

    ===============================  =======================================
    request                          what happens
    ===============================  =======================================
    no group, or nothing is asked    nothing, without a query
    a hint in another form           no host
    server alone in its group        nothing, without a query
    no member has a host             nothing, after two selects a cell
    members in domains below the     nothing
    limit
    members in full domains          the aggregates of the full domains are
                                     forbidden, in ``max_forbidden_aggregates``
                                     with those of other filters
    host forced at boot              the same; nova asks no host filter, so
                                     that a host in no domain is accepted and
                                     the request's own servers do not count
    a cell, the API database or      no host
    placement does not answer
    rebuild                          nova does not ask
    ===============================  =======================================

    Changes :mod:`.member_of`.

    :returns: False if the request asks for nothing
    :raises nova.exception.RequestFilterFailed: a hint cannot be read, or the
        members' hosts or the aggregates cannot be read
    """
    request_state.forget(request_spec)
    try:
        limit = read_limit(request_spec)
    except exception.InvalidValue as exc:
        raise exception.RequestRefused(str(exc)) from None
    if limit is None:
        return False

    group = request_spec.instance_group
    key = CONF.nova_ext_sched.failure_domain_key
    hosts = group_members.get_hosts(
        ctxt,
        set(group.members) - {fields.get_field(request_spec, 'instance_uuid')},
    )
    items = (
        aggregates.get_values(ctxt, key, frozenset().union(*hosts.values()))
        if hosts
        else []
    )
    by_host: dict[str, list[policy.Metadata]] = collections.defaultdict(list)
    for item in items:
        if item.host is not None:
            by_host[item.host].append({key: item.value})
    count = policy.count_members(hosts, by_host, key)
    spread = policy.Spread(
        fields.get_field(group, 'uuid') or 'n/a', limit, key, count
    )
    request_state.spreads[request_spec] = spread

    full = {
        item.uuid
        for item in items
        if spread.find_full(policy.split_value(item.value))
    }
    uuids = member_of.forbid(ctxt, request_spec, full, HOST_FILTER, items)
    _warn(spread, count, fields.group_policy(group) == anti_affinity.POLICY)
    LOG.debug(
        'failure_domains: the limit of server group %(group)s is %(limit)d '
        'in each failure domain. Its servers by domain: %(held)s. Aggregates '
        'of full domains: %(full)d, in the placement query: %(uuids)d',
        {
            'limit': limit,
            'group': spread.group,
            'held': spread,
            'full': len(full),
            'uuids': len(uuids),
        },
    )
    return True


def read_limit(request_spec: typing.Any) -> int | None:
    """Return how many servers of its group a request allows in one domain.

    Both stages call this. None and errors: as the function of the policy, and
    None without a group.
    """
    group = fields.get_field(request_spec, 'instance_group')
    if group is None:
        return None
    return policy.read_limit(
        fields.get_field(request_spec, 'scheduler_hints'),
        fields.group_policy(group),
        CONF.nova_ext_sched.max_server_per_failure_domain,
    )


def _warn(
    spread: policy.Spread, count: policy.Count, is_anti_affinity: bool
) -> None:
    if HOST_FILTER not in CONF.filter_scheduler.enabled_filters:
        LOG_ONCE.warning(
            f'Requests ask to be spread over failure domains, but '
            f'{HOST_FILTER} is not in [filter_scheduler] enabled_filters: '
            f'hosts in no domain are accepted, and several servers of one '
            f'request may land in one domain. Add {HOST_FILTER} to '
            f'enabled_filters.'
        )
    option = CONF.nova_ext_sched.max_server_per_failure_domain
    # A hint is for its own server; the option is for all of the group.
    if option and is_anti_affinity and (over := spread.find_above(option)):
        # Nothing else checks a domain once nova-compute has the server.
        LOG_ONCE.warning(
            f'Failure domains hold more servers of server group '
            f'{spread.group} than max_server_per_failure_domain ({option}) '
            f'allows: {messages.first_few(over)}. Find the servers with '
            f'nova-ext-sched audit and move them.',
            key=(spread.group, hash(tuple(over))),
        )
    if count.without_domain:
        LOG_ONCE.warning(
            f'Some servers of server group {spread.group} are on hosts '
            f'without a failure domain (no aggregate with the metadata key '
            f'{messages.clean(spread.key)}) and do not count: '
            f'{messages.first_few(count.without_domain)}',
            key=(spread.group, hash(tuple(count.without_domain))),
        )
