# SPDX-License-Identifier: Apache-2.0

"""Hosts that are read once and judged for many requests.

ComputeFilter compares a service's last heartbeat with the clock. What is read
once and judged for longer than ``[DEFAULT] service_down_time`` seconds would
look down, though its host goes on sending heartbeats.
"""

import functools
import typing

from oslo_utils import timeutils

from nova_ext_sched.cmd import claims
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import hosts
from nova_ext_sched.cmd.explain import query


class HostManager(nova_scheduler.ReadOnlyHostManager):
    """What nova-scheduler has in memory, as it was at the first request.

    Each request gets host states of its own (:func:`.claims.copy_state`).
    """

    @functools.cached_property
    def providers(self) -> query.Providers:
        """What placement says, each question asked once."""
        return query.Providers(self.placement)

    @functools.cached_property
    def states(self) -> dict[str, typing.Any]:
        """The nova HostStates of all cells, disabled ones too, by UUID."""
        ctxt = nova_scheduler.context()
        found = self._get_host_states(
            ctxt,
            *self._get_computes_for_cells(
                ctxt, list(self.cells.values()), compute_uuids=None
            ),
        )
        self._read_at = timeutils.utcnow()
        return {state.uuid: state for state in found}

    def get_host_states_by_uuids(
        self, context: typing.Any, compute_uuids: typing.Any, spec_obj: object
    ) -> list[typing.Any]:
        """Return host states of the cells that nova would ask.

        Their heartbeats are as old as they were when the hosts were read.

        :param compute_uuids: of the compute nodes that are wanted; None for
            all
        """
        cell = hosts.get_cell(spec_obj) if spec_obj else None
        cells = {cell} if cell else {one.uuid for one in self.enabled_cells}
        states = self.states
        passed = timeutils.utcnow() - self._read_at
        found = []
        for uuid in states if compute_uuids is None else compute_uuids:
            state = states.get(uuid)
            if state is None or state.cell_uuid not in cells:
                continue
            mine = claims.copy_state(state)
            service = state.service
            heartbeat = service.get('last_seen_up') or service['created_at']
            mine.service = {**service, 'last_seen_up': heartbeat + passed}
            found.append(mine)
        return found
