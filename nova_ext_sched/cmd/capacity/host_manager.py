# SPDX-License-Identifier: Apache-2.0

"""The hosts of the cloud, read once for many requests."""

from collections.abc import Iterable
from collections.abc import Sequence
import functools
import typing

from nova.scheduler import weights

from nova_ext_sched.cmd import claims
from nova_ext_sched.cmd import kept_hosts
from nova_ext_sched.cmd.capacity import kind


class HostManager(kept_hosts.HostManager):
    """What nova-scheduler has in memory, as it was at the first request.

    Each request gets host states of its own (:func:`.claims.copy_state`).
    """

    def __init__(self) -> None:
        super().__init__()
        #: What :func:`.kind.describe` says of a host, by its UUID.
        self.describe = functools.cache(
            lambda uuid: kind.describe(self.states[uuid])
        )

    def _choose(
        self, uuids: Iterable[str], spec_obj: typing.Any
    ) -> list[typing.Any]:
        """Return copies of the host states of all enabled cells.

        A server that is yet to be created may use any of these cells.
        """
        states = self.states
        return [
            claims.copy_state(states[uuid]) for uuid in uuids if uuid in states
        ]

    def get_weighed_hosts(
        self, hosts: Sequence[typing.Any], spec_obj: typing.Any
    ) -> list[typing.Any]:
        """Weigh the hosts where their order counts: for a server group."""
        if spec_obj.instance_group is not None:
            return list(super().get_weighed_hosts(hosts, spec_obj))
        return [weights.WeighedHost(state, 0.0) for state in hosts]
