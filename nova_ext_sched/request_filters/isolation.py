# SPDX-License-Identifier: Apache-2.0

"""Stage 1 of isolation: keep requests out of isolated aggregates."""

from collections.abc import Set
import typing

import nova.conf
from oslo_log import log as logging

from nova_ext_sched import exception
from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched.policy import isolation
from nova_ext_sched.queries import aggregates
from nova_ext_sched.queries import isolation as asked
from nova_ext_sched.queries import placement
from nova_ext_sched.queries import running_image
from nova_ext_sched.request_filters import base
from nova_ext_sched.request_filters import member_of

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

LOG_ONCE = log_once.LogOnce(__name__, advice=log_once.CHECKED)
OUTAGE = base.Outage(__name__, logging.WARNING)

# After a trait is deleted, placement refuses every query that forbids it for
# so long.
TRAITS_SECONDS = 30.0


@base.fail_closed(isolation.DECLARATION)
def isolate_aggregates(ctxt: typing.Any, request_spec: typing.Any) -> bool:
    """Keep a request out of the aggregates whose traits it does not require.

    :mod:`nova_ext_sched.policy.isolation` makes the decision, and
    :mod:`nova_ext_sched.queries.isolation` says what the request requires.

    Changes :mod:`.member_of` and, for traits of ``forbid_by_trait``,
    ``root_forbidden``; and ``image`` of a server that was refused a rebuild
    (:mod:`.running_image`).

    :returns: False if ``enable_isolated_aggregate_filtering`` is off
    :raises nova.exception.RequestFilterFailed: the aggregates, or the image
        that a server runs, cannot be read; nor can nova read what the request
        requires
    """
    if not CONF.nova_ext_sched.enable_isolated_aggregate_filtering:
        return False

    items = aggregates.get_metadata(ctxt, [isolation.PREFIX])
    isolating, faults = isolation.read(items)
    for fault in faults:
        LOG_ONCE.warning(fault)
    query = member_of.Query(request_spec, isolation.DECLARATION)
    if not isolating:
        return True
    if asked.image_counts():
        running_image.restore(ctxt, request_spec, 'isolation')
    required, queried = _read_traits_of(request_spec)
    usable = (
        _find_usable(ctxt, set().union(*isolating.values()) - queried)
        if query.is_judged
        else set()
    )

    resolved = isolation.resolve(isolating, required, usable, query.room)

    query.write(ctxt, resolved, items)
    LOG.debug(
        'isolate_aggregates: the request requires %s. The placement query '
        'forbids by trait: %s',
        messages.first_few(sorted(required)) or 'no trait',
        messages.first_few(sorted(resolved.traits)) or 'none',
    )
    return True


def _read_traits_of(request_spec: typing.Any) -> tuple[set[str], Set[str]]:
    """Return the traits that open aggregates, and all that the query requires.

    Placement finds no host for a trait that is required and forbidden, or
    answers 400.
    """
    try:
        required = asked.required_traits(request_spec)
        queried = required
        if not asked.image_counts() and CONF.nova_ext_sched.forbid_by_trait:
            # What the image requires opens nothing, and is in the query all
            # the same.
            queried = asked.read_requested(request_spec)
        return required, queried | request_spec.root_required
    except Exception as exc:
        # Nothing but the request is read.
        raise exception.RequestRefused(
            'nova cannot read what flavor and image require',
            messages.say_error(exc),
            by_member=asked.is_faulty_by_image(request_spec),
        ) from None


def _find_usable(ctxt: typing.Any, traits: Set[str]) -> Set[str]:
    """Return the traits that may be forbidden in place of aggregates.

    :param traits: traits that isolated aggregates require, and the query does
        not
    """
    declared = isolation.DeclaredTraits(CONF.nova_ext_sched.forbid_by_trait)
    if not declared:
        return set()
    usable = {trait for trait in traits if trait in declared}
    known = _get_known_traits(ctxt) if usable else frozenset()
    for trait in sorted(usable - known) if known else ():
        LOG_ONCE.warning(
            f'Placement does not know the trait {messages.clean(trait)}, so '
            f'no query can forbid it. The query names the aggregates that '
            f'require it instead. Correct the metadata of the aggregates or '
            f'create the trait.'
        )
    return usable & known


def _get_known_traits(ctxt: typing.Any) -> frozenset[str]:
    # Placement answers 400 to a query that forbids a trait it does not know.
    # If they cannot be read, none counts as known, and UUIDs go in.
    try:
        return _read_traits(ctxt)
    except Exception as exc:
        # keystoneauth, JSON, configuration: whichever it is, the query for
        # candidates that follows meets it too and nova reports it.
        fault = exc
    # Not in the clause: oslo.log would append the exception.
    OUTAGE.failed('The traits cannot be read from placement', fault)
    return frozenset()


@base.cached(TRAITS_SECONDS)
def _read_traits(ctxt: typing.Any) -> frozenset[str]:
    return placement.get_traits(ctxt)
