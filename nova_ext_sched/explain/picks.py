# SPDX-License-Identifier: Apache-2.0

"""How many of several instances of one request find a host."""

import collections
from collections.abc import Mapping
from collections.abc import Sequence
import typing

from nova.scheduler import manager as scheduler_manager
from oslo_utils import uuidutils


class Picker(scheduler_manager.SchedulerManager):
    """nova's, which counts here what it would claim in placement.

    It counts against the capacities that placement gave with the candidates.

    :param host_manager: nova's HostManager
    :param summaries: placement's provider summaries
    """

    def __init__(
        self, host_manager: typing.Any, summaries: Mapping[str, typing.Any]
    ) -> None:
        self.host_manager = host_manager
        self._summaries = summaries
        self._claimed: collections.Counter[tuple[str, str]] = (
            collections.Counter()
        )

    def count(
        self, ctxt: typing.Any, spec_obj: typing.Any, states: list[typing.Any]
    ) -> int:
        """Return how many instances find a host.

        :param ctxt: a nova RequestContext
        :param spec_obj: a nova RequestSpec; its instance_uuid changes
        :param states: HostStates with their allocation candidates, which are
            consumed
        """
        self._states = states
        more = range(1, spec_obj.num_instances)
        picked: Sequence[typing.Any] = self._schedule(
            ctxt,
            spec_obj,
            [
                spec_obj.instance_uuid,
                *(uuidutils.generate_uuid() for _ in more),
            ],
            {state.uuid: state.allocation_candidates for state in states},
            self._summaries,
        )
        return len(picked)

    # What _schedule calls.

    @property
    def placement_client(self) -> 'Picker':
        return self

    def claim_resources(
        self,
        ctxt: typing.Any,
        uuid: str,
        request: typing.Any,
        *_: object,
        **__: object,
    ) -> bool:
        wanted = {
            (provider, name): amount
            for provider, one in request['allocations'].items()
            for name, amount in one['resources'].items()
        }
        for (provider, name), amount in wanted.items():
            found = self._summaries[provider]['resources'][name]
            taken = found['used'] + self._claimed[provider, name]
            if taken + amount > found['capacity']:
                return False
        self._claimed.update(wanted)
        return True

    def _get_all_host_states(self, *_: typing.Any) -> list[typing.Any]:
        return self._states

    def _ensure_sufficient_hosts(self, *_: typing.Any) -> None:
        pass

    def _get_alternate_hosts(
        self, hosts: Sequence[typing.Any], *_: typing.Any
    ) -> Sequence[typing.Any]:
        return hosts
