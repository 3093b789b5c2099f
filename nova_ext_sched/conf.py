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

"""The options of ``[nova_ext_sched]`` in nova.conf."""

from collections.abc import Iterable
import typing

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'nova_ext_sched',
    title='nova-ext-sched',
    help='Placement policy of the nova-ext-sched plugin of nova-scheduler.',
)

LOADING_OPTS = [
    cfg.ListOpt(
        'request_filters',
        default=['isolate_aggregates'],
        help="""
The request filters of nova-ext-sched that nova-scheduler runs, in this order,
after nova's own.

Each is the name of a plugin in the stevedore namespace
``nova_ext_sched.request_filters``; packages of other authors may add plugins
to it. A filter that is named here does nothing until its own option turns it
on. A name that no installed package declares, that two declare, or that fails
to import stops nova-scheduler at start: a scheduler that silently runs
without its isolation is worse than none.

Possible values:

* A comma-separated list of plugin names, each once.

Related options:

* ``[filter_scheduler] available_filters`` must have the line
  ``nova_ext_sched.filters.all_filters``; without it nothing of
  nova-ext-sched is loaded.
* ``[nova_ext_sched] enable_isolated_aggregate_filtering`` turns
  ``isolate_aggregates`` on.
""",
    ),
]

ISOLATION_OPTS = [
    cfg.BoolOpt(
        'enable_isolated_aggregate_filtering',
        default=False,
        help="""
Keep requests out of isolating aggregates whose traits they do not require.

An aggregate is isolating where its metadata has one or more
``trait:<NAME>=required``. A request may use it only where its flavor's extra
specs or its image's properties require every one of those traits. The request
filter ``isolate_aggregates`` asks placement to leave the other aggregates
out, and the host filter ``IsolatedAggregatesFilter`` judges what comes back;
on rebuild, where nova runs no request filter, the host filter is the only
one that guards them.

Where the request filter cannot read the aggregates (the API database is down,
for example), the request ends in NoValidHost and the reason is in the log of
nova-scheduler. No request is ever scheduled unfiltered.

Possible values:

* True: isolate.
* False: ``trait:`` metadata of aggregates has no effect.

Related options:

* ``[filter_scheduler] enabled_filters`` should have
  ``IsolatedAggregatesFilter``; without it a server on an isolated host keeps
  its host when it is rebuilt with an image that does not require the traits.
* ``[scheduler] enable_isolated_aggregate_filtering`` is nova's own filter of
  the same meaning. Both on is legal and costs the work twice: turn nova's
  off.
""",
    ),
    cfg.IntOpt(
        'max_forbidden_aggregates',
        default=100,
        min=1,
        help="""
The largest number of aggregate UUIDs to put into one placement query as
forbidden.

Every web server limits the length of a request line: with many isolating
aggregates the query would be refused and every request would end in
NoValidHost. Past this number the aggregates with most hosts go into the
query and the rest is left to ``IsolatedAggregatesFilter``, which judges every
host that placement returns. Where that filter is not enabled, or does not run
because an administrator forced a host, all UUIDs go in whatever this number,
and a warning says so.

The default fits every common web server but uwsgi with its default buffer of
4096 bytes (set 30 there, or raise its ``buffer-size``).

Possible values:

* An integer, 1 or more. The documentation has a table of what each web
  server bears.

Related options:

* ``[nova_ext_sched] forbid_by_trait`` keeps UUIDs out of the query at all.
* ``[filter_scheduler] enabled_filters``
* ``[scheduler] max_placement_results`` bounds how many hosts come back; where
  most of them stand in aggregates left to the host filter, hosts that would
  do may be cut off. Declare the traits in ``forbid_by_trait`` then.
""",
    ),
    cfg.ListOpt(
        'forbid_by_trait',
        default=[],
        help="""
Traits that only hosts of isolating aggregates carry.

By naming a trait here the operator promises that no host outside of the
aggregates that require it carries the trait. An aggregate that is forbidden
because such a trait is missing from the request needs no UUID in the
placement query: the query forbids the trait itself
(``root_required=!TRAIT``), so it grows with the number of traits and not with
the number of aggregates. Use it where there are more isolating aggregates
than ``max_forbidden_aggregates``, or where ``max_placement_results`` cuts off
hosts; with few aggregates there is nothing to gain.

Hosts of such an aggregate whose resource provider lacks the trait come back
from placement and are refused by ``IsolatedAggregatesFilter``. A trait that
placement does not know, or that the request requires of the host by another
way, is treated as if it were not named here.

Possible values:

* A comma-separated list of trait names. ``*`` at the end of a name stands for
  any ending: ``CUSTOM_LICENSED_*``.

Related options:

* ``[filter_scheduler] enabled_filters`` must have
  ``IsolatedAggregatesFilter``; without it, and where an administrator forced
  a host, this option has no effect and UUIDs are used.
* ``[nova_ext_sched] max_forbidden_aggregates``
""",
    ),
]

RESERVATION_OPTS = [
    cfg.ListOpt(
        'placement_req_required_member_prefix',
        default=[],
        help="""
Beginnings of keys by which a flavor asks for reserved aggregates.

``AggregateInstanceTypeFilter`` does not compare keys that begin so.

Possible values:

* A comma-separated list of beginnings, such as ``reservation:``.

Related options:

* ``[nova_ext_sched] placement_req_default_forbidden_member_prefix``
""",
    ),
    cfg.ListOpt(
        'placement_req_default_forbidden_member_prefix',
        default=[],
        help="""
Beginnings of metadata keys that reserve an aggregate.

``AggregateInstanceTypeFilter`` does not compare keys that begin so, and
``force_metadata_check`` does not force them.

Possible values:

* A comma-separated list of beginnings, such as ``reservation:``.

Related options:

* ``[nova_ext_sched] placement_req_required_member_prefix``
""",
    ),
]

AGGREGATE_INSTANCE_TYPE_OPTS = [
    cfg.ListOpt(
        'force_metadata_check_ignored_keys',
        default=['availability_zone'],
        help="""
Metadata keys that ``force_metadata_check`` does not force upon flavors.

An aggregate whose metadata has ``force_metadata_check=true`` demands of every
flavor that it agrees with each of the aggregate's other metadata items. Some
items are not addressed to flavors: nova keeps an aggregate's availability
zone among them, and other filters and weighers read keys of their own. Name
those keys here. Where a flavor has an extra spec of such a key, it is compared
with the aggregate's value as it stands.

Possible values:

* A comma-separated list of metadata keys, exactly as they are written in the
  aggregates. An empty list also forces ``availability_zone``, which then no
  flavor passes that lacks an extra spec of that name.

Related options:

* ``[filter_scheduler] enabled_filters`` must have
  ``AggregateInstanceTypeFilter`` for this option to matter.
* Keys that begin with a prefix of
  ``[nova_ext_sched] placement_req_required_member_prefix`` or
  ``[nova_ext_sched] placement_req_default_forbidden_member_prefix`` are never
  forced.
""",
    ),
]

ALL_OPTS = [
    *LOADING_OPTS,
    *ISOLATION_OPTS,
    *RESERVATION_OPTS,
    *AGGREGATE_INSTANCE_TYPE_OPTS,
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option of the package on ``conf``; repeatable."""
    conf.register_group(GROUP)
    conf.register_opts(ALL_OPTS, group=GROUP)


def list_opts() -> Iterable[tuple[cfg.OptGroup, list[typing.Any]]]:
    """Return the options for oslo-config-generator and Sphinx."""
    return [(GROUP, ALL_OPTS)]


def contradictions(conf: cfg.ConfigOpts) -> list[str]:
    """Return what the options of nova.conf say against one another.

    :param conf: nova's configuration with our options registered
    :returns: a sentence each, with what to do about it
    """
    ours = conf.nova_ext_sched
    found = []
    isolating = ours.enable_isolated_aggregate_filtering
    if isolating and conf.scheduler.enable_isolated_aggregate_filtering:
        found.append(
            "Both [scheduler] enable_isolated_aggregate_filtering (nova's) "
            'and [nova_ext_sched] enable_isolated_aggregate_filtering are '
            "True: every request does the work twice, and nova's filter "
            'puts every isolated aggregate into the query whatever '
            'max_forbidden_aggregates says. Set the one of [scheduler] to '
            'False.'
        )
    if isolating and 'isolate_aggregates' not in ours.request_filters:
        found.append(
            '[nova_ext_sched] enable_isolated_aggregate_filtering is True '
            'and request_filters does not name isolate_aggregates: placement '
            'is not asked to leave isolated aggregates out. Add '
            'isolate_aggregates to [nova_ext_sched] request_filters.'
        )
    if isolating and (
        'IsolatedAggregatesFilter' not in conf.filter_scheduler.enabled_filters
    ):
        found.append(
            '[nova_ext_sched] enable_isolated_aggregate_filtering is True '
            'and IsolatedAggregatesFilter is not in [filter_scheduler] '
            'enabled_filters: a server on an isolated host keeps its host '
            'when it is rebuilt with an image that does not require the '
            'traits, and max_forbidden_aggregates and forbid_by_trait have '
            'no effect. Add IsolatedAggregatesFilter to enabled_filters.'
        )
    if {
        'AggregateInstanceExtraSpecsFilter',
        'AggregateInstanceTypeFilter',
    } <= set(conf.filter_scheduler.enabled_filters):
        found.append(
            "Both AggregateInstanceExtraSpecsFilter (nova's) and "
            'AggregateInstanceTypeFilter are in [filter_scheduler] '
            "enabled_filters: nova's reads *, ~ and ! as plain values and "
            'rejects hosts that ours accepts. Remove '
            'AggregateInstanceExtraSpecsFilter.'
        )
    return found
