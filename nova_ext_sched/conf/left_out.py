# SPDX-License-Identifier: Apache-2.0

"""Options of servers that are left out of plans."""

from oslo_config import cfg

OPTS = [
    cfg.ListOpt(
        'left_out_projects',
        default=[],
        help="""
Projects whose servers are neither moved nor evacuated.

For servers that are replaced when their host fails, such as the amphorae of
Octavia. ``drain``, ``maintain``, ``mend``, ``make-room`` and ``survive`` leave
them where they are, name them, and look for no other place for them. A host
that keeps one is not empty. nova-scheduler does not read these options.

Possible values:

* A comma-separated list of project IDs.

Related options:

* ``[nova_ext_sched] left_out_flavors``, ``left_out_images`` and
  ``left_out_property`` name further servers.
""",
    ),
    cfg.ListOpt(
        'left_out_flavors',
        default=[],
        help="""
Flavors whose servers are neither moved nor evacuated.

Possible values:

* A comma-separated list of names or IDs of flavors.

Related options:

* ``[nova_ext_sched] left_out_projects``
""",
    ),
    cfg.ListOpt(
        'left_out_images',
        default=[],
        help="""
Images whose servers are neither moved nor evacuated.

Members of every project can use a public image: with it they keep a host from
being emptied.

Possible values:

* A comma-separated list of image IDs.

Related options:

* ``[nova_ext_sched] left_out_projects``
""",
    ),
    cfg.StrOpt(
        'left_out_property',
        default='',
        help="""
The property whose servers are neither moved nor evacuated.

It counts if it is true in the metadata of a server, or was in the properties
of its image when the server was built. Members of projects write both: with it
they keep a host from being emptied.

Possible values:

* Empty: no property leaves a server out.
* A key, exactly as it is written.

Related options:

* ``[nova_ext_sched] left_out_projects``
""",
    ),
]
