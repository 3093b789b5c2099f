# SPDX-License-Identifier: Apache-2.0

"""Stage 1 of isolation: keep requests out of isolated aggregates."""

from collections.abc import Collection
from collections.abc import Mapping
import typing

import nova.conf
from nova.scheduler import utils
from oslo_log import log as logging

from nova_ext_sched import aggregates
from nova_ext_sched import faults
from nova_ext_sched import messages
from nova_ext_sched.policy import isolation
from nova_ext_sched.request_filters import base
from nova_ext_sched.request_filters import bound
from nova_ext_sched.request_filters import known_traits
from nova_ext_sched.request_filters import running_image

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

HOST_FILTER = 'IsolatedAggregatesFilter'

_faults = faults.FaultLog(LOG)
_known_traits = known_traits.KnownTraits()


@base.fail_closed
def isolate_aggregates(ctxt: typing.Any, request_spec: typing.Any) -> bool:
    """Keep a request out of the aggregates whose traits it does not require.

    :mod:`nova_ext_sched.policy.isolation` makes the decision. The request
    requires nova's ResourceRequest.all_required_traits: the traits of the
    flavor (granular ones too) and the image, and those that nova derives from
    ports, device profiles and ``hw:`` extra specs.

    Changes ``requested_destination.forbidden_aggregates`` and, for traits of
    ``forbid_by_trait``, ``root_forbidden``; and ``image`` of a server that
    was refused a rebuild (:mod:`.running_image`).

    :returns: False if ``enable_isolated_aggregate_filtering`` is off
    :raises nova.exception.RequestFilterFailed: the aggregates, or the image
        that a server runs, cannot be read
    """
    if not CONF.nova_ext_sched.enable_isolated_aggregate_filtering:
        return False

    items = aggregates.get_metadata(ctxt, [isolation.PREFIX])
    isolating, slips = isolation.read(items)
    for slip in slips:
        _faults.warn(slip)
    if not isolating:
        return True
    running_image.restore(ctxt, request_spec)
    required = utils.ResourceRequest.from_request_spec(
        request_spec
    ).all_required_traits
    missing = isolation.lacking_traits(isolating, required)

    traits, others = _split_by_trait(ctxt, request_spec, missing)
    request_spec.root_forbidden.update(traits)
    uuids = bound.choose_aggregates(
        ctxt, request_spec, others, HOST_FILTER, candidates=isolating
    )
    base.forbid_aggregates(request_spec, uuids)

    if LOG.isEnabledFor(logging.DEBUG):
        names = {item[1] for item in items if item[0] in missing}
        LOG.debug(
            'isolate_aggregates: the request requires %(required)s and must '
            'stay out of %(missing)s: %(names)s. The placement query forbids '
            '%(uuids)s, and by trait: %(traits)s',
            {
                'missing': messages.count('isolated aggregate', len(missing)),
                'required': messages.first_few(sorted(required)) or 'no trait',
                'uuids': messages.count('aggregate UUID', len(uuids)),
                'traits': messages.first_few(sorted(traits)) or 'none',
                'names': messages.first_few(sorted(names)) or 'none',
            },
        )
    return True


def _split_by_trait(
    ctxt: typing.Any,
    request_spec: typing.Any,
    missing: Mapping[str, Collection[str]],
) -> tuple[set[str], set[str]]:
    """Return the traits to forbid, and the aggregates that none covers."""
    declared = isolation.DeclaredTraits(CONF.nova_ext_sched.forbid_by_trait)
    if not declared or not bound.host_filter_judges(request_spec, HOST_FILTER):
        return set(), set(missing)
    usable = {
        trait
        for traits in missing.values()
        for trait in traits
        # Placement answers 400 to a trait that is required and forbidden.
        if trait in declared and trait not in request_spec.root_required
    }
    known = _known_traits.get(ctxt) if usable else frozenset()
    for trait in sorted(usable - known) if known else ():
        _faults.warn(
            f'Placement does not know the trait {messages.quote(trait)}, so '
            f'no query can forbid it. The query names the aggregates that '
            f'require it instead. Correct the metadata of the aggregates or '
            f'create the trait.'
        )
    return isolation.split_by_trait(
        missing, usable & known, bound.remaining_entries(request_spec)
    )
