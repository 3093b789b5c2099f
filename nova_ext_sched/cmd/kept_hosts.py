# SPDX-License-Identifier: Apache-2.0

"""Hosts that are read once and judged for many requests.

ComputeFilter compares a service's last heartbeat with the clock. What is read
once and judged for longer than ``[DEFAULT] service_down_time`` seconds would
look down, though its host goes on sending heartbeats.
"""

from collections.abc import Iterable
import functools
import typing

from oslo_utils import timeutils

from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import query


class Heartbeats:
    """The last heartbeats of hosts, kept at the age that they had.

    :param states: nova HostStates, as they were read just now
    """

    def __init__(self, states: Iterable[typing.Any]) -> None:
        self._read_at = timeutils.utcnow()
        self._last = {
            state.uuid: state.service.get('last_seen_up')
            or state.service['created_at']
            for state in states
        }

    def renew(self, states: Iterable[typing.Any]) -> None:
        """Give host states heartbeats that are as old as when they were read.

        :param states: nova HostStates of the same hosts; their ``service``
            changes
        """
        passed = timeutils.utcnow() - self._read_at
        for state in states:
            state.service = {
                **state.service,
                'last_seen_up': self._last[state.uuid] + passed,
            }


class HostManager(nova_scheduler.ReadOnlyHostManager):
    """What nova-scheduler has in memory, as it was at the first request.

    Which of the hosts a request gets, a subclass decides (``_choose``).
    """

    @functools.cached_property
    def providers(self) -> query.Providers:
        """What placement says, each question asked once."""
        return query.Providers(self.placement)

    @functools.cached_property
    def states(self) -> dict[str, typing.Any]:
        """The nova HostStates, by UUID."""
        states = {state.uuid: state for state in self._read_states()}
        self._heartbeats = Heartbeats(states.values())
        return states

    def get_host_states_by_uuids(
        self, context: typing.Any, compute_uuids: typing.Any, spec_obj: object
    ) -> list[typing.Any]:
        """Return host states, their services as alive as when they were read.

        :param compute_uuids: of the compute nodes that are wanted; None for
            all
        """
        found = self._choose(
            self.states if compute_uuids is None else compute_uuids, spec_obj
        )
        self._heartbeats.renew(found)
        return found

    def _choose(
        self, uuids: Iterable[str], spec_obj: typing.Any
    ) -> list[typing.Any]:
        """Return host states for a request, of those that are wanted."""
        raise NotImplementedError

    def _read_states(self) -> Iterable[typing.Any]:
        """Return the host states of all enabled cells."""
        return self._read(None)

    def _read(self, spec_obj: object) -> Iterable[typing.Any]:
        """Return the host states that nova-scheduler would read."""
        return super().get_host_states_by_uuids(
            nova_scheduler.context(), None, spec_obj
        )
