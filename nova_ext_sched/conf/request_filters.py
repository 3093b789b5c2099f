# SPDX-License-Identifier: Apache-2.0

"""Which request filters run, and how much one placement query may name."""

from oslo_config import cfg

OPTS = [
    cfg.ListOpt(
        'request_filters',
        default=[
            'isolate_aggregates',
            'reserved_aggregates',
            'failure_domains',
            'blazar_reservations',
        ],
        help="""
The request filters of nova-ext-sched that nova-scheduler runs, in this order,
after nova's own.

Each name is a plugin in the stevedore namespace
``nova_ext_sched.request_filters``, to which packages of other authors may add.
nova-scheduler does not start if no installed package declares a name, if two
packages declare it, or if the plugin cannot be imported: a scheduler that
silently runs without its isolation is worse than none.

A filter in this list does nothing until something turns it on:

* ``isolate_aggregates``:
  ``[nova_ext_sched] enable_isolated_aggregate_filtering``
* ``reserved_aggregates``:
  ``[nova_ext_sched] placement_req_required_member_prefix`` or
  ``placement_req_default_forbidden_member_prefix``
* ``failure_domains``: a scheduler hint, or for all anti-affinity groups
  ``[nova_ext_sched] max_server_per_failure_domain``
* ``blazar_reservations``: ``BlazarFilter`` in
  ``[filter_scheduler] enabled_filters``

Related options:

* ``[filter_scheduler] available_filters`` must have the line
  ``nova_ext_sched.filters.all_filters``. Without it nothing of nova-ext-sched
  is loaded.
""",
    ),
    cfg.IntOpt(
        'max_forbidden_aggregates',
        default=100,
        min=1,
        help="""
The largest number of aggregate UUIDs that one placement query names.

Every web server limits the length of a request line. With many isolated
aggregates, or many that have the key of one reservation, the server would
refuse the query, and every such request would end in NoValidHost. UUIDs that
a request must avoid (``member_of=!in:``) and those of the aggregates that it
must land in (``member_of=in:``) count together, and so do those that nova
itself names for a zone or a project.

Above this number, the host filter of the policy checks what the query does
not say. Aggregates that a request must land in go in first, then those that it
must avoid. If not all fit, the query names the ones with the most hosts.

If more aggregates have one key than fit, a request that must land in one of
them gets no host while the hosts of the named ones are full, even if hosts of
the others are empty. A warning names the aggregates. Put the hosts of one key
into fewer aggregates, or raise this option and the web server's limit.

If that filter is not enabled, the query names all aggregates whatever this
option says, and a warning says so. If an administrator forced a host or a
node, nova does not run that filter, and the query names all aggregates of that
host or node.

The default fits every common web server, with two exceptions. uwsgi with its
default buffer of 4096 bytes takes 30: set that, or raise uwsgi's
``buffer-size``. gunicorn takes 100 if a request asks for little else: set 90
if requests are for several zones, projects, reservations or traits. The
documentation has a table of the limits.

Related options:

* ``[nova_ext_sched] forbid_by_trait`` forbids a trait in place of many UUIDs.
* ``[scheduler] max_placement_results`` may cut off suitable hosts if most of
  those that placement returns are left to the host filter. List the traits in
  ``forbid_by_trait`` then, or raise it.
""",
    ),
]
