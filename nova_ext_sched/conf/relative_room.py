# SPDX-License-Identifier: Apache-2.0

"""Options of the weigher of relative room."""

from oslo_config import cfg

from nova_ext_sched.conf import weighers

OPTS = [
    cfg.Opt(
        'relative_room_weight_multiplier',
        type=weighers.Multiplier(),
        default=100.0,
        help="""
The weight of a host's free share relative to other weighers.

``RelativeRoomWeigher`` weighs each host by the free share, from 0 to 1, that
the request would leave of whatever is scarcest there: RAM, vCPUs, disk or
dedicated CPUs. nova's RAMWeigher counts megabytes, so that a host of 2 TB
fills alone until it has as much left as one of 512 GB.

With the default, a difference of 6 % of a host decides before nova's own
weighers, whose multipliers add up to 6.

Possible values:

* A finite number. Positive spreads servers, negative packs them onto as few
  hosts as possible.
* The metadata key ``relative_room_weight_multiplier`` of an aggregate sets
  another value for its hosts.

Related options:

* ``[nova_ext_sched] weighers`` must have ``RelativeRoomWeigher``.
* ``[filter_scheduler] ram_weight_multiplier``, ``cpu_weight_multiplier`` and
  ``disk_weight_multiplier``: set them to 0 to let shares alone decide.
""",
    ),
]
