# SPDX-License-Identifier: Apache-2.0

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
