# SPDX-License-Identifier: Apache-2.0

"""Options of reserved aggregates."""

from collections.abc import Iterator
import typing

from oslo_config import cfg
from oslo_config import types


class Prefixes(types.List):
    """A list of prefixes of keys, none of them empty.

    An empty prefix would match every key and close every aggregate. A line
    without a value has no prefix, as the generated sample has it.
    """

    def __call__(self, value: typing.Any) -> list[str]:
        if isinstance(value, str):
            if not value.strip():
                return []
            value = [part.strip() for part in value.split(',')]
        if not all(part.strip('\'" ') for part in value):
            raise ValueError(
                'expected prefixes of keys, separated by commas, none of '
                'them empty (to have none, leave it empty), got '
                + repr(','.join(value))
            )
        return list(value)


OPTS = [
    cfg.Opt(
        'placement_req_required_member_prefix',
        type=Prefixes(),
        default=[],
        help="""
Prefixes of the keys by which a request names its reserved aggregates.

If a request has a key with one of these prefixes, for example in the extra
specs of its flavor, its server must land on a host of an aggregate whose
metadata has exactly this key. If several aggregates have the key, any of them
will do. A request with several such keys needs a host that is in an aggregate
of each key. The values of the keys do not matter.

A request ends in NoValidHost if no aggregate has its key, or if its project
may use none of those that do. The log of nova-scheduler names the key.

Keys are compared exactly: case matters, and ``%`` and ``_`` have no special
meaning. ``AggregateInstanceTypeFilter`` ignores keys with these prefixes.

Possible values:

* A comma-separated list of prefixes, such as ``reservation:``. nova-scheduler
  does not start if one of several prefixes is empty.

Related options:

* ``[nova_ext_sched] placement_req_default_forbidden_member_prefix`` should
  have the same prefixes. A prefix that is only here sends requests with such
  a key to the aggregate, but keeps no other request out.
* ``[nova_ext_sched] member_sources`` says where a request may have keys, and
  ``member_project_keys`` which projects may use an aggregate.
* ``[nova_ext_sched] request_filters`` must have ``reserved_aggregates``.
""",
    ),
    cfg.Opt(
        'placement_req_default_forbidden_member_prefix',
        type=Prefixes(),
        default=[],
        help="""
Prefixes of the metadata keys that reserve an aggregate.

A request without a key with the prefix is kept out of every aggregate whose
metadata has such a key. A request with such a key gets the aggregate that the
key names (``placement_req_required_member_prefix``). Each prefix is
independent: a key with one prefix does not open the aggregates of another.

Possible values:

* The same as for ``placement_req_required_member_prefix``. With an empty list,
  no aggregate is reserved. ``force_metadata_check`` ignores keys with these
  prefixes.

Related options:

* ``[nova_ext_sched] placement_req_required_member_prefix`` should have the
  same prefixes. If a prefix is only here, a request with any key of the
  prefix may use every host that such a key reserves.
* ``[filter_scheduler] enabled_filters`` should have
  ``IsolatedAggregatesFilter``, which checks rebuilds, and the aggregates above
  ``[nova_ext_sched] max_forbidden_aggregates``.
* ``[nova_ext_sched] request_filters`` must have ``reserved_aggregates``.
""",
    ),
    cfg.ListOpt(
        'member_sources',
        default=['flavor'],
        item_type=types.String(choices=['flavor', 'image', 'hint']),
        help="""
Where a request may name reserved aggregates.

The keys of all sources count together. Operators write flavors. End users
write image properties and scheduler hints, and can put any key there that they
know. Add ``image`` and ``hint`` only if every reserved aggregate, including a
pool of free hosts, has a project key (``member_project_keys``).

Possible values:

* A comma-separated list of these:

  * ``flavor``: names of extra specs, ``reservation:<id>``.
  * ``image``: names of image properties, ``reservation:<id>``. nova-scheduler
    reads them from Glance for every request that has an image. If Glance does
    not answer, the request ends in NoValidHost. On rebuild a key of the image
    does not count: a server whose image alone names the reservation cannot be
    rebuilt on its reserved host.
  * ``hint``: scheduler hints, ``reservation=<id>`` or ``reservation:<id>``
    with any value.
""",
    ),
    cfg.Opt(
        'member_project_keys',
        type=Prefixes(),
        default=['filter_tenant_id'],
        help="""
Metadata keys that say which projects may use a reserved aggregate.

If an aggregate that a request names has one of these keys, or a key that
begins with one (``filter_tenant_id2``), only the projects in the values of
these keys may use it. A value is one project ID, or several separated by
commas. A reserved aggregate without such a key is open to every request that
names it. If several aggregates have the key of a reservation, the request gets
those that its project may use. If there are none, the request ends in
NoValidHost.

Possible values:

* A comma-separated list of keys, none of them empty. If Blazar makes the
  aggregates, add ``blazar:owner``, which Blazar sets. With an empty value,
  every request may use every aggregate that it names.
""",
    ),
]


def contradictions(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the contradictions between options of this topic."""
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
                'not: a request with any key of this prefix can use every '
                f'aggregate that such a key reserves. Add {prefix} to both '
                f'options.'
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
            'aggregates, but member_project_keys is empty: every project can '
            'use every reserved aggregate. Set member_project_keys to the '
            'metadata keys that hold the projects.'
        )
