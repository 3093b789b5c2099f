# SPDX-License-Identifier: Apache-2.0

"""The hypervisor of a simulated host: nova's fake one, of a given size."""

import typing

import nova.conf
from nova.virt import fake

CONF = nova.conf.CONF


class Driver(fake.FakeDriver):
    """nova's fake driver with the capacity of the host that it runs on.

    nova starts a compute service with ``CONF.host`` set to its host.
    """

    #: vcpus, memory in MiB and disk in GB by host
    capacities: typing.ClassVar[dict[str, tuple[int, int, int]]] = {}

    def __init__(self, virtapi: typing.Any, read_only: bool = False) -> None:
        self.vcpus, self.memory_mb, self.local_gb = self.capacities[CONF.host]
        super().__init__(virtapi, read_only)
