# SPDX-License-Identifier: Apache-2.0

"""What the request filters share: how they fail, and what they remember."""

import collections
from collections.abc import Callable
import functools
import typing

from nova import exception as nova_exception
from nova.scheduler import request_filter as nova_request_filter
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.policy import declaration
from nova_ext_sched.request_filters import no_candidates
from nova_ext_sched.request_filters import outage

LOG = logging.getLogger(__name__)

RequestFilter = Callable[[typing.Any, typing.Any], bool]

Value = typing.TypeVar('Value')

#: What each request filter cannot read for now, by its name.
OUTAGES = collections.defaultdict[str, outage.Outage](
    lambda: outage.Outage(__name__)
)

# Errors of databases carry whole statements.
_LONGEST = 1000


def fail_closed(
    *policies: declaration.Policy,
) -> Callable[[RequestFilter], RequestFilter]:
    """Make a request filter end the request where it cannot decide.

    nova turns RequestFilterFailed into NoValidHost. Any other exception would
    reach conductor as an RPC error, without the reason in the scheduler's
    log. Durations are logged like those of nova's own filters. If placement
    then returns no host, that is logged too (:mod:`.no_candidates`).

    ==============================  =========================================
    the filter raises               what is logged
    ==============================  =========================================
    exception.RequestRefused or     INFO, with the request's ID: the reason,
    RequestFilterFailed: by its     and the detail that only operators read.
    own data, the request has no    Users write hints and properties.
    host
    the same with a cause, or       ERROR: the cause, once an outage, and a
    anything else: the filter       WARNING where it ends (:mod:`.outage`)
    cannot decide
    ==============================  =========================================

    :param policies: the policies that the filter obeys; the tools find them
        in its attribute ``policies``
    :returns: what decorates ``(ctxt, request_spec) -> bool``
    """

    def decorate(fn: RequestFilter) -> RequestFilter:
        wrapper = _fail_closed(fn)
        wrapper.policies = policies  # type: ignore[attr-defined]
        return wrapper

    return decorate


def _fail_closed(fn: RequestFilter) -> RequestFilter:
    @nova_request_filter.trace_request_filter
    @functools.wraps(fn)
    def wrapper(ctxt: typing.Any, request_spec: typing.Any) -> bool:
        no_candidates.remember(ctxt, request_spec)
        try:
            applied = fn(ctxt, request_spec)
        except exception.RequestRefused as exc:
            report(ctxt, exc.reason, exc)
            # It becomes the server's fault, in tables that take less than a
            # log does; a filter of another package says what it likes.
            raise nova_exception.RequestFilterFailed(
                reason=messages.clean(exc.reason, _LONGEST)
            ) from exc
        except nova_exception.RequestFilterFailed as exc:
            report(ctxt, str(exc), exc)
            raise
        except Exception as exc:
            reason = f'{fn.__name__} cannot decide'
            fail(ctxt, reason, exc)
            raise nova_exception.RequestFilterFailed(reason=reason) from exc
        if applied:
            OUTAGES[fn.__name__].end(f'{fn.__name__} decides')
        return applied

    def report(ctxt: typing.Any, reason: str, exc: Exception) -> None:
        if exc.__cause__ is not None:
            fail(ctxt, reason, exc.__cause__)
            return
        LOG.info(
            '%(filter)s: no host for request %(request)s: %(reason)s',
            {
                'filter': fn.__name__,
                'request': ctxt.global_id,
                'reason': messages.clean(str(exc), _LONGEST),
            },
        )

    def fail(ctxt: typing.Any, reason: str, exc: BaseException) -> None:
        OUTAGES[fn.__name__].begin(
            f'Request {ctxt.global_id} is refused, because without the '
            f'filter it could land on any host: {reason}',
            exc,
        )

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
