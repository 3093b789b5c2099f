# SPDX-License-Identifier: Apache-2.0

"""Options of the weigher of server groups."""

from collections.abc import Iterator

from oslo_config import cfg

from nova_ext_sched.conf import weighers

#: The host filters that keep the servers of a group apart.
SPREADING = ('ServerGroupAntiAffinityFilter', 'FailureDomainFilter')


OPTS = [
    cfg.Opt(
        'server_group_round_robin_weight_multiplier',
        type=weighers.Multiplier(),
        default=100000.0,
        help="""
The weight of server groups' slots relative to nova's other weighers.

``ServerGroupRoundRobinWeigher`` assigns the servers of a group to the hosts in
turn, so that schedulers that work at the same time choose different hosts. It
applies to server groups with the policy ``anti-affinity`` or
``soft-anti-affinity`` and to requests with a limit for failure domains. Other
requests get the same weight on every host.

With the default, the slot decides before all of nova's other weighers but two,
whose own defaults are higher: hosts where builds failed come last, and a move
stays in its cell.

Possible values:

* A finite number. 0 turns the weigher off.
* The metadata key ``server_group_round_robin_weight_multiplier`` of an
  aggregate sets another value for its hosts.

Related options:

* ``[nova_ext_sched] weighers`` must have ``ServerGroupRoundRobinWeigher``.
* ``[filter_scheduler] host_subset_size`` should be 1. With a higher number
  nova chooses at random among the best hosts.
* ``[filter_scheduler] build_failure_weight_multiplier`` and
  ``cross_cell_move_weight_multiplier``
* ``[nova_ext_sched] max_server_per_failure_domain``
""",
    ),
]


def contradictions(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield options that make servers of a group collide."""
    nova = conf.filter_scheduler
    if not weighers.is_loaded(conf):
        spreading = [
            name for name in SPREADING if name in nova.enabled_filters
        ]
        if spreading:
            yield (
                f'[filter_scheduler] enabled_filters has '
                f'{" and ".join(spreading)}, but weight_classes does not have '
                f'{weighers.ALL_WEIGHERS}. Servers of one group that are '
                f'created at the same time choose the same host. Some of them '
                f'end in ERROR though there is room, or exceed the limit of a '
                f'failure domain. Add {weighers.ALL_WEIGHERS} to '
                f'weight_classes.'
            )
