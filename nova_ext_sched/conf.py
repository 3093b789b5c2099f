# SPDX-License-Identifier: Apache-2.0

"""The options of ``[nova_ext_sched]`` in nova.conf."""

from collections.abc import Iterable
import typing

from oslo_config import cfg
from oslo_config import types

from nova_ext_sched import misspelling


class Beginnings(types.List):
    """A list of beginnings of keys, none of them empty.

    An empty one would match every key, and no aggregate would be left.

    :param may_be_none: whether an empty value is the empty list
    """

    def __init__(self, may_be_none: bool = False) -> None:
        super().__init__()
        self._may_be_none = may_be_none

    def __call__(self, value: typing.Any) -> list[str]:
        """Return the list.

        :raises ValueError: one is empty; oslo.config's error then names the
            option and the file
        """
        if isinstance(value, str):
            if self._may_be_none and not value.strip():
                return []
            value = [part.strip() for part in value.split(',')]
        if not all(part.strip('\'" ') for part in value):
            raise ValueError(
                'expected beginnings of keys, separated by commas and none '
                f'of them empty (to have none, {self._remedy}), got '
                + repr(','.join(value))
            )
        return list(value)

    @property
    def _remedy(self) -> str:
        return 'leave it empty' if self._may_be_none else 'remove the line'


class MetadataKey(types.String):
    """A key of aggregate metadata, not empty."""

    def __call__(self, value: typing.Any) -> str:
        """Return the key.

        :raises ValueError: it is empty; oslo.config's error then names the
            option and the file
        """
        key: str = super().__call__(value).strip()
        if not key:
            raise ValueError('expected a metadata key, got an empty value')
        return key


class Limit(types.Integer):
    """An integer, 0 or more; an empty value is none."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def __call__(self, value: typing.Any) -> int:
        """Return the integer.

        :raises ValueError: it is of another form; oslo.config's error then
            names the option and the file
        """
        limit: int | None = super().__call__(value)
        if limit is None:
            raise ValueError('expected an integer, got an empty value')
        return limit


GROUP = cfg.OptGroup(
    'nova_ext_sched',
    title='nova-ext-sched',
    help='Placement policy of the nova-ext-sched plugin of nova-scheduler.',
)

LOADING_OPTS = [
    cfg.ListOpt(
        'request_filters',
        default=[
            'isolate_aggregates',
            'reserved_aggregates',
            'failure_domains',
        ],
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
* ``[nova_ext_sched] placement_req_required_member_prefix`` and
  ``placement_req_default_forbidden_member_prefix`` turn
  ``reserved_aggregates`` on.
* ``failure_domains`` acts on requests that ask for it by a scheduler hint, or
  by ``[nova_ext_sched] max_server_per_failure_domain``.
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
    cfg.Opt(
        'placement_req_required_member_prefix',
        type=Beginnings(),
        default=[],
        sample_default='reservation:',
        help="""
Beginnings of the keys by which a request demands its reserved aggregates.

A request with a key that begins so, in its flavor's extra specs for example,
must land on a host of an aggregate whose metadata has exactly that key. Where
several aggregates have the key, any of them will do. A request with several
such keys needs a host that is in an aggregate of each. The values of the keys
mean nothing. A request whose key no aggregate has, or none that its project
may use, ends in NoValidHost, and the log of nova-scheduler names the key.

Keys are compared as they stand: in case, and with ``%`` and ``_`` as
themselves. ``AggregateInstanceTypeFilter`` does not compare keys that begin
so.

Possible values:

* A comma-separated list of beginnings, such as ``reservation:``. An empty one
  stops nova-scheduler at start. Without the option no key demands anything.

Related options:

* ``[nova_ext_sched] placement_req_default_forbidden_member_prefix`` should
  have the same prefixes. A prefix that stands here only draws those who name
  an aggregate into it and keeps nobody else out. A warning at start says so.
* ``[nova_ext_sched] member_sources`` tells where keys are looked for.
* ``[nova_ext_sched] member_project_keys`` tells who may use an aggregate.
* ``[nova_ext_sched] request_filters`` must have ``reserved_aggregates``.
""",
    ),
    cfg.Opt(
        'placement_req_default_forbidden_member_prefix',
        type=Beginnings(),
        default=[],
        sample_default='reservation:',
        help="""
Beginnings of the metadata keys that reserve an aggregate.

A request without a key that begins so is kept out of every aggregate whose
metadata has one. A request with such a key is not: its key demands an
aggregate of its own (``placement_req_required_member_prefix``). Each prefix
is for itself: a key with one does not open the aggregates of another.

Keys are compared as they stand: in case, and with ``%`` and ``_`` as
themselves. ``AggregateInstanceTypeFilter`` does not compare keys that begin
so, and ``force_metadata_check`` does not force them.

Possible values:

* A comma-separated list of beginnings, such as ``reservation:``. An empty one
  stops nova-scheduler at start. Without the option no aggregate is reserved.

Related options:

* ``[nova_ext_sched] placement_req_required_member_prefix`` should have the
  same prefixes. A prefix that stands here only lets a request with any key
  that begins so onto every host that such a key reserves. A warning at start
  says so.
* ``[nova_ext_sched] max_forbidden_aggregates`` bounds how many aggregates go
  into a placement query; ``IsolatedAggregatesFilter`` in
  ``[filter_scheduler] enabled_filters`` judges the rest.
* ``[nova_ext_sched] request_filters`` must have ``reserved_aggregates``.
""",
    ),
    cfg.ListOpt(
        'member_sources',
        default=['flavor'],
        item_type=types.String(choices=['flavor', 'image', 'hint']),
        help="""
Where a request's keys of reserved aggregates are looked for.

Keys of all sources count together. Flavors are written by operators. Image
properties and scheduler hints are written by end users: whoever knows the key
of an aggregate may name it there, so turn them on only where every reserved
aggregate, a pool of free hosts too, has a project key
(``member_project_keys``).

Possible values:

* A comma-separated list of these:

  * ``flavor``: names of extra specs, ``reservation:<id>``.
  * ``image``: names of image properties, ``reservation:<id>``. They are read
    from Glance for every request that has an image; where Glance does not
    answer, the request ends in NoValidHost. On rebuild only host filters run,
    which do not ask Glance: there a key of the image does not count, and a
    server that stands on a reserved host by its image alone is refused the
    rebuild.
  * ``hint``: scheduler hints, ``reservation=<id>`` or ``reservation:<id>``
    with any value.

Related options:

* ``[nova_ext_sched] member_project_keys``
* ``[nova_ext_sched] placement_req_required_member_prefix``
* ``[nova_ext_sched] placement_req_default_forbidden_member_prefix``
""",
    ),
    cfg.Opt(
        'member_project_keys',
        type=Beginnings(may_be_none=True),
        default=['filter_tenant_id'],
        help="""
Metadata keys that tell which projects may use a reserved aggregate.

Where an aggregate that a request names has such a key, or one that begins so
(``filter_tenant_id2``), only the projects in the values of these keys may use
it. Values are project IDs, separated by commas. A reserved aggregate without
such a key may be used by every request that names it.

Where several aggregates have the key of a reservation, those that the
request's project may not use do not count; where none is left, the request
ends in NoValidHost.

Possible values:

* A comma-separated list of keys, none of them empty. Add ``blazar:owner``,
  which Blazar sets, where Blazar makes the aggregates. With an empty value
  every request may use every aggregate that it names.

Related options:

* ``[nova_ext_sched] placement_req_required_member_prefix``: aggregates are
  named by keys with these prefixes.
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

FAILURE_DOMAIN_OPTS = [
    cfg.Opt(
        'failure_domain_key',
        type=MetadataKey(),
        default='failure_domain',
        help="""
The metadata key of aggregates that names failure domains.

Hosts that fail together (one rack, one power feed) form a failure domain: an
aggregate whose metadata has this key, and as its value the name of the
domain. Several names are separated by commas; a host that is in several
domains counts in each. Two aggregates with the same name are one domain. A
host without a domain takes no server of a group that asks to be spread.

Possible values:

* A metadata key, exactly as it is written in the aggregates.
  ``availability_zone`` makes every availability zone a failure domain.

Related options:

* ``[nova_ext_sched] max_server_per_failure_domain``
* ``[nova_ext_sched] request_filters`` must have ``failure_domains``, and
  ``[filter_scheduler] enabled_filters`` should have ``FailureDomainFilter``.
""",
    ),
    cfg.Opt(
        'max_server_per_failure_domain',
        type=Limit(),
        default=0,
        help="""
The largest number of servers of an anti-affinity group in a failure domain.

Users ask for it themselves by the scheduler hints
``different_failure_domain=true`` (one server a domain) and
``max_server_per_failure_domain=<n>``, in a server group of any policy. This
option asks it of every server group of the policy ``anti-affinity``. Where
both do, the lower number wins: no hint lifts the operator's limit.

Servers that stand already are not moved. They count, and are held to the
limit when they are moved. Give every host of the cloud a failure domain first:
a host without one takes no server of such a group.

Possible values:

* 0: only the hints ask for it.
* An integer, 1 or more.

Related options:

* ``[nova_ext_sched] failure_domain_key``
* ``[nova_ext_sched] max_forbidden_aggregates`` bounds how many aggregates of
  full domains go into a placement query; ``FailureDomainFilter`` in
  ``[filter_scheduler] enabled_filters`` judges the rest.
* ``[nova_ext_sched] request_filters`` must have ``failure_domains``.
""",
    ),
]

ALL_OPTS = [
    *LOADING_OPTS,
    *ISOLATION_OPTS,
    *RESERVATION_OPTS,
    *AGGREGATE_INSTANCE_TYPE_OPTS,
    *FAILURE_DOMAIN_OPTS,
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option of the package on ``conf``; repeatable."""
    conf.register_group(GROUP)
    conf.register_opts(ALL_OPTS, group=GROUP)


def check(conf: cfg.ConfigOpts) -> None:
    """Meet a slip in nova.conf at start, not amid a request.

    :raises oslo_config.cfg.ConfigFileValueError: as :func:`check_values`
    :raises nova_ext_sched.exception.InvalidValues: an option or the section
        is misspelt (:mod:`.misspelling`)
    """
    misspelling.check(conf, GROUP.name)
    check_values(conf)


def check_values(conf: cfg.ConfigOpts) -> None:
    """Read every option.

    oslo.config reads the values of options that are registered late, as these
    are, when they are first asked for.

    :raises oslo_config.cfg.ConfigFileValueError: a value is not of its
        option's form; the error names option, file and value
    """
    for option in ALL_OPTS:
        getattr(conf[GROUP.name], option.dest)


def list_opts() -> Iterable[tuple[cfg.OptGroup, list[typing.Any]]]:
    """Return the options for oslo-config-generator and Sphinx."""
    return [(GROUP, ALL_OPTS)]


def contradictions(conf: cfg.ConfigOpts) -> list[str]:
    """Return what the options of nova.conf say against one another.

    :param conf: nova's configuration with our options registered
    :returns: a sentence each, with what to do about it
    """
    return [
        *_isolation_contradictions(conf),
        *_reservation_contradictions(conf),
        *_failure_domain_contradictions(conf),
    ]


def _isolation_contradictions(conf: cfg.ConfigOpts) -> list[str]:
    ours = conf.nova_ext_sched
    found = []
    isolating = ours.enable_isolated_aggregate_filtering
    judged = (
        'IsolatedAggregatesFilter' in conf.filter_scheduler.enabled_filters
    )
    if judged and not (
        isolating
        or ours.placement_req_required_member_prefix
        or ours.placement_req_default_forbidden_member_prefix
    ):
        found.append(
            'IsolatedAggregatesFilter is in [filter_scheduler] '
            'enabled_filters and has nothing to judge: no host is isolated '
            'or reserved. Set [nova_ext_sched] '
            'enable_isolated_aggregate_filtering to True or name prefixes of '
            'reserved aggregates, or remove the filter.'
        )
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
    if isolating and not judged:
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


def _reservation_contradictions(conf: cfg.ConfigOpts) -> list[str]:
    ours = conf.nova_ext_sched
    required = tuple(ours.placement_req_required_member_prefix)
    forbidden = tuple(ours.placement_req_default_forbidden_member_prefix)
    if not required and not forbidden:
        return []
    found = []
    for prefix in required:
        if not prefix.startswith(forbidden):
            found.append(
                f'[nova_ext_sched] placement_req_required_member_prefix has '
                f'{prefix} and placement_req_default_forbidden_member_prefix '
                f'does not: a request that names an aggregate with such a '
                f'key lands in it, and nobody else is kept out.'
            )
    for prefix in forbidden:
        if not prefix.startswith(required):
            found.append(
                f'[nova_ext_sched] '
                f'placement_req_default_forbidden_member_prefix has {prefix} '
                f'and placement_req_required_member_prefix does not: a '
                f'request with any key that begins so may land in every '
                f'aggregate that such a key reserves.'
            )
    if 'reserved_aggregates' not in ours.request_filters:
        found.append(
            '[nova_ext_sched] prefixes of reserved aggregates are set and '
            'request_filters does not name reserved_aggregates: placement is '
            'not asked to keep requests in or out of them. Add '
            'reserved_aggregates to [nova_ext_sched] request_filters.'
        )
    if 'IsolatedAggregatesFilter' not in conf.filter_scheduler.enabled_filters:
        found.append(
            '[nova_ext_sched] prefixes of reserved aggregates are set and '
            'IsolatedAggregatesFilter is not in [filter_scheduler] '
            'enabled_filters: nothing judges a rebuild, and '
            'max_forbidden_aggregates has no effect. Add '
            'IsolatedAggregatesFilter to enabled_filters.'
        )
    if not ours.member_sources:
        found.append(
            '[nova_ext_sched] member_sources is empty: no request can name '
            'a reserved aggregate. Add flavor to it.'
        )
    if not ours.member_project_keys and {'image', 'hint'}.intersection(
        ours.member_sources
    ):
        found.append(
            '[nova_ext_sched] member_sources lets end users name reserved '
            'aggregates and member_project_keys is empty: any project may '
            'use any of them. Name the keys that hold the projects.'
        )
    return found


def _failure_domain_contradictions(conf: cfg.ConfigOpts) -> list[str]:
    ours = conf.nova_ext_sched
    enabled = 'FailureDomainFilter' in conf.filter_scheduler.enabled_filters
    found = []
    if (
        enabled or ours.max_server_per_failure_domain
    ) and 'failure_domains' not in ours.request_filters:
        found.append(
            '[nova_ext_sched] request_filters does not name failure_domains, '
            'which counts the servers of a group by failure domain: '
            'FailureDomainFilter refuses every host to requests that ask to '
            'be spread, and without that filter they are not spread. Add '
            'failure_domains to [nova_ext_sched] request_filters.'
        )
    if ours.max_server_per_failure_domain and not enabled:
        found.append(
            '[nova_ext_sched] max_server_per_failure_domain is set and '
            'FailureDomainFilter is not in [filter_scheduler] '
            'enabled_filters: hosts in no failure domain are accepted, and '
            'several servers of one request may land in one domain. Add '
            'FailureDomainFilter to enabled_filters.'
        )
    return found
