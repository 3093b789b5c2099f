# SPDX-License-Identifier: Apache-2.0

"""What the request filters share: how they fail, and what they remember."""

from collections.abc import Callable
import functools
import typing

from nova import exception as nova_exception
from nova.scheduler import request_filter as nova_request_filter
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.request_filters import no_candidates

LOG = logging.getLogger(__name__)

RequestFilter = Callable[[typing.Any, typing.Any], bool]

Value = typing.TypeVar('Value')

# Errors of databases carry whole statements.
_LONGEST = 1000


def fail_closed(fn: RequestFilter) -> RequestFilter:
    """Make a request filter end the request where it cannot decide.

    nova turns RequestFilterFailed into NoValidHost. Any other exception would
    reach conductor as an RPC error, without the reason in the scheduler's
    log. Durations are logged like those of nova's own filters. What the
    filter added to the query is logged if placement then returns no host
    (:mod:`.no_candidates`).

    Each request that ends here gives one line of the log, with its ID:

    ============================  ===========================================
    the filter raises             what is logged
    ============================  ===========================================
    exception.RequestRefused,     a warning: the reason, and the detail that
    RequestFilterFailed           only operators read
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
        before = no_candidates.read(request_spec)
        try:
            applied = fn(ctxt, request_spec)
        except (
            exception.RequestRefused,
            nova_exception.RequestFilterFailed,
        ) as exc:
            outage.clear()
            LOG.warning(
                '%(filter)s: no host for request %(request)s: %(reason)s',
                {
                    'filter': fn.__name__,
                    'request': ctxt.global_id,
                    'reason': messages.clean(str(exc), _LONGEST),
                },
            )
            if isinstance(exc, nova_exception.RequestFilterFailed):
                raise
            raise nova_exception.RequestFilterFailed(
                reason=exc.reason
            ) from exc
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
        no_candidates.record(
            ctxt,
            request_spec,
            fn.__name__,
            no_candidates.read(request_spec).since(before),
        )
        return applied

    return wrapper


class Cached(typing.Generic[Value]):
    """What a function reads, given a context, cached for some seconds."""

    def __init__(
        self, read: Callable[[typing.Any], Value], seconds: float
    ) -> None:
        self._read = read
        self._seconds = seconds
        self._until = 0.0
        self._value: Value

    def get(self, ctxt: typing.Any) -> Value:
        """Return it; if the function raises, nothing is cached."""
        now = timeutils.now()
        if now >= self._until:
            self._value = self._read(ctxt)
            self._until = now + self._seconds
        return self._value
