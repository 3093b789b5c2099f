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

"""Host states, made of nova's objects, for the tests of stage 2."""

from nova import objects
from nova.scheduler import host_manager
from oslo_utils import uuidutils

objects.register_all()


def aggregate(name, **metadata):
    """Return an Aggregate; keys with a colon as ``metadata={}``."""
    metadata.update(metadata.pop('metadata', {}))
    return objects.Aggregate(
        uuid=uuidutils.generate_uuid(), name=name, metadata=metadata, hosts=[]
    )


def host_state(host, *aggregates):
    """Return a HostState in these aggregates."""
    state = host_manager.HostState(host, host, uuidutils.generate_uuid())
    state.aggregates = list(aggregates)
    return state
