# SPDX-License-Identifier: Apache-2.0

"""How many of several instances of one request find a host."""

import collections
from collections.abc import Mapping
import types
import typing

from nova.scheduler import manager as scheduler_manager
from oslo_utils import uuidutils


def count(
    host_manager: typing.Any,
    spec_obj: typing.Any,
    states: list[typing.Any],
    summaries: Mapping[str, typing.Any],
) -> int:
    """Pick a host for each instance as SchedulerManager._schedule does.

    What it claims in placement, one instance after the other, is counted here
    against the capacities that placement gave with the candidates.

    :param host_manager: nova's HostManager
    :param spec_obj: a nova RequestSpec; its instance_uuid changes
    :param states: HostStates with their allocation candidates, which are
        consumed
    :param summaries: placement's provider summaries
    :returns: how many instances found a host
    """
    claims = _Claims(summaries)
    scheduler = types.SimpleNamespace(host_manager=host_manager)
    for number in range(spec_obj.num_instances):
        if number:
            spec_obj.instance_uuid = uuidutils.generate_uuid()
        states = scheduler_manager.SchedulerManager._get_sorted_hosts(
            scheduler, spec_obj, states, number
        )
        for state in states:
            if state.allocation_candidates and claims.claim(
                state.allocation_candidates[0]['allocations']
            ):
                break
        else:
            return number
        mappings = state.allocation_candidates[0].get('mappings', {})
        for group in spec_obj.requested_resources or ():
            group.provider_uuids = mappings[group.requester_id]
        scheduler_manager.SchedulerManager._consume_selected_host(
            state, spec_obj, instance_uuid=spec_obj.instance_uuid
        )
    return spec_obj.num_instances


class _Claims:
    def __init__(self, summaries: Mapping[str, typing.Any]) -> None:
        self._summaries = summaries
        self._claimed: collections.Counter[tuple[str, str]] = (
            collections.Counter()
        )

    def claim(self, allocations: Mapping[str, typing.Any]) -> bool:
        wanted = {
            (provider, name): amount
            for provider, one in allocations.items()
            for name, amount in one['resources'].items()
        }
        for (provider, name), amount in wanted.items():
            found = self._summaries[provider]['resources'][name]
            taken = found['used'] + self._claimed[provider, name]
            if taken + amount > found['capacity']:
                return False
        self._claimed.update(wanted)
        return True
