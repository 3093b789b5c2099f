#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

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
