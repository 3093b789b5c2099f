# SPDX-License-Identifier: Apache-2.0

"""Which policy a constraint of nova-scheduler belongs to.

The filters of both stages say it themselves (``policies``). Of nova's own the
declarations stand here.
"""

from collections.abc import Iterable
import itertools
import typing

from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.filters import base
from nova_ext_sched.policy import declaration

AVAILABILITY_ZONE = declaration.Policy(
    name='availability zone',
    refuses='are not in the availability zone',
    request_filter='map_az_to_placement_aggregate',
)
DISABLED = declaration.Policy(
    name='disabled service',
    refuses='are disabled',
    request_filter='compute_status_filter',
    host_filter='ComputeFilter',
)
TENANT = declaration.Policy(
    name='tenant isolation',
    refuses='are for other projects',
    request_filter='require_tenant_aggregate',
    host_filter='AggregateMultiTenancyIsolation',
)
# No filter of nova's: HostManager itself, and in_tree of the query.
REQUESTED_HOST = declaration.Policy(
    name=funnel.REQUESTED_HOST, refuses='are not the requested host'
)
CELL = declaration.Policy(
    name='requested cell', refuses='are not in the requested cell'
)
DOWN = declaration.Policy(name='service that is down', refuses='are down')

#: nova's own policies of two stages.
NOVA = (AVAILABILITY_ZONE, DISABLED, TENANT)

#: All that nova has besides its host filters.
ALL_NOVA = (*NOVA, REQUESTED_HOST, CELL, DOWN)


def of_request_filter(
    request_filter: typing.Any, classes: Iterable[type]
) -> declaration.Policy | None:
    """Return the policy of a request filter, whoever wrote it.

    nova's own filter of a name is the same policy as ours.

    :param classes: the host filters that nova.conf makes available, enabled
        or not
    :returns: None where nothing declares it
    """
    for policy in getattr(request_filter, 'policies', ()):
        return policy
    declared = itertools.chain(NOVA, *map(base.policies_of, classes))
    by_name = {policy.request_filter: policy for policy in declared}
    return by_name.get(request_filter.__name__)


def of_host_filter(host_filter: typing.Any) -> declaration.Policy:
    """Return the first policy of a host filter, whoever wrote it."""
    name = type(host_filter).__name__
    of_nova = (policy for policy in NOVA if policy.host_filter == name)
    return next(of_nova, base.policies_of(host_filter)[0])
