# SPDX-License-Identifier: Apache-2.0

"""Options of the language between flavors and aggregates."""

from collections.abc import Iterator

from oslo_config import cfg

OPTS = [
    cfg.ListOpt(
        'force_metadata_check_ignored_keys',
        default=['availability_zone'],
        help="""
Metadata keys that ``force_metadata_check`` ignores.

If the metadata of an aggregate has ``force_metadata_check=true``, only flavors
that match all of its other metadata items can use it. Some items are not
meant for flavors: nova stores the availability zone of an aggregate there,
and other filters and weighers read keys of their own. List these keys here.
If a flavor does have an extra spec for such a key, the filter compares it with
the aggregate's value as plain text.

Possible values:

* A comma-separated list of metadata keys, exactly as they are written in the
  aggregates. A ``*`` at the end matches any characters:
  ``filter_tenant_id*`` also matches ``filter_tenant_id1``. With an empty
  list ``availability_zone`` is checked too: a flavor without an extra spec of
  that name is then rejected. Keys with a prefix of reserved aggregates are
  never checked.

Related options:

* ``[filter_scheduler] enabled_filters`` must have
  ``AggregateInstanceTypeFilter``.
""",
    ),
]


def contradictions(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the contradictions between options of this topic."""
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
