# SPDX-License-Identifier: Apache-2.0

"""Stage 1 of failure domains: count a group's members, forbid full domains."""

import typing

import nova.conf
from oslo_log import log as logging

from nova_ext_sched import exception
from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.policy import failure_domain
from nova_ext_sched.queries import failure_domain as asked
from nova_ext_sched.request_filters import base
from nova_ext_sched.request_filters import member_of

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

LOG_ONCE = log_once.LogOnce(__name__)
# About server groups, which members make, under the operator's option.
LOG_GROUPS = log_once.LogOnce(__name__, capacity=20)
# What hints alone ask for: a member wrote them, and nobody else corrects it.
LOG_HINTS = log_once.LogOnce(__name__, capacity=20)


@base.fail_closed(failure_domain.DECLARATION)
def failure_domains(ctxt: typing.Any, request_spec: typing.Any) -> bool:
    """Keep a server out of failure domains that are full for its group.

    :mod:`nova_ext_sched.policy.failure_domain` makes the decision, and
    :mod:`.group_members` finds the hosts of the members. The server of the
    request itself does not count.

    ===============================  =======================================
    request                          what happens
    ===============================  =======================================
    no group, or nothing is asked    nothing, without a query
    a hint in another form           no host
    server alone in its group        nothing, without a query
    no member has a host             nothing, after the selects
    members in domains below the     nothing
    limit
    members in full domains          the aggregates of the full domains are
                                     forbidden, in ``max_forbidden_aggregates``
                                     with those of other filters
    host forced at boot              the same; nova asks no host filter, so
                                     that a host in no domain is accepted and
                                     the request's own servers do not count
    the API database or a cell that  no host
    has members does not answer
    placement is slow or hangs       it waits
    placement is away for long, or   no host
    answers with an error
    (:mod:`.gets`)
    rebuild                          nova does not ask
    ===============================  =======================================

    Changes :mod:`.member_of`.

    :returns: False if the request asks for nothing
    :raises nova.exception.RequestFilterFailed: a hint cannot be read, or the
        members' hosts or the aggregates cannot be read
    """
    request_state.forget_group(request_spec)
    try:
        limit = asked.read_limit(request_spec)
    except exception.InvalidValue as exc:
        raise exception.RequestRefused(str(exc), by_member=True) from None
    if limit is None:
        return False

    spread, items = asked.count_members(ctxt, request_spec, limit)
    LOG.debug(
        'failure_domains: the limit of server group %s is %d in each failure '
        'domain. Its servers by domain: %s',
        spread.group,
        limit,
        spread,
    )
    query = member_of.Query(request_spec, failure_domain.DECLARATION)
    resolved = spread.resolve({item.uuid: item.value for item in items})
    query.write(ctxt, resolved, items)
    _warn(spread, request_spec.instance_group)
    return True


def _warn(spread: failure_domain.Spread, group: typing.Any) -> None:
    option = asked.read_option(group)
    policy = failure_domain.DECLARATION
    if policy.host_filter not in CONF.filter_scheduler.enabled_filters:
        # The declaration warns at start where an option asks for it.
        warn = LOG_ONCE.warning if option else LOG_HINTS.info
        warn(
            f'Requests ask to be spread over failure domains, but '
            f'{policy.host_filter} is not in [filter_scheduler] '
            f'enabled_filters: {policy.without_host_filter}. Add '
            f'{policy.host_filter} to enabled_filters.'
        )
    # A hint is for its own server; the option is for all of the group.
    if option and (over := spread.find_above(option)):
        # Nothing else checks a domain once nova-compute has the server.
        LOG_GROUPS.warning(
            f'Failure domains hold more servers of server group '
            f'{spread.group} than max_server_per_failure_domain ({option}) '
            f'allows: {messages.first_few(over)}. Find the servers with '
            f'nova-ext-sched audit and move them.',
            key=(spread.group, hash(tuple(over))),
        )
    if spread.without_domain:
        warn = LOG_GROUPS.warning if option else LOG_HINTS.info
        warn(
            f'Some servers of server group {spread.group} are on hosts '
            f'without a failure domain (no aggregate with the metadata key '
            f'{messages.clean(spread.key)}) and do not count: '
            f'{messages.first_few(spread.without_domain)}',
            key=(spread.group, hash(tuple(spread.without_domain))),
        )
