# SPDX-License-Identifier: Apache-2.0

"""Options of preferred and avoided aggregates."""

from oslo_config import cfg

from nova_ext_sched.conf import failure_domain
from nova_ext_sched.conf import weighers

OPTS = [
    cfg.Opt(
        'preference_key',
        type=failure_domain.MetadataKey(),
        default='preference',
        help="""
The metadata key of aggregates that says how much their hosts are preferred.

Its value is a number. Hosts with a positive one come first, hosts with a
negative one last. The numbers of all aggregates of a host add up. With
``_flavors`` or ``_projects`` appended to the key, a list of flavors (names or
IDs) or of projects (IDs) says for whom the number counts; without, it counts
for all requests. A flavor alone, or a project alone: give one list. Both lists
together: those flavors of those projects.

Possible values:

* A metadata key, exactly as it is written in the aggregates.

Related options:

* ``[nova_ext_sched] weighers`` must have ``PreferredAggregatesWeigher``.
""",
    ),
    weighers.multiplier_opt(
        'PreferredAggregatesWeigher',
        """
The weight of an aggregate's preference of 1 relative to other weighers.

With the default, a difference of 1 decides before nova's own weighers, whose
multipliers add up to 6, and counts as much as one of ``OwnHostsWeigher`` or
``SpecialHostsWeigher``.
""",
        related="""
* ``[nova_ext_sched] preference_key``
""",
    ),
]
