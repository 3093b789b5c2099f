# SPDX-License-Identifier: Apache-2.0

"""Stage 1 of reservation: reserved aggregates for those who reserved them."""

import typing
import weakref

from nova import exception as nova_exception
import nova.conf
from oslo_log import log as logging

from nova_ext_sched import messages
from nova_ext_sched.policy import reservation
from nova_ext_sched.request_filters import base
from nova_ext_sched.request_filters import bound
from nova_ext_sched.request_filters import lookup
from nova_ext_sched.request_filters import running_image

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

NAME = 'reserved_aggregates'
HOST_FILTER = 'IsolatedAggregatesFilter'

# What stage 1 read in Glance, for stage 2, which does no I/O. On rebuild
# there is no stage 1, so no key of the new image counts there.
_image_keys: weakref.WeakKeyDictionary[typing.Any, set[str]] = (
    weakref.WeakKeyDictionary()
)


@base.fail_closed
def reserved_aggregates(ctxt: typing.Any, request_spec: typing.Any) -> bool:
    """Keep a request in the aggregates that it names, out of others' ones.

    The decision is :mod:`nova_ext_sched.policy.reservation`'s. The keys of a
    request come from the sources of ``member_sources``.

    Changes ``aggregates`` and ``forbidden_aggregates`` of
    ``requested_destination``.

    :returns: False where neither prefix option is set
    :raises nova.exception.RequestFilterFailed: no aggregate has a key that
        the request names, or none that its project may use; the aggregates
        or the image cannot be read
    """
    if not rules().prefixes:
        return False

    # A spec that is filtered again has no keys of before.
    _image_keys.pop(request_spec, None)
    remember_image_keys(request_spec, _read_image_keys(ctxt, request_spec))
    request = compile_request(request_spec)
    resolution = request.resolve(
        lookup.take_metadata(ctxt, request_spec, NAME)
    )
    if not resolution.verdict.passes:
        # The exception's reason is the fault that the user reads; that of
        # the verdict tells of other projects.
        LOG.info('%s: %s', NAME, resolution.verdict.reason)
        raise nova_exception.RequestFilterFailed(
            reason=f'no aggregate that project {request.project_id} may use '
            f'has the metadata key {messages.quote(resolution.unmet)}'
        )

    for uuids in resolution.required.values():
        base.require_aggregates(request_spec, uuids)
    forbidden = bound.within_bound(
        ctxt, request_spec, resolution.forbidden, HOST_FILTER
    )
    base.forbid_aggregates(request_spec, forbidden)
    LOG.debug(
        '%(filter)s: the request must be in an aggregate of each of '
        '%(required)s; %(forbidden)d reserved aggregates are forbidden to it, '
        '%(uuids)d of them in the query',
        {
            'filter': NAME,
            'required': ', '.join(map(messages.quote, resolution.required))
            or 'no key',
            'forbidden': len(resolution.forbidden),
            'uuids': len(forbidden),
        },
    )
    return True


def rules() -> reservation.Rules:
    """Return the operator's rules, from nova.conf."""
    return reservation.Rules.of(CONF.nova_ext_sched)


def compile_request(request_spec: typing.Any) -> reservation.Request:
    """Return what a request's keys mean; the same in both stages.

    Keys of the image are known where stage 1 has run on this request spec.

    :param request_spec: a nova RequestSpec
    """
    mine = rules()
    sources = CONF.nova_ext_sched.member_sources
    keys: set[str] = set()
    if 'flavor' in sources:
        keys |= mine.keys_among(request_spec.flavor.extra_specs)
    if 'hint' in sources and 'scheduler_hints' in request_spec:
        keys |= mine.keys_in_hints(request_spec.scheduler_hints or {})
    if 'image' in sources:
        keys |= _image_keys.get(request_spec, set())
    return mine.request(keys, request_spec.project_id)


def read_image_keys(ctxt: typing.Any, image: str) -> set[str]:
    """Return the keys among the properties of an image, from Glance.

    nova's request spec has only the properties that nova knows.

    :param image: its ID
    :raises nova.exception.RequestFilterFailed: it cannot be read
    """
    return rules().keys_among(running_image.read(ctxt, image)['properties'])


def remember_image_keys(request_spec: typing.Any, keys: set[str]) -> None:
    """Let :func:`compile_request` know the keys of a request's image."""
    _image_keys[request_spec] = keys


def _image_id(request_spec: typing.Any) -> str | None:
    if 'image' not in CONF.nova_ext_sched.member_sources:
        return None
    return running_image.image_id(request_spec)


def _read_image_keys(ctxt: typing.Any, request_spec: typing.Any) -> set[str]:
    if _image_id(request_spec) is None:
        return set()
    running_image.restore(ctxt, request_spec)
    return read_image_keys(ctxt, request_spec.image.id)


def _prefixes(request_spec: typing.Any) -> tuple[str, ...]:
    mine = rules()
    if not mine.prefixes:
        return ()
    request = compile_request(request_spec)
    if not request.required and _image_id(request_spec) is None:
        return request.forbidden_prefixes
    # Whether or not the image names a key: this runs before it is read.
    return tuple(dict.fromkeys(mine.prefixes + mine.project_keys))


lookup.declare(NAME, _prefixes)
