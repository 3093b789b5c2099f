# SPDX-License-Identifier: Apache-2.0

"""Stage 2 of isolation and reservation: judge each host's aggregates."""

from collections.abc import Iterator
from collections.abc import Mapping
import functools
import operator
import typing

import nova.conf

from nova_ext_sched import fields
from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched.filters import base
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import reservation
from nova_ext_sched.queries import isolation as isolation_request
from nova_ext_sched.queries import reservation as reservation_request

CONF = nova.conf.CONF

LOG_ONCE = log_once.LogOnce(__name__)


class IsolatedAggregatesFilter(base.PolicyFilter):
    """Reject hosts whose aggregates the request may not use.

    It makes the same decisions as the request filters, on the aggregates that
    the scheduler holds in memory. A host is rejected if one of its aggregates
    requires traits that the request does not (``isolate_aggregates``,
    :mod:`nova_ext_sched.policy.isolation`), if one is reserved for others, or
    if it is in no aggregate that the request names (``reserved_aggregates``,
    :mod:`nova_ext_sched.policy.reservation`).

    It runs on rebuild, where nova runs no request filter: a server on an
    isolated host cannot be rebuilt with an image that does not require the
    traits. Reservation keys in the properties of the new image are unknown
    then and do not count. It also checks the aggregates that the placement
    query does not name (``max_forbidden_aggregates``, ``forbid_by_trait``).

    Does nothing unless ``enable_isolated_aggregate_filtering`` is on or
    prefixes of reserved aggregates are set.
    """

    policies = (isolation.DECLARATION, reservation.DECLARATION)

    # Neither the aggregates nor the request change within a request.
    run_filter_once_per_request = True

    RUN_ON_REBUILD = True

    def decisions(self, spec_obj: typing.Any) -> Iterator[base.Decision]:
        if CONF.nova_ext_sched.enable_isolated_aggregate_filtering:
            yield isolation.DECLARATION, _judge_isolation(spec_obj)
        if reservation_request.rules().prefixes:
            yield reservation.DECLARATION, _judge_reservation(spec_obj)


def _judge_isolation(spec_obj: typing.Any) -> base.Judge:
    # nova takes longer to read what is required than all hosts take here, and
    # where nothing is isolated nobody asks.
    required = functools.cache(lambda: _read_required(spec_obj))

    def read(_: typing.Any, metadata: Mapping[str, str]) -> int:
        return bool(
            isolation.find_lacking(metadata, ())
            and isolation.find_lacking(metadata, required())
        )

    return base.ByEachAggregate(
        read,
        operator.not_,
        lambda aggregates: isolation.judge(
            fields.names_and_metadata(aggregates), required()
        ),
        base.left_out(spec_obj, isolation.DECLARATION),
    )


def _read_required(spec_obj: typing.Any) -> set[str]:
    try:
        return isolation_request.required_traits(spec_obj)
    except Exception as exc:
        # Flavors and images are operators' and users' data: what nova cannot
        # read in them must not open a host.
        fault, kind = messages.say_error(exc), type(exc).__name__
    # Not in the clause: oslo.log would append the exception, uncleaned.
    tell = (
        LOG_ONCE.info
        if isolation_request.is_faulty_by_image(spec_obj)
        else LOG_ONCE.warning
    )
    tell(
        f'IsolatedAggregatesFilter rejects every isolated host, because it '
        f'cannot read which traits flavor '
        f'{messages.clean(fields.flavor_name(spec_obj))} and its image '
        f'require: {fault}',
        # Members write the images.
        key=(fields.flavor_name(spec_obj), kind),
    )
    return set()


def _judge_reservation(spec_obj: typing.Any) -> base.Judge:
    request = base.compile_request(
        reservation_request.compile_request,
        spec_obj,
        'IsolatedAggregatesFilter rejects every host, because it cannot read '
        'which reserved aggregates a request names',
        LOG_ONCE,
    )
    return base.ByEachAggregate(
        lambda _, metadata: request.read(metadata),
        request.passes,
        lambda aggregates: request.judge(
            fields.names_and_metadata(aggregates)
        ),
        base.left_out(spec_obj, reservation.DECLARATION),
    )
