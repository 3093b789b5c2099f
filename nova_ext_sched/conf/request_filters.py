# SPDX-License-Identifier: Apache-2.0

"""Options of the request filters, and the bound of a placement query."""

from oslo_config import cfg

OPTS = [
    cfg.ListOpt(
        'request_filters',
        default=[
            'isolate_aggregates',
            'reserved_aggregates',
            'failure_domains',
            'blazar_reservations',
            'failover_hosts',
        ],
        help="""
The request filters of nova-ext-sched that nova-scheduler runs, in this order,
after nova's own.

Each name is a plugin in the stevedore namespace
``nova_ext_sched.request_filters``; other packages can add their own.
nova-scheduler does not start if no installed package declares a name, if two
packages declare it, or if the plugin cannot be imported: a scheduler that
silently runs without isolation is worse than none.

A filter in this list does nothing until it is turned on by:

* ``isolate_aggregates``:
  ``[nova_ext_sched] enable_isolated_aggregate_filtering``
* ``reserved_aggregates``:
  ``[nova_ext_sched] placement_req_required_member_prefix`` or
  ``placement_req_default_forbidden_member_prefix``
* ``failure_domains``: a scheduler hint, or for all anti-affinity groups
  ``[nova_ext_sched] max_server_per_failure_domain``
* ``blazar_reservations``: ``BlazarFilter`` in
  ``[filter_scheduler] enabled_filters``
* ``failover_hosts``: ``[nova_ext_sched] enable_failover_hosts``

Related options:

* ``[filter_scheduler] available_filters`` must have the line
  ``nova_ext_sched.filters.all_filters``. Without it, nova-ext-sched is not
  loaded.
""",
    ),
    cfg.IntOpt(
        'max_forbidden_aggregates',
        default=100,
        min=1,
        help="""
The most aggregate UUIDs that one placement query names.

Every web server limits the length of a request line. With many isolated
aggregates, or many that have the key of one reservation, the server would
refuse the query, and every such request would end in NoValidHost. The limit
counts all UUIDs: aggregates that a request must avoid (``member_of=!in:``),
those that it must land in (``member_of=in:``), and those that nova itself
names for a zone or a project.

If there are more, the query names the aggregates that the request must land
in first, then those that it must avoid, starting with those that have the most
hosts. The host filter of the policy checks the rest.

If a reservation has more aggregates than fit, its requests get no host once
the named aggregates are full, even if the others have room. A warning names
the aggregates. Put the hosts of the reservation into fewer aggregates, or
raise this option and the web server's limit.

If the host filter is not enabled, the query names all aggregates in spite of
this option, and a warning says so. If an administrator forced a host or a
node, nova does not run the host filter, and the query names all aggregates of
that host or node.

The default suits every common web server, with two exceptions. For uwsgi with
its default buffer of 4096 bytes set 30, or raise uwsgi's ``buffer-size``. For
gunicorn set 90 if requests also name several zones, projects, reservations or
traits. The documentation has a table of the limits.

Related options:

* ``[nova_ext_sched] forbid_by_trait`` replaces many UUIDs by one trait.
* ``[scheduler] max_placement_results`` can cut off suitable hosts if the host
  filter then rejects most of what placement returns. In that case list the
  traits in ``forbid_by_trait``, or raise it.
""",
    ),
]
