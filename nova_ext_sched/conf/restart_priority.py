# SPDX-License-Identifier: Apache-2.0

"""Options of restart priorities."""

from oslo_config import cfg
from oslo_config import types

from nova_ext_sched.conf import failure_domain

OPTS = [
    cfg.Opt(
        'restart_priority_key',
        type=failure_domain.MetadataKey(),
        default='instanceha:restart_priority',
        help="""
The key that says which servers come first when room is short.

``survive``, ``drain`` and ``maintain`` place servers of a higher priority
before others. The priority decides who gets a place, never whether a host may
take the server. nova-scheduler does not read it.

Possible values of the key:

* A number from 1 to 1000, as for InstanceHA. The highest comes first.
* ``highest``, ``high``, ``medium``, ``low``, ``lowest`` or ``disabled``, as in
  vSphere: 1000, 750, 500, 250, 1 and last.
* ``yes`` (750) or ``no`` (250), as for masakari: set the option to
  ``HA_Enabled`` then.
* None, or any other: 500.

A key without a colon in a flavor's extra specs is one that
ComputeCapabilitiesFilter reads: it refuses all hosts.

Possible values:

* A key, exactly as it is written.

Related options:

* ``[nova_ext_sched] restart_priority_sources``
""",
    ),
    cfg.Opt(
        'restart_priority_sources',
        type=types.List(
            item_type=types.String(choices=['flavor', 'image', 'server']),
            type_name='list value',
        ),
        default=['flavor'],
        help="""
Where servers have their restart priority.

The first of these that has the key, with a value that can be read, counts.
Operators write flavors. Members of projects write images and the metadata of
their servers, and can put themselves before others there.

Possible values:

* A comma-separated list of these:

  * ``flavor``: an extra spec.
  * ``image``: a property of the image, as it was when the server was built.
  * ``server``: the server's metadata, as for InstanceHA and masakari.

Related options:

* ``[nova_ext_sched] restart_priority_key``
""",
    ),
]
