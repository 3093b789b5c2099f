# SPDX-License-Identifier: Apache-2.0

"""Services of hosts, as alive as when they were read.

ComputeFilter compares a service's last heartbeat with the clock. What is read
once and judged for longer than ``[DEFAULT] service_down_time`` seconds would
look down, though its host goes on sending heartbeats.
"""

from collections.abc import Iterable
import typing

from oslo_utils import timeutils


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
