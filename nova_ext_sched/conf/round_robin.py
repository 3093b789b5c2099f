# SPDX-License-Identifier: Apache-2.0

"""Options of the weigher of server groups."""

from collections.abc import Iterator
import math
import typing

from oslo_config import cfg
from oslo_config import types

ALL_WEIGHERS = 'nova_ext_sched.weighers.all_weighers'

#: The host filters that keep the servers of a group apart.
SPREADING = ('ServerGroupAntiAffinityFilter', 'FailureDomainFilter')


class Multiplier(types.Float):
    """A number, but not nan or infinity, which oslo.config takes."""

    def __call__(self, value: typing.Any) -> float | None:
        multiplier: float | None = super().__call__(value)
        if multiplier is not None and not math.isfinite(multiplier):
            # The sum of all weighers would be the same for every host.
            raise ValueError(f'expected a finite number, got {value}')
        return multiplier


OPTS = [
    cfg.Opt(
        'server_group_round_robin_weight_multiplier',
        type=Multiplier(),
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

* ``[filter_scheduler] weight_classes`` must have
  ``nova_ext_sched.weighers.all_weighers``.
* ``[filter_scheduler] host_subset_size`` should be 1. With a higher number
  nova chooses at random among the best hosts.
* ``[filter_scheduler] build_failure_weight_multiplier`` and
  ``cross_cell_move_weight_multiplier``
* ``[nova_ext_sched] max_server_per_failure_domain``
""",
    ),
]


def contradictions(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield what makes servers of a group collide."""
    nova = conf.filter_scheduler
    if not any(
        line.startswith('nova_ext_sched.weighers')
        for line in nova.weight_classes
    ):
        spreading = [
            name for name in SPREADING if name in nova.enabled_filters
        ]
        if spreading:
            yield (
                f'[filter_scheduler] enabled_filters has '
                f'{" and ".join(spreading)}, but weight_classes does not have '
                f'{ALL_WEIGHERS}. Servers of one group that are created at '
                f'the same time choose the same host. Some of them end in '
                f'ERROR though there is room, or exceed the limit of a '
                f'failure domain. Add {ALL_WEIGHERS} to weight_classes.'
            )
    elif (
        nova.host_subset_size > 1
        and conf.nova_ext_sched.server_group_round_robin_weight_multiplier
    ):
        yield (
            f'[filter_scheduler] host_subset_size is {nova.host_subset_size}: '
            f'nova chooses at random among that many of the best hosts, '
            f'whatever ServerGroupRoundRobinWeigher prefers. Set it to 1.'
        )
