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
``nova_ext_sched.request_filters``. Packages of other authors may add plugins
to it. A filter in this list does nothing until its own option turns it on.

nova-scheduler does not start if no installed package declares a name, if two
packages declare it, or if the plugin cannot be imported: a scheduler that
silently runs without its isolation is worse than none.

Possible values:

* A comma-separated list of plugin names, each once.

Related options:

* ``[filter_scheduler] available_filters`` must have the line
  ``nova_ext_sched.filters.all_filters``. Without it nothing of nova-ext-sched
  is loaded.
* ``[nova_ext_sched] enable_isolated_aggregate_filtering`` turns
  ``isolate_aggregates`` on.
* ``[nova_ext_sched] placement_req_required_member_prefix`` and
  ``placement_req_default_forbidden_member_prefix`` turn
  ``reserved_aggregates`` on.
* ``failure_domains`` acts on requests that ask for it with a scheduler hint,
  and on all anti-affinity groups if
  ``[nova_ext_sched] max_server_per_failure_domain`` is set.
* ``BlazarFilter`` in ``[filter_scheduler] enabled_filters`` turns
  ``blazar_reservations`` on.
""",
    ),
    cfg.IntOpt(
        'max_forbidden_aggregates',
        default=100,
        min=1,
        help="""
The largest number of aggregate UUIDs that one placement query forbids.

Every web server limits the length of a request line. With many isolated
aggregates the server would refuse the query, and every request would end in
NoValidHost. Above this number, the query names the aggregates with the most
hosts, and ``IsolatedAggregatesFilter`` checks the hosts of the rest.

If that filter is not enabled, the query names all aggregates whatever this
option says, and a warning says so. If an administrator forced a host, nova
does not run that filter, and the query names all aggregates of that host.

The default fits every common web server, with two exceptions. uwsgi with its
default buffer of 4096 bytes takes 30: set that, or raise uwsgi's
``buffer-size``. gunicorn takes 100 if a request asks for little else: set 90
if requests are for zones, projects, reservations or several traits.

Possible values:

* An integer, 1 or more. The documentation has a table of the limits of web
  servers.

Related options:

* ``[nova_ext_sched] forbid_by_trait`` forbids a trait in place of many UUIDs.
* ``[filter_scheduler] enabled_filters``
* ``[scheduler] max_placement_results`` limits how many hosts placement
  returns. If most of them are in aggregates that are left to the host filter,
  suitable hosts may be cut off. List the traits in ``forbid_by_trait`` then.
""",
    ),
]
