# SPDX-License-Identifier: Apache-2.0

"""GETs to placement that requests for hosts share.

Placement has no question about several servers: each takes a GET. A process
sends ten at once, in threads of its own:

==============================  =============================================
a GET                           what follows
==============================  =============================================
that is not sent yet            other requests that need its answer join it
that is under way               who comes now joins the next one: an answer
                                is never older than a request
is answered, however late       the requests that need it go on
is never answered               these requests wait, as they would for a
                                query of nova's, and no others
is one of ten without answers   the next one waits until one of them ends
finds no connection, or loses   it is sent again twice a second
it; meets 502, 503 or 504
has met nothing else for 90     a fault. So are those that waited for as long
seconds                         and could not be sent
meets another status or error   a fault at once: nova gives up there, too
==============================  =============================================

Nothing else has a limit, and after a fault nobody waits: what the next request
needs is asked for at once.
"""

from collections.abc import Callable
from collections.abc import Collection
import math
import threading
import time
import typing

from nova import exception as nova_exception
from oslo_utils import timeutils

from nova_ext_sched import log_once
from nova_ext_sched import messages

LOG_ONCE = log_once.LogOnce(__name__)

#: GETs that are under way at once: as many as a client keeps connections.
AT_ONCE = 10

#: How long placement may be away, in seconds.
SECONDS = 90

# Between two attempts.
_PAUSE = 0.5

# A request that waits for longer is worth a line.
_LONG = 60

#: Sends a GET for a request: it is called with nova's context, and a URL.
Send = Callable[[typing.Any, str], typing.Any]


class Away(nova_exception.PlacementAPIConnectFailure):
    """Placement cannot be reached now. It may be restarting."""


class _Request:
    # Waits for some GETs: woken once, not by each of them.

    def __init__(self, urls: Collection[str]) -> None:
        self.missing = {*urls}
        self.fault: Exception | None = None
        self.ended = threading.Event()
        self.end('', None)

    def name_missing(self) -> str:
        return min(self.missing.copy(), default='')

    def end(self, url: str, fault: Exception | None) -> None:
        self.missing.discard(url)
        self.fault = self.fault or fault
        if fault or not self.missing:
            self.ended.set()


class Get:
    """A GET to placement, and the requests that wait for its answer.

    :ivar asked: when it was first needed
    :ivar away_since: when it first met that placement is away
    :ivar requests: the requests that wait for it
    :ivar answer: placement's answer
    """

    def __init__(self, ctxt: typing.Any, url: str) -> None:
        self.ctxt = ctxt
        self.url = url
        self.asked = timeutils.now()
        self.away_since = math.inf
        self.requests: list[_Request] = []
        self.answer: typing.Any = None

    def end(self, fault: Exception | None) -> None:
        """Wake the requests that wait for the answer.

        :param fault: the error in place of an answer; None if there is one
        """
        for request in [*self.requests]:
            request.end(self.url, fault)


class Gets:
    """The GETs of a process. Many threads or greenlets may use it at once.

    :param send: raises :class:`Away` where it is to be sent again
    :ivar seconds: longest time that placement may be away
    """

    def __init__(self, send: Send, seconds: float = SECONDS) -> None:
        self._send = send
        self.seconds = seconds
        self._lock = threading.Lock()
        # Not sent yet, in their order, by URL.
        self._waiting: dict[str, Get] = {}
        self._threads = 0
        # Since when nothing was answered but that placement is away.
        self._away_since = math.inf

    def ask(
        self, ctxt: typing.Any, urls: Collection[str]
    ) -> dict[str, typing.Any]:
        """Return placement's answers by URL.

        :param ctxt: a nova RequestContext; a GET has that of its first request
        :raises Away: placement was away for :attr:`seconds`
        :raises Exception: what ``send`` raised of one of them; there is no
            thread left to ask
        """
        request = _Request(urls)
        gets: dict[str, Get] = {}
        try:
            self._join(ctxt, urls, request, gets)
            while not request.ended.wait(_LONG):
                self._start_threads()
                LOG_ONCE.warning(
                    f'Placement has not answered GET {request.name_missing()} '
                    f'for {_LONG} seconds. Requests that need the answer wait '
                    f'for it, as they would for a query of nova. See whether '
                    f'placement and its database answer others.',
                    key='slow',
                )
            if request.fault:
                raise request.fault
        finally:
            self._leave(request, gets)
        return {url: get.answer for url, get in gets.items()}

    def _join(
        self,
        ctxt: typing.Any,
        urls: Collection[str],
        request: _Request,
        gets: dict[str, Get],
    ) -> None:
        with self._lock:
            for url in urls:
                get = self._waiting.get(url)
                if get is None:
                    get = self._waiting[url] = Get(ctxt, url)
                get.requests.append(request)
                gets[url] = get
        self._start_threads()

    def _start_threads(self) -> None:
        # Not with the lock: a greenlet would go on with it.
        with self._lock:
            missing = min(len(self._waiting), AT_ONCE - self._threads)
            self._threads += missing
        while missing:
            try:
                # A scheduler that stops does not wait for one that hangs, as
                # it would for those of concurrent.futures.
                threading.Thread(target=self._work, daemon=True).start()
            except BaseException as exc:
                with self._lock:
                    self._threads -= missing
                    is_lost = self._waiting and not self._threads
                if is_lost or not isinstance(exc, RuntimeError):
                    raise
                # The others send it, later.
                return
            missing -= 1

    def _leave(self, request: _Request, gets: dict[str, Get]) -> None:
        # A request that was refused needs no other answer.
        with self._lock:
            for url, get in gets.items():
                get.requests.remove(request)
                if not get.requests and self._waiting.get(url) is get:
                    del self._waiting[url]

    def _work(self) -> None:
        while get := self._take():
            fault: Exception | None = None
            try:
                fault = self._answer(get)
            # Of greenlets, such as eventlet.Timeout and GreenletExit.
            except BaseException as exc:
                fault = Away(
                    f'placement gave no answer: {messages.say_error(exc)}'
                )
            get.end(fault)

    def _take(self) -> Get | None:
        with self._lock:
            for url in self._waiting:
                return self._waiting.pop(url)
            self._threads -= 1
            return None

    def _answer(self, get: Get) -> Exception | None:
        # Returns why there is none.
        while True:
            fault: Exception | None = None
            try:
                get.answer = self._send(get.ctxt, get.url)
            except Exception as exc:
                fault = exc
            if not isinstance(fault, Away):
                with self._lock:
                    self._away_since = math.inf
                return fault
            # oslo.log would say the cause of a line in the clause above twice.
            if self._is_over(get, fault):
                return fault
            time.sleep(_PAUSE)

    def _is_over(self, get: Get, exc: Away) -> bool:
        # Whether a GET is not sent again, because placement is away.
        with self._lock:
            now = timeutils.now()
            self._away_since = min(self._away_since, now)
            get.away_since = min(
                get.away_since, max(get.asked, self._away_since)
            )
            for other in [*self._waiting.values()]:
                if now - max(other.asked, self._away_since) >= self.seconds:
                    del self._waiting[other.url]
                    other.end(exc)
            is_over = now - get.away_since >= self.seconds
        if not is_over:
            LOG_ONCE.warning(
                f'{exc}. Requests that ask it about servers wait, at most '
                f'{self.seconds:.0f} seconds.',
                key='away',
            )
        return is_over or not get.requests
