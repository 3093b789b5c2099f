# SPDX-License-Identifier: Apache-2.0

"""Options of the weigher of relative room."""

from nova_ext_sched.conf import weighers

OPTS = [
    weighers.multiplier_opt(
        'RelativeRoomWeigher',
        """
The weight of a host's free share relative to other weighers.

``RelativeRoomWeigher`` weighs each host by the free share, from 0 to 1, that
the request would leave of whatever is scarcest there: RAM, vCPUs, disk or
dedicated CPUs. nova's RAMWeigher counts megabytes, so that a host of 2 TB
fills alone until it has as much left as one of 512 GB.

With the default, a difference of 6 % of a host decides before nova's own
weighers, whose multipliers add up to 6.
""",
        default=100.0,
        values=""" Positive spreads servers, negative packs them onto as few
  hosts as possible.""",
        related="""
* ``[filter_scheduler] ram_weight_multiplier``, ``cpu_weight_multiplier`` and
  ``disk_weight_multiplier``: set them to 0 to let shares alone decide.
""",
    ),
]
