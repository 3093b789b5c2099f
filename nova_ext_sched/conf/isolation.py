# SPDX-License-Identifier: Apache-2.0

"""Options of isolated aggregates."""

from collections.abc import Iterator
import re
import typing

from oslo_config import cfg
from oslo_config import types

_TRAIT_NAME = re.compile(r'[A-Z0-9_]+\*?|\*')


class TraitSources(types.List):
    """A list of sources of traits: ``flavor``, and perhaps ``image``."""

    def __init__(self) -> None:
        super().__init__(
            item_type=types.String(choices=['flavor', 'image']),
            type_name='list value',
        )

    def __call__(self, value: typing.Any) -> list[str]:
        sources: list[str] = super().__call__(value)
        if 'flavor' not in sources:
            raise ValueError(
                "expected 'flavor' or 'flavor,image', got "
                + repr(','.join(sources))
            )
        return sources


class TraitNames(types.List):
    """Names of traits; ``*`` at the end stands for any ending."""

    def __init__(self) -> None:
        super().__init__(type_name='list value')

    def __call__(self, value: typing.Any) -> list[str]:
        names: list[str] = super().__call__(value)
        for name in names:
            if not _TRAIT_NAME.fullmatch(name):
                raise ValueError(
                    'expected names of traits, of A to Z, 0 to 9 and _, got '
                    + repr(name)
                )
        return names


OPTS = [
    cfg.BoolOpt(
        'enable_isolated_aggregate_filtering',
        default=False,
        help="""
Keep requests out of isolated aggregates unless they require their traits.

An aggregate is isolated if its metadata has one or more
``trait:<NAME>=required``. A request may use it only if the extra specs of its
flavor or the properties of its image require all of these traits. The request
filter ``isolate_aggregates`` asks placement to leave the others out. The host
filter ``IsolatedAggregatesFilter`` checks the hosts that placement returns.
Enable both: nova runs no request filter on a rebuild, and no host filter on a
host that an administrator forces at boot.

If the aggregates cannot be read (the API database is down, for example), the
request ends in NoValidHost and the log of nova-scheduler gives the reason.

Related options:

* ``[nova_ext_sched] isolation_trait_sources`` says whether images count.
* ``[filter_scheduler] enabled_filters`` should have
  ``IsolatedAggregatesFilter``. Without it, a server on an isolated host keeps
  its host when it is rebuilt with an image that does not require the traits.
* ``[scheduler] enable_isolated_aggregate_filtering`` is nova's own filter for
  the same purpose. Turn it off, or every request does the work twice.
""",
    ),
    cfg.Opt(
        'isolation_trait_sources',
        type=TraitSources(),
        default=['flavor', 'image'],
        help="""
Where a request may require the traits that open isolated aggregates.

Administrators write flavors. Users write the properties of images, and in a
cloud with default policies a user can put any trait into an image. Glance's
property protection does not prevent this if nova's service user has the role
that the protection names. If an isolated aggregate is a security boundary,
set this to ``flavor`` and give the projects that may use the aggregate a
private flavor.

Servers that are on isolated hosts only because of their images stay there, but
can no longer be rebuilt there, and leave with their next move.
``nova-ext-sched audit`` lists them.

Possible values:

* ``flavor,image``: the traits of flavor and image count together, as in nova.
* ``flavor``: traits of images open no aggregate, at boot, on any move or on
  rebuild. Placement still looks for hosts that have them.

The traits of ports and device profiles always count.
""",
    ),
    cfg.Opt(
        'forbid_by_trait',
        type=TraitNames(),
        default=[],
        help="""
Traits that only the hosts of isolated aggregates have.

List a trait here only if no host outside the aggregates that require it has
it. The placement query then leaves out hosts with the trait
(``root_required=!TRAIT``) instead of the aggregates that require it, so that
it grows with the number of traits, not of aggregates. If a host of such an
aggregate lacks the trait, ``IsolatedAggregatesFilter`` rejects it. Only traits
of a host's own provider count, not those of its devices.

Use this option if you have more isolated aggregates than
``max_forbidden_aggregates``, or if ``max_placement_results`` cuts off
suitable hosts. A trait is ignored here if placement does not know it, or if
the request requires it of the host in another way.

Possible values:

* A comma-separated list of trait names. ``*`` at the end of a name matches
  any ending: ``CUSTOM_LICENSED_*``.

Related options:

* ``[filter_scheduler] enabled_filters`` must have
  ``IsolatedAggregatesFilter``. Without it, and for hosts that an
  administrator forced, the query names UUIDs in spite of this option.
""",
    ),
]


def contradictions(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the contradictions between options of this topic."""
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
