# SPDX-License-Identifier: Apache-2.0

"""What the request filters share: how they end, and what they change."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
import functools
import typing

from nova import exception as nova_exception
from nova import objects
from nova.scheduler import request_filter as nova_request_filter
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

RequestFilter = Callable[[typing.Any, typing.Any], bool]


def fail_closed(fn: RequestFilter) -> RequestFilter:
    """Make a request filter end the request where it cannot decide.

    nova turns RequestFilterFailed into NoValidHost; any other exception
    reaches conductor as an RPC error, with the reason lost to the scheduler's
    log. The owner of the server reads RequestFilterFailed in the server's
    fault: what caused it (an error of the database, of Glance) is for the log
    alone. Durations are logged as those of nova's own filters.

    :param fn: ``(ctxt, request_spec) -> bool``; True where it applied
    """

    @nova_request_filter.trace_request_filter
    @functools.wraps(fn)
    def wrapper(ctxt: typing.Any, request_spec: typing.Any) -> bool:
        try:
            return fn(ctxt, request_spec)
        except nova_exception.RequestFilterFailed as exc:
            LOG.warning(
                '%(filter)s: no host for the request: %(reason)s',
                {
                    'filter': fn.__name__,
                    'reason': exc.message
                    + (f' ({_named(exc.__cause__)})' if exc.__cause__ else ''),
                },
            )
            raise
        except Exception as exc:
            reason = f'{fn.__name__} cannot decide'
            LOG.exception(
                'Request refused, because an unfiltered one could land '
                'anywhere: %(reason)s: %(cause)s',
                {'reason': reason, 'cause': _named(exc)},
            )
            raise nova_exception.RequestFilterFailed(reason=reason) from exc

    return wrapper


def _named(exc: BaseException) -> str:
    return f'{type(exc).__name__}: {exc}'


def get_destination(request_spec: typing.Any) -> typing.Any:
    """Return the request's nova Destination, made empty where it has none."""
    if (
        'requested_destination' not in request_spec
        or request_spec.requested_destination is None
    ):
        request_spec.requested_destination = objects.Destination()
    return request_spec.requested_destination


def require_aggregates(
    request_spec: typing.Any, uuids: Collection[str]
) -> None:
    """Keep the request in one of these aggregates and in those of before.

    nova adds a ``member_of=in:`` for each set. A set that is required
    already, by nova's filter of zones for example, is not added again.

    :param uuids: UUIDs of aggregates, at least one
    """
    destination = get_destination(request_spec)
    required = destination.aggregates or []
    if set(uuids) not in [set(one.split(',')) for one in required]:
        destination.require_aggregates(sorted(uuids))


def forbidden_aggregates(request_spec: typing.Any) -> set[str]:
    """Return the UUIDs that the request is kept out of so far."""
    destination = (
        request_spec.requested_destination
        if 'requested_destination' in request_spec
        else None
    )
    if destination is None or 'forbidden_aggregates' not in destination:
        return set()
    return set(destination.forbidden_aggregates or ())


def forbid_aggregates(request_spec: typing.Any, uuids: Iterable[str]) -> None:
    """Keep the request out of aggregates; nova adds one ``member_of=!in:``.

    A request with nothing to forbid is left as it was.
    """
    uuids = set(uuids)
    if uuids:
        get_destination(request_spec).append_forbidden_aggregates(uuids)


def host_filters_run(request_spec: typing.Any) -> bool:
    """Return whether nova will run the host filters on this request.

    It does not where an administrator forced a host or node at boot
    (nova.scheduler.host_manager.HostManager.get_filtered_hosts).
    """
    forced = ('force_hosts' in request_spec and request_spec.force_hosts) or (
        'force_nodes' in request_spec and request_spec.force_nodes
    )
    if not forced:
        return True
    hints = (
        'scheduler_hints' in request_spec and request_spec.scheduler_hints
    ) or {}
    return bool(hints.get('_nova_check_type'))
