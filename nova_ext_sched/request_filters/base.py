# SPDX-License-Identifier: Apache-2.0

"""Shared by the request filters: failing closed, and a short cache."""

import collections
from collections.abc import Callable
import functools
import math
import threading
import typing

import cachetools
from keystoneauth1 import exceptions as ks_exc
from nova import exception as nova_exception
from nova.scheduler import request_filter as nova_request_filter
from oslo_db import exception as db_exception
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.policy import declaration

LOG = logging.getLogger(__name__)

RequestFilter = Callable[[typing.Any, typing.Any], bool]

Read = typing.TypeVar('Read', bound=Callable[[typing.Any], typing.Any])

# Errors of databases carry whole statements.
_LONGEST = 1000

# An outage that lasts is said again, for alerts and for logs that rotate.
_AGAIN = 300.0

# Their text says it all. Anything else may be a fault of the code.
_WITHOUT_TRACEBACK = (
    db_exception.DBError,
    ks_exc.ClientException,
    nova_exception.NovaException,
    OSError,
)


class Outage:
    """Logs failures once in five minutes, with their number since.

    Every request meets an outage of a database. A line for each would bury
    the cause. Each type of exception has its own line. The failures between
    two lines are at DEBUG.

    :param name: of the module that meets it
    :param level: of the lines about it
    """

    def __init__(self, name: str, level: int = logging.ERROR) -> None:
        self._logger = logging.getLogger(name)
        self._level = level
        # When each type of exception was logged, and how often it came since.
        self._logged: dict[type, tuple[float, int]] = {}

    def failed(self, message: str, exc: BaseException) -> None:
        """Log a failure's consequence and cause.

        Not to be called in an ``except`` clause: oslo.log appends the
        exception under way to what is logged there.
        """
        now = timeutils.now()
        then, count = self._logged.get(type(exc), (-math.inf, 0))
        count += 1
        text = f'{message}: {messages.say_error(exc)}'
        if now < then + _AGAIN:
            self._logged[type(exc)] = then, count
            self._logger.debug('%s', text)
            return
        self._logged[type(exc)] = now, 0
        expected = isinstance(exc, _WITHOUT_TRACEBACK)
        if not expected:
            # oslo.log appends the cause to a line that has a traceback.
            text = message
        if count > 1:
            text += f' ({count} failures since the last line of this kind)'
        self._logger.log(
            self._level, '%s', text, exc_info=None if expected else exc
        )


#: What each request filter cannot read for now, by its name.
OUTAGES = collections.defaultdict[str, Outage](lambda: Outage(__name__))


def fail_closed(
    *policies: declaration.Policy,
) -> Callable[[RequestFilter], RequestFilter]:
    """Make a request filter end the request where it cannot decide.

    nova turns RequestFilterFailed into NoValidHost. Any other exception would
    reach conductor as an RPC error, without the reason in the scheduler's
    log. Durations are logged like those of nova's own filters.

    ==============================  =========================================
    the filter raises               what is logged
    ==============================  =========================================
    exception.RequestRefused or     INFO, for each request, with its ID: the
    RequestFilterFailed without a   reason and, of RequestRefused, the detail
    cause: by its own data, the     that only operators read. It says whether
    request has no host             a member wrote what cannot be met
    the same with a cause, or       ERROR: the reason and the cause; for each
    anything else: the filter       filter and type of exception once in five
    cannot decide                   minutes, at DEBUG between
                                    (:class:`Outage`). It says whether a cell
                                    alone is silent
    ==============================  =========================================

    :param policies: the policies that the filter obeys; the tools find them
        in its attribute ``policies``
    :returns: a decorator of ``(ctxt, request_spec) -> bool``
    """

    def decorate(fn: RequestFilter) -> RequestFilter:
        name = fn.__name__

        @nova_request_filter.trace_request_filter
        @functools.wraps(fn)
        def wrapper(ctxt: typing.Any, request_spec: typing.Any) -> bool:
            try:
                return fn(ctxt, request_spec)
            except Exception as exc:
                fault = exc
            # Not in the clause: oslo.log would append the exception, as it
            # is, to the line.
            refusal = _report(name, ctxt, fault)
            try:
                if refusal is not fault:
                    refusal.__cause__ = fault
                raise refusal
            finally:
                # Their tracebacks would keep this frame, and the request.
                del fault, refusal

        wrapper.policies = policies
        return wrapper

    return decorate


def _report(
    name: str, ctxt: typing.Any, exc: Exception
) -> nova_exception.RequestFilterFailed:
    # Logs it, and returns what nova takes.
    refusal, cause = exc, exc.__cause__
    if isinstance(exc, nova_exception.RequestFilterFailed):
        reason = str(exc)
    elif isinstance(exc, exception.RequestRefused):
        reason = exc.reason
        # It becomes the server's fault, in tables that take less than a log
        # does; a filter of another package says what it likes.
        refusal = nova_exception.RequestFilterFailed(
            reason=messages.clean(reason, _LONGEST)
        )
    else:
        reason, cause = f'{name} cannot decide', exc
        refusal = nova_exception.RequestFilterFailed(reason=reason)
    if cause is None:
        LOG.info(
            '%s: no host for request %s: %s',
            name,
            ctxt.global_id,
            messages.clean(exc, _LONGEST),
        )
    else:
        # A silent cell stops the groups that have servers there, and no other
        # request: it has an alert of its own.
        if isinstance(cause, nova_exception.CellTimeout):
            OUTAGES[name].failed(
                f'Request {ctxt.global_id} is refused, because a cell does '
                f'not answer: {reason}',
                cause,
            )
        else:
            OUTAGES[name].failed(
                f'Request {ctxt.global_id} is refused, because without the '
                f'filter it could land on any host: {reason}',
                cause,
            )
    return refusal


def cached(seconds: float) -> Callable[[Read], Read]:
    """Cache the result of a function of a context for some seconds.

    If it raises, nothing is kept.
    """
    return cachetools.cached(
        # By its name, for tests that set the time.
        cachetools.TTLCache(1, seconds, timer=lambda: timeutils.now()),
        key=lambda ctxt: None,
        # nova-scheduler works in threads, or in greenlets.
        lock=threading.Lock(),
    )
