# SPDX-License-Identifier: Apache-2.0

"""Options of isolated aggregates."""

from collections.abc import Iterator
import typing

from oslo_config import cfg
from oslo_config import types


class TraitSources(types.List):
    """Where traits count: ``flavor``, and perhaps ``image``."""

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


OPTS = [
    cfg.BoolOpt(
        'enable_isolated_aggregate_filtering',
        default=False,
        help="""
Keep requests out of isolated aggregates whose traits they do not require.

An aggregate is isolated if its metadata has one or more
``trait:<NAME>=required``. A request may use it only if it requires all of
these traits, in the extra specs of its flavor or the properties of its image.
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

* ``[nova_ext_sched] isolation_trait_sources`` says whether the properties of
  images count.
* ``[filter_scheduler] enabled_filters`` should have
  ``IsolatedAggregatesFilter``. Without it, a server on an isolated host keeps
  its host when it is rebuilt with an image that does not require the traits.
* ``[scheduler] enable_isolated_aggregate_filtering`` is nova's own filter for
  the same purpose. If both are on, every request does the work twice: turn
  nova's off.
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
property protection does not prevent this where nova's service user has the
role that the protection names. If an isolated aggregate is a matter of
security, and not of comfort, set this to ``flavor`` and give the projects
that may use the aggregate a private flavor.

With ``flavor`` alone no property of an image opens an aggregate, at boot, at
any move and on rebuild. The traits of ports and device profiles always count.
Placement still looks for hosts with the traits of the image.

Servers that are on isolated hosts because of their images are not moved. From
then on they cannot be rebuilt there, and their next move takes them away.
``nova-ext-sched audit`` lists them.

Possible values:

* ``flavor,image``: the traits of flavor and image count together, as in nova.
* ``flavor``: traits of images open nothing.

Related options:

* ``[nova_ext_sched] enable_isolated_aggregate_filtering`` must be True.
  Without it this option has no effect.
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
