# SPDX-License-Identifier: Apache-2.0

"""What the request filters share: how they fail, and what they remember."""

import collections
from collections.abc import Callable
import functools
import threading
import typing

import cachetools
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

Read = typing.TypeVar('Read', bound=Callable[[typing.Any], typing.Any])

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
        name = fn.__name__

        @nova_request_filter.trace_request_filter
        @functools.wraps(fn)
        def wrapper(ctxt: typing.Any, request_spec: typing.Any) -> bool:
            no_candidates.remember(ctxt, request_spec)
            try:
                applied = fn(ctxt, request_spec)
            except nova_exception.RequestFilterFailed as exc:
                _report(name, ctxt, str(exc), exc, exc.__cause__)
                raise
            except exception.RequestRefused as exc:
                _report(name, ctxt, exc.reason, exc, exc.__cause__)
                # It becomes the server's fault, in tables that take less than
                # a log does; a filter of another package says what it likes.
                raise nova_exception.RequestFilterFailed(
                    reason=messages.clean(exc.reason, _LONGEST)
                ) from exc
            except Exception as exc:
                reason = f'{name} cannot decide'
                _report(name, ctxt, reason, exc, exc)
                raise nova_exception.RequestFilterFailed(
                    reason=reason
                ) from exc
            if applied:
                OUTAGES[name].end(f'{name} decides')
            return applied

        wrapper.policies = policies
        return wrapper

    return decorate


def _report(
    name: str,
    ctxt: typing.Any,
    reason: str,
    refusal: Exception,
    cause: BaseException | None,
) -> None:
    if cause is None:
        LOG.info(
            '%(filter)s: no host for request %(request)s: %(reason)s',
            {
                'filter': name,
                'request': ctxt.global_id,
                'reason': messages.clean(refusal, _LONGEST),
            },
        )
    else:
        OUTAGES[name].begin(
            f'Request {ctxt.global_id} is refused, because without the '
            f'filter it could land on any host: {reason}',
            cause,
        )


def cached(seconds: float) -> Callable[[Read], Read]:
    """Keep what a function of a context reads for some seconds.

    If it raises, nothing is kept.
    """
    return cachetools.cached(
        # By its name, for tests that set the time.
        cachetools.TTLCache(1, seconds, timer=lambda: timeutils.now()),
        key=lambda ctxt: None,
        # nova-scheduler works in threads, or in greenlets.
        lock=threading.Lock(),
    )
