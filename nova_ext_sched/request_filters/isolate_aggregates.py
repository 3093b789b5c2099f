# SPDX-License-Identifier: Apache-2.0

"""Stage 1 of isolation: keep requests out of isolated aggregates."""

import typing

import nova.conf
from nova.scheduler import utils
from oslo_log import log as logging

from nova_ext_sched import faults
from nova_ext_sched import messages
from nova_ext_sched.policy import isolation
from nova_ext_sched.request_filters import base
from nova_ext_sched.request_filters import bound
from nova_ext_sched.request_filters import known_traits
from nova_ext_sched.request_filters import lookup
from nova_ext_sched.request_filters import running_image

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

NAME = 'isolate_aggregates'
HOST_FILTER = 'IsolatedAggregatesFilter'

_faults = faults.FaultLog(LOG)
_known_traits = known_traits.KnownTraits()


@base.fail_closed
def isolate_aggregates(ctxt: typing.Any, request_spec: typing.Any) -> bool:
    """Keep a request out of the aggregates whose traits it does not require.

    The decision is :mod:`nova_ext_sched.policy.isolation`'s. What the request
    requires is nova's ResourceRequest.all_required_traits: traits of the
    flavor (granular ones too) and the image, and those that nova derives from
    ports, device profiles and ``hw:`` extra specs.

    Changes ``requested_destination.forbidden_aggregates`` and, for traits of
    ``forbid_by_trait``, ``root_forbidden``; and ``image`` of a server that
    was refused a rebuild (:mod:`.running_image`).

    :returns: False where ``enable_isolated_aggregate_filtering`` is off
    :raises nova.exception.RequestFilterFailed: the aggregates, or the image
        that a server runs, cannot be read
    """
    if not CONF.nova_ext_sched.enable_isolated_aggregate_filtering:
        return False

    items = lookup.take_metadata(ctxt, request_spec, NAME)
    for item in [i for i in items if i[3] != isolation.REQUIRED]:
        _faults.warn(isolation.unread_value(item.name, item.key, item.value))

    if not any(item.value == isolation.REQUIRED for item in items):
        return True
    running_image.restore(ctxt, request_spec)
    required = utils.ResourceRequest.from_request_spec(
        request_spec
    ).all_required_traits
    missing = isolation.missing_traits(items, required)
    if not missing:
        return True

    root_forbidden, uncovered = _forbid_by_trait(ctxt, request_spec, missing)
    uuids = bound.within_bound(
        ctxt,
        request_spec,
        uncovered,
        HOST_FILTER,
        entries=len(root_forbidden),
        candidates=lambda: {
            i.uuid for i in items if i.value == isolation.REQUIRED
        },
    )
    base.forbid_aggregates(request_spec, uuids)
    request_spec.root_forbidden.update(root_forbidden)
    if LOG.isEnabledFor(logging.DEBUG):
        names = sorted({item[1] for item in items if item[0] in missing})
        LOG.debug(
            'isolate_aggregates: %(missing)d isolating aggregates are '
            'forbidden to the request, which requires %(required)s: '
            '%(uuids)d by UUID, by trait: %(traits)s. Forbidden are %(names)s',
            {
                'missing': len(missing),
                'required': ', '.join(sorted(required)) or 'no trait',
                'uuids': len(uuids),
                'traits': ', '.join(sorted(root_forbidden)) or 'none',
                'names': messages.first_few(names),
            },
        )
    return True


def _forbid_by_trait(
    ctxt: typing.Any,
    request_spec: typing.Any,
    missing: dict[str, list[str]],
) -> tuple[set[str], set[str]]:
    declared = isolation.DeclaredTraits(CONF.nova_ext_sched.forbid_by_trait)
    if not declared or not bound.host_filter_judges(request_spec, HOST_FILTER):
        return set(), set(missing)
    usable = {
        trait
        for lacking in missing.values()
        for trait in lacking
        # Placement answers 400 to a trait that is required and forbidden.
        if trait in declared and trait not in request_spec.root_required
    }
    return isolation.split_by_trait(
        missing,
        _known_traits.among(ctxt, usable),
        bound.room(request_spec),
    )


def _prefixes(request_spec: typing.Any) -> tuple[str, ...]:
    if CONF.nova_ext_sched.enable_isolated_aggregate_filtering:
        return (isolation.PREFIX,)
    return ()


lookup.declare(NAME, _prefixes)
