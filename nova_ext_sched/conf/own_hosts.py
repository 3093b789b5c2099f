# SPDX-License-Identifier: Apache-2.0

"""Options of the weigher of own hosts."""

from nova_ext_sched.conf import weighers

OPTS = [
    weighers.multiplier_opt(
        'OwnHostsWeigher',
        """
The weight of hosts that are closed to others, relative to other weighers.

``OwnHostsWeigher`` sends a request that may use isolated or reserved hosts, or
those of its project (nova's AggregateMultiTenancyIsolation), there before it
takes room that all may use. Requests that may use no such host are not
concerned.

With the default, it decides before nova's own weighers, whose multipliers add
up to 6.
""",
        values=' Negative: such hosts come last.',
        related="""
* ``[nova_ext_sched] enable_isolated_aggregate_filtering``
* ``[nova_ext_sched] placement_req_default_forbidden_member_prefix``
""",
    ),
]
