# SPDX-License-Identifier: Apache-2.0

"""The options of ``[nova_ext_sched]`` in nova.conf."""

from collections.abc import Iterable
from collections.abc import Iterator
import typing

from oslo_config import cfg
from oslo_config import types

from nova_ext_sched import misspelling


class Prefixes(types.List):
    """A list of prefixes of keys, none of them empty.

    An empty prefix would match every key and close every aggregate.

    :param may_be_empty: whether an empty value means an empty list
    """

    def __init__(self, may_be_empty: bool = False) -> None:
        super().__init__()
        self._may_be_empty = may_be_empty

    def __call__(self, value: typing.Any) -> list[str]:
        if isinstance(value, str):
            if self._may_be_empty and not value.strip():
                return []
            value = [part.strip() for part in value.split(',')]
        if not all(part.strip('\'" ') for part in value):
            remedy = (
                'leave it empty' if self._may_be_empty else 'remove the line'
            )
            raise ValueError(
                'expected prefixes of keys, separated by commas, none of '
                f'them empty (to have none, {remedy}), got '
                + repr(','.join(value))
            )
        return list(value)


class MetadataKey(types.String):
    """A key of aggregate metadata; it must not be empty."""

    def __call__(self, value: typing.Any) -> str:
        key: str = super().__call__(value).strip()
        if not key:
            raise ValueError('expected a metadata key, got an empty value')
        return key


class Limit(types.Integer):
    """An integer, which oslo.config lets be empty, and this does not."""

    def __call__(self, value: typing.Any) -> int:
        limit: int | None = super().__call__(value)
        if limit is None:
            raise ValueError('expected an integer, got an empty value')
        return limit


GROUP = cfg.OptGroup(
    'nova_ext_sched',
    title='nova-ext-sched',
    help='Placement policies of nova-ext-sched, a plugin of nova-scheduler.',
)

ALL_OPTS = [
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
""",
    ),
    cfg.BoolOpt(
        'enable_isolated_aggregate_filtering',
        default=False,
        help="""
Keep requests out of isolated aggregates whose traits they do not require.

An aggregate is isolated if its metadata has one or more
``trait:<NAME>=required``. A request may use it only if the extra specs of its
flavor and the properties of its image together require all of these traits.
The request filter ``isolate_aggregates`` asks placement to leave the other
isolated aggregates out. The host filter ``IsolatedAggregatesFilter`` checks
the hosts that placement returns. On rebuild nova runs no request filter, so
only the host filter guards the aggregates.

If the request filter cannot read the aggregates (the API database is down,
for example), the request ends in NoValidHost and the log of nova-scheduler
has the reason. No request is ever scheduled unfiltered.

Possible values:

* True: isolate.
* False: ``trait:`` metadata of aggregates has no effect.

Related options:

* ``[filter_scheduler] enabled_filters`` should have
  ``IsolatedAggregatesFilter``. Without it, a server on an isolated host keeps
  its host when it is rebuilt with an image that does not require the traits.
* ``[scheduler] enable_isolated_aggregate_filtering`` is nova's own filter for
  the same purpose. If both are on, every request does the work twice: turn
  nova's off.
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

The default fits every common web server except uwsgi with its default buffer
of 4096 bytes. Set 30 there, or raise uwsgi's ``buffer-size``.

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
    cfg.ListOpt(
        'forbid_by_trait',
        default=[],
        help="""
Traits that only the hosts of isolated aggregates have.

List a trait here only if no host outside the aggregates that require it has
it. Placement is then asked to leave out hosts with the trait
(``root_required=!TRAIT``) in place of the aggregates that require it. The
query grows with the number of traits, not with the number of aggregates.

Use this option if you have more isolated aggregates than
``max_forbidden_aggregates``, or if ``max_placement_results`` cuts off
suitable hosts. With few aggregates it gains nothing.

If a host of such an aggregate lacks the trait, placement returns it and
``IsolatedAggregatesFilter`` rejects it. A trait has no effect here if
placement does not know it, or if the request requires it of the host in
another way.

Possible values:

* A comma-separated list of trait names. ``*`` at the end of a name stands for
  any ending: ``CUSTOM_LICENSED_*``.

Related options:

* ``[filter_scheduler] enabled_filters`` must have
  ``IsolatedAggregatesFilter``. Without it, and for hosts that an
  administrator forced, this option has no effect and UUIDs are used.
* ``[nova_ext_sched] max_forbidden_aggregates``
""",
    ),
    cfg.Opt(
        'placement_req_required_member_prefix',
        type=Prefixes(),
        default=[],
        sample_default='reservation:',
        help="""
Prefixes of the keys with which a request names its reserved aggregates.

If a request has a key with one of these prefixes, for example in the extra
specs of its flavor, its server must land on a host of an aggregate whose
metadata has exactly this key. If several aggregates have the key, any of them
will do. A request with several such keys needs a host that is in an aggregate
for each of them. The values of the keys do not matter.

A request ends in NoValidHost if no aggregate has its key, or if its project
may use none of those that do. The log of nova-scheduler names the key.

Keys are compared exactly: case matters, and ``%`` and ``_`` have no special
meaning. ``AggregateInstanceTypeFilter`` ignores keys with these prefixes.

Possible values:

* A comma-separated list of prefixes, such as ``reservation:``. An empty
  prefix stops nova-scheduler at start. Without this option, no key requires
  an aggregate.

Related options:

* ``[nova_ext_sched] placement_req_default_forbidden_member_prefix`` should
  have the same prefixes. A prefix that is only here sends the requests with
  the key to the aggregate and keeps nobody else out. nova-scheduler warns
  about it at start.
* ``[nova_ext_sched] member_sources`` says where a request may have keys.
* ``[nova_ext_sched] member_project_keys`` says which projects may use an
  aggregate.
* ``[nova_ext_sched] request_filters`` must have ``reserved_aggregates``.
""",
    ),
    cfg.Opt(
        'placement_req_default_forbidden_member_prefix',
        type=Prefixes(),
        default=[],
        sample_default='reservation:',
        help="""
Prefixes of the metadata keys that reserve an aggregate.

A request without a key with the prefix is kept out of every aggregate whose
metadata has such a key. A request with such a key gets the aggregate that the
key names (``placement_req_required_member_prefix``). Each prefix is
independent: a key with one prefix does not open the aggregates of another.

Keys are compared exactly: case matters, and ``%`` and ``_`` have no special
meaning. ``AggregateInstanceTypeFilter`` ignores keys with these prefixes, and
``force_metadata_check`` does not force them.

Possible values:

* A comma-separated list of prefixes, such as ``reservation:``. An empty
  prefix stops nova-scheduler at start. Without this option, no aggregate is
  reserved.

Related options:

* ``[nova_ext_sched] placement_req_required_member_prefix`` should have the
  same prefixes. If a prefix is only here, a request with any key of the
  prefix may use every host that such a key reserves. nova-scheduler warns
  about it at start.
* ``[nova_ext_sched] max_forbidden_aggregates`` limits how many aggregates one
  placement query names. ``IsolatedAggregatesFilter`` in
  ``[filter_scheduler] enabled_filters`` checks the hosts of the rest.
* ``[nova_ext_sched] request_filters`` must have ``reserved_aggregates``.
""",
    ),
    cfg.ListOpt(
        'member_sources',
        default=['flavor'],
        item_type=types.String(choices=['flavor', 'image', 'hint']),
        help="""
Where a request may have keys of reserved aggregates.

The keys of all sources count together. Operators write flavors. End users
write image properties and scheduler hints: whoever knows the key of an
aggregate can put it there. Turn ``image`` and ``hint`` on only if every
reserved aggregate, including a pool of free hosts, has a project key
(``member_project_keys``).

Possible values:

* A comma-separated list of these:

  * ``flavor``: names of extra specs, ``reservation:<id>``.
  * ``image``: names of image properties, ``reservation:<id>``. nova-scheduler
    reads them from Glance for every request that has an image. If Glance does
    not answer, the request ends in NoValidHost. On rebuild only host filters
    run, and they do not ask Glance. A key of the image does not count there:
    a server that is on a reserved host only because of its image cannot be
    rebuilt.
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
        type=Prefixes(may_be_empty=True),
        default=['filter_tenant_id'],
        help="""
Metadata keys that say which projects may use a reserved aggregate.

If an aggregate that a request names has one of these keys, or a key that
begins with one (``filter_tenant_id2``), only the projects in the values of
these keys may use it. A value is one project ID or several, separated by
commas. If a reserved aggregate has no such key, every request that names it
may use it.

If several aggregates have the key of a reservation, only those that the
request's project may use count. If none is left, the request ends in
NoValidHost.

Possible values:

* A comma-separated list of keys, none of them empty. If Blazar makes the
  aggregates, add ``blazar:owner``, which Blazar sets. With an empty value,
  every request may use every aggregate that it names.

Related options:

* ``[nova_ext_sched] placement_req_required_member_prefix``: keys with these
  prefixes name aggregates.
""",
    ),
    cfg.ListOpt(
        'force_metadata_check_ignored_keys',
        default=['availability_zone'],
        help="""
Metadata keys that ``force_metadata_check`` does not force upon flavors.

If the metadata of an aggregate has ``force_metadata_check=true``, every
flavor must agree with each of its other metadata items. Some items are not
meant for flavors: nova stores the availability zone of an aggregate there,
and other filters and weighers read keys of their own. List these keys here.
If a flavor has an extra spec for such a key, it is compared with the
aggregate's value as plain text.

Possible values:

* A comma-separated list of metadata keys, exactly as they are written in the
  aggregates. An empty list also forces ``availability_zone``: a flavor
  without an extra spec of that name is then rejected.

Related options:

* ``[filter_scheduler] enabled_filters`` must have
  ``AggregateInstanceTypeFilter``. Without it this option has no effect.
* Keys with a prefix of
  ``[nova_ext_sched] placement_req_required_member_prefix`` or
  ``[nova_ext_sched] placement_req_default_forbidden_member_prefix`` are never
  forced.
""",
    ),
    cfg.Opt(
        'failure_domain_key',
        type=MetadataKey(),
        default='failure_domain',
        help="""
The metadata key of aggregates whose value names failure domains.

A failure domain is a set of hosts that fail together, such as a rack or a
power feed: the hosts of an aggregate whose metadata has this key. The value
is the name of the domain, or several names separated by commas. A host in
several domains counts in each. Two aggregates with the same name are one
domain. A host without a domain takes no server of a group that asks to be
spread.

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
        type=Limit(min=0),
        default=0,
        help="""
The largest number of servers of an anti-affinity group in a failure domain.

Users can ask for a limit with the scheduler hints
``different_failure_domain=true`` (one server in each domain) and
``max_server_per_failure_domain=<n>``, for a server group of any policy. This
option sets a limit for every server group with the policy ``anti-affinity``.
If both apply, the lower number wins: a hint never lifts the operator's limit.

Existing servers are not moved. They count, and the limit applies to them when
they are moved. Give every host of the cloud a failure domain first: a host
without one takes no server of such a group.

Possible values:

* 0: only hints set a limit.
* An integer, 1 or more.

Related options:

* ``[nova_ext_sched] failure_domain_key``
* ``[nova_ext_sched] max_forbidden_aggregates`` limits how many aggregates of
  full domains one placement query names. ``FailureDomainFilter`` in
  ``[filter_scheduler] enabled_filters`` checks the hosts of the rest.
* ``[nova_ext_sched] request_filters`` must have ``failure_domains``.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option of the package on ``conf``; idempotent."""
    conf.register_group(GROUP)
    conf.register_opts(ALL_OPTS, group=GROUP)
    from nova_ext_sched import conf_blazar

    conf_blazar.register_blazar_opts(conf)


def check(conf: cfg.ConfigOpts) -> None:
    """Find mistakes in nova.conf at start, not during a request.

    :raises oslo_config.cfg.ConfigFileValueError: as :func:`check_values`
    :raises nova_ext_sched.exception.InvalidValues: an option or the section
        is misspelt (:mod:`.misspelling`)
    """
    misspelling.check(conf, GROUP.name)
    check_values(conf)


def check_values(conf: cfg.ConfigOpts) -> None:
    """Check the value of every option.

    These options are registered late, and oslo.config parses such options
    only when they are first read.

    :raises oslo_config.cfg.ConfigFileValueError: a value is invalid; the
        error names option, file and value
    """
    for option in ALL_OPTS:
        getattr(conf[GROUP.name], option.dest)


def list_opts() -> Iterable[tuple[cfg.OptGroup, list[typing.Any]]]:
    """Return the options for oslo-config-generator and Sphinx."""
    return [(GROUP, ALL_OPTS)]


def contradictions(conf: cfg.ConfigOpts) -> list[str]:
    """Return the contradictions between options of nova.conf.

    :param conf: nova's configuration with our options registered
    :returns: a message for each, with what to do about it
    """
    return [
        *_isolation_contradictions(conf),
        *_reservation_contradictions(conf),
        *_failure_domain_contradictions(conf),
    ]


def _isolation_contradictions(conf: cfg.ConfigOpts) -> Iterator[str]:
    ours = conf.nova_ext_sched
    isolating = ours.enable_isolated_aggregate_filtering
    judged = (
        'IsolatedAggregatesFilter' in conf.filter_scheduler.enabled_filters
    )
    if judged and not (
        isolating
        or ours.placement_req_required_member_prefix
        or ours.placement_req_default_forbidden_member_prefix
    ):
        yield (
            'IsolatedAggregatesFilter is in [filter_scheduler] '
            'enabled_filters, but no option isolates or reserves an '
            'aggregate, so it checks nothing. Set [nova_ext_sched] '
            'enable_isolated_aggregate_filtering to True, set prefixes of '
            'reserved aggregates, or remove the filter.'
        )
    if isolating and conf.scheduler.enable_isolated_aggregate_filtering:
        yield (
            "Both [scheduler] enable_isolated_aggregate_filtering (nova's) "
            'and [nova_ext_sched] enable_isolated_aggregate_filtering are '
            "True. Every request does the work twice, and nova's filter "
            'ignores max_forbidden_aggregates: it puts every isolated '
            'aggregate into the placement query. Set the option in '
            '[scheduler] to False.'
        )
    if isolating and 'isolate_aggregates' not in ours.request_filters:
        yield (
            '[nova_ext_sched] enable_isolated_aggregate_filtering is True, '
            'but request_filters does not have isolate_aggregates: placement '
            'is not asked to leave isolated aggregates out. Add '
            'isolate_aggregates to [nova_ext_sched] request_filters.'
        )
    if isolating and not judged:
        yield (
            '[nova_ext_sched] enable_isolated_aggregate_filtering is True, '
            'but IsolatedAggregatesFilter is not in [filter_scheduler] '
            'enabled_filters. A server on an isolated host keeps its host '
            'when it is rebuilt with an image that does not require the '
            'traits, and max_forbidden_aggregates and forbid_by_trait have '
            'no effect. Add IsolatedAggregatesFilter to enabled_filters.'
        )
    if {
        'AggregateInstanceExtraSpecsFilter',
        'AggregateInstanceTypeFilter',
    } <= set(conf.filter_scheduler.enabled_filters):
        yield (
            "Both AggregateInstanceExtraSpecsFilter (nova's) and "
            'AggregateInstanceTypeFilter are in [filter_scheduler] '
            "enabled_filters. nova's filter reads *, ~ and ! as plain values "
            'and rejects hosts that AggregateInstanceTypeFilter accepts. '
            'Remove AggregateInstanceExtraSpecsFilter.'
        )


def _reservation_contradictions(conf: cfg.ConfigOpts) -> Iterator[str]:
    ours = conf.nova_ext_sched
    required = tuple(ours.placement_req_required_member_prefix)
    forbidden = tuple(ours.placement_req_default_forbidden_member_prefix)
    if not required and not forbidden:
        return
    for prefix in required:
        if not prefix.startswith(forbidden):
            yield (
                f'[nova_ext_sched] placement_req_required_member_prefix has '
                f'{prefix}, but placement_req_default_forbidden_member_prefix '
                f'does not: a request with such a key lands in the aggregate '
                f'that the key names, but no other is kept out. Add '
                f'{prefix} to both options.'
            )
    for prefix in forbidden:
        if not prefix.startswith(required):
            yield (
                f'[nova_ext_sched] '
                f'placement_req_default_forbidden_member_prefix has '
                f'{prefix}, but placement_req_required_member_prefix does '
                f'not: a request with any key of this prefix may use every '
                f'aggregate that such a key reserves. Add {prefix} to both '
                f'options.'
            )
    if 'reserved_aggregates' not in ours.request_filters:
        yield (
            '[nova_ext_sched] prefixes of reserved aggregates are set, but '
            'request_filters does not have reserved_aggregates: placement is '
            'not asked to keep requests in or out of them. Add '
            'reserved_aggregates to [nova_ext_sched] request_filters.'
        )
    if 'IsolatedAggregatesFilter' not in conf.filter_scheduler.enabled_filters:
        yield (
            '[nova_ext_sched] prefixes of reserved aggregates are set, but '
            'IsolatedAggregatesFilter is not in [filter_scheduler] '
            'enabled_filters: no filter checks a rebuild, and '
            'max_forbidden_aggregates has no effect. Add '
            'IsolatedAggregatesFilter to enabled_filters.'
        )
    if not ours.member_sources:
        yield (
            '[nova_ext_sched] member_sources is empty: no request can name '
            'a reserved aggregate. Add flavor to it.'
        )
    if not ours.member_project_keys and {'image', 'hint'}.intersection(
        ours.member_sources
    ):
        yield (
            '[nova_ext_sched] member_sources lets end users name reserved '
            'aggregates, but member_project_keys is empty: every project may '
            'use every reserved aggregate. Set member_project_keys to the '
            'metadata keys that hold the projects.'
        )


def _failure_domain_contradictions(conf: cfg.ConfigOpts) -> Iterator[str]:
    ours = conf.nova_ext_sched
    enabled = 'FailureDomainFilter' in conf.filter_scheduler.enabled_filters
    if (
        enabled or ours.max_server_per_failure_domain
    ) and 'failure_domains' not in ours.request_filters:
        yield (
            '[nova_ext_sched] request_filters does not have failure_domains, '
            'which counts the servers of a group in each failure domain. '
            'FailureDomainFilter rejects every host for requests that ask to '
            'be spread; without that filter they are not spread. Add '
            'failure_domains to [nova_ext_sched] request_filters.'
        )
    if ours.max_server_per_failure_domain and not enabled:
        yield (
            '[nova_ext_sched] max_server_per_failure_domain is set, but '
            'FailureDomainFilter is not in [filter_scheduler] '
            'enabled_filters: hosts in no failure domain are accepted, and '
            'several servers of one request may land in one domain. Add '
            'FailureDomainFilter to enabled_filters.'
        )
