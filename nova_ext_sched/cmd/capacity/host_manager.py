# SPDX-License-Identifier: Apache-2.0

"""The hosts of the cloud, read once for many requests."""

from collections.abc import Sequence
import functools
import typing

from nova.scheduler import weights

from nova_ext_sched.cmd import claims
from nova_ext_sched.cmd import heartbeats
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.capacity import kind
from nova_ext_sched.cmd.explain import query


class HostManager(nova_scheduler.ReadOnlyHostManager):
    """What nova-scheduler has in memory, as it was at the first request.

    Each request gets host states of its own (:func:`.claims.copy_state`).
    """

    def __init__(self) -> None:
        super().__init__()
        #: What :func:`.kind.describe` says of a host, by its UUID.
        self.describe = functools.cache(
            lambda uuid: kind.describe(self.states[uuid])
        )

    @functools.cached_property
    def providers(self) -> query.Providers:
        """What placement says of them, asked once each."""
        return query.Providers(self.placement)

    @functools.cached_property
    def states(self) -> dict[str, typing.Any]:
        """The nova HostStates of all enabled cells, by UUID."""
        found = super().get_host_states_by_uuids(
            nova_scheduler.context(), None, None
        )
        states = {state.uuid: state for state in found}
        self._heartbeats = heartbeats.Heartbeats(states.values())
        return states

    def get_host_states_by_uuids(
        self, context: typing.Any, compute_uuids: typing.Any, spec_obj: object
    ) -> list[typing.Any]:
        """Return copies of the host states of all enabled cells.

        A server that is yet to be created may use any of these cells.

        :param compute_uuids: of the compute nodes that are wanted; None for
            all
        """
        states = self.states
        wanted = states if compute_uuids is None else compute_uuids
        found = [
            claims.copy_state(states[uuid])
            for uuid in wanted
            if uuid in states
        ]
        self._heartbeats.renew(found)
        return found

    def get_weighed_hosts(
        self, hosts: Sequence[typing.Any], spec_obj: typing.Any
    ) -> list[typing.Any]:
        """Weigh the hosts where their order counts: for a server group."""
        if spec_obj.instance_group is not None:
            return list(super().get_weighed_hosts(hosts, spec_obj))
        return [weights.WeighedHost(state, 0.0) for state in hosts]
