# SPDX-License-Identifier: Apache-2.0

"""A weigher for the hosts that a scenario prefers."""

import typing

from nova.scheduler import weights


class PreferredHosts(weights.BaseHostWeigher):
    """Weighs the preferred hosts above the others, best first.

    nova's own weighers stay enabled, because conductor refuses soft affinity
    without its weigher; they decide between hosts that are not preferred.
    """

    #: The preferred hosts, best first.
    order: typing.ClassVar[tuple[str, ...]] = ()

    def weight_multiplier(self, host_state: typing.Any) -> float:
        """Return more than all of nova's own multipliers together."""
        return 1e9

    def _weigh_object(
        self, host_state: typing.Any, weight_properties: typing.Any
    ) -> float:
        if host_state.host not in self.order:
            return 0.0
        return float(len(self.order) - self.order.index(host_state.host))
