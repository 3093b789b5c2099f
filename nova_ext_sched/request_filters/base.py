# SPDX-License-Identifier: Apache-2.0

"""What the request filters share: how they fail and what they change."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
import functools
import typing

from nova import exception as nova_exception
from nova import objects
from nova.scheduler import request_filter as nova_request_filter
from oslo_log import log as logging

from nova_ext_sched import messages

LOG = logging.getLogger(__name__)

RequestFilter = Callable[[typing.Any, typing.Any], bool]

# Errors of databases carry whole statements.
_LONGEST = 1000


class RequestRefused(nova_exception.RequestFilterFailed):
    """No host may take the request.

    :param reason: what the owner of the server reads in its fault
    :param detail: what only the log has, for operators
    """

    def __init__(self, reason: str, detail: str = '') -> None:
        super().__init__(reason=reason)
        self.detail = detail


def fail_closed(fn: RequestFilter) -> RequestFilter:
    """Make a request filter end the request where it cannot decide.

    nova turns RequestFilterFailed into NoValidHost. Any other exception would
    reach conductor as an RPC error, without the reason in the scheduler's
    log. Durations are logged like those of nova's own filters.

    Each request that ends here gives one line of the log, with its ID:

    ============================  ===========================================
    the filter raises             what is logged
    ============================  ===========================================
    RequestFilterFailed           a warning: the reason, and the detail of a
                                  :class:`RequestRefused`
    anything else                 an error: the exception; with a traceback
                                  for the first of its type since the filter
                                  last answered, so once an outage
    ============================  ===========================================

    :param fn: ``(ctxt, request_spec) -> bool``; True if it applied
    """
    # Types of the exceptions since the filter last answered.
    outage: set[type[Exception]] = set()

    @nova_request_filter.trace_request_filter
    @functools.wraps(fn)
    def wrapper(ctxt: typing.Any, request_spec: typing.Any) -> bool:
        try:
            applied = fn(ctxt, request_spec)
        except nova_exception.RequestFilterFailed as exc:
            outage.clear()
            detail = getattr(exc, 'detail', '')
            LOG.warning(
                '%(filter)s: no host for request %(request)s: %(reason)s',
                {
                    'filter': fn.__name__,
                    'request': ctxt.global_id,
                    'reason': messages.quote(
                        exc.message + (detail and f' ({detail})'), _LONGEST
                    ),
                },
            )
            raise
        except Exception as exc:
            reason = f'{fn.__name__} cannot decide'
            LOG.error(
                'Request %(request)s is refused, because without the filter '
                'it could land on any host: %(reason)s: %(cause)s',
                {
                    'request': ctxt.global_id,
                    'reason': reason,
                    'cause': messages.describe(exc),
                },
                exc_info=type(exc) not in outage,
            )
            outage.add(type(exc))
            raise nova_exception.RequestFilterFailed(reason=reason) from exc
        outage.clear()
        return applied

    return wrapper


def get_destination(request_spec: typing.Any) -> typing.Any:
    """Return the request's nova Destination; set an empty one if missing."""
    if (
        'requested_destination' not in request_spec
        or request_spec.requested_destination is None
    ):
        request_spec.requested_destination = objects.Destination()
    return request_spec.requested_destination


def require_aggregates(
    request_spec: typing.Any, uuids: Collection[str]
) -> None:
    """Keep the request in one of these aggregates, besides earlier demands.

    nova adds a ``member_of=in:`` for each set. A set that is already required,
    by nova's availability zone filter for example, is not added again.

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
    hints = (
        'scheduler_hints' in request_spec and request_spec.scheduler_hints
    ) or {}
    return not forced or bool(hints.get('_nova_check_type'))
