# SPDX-License-Identifier: Apache-2.0

"""Host states, made of nova's objects, for the tests of stage 2."""

from nova import objects
from nova.scheduler import host_manager
from oslo_utils import uuidutils

objects.register_all()

#: The hint of a rebuild, as nova-api and, on some releases, members write it.
HINT = {'_nova_check_type': ['rebuild']}
#: The fields of a request that is a rebuild, as nova-api sends it.
REBUILD = {
    'scheduler_hints': HINT,
    'force_hosts': ['here'],
    'force_nodes': ['here'],
}


def aggregate(name, **metadata):
    """Return an Aggregate; keys with a colon as ``metadata={}``."""
    metadata.update(metadata.pop('metadata', {}))
    return objects.Aggregate(
        uuid=uuidutils.generate_uuid(), name=name, metadata=metadata, hosts=[]
    )


def host_state(host, *aggregates, node=None):
    """Return a HostState in these aggregates.

    The node has another name than its host, as with ironic.
    """
    state = host_manager.HostState(
        host, node or f'node of {host}', uuidutils.generate_uuid()
    )
    state.aggregates = list(aggregates)
    return state


def names(hosts):
    return [state.host for state in hosts]
