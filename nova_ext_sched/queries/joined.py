# SPDX-License-Identifier: Apache-2.0

"""Joins equal questions of requests to one cell's database.

Whatever has a limit here has it because a select takes milliseconds, and a
thread that waits for a silent database is lost. Placement is asked otherwise
(:mod:`.gets`). A database is asked one question at a time, by a thread of its
own:

==============================  =============================================
a request that comes            what it gets
==============================  =============================================
while nothing is asked          an answer to its own question
while a question is under way   an answer to the next one, which asks for what
                                all requests want that came meanwhile: the
                                answer is never older than the request
while the database is silent    a fault, at once
==============================  =============================================

So a burst takes few questions, and no request is refused for having waited:
the limit of a question counts from when it is sent. Nobody waits for another
cell.

==============================  =============================================
a database                      what follows
==============================  =============================================
answers, or fails               the next request asks it
has not answered in 30 seconds  all requests that wait for it get a fault. It
                                is left alone for a minute, and then asked
                                again
left three threads waiting      one more thread asks every five minutes, until
                                ten wait: a connection to a host that lost its
                                power may never end, while new ones work
left ten threads waiting        nobody asks, until one of them ends
==============================  =============================================
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import math
import threading
import typing

from oslo_utils import timeutils

from nova_ext_sched import messages

#: How long an answer may take, in seconds. A database that is well takes
#: milliseconds; a process whose threads all compute takes seconds to read it.
SECONDS = 30

#: How long a silent database is left alone, in seconds.
AGAIN = 60

#: The same where some threads wait for it already.
LATER = 300

_FEW_HANGING = 3
# Each has a connection of nova's own pool for the database.
_MOST_HANGING = 10

Found = typing.TypeVar('Found')

#: Reads something of servers, or of compute nodes.
Select = Callable[[typing.Any, Collection[str]], Mapping[str, Found]]


class Question(typing.Generic[Found]):
    """A question that several requests ask together.

    :ivar found: the rows for all of them
    :ivar fault: the error in place of an answer; None if there is one
    """

    def __init__(self, ctxt: typing.Any, select: Select[Found]) -> None:
        self.ctxt = ctxt
        self.select = select
        self.wanted: set[str] = set()
        self.sent = math.nan
        self.found: Mapping[str, Found] = {}
        self.fault: Exception | None = None
        self.ended = threading.Event()

    def end(self, fault: Exception | None) -> None:
        """Wake the requests that wait for it."""
        self.fault = fault
        self.ended.set()


class Database:
    """A cell's database. Many threads or greenlets may use it at once.

    :param most: how many things one question may ask for; a single request
        may ask for more
    :param seconds: longest time for an answer; None for :data:`SECONDS`
    :param pauses: whether it is left alone after a silence, and requests get
        a fault meanwhile. If not, only while ten threads wait for it, for a
        minute at a time, and requests wait. Each question has the whole time,
        whatever became of those before
    """

    def __init__(
        self, most: int, seconds: float | None = None, pauses: bool = True
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._pauses = pauses
        self._lock = threading.Lock()
        # Where nothing is under way, nothing waits.
        self._under_way: Question[typing.Any] | None = None
        self._waiting: list[Question[typing.Any]] = []
        # Given up, and their threads have not ended.
        self._hanging: set[Question[typing.Any]] = set()
        self._silent_since = -math.inf

    def call(
        self, ctxt: typing.Any, select: Select[Found], wanted: Collection[str]
    ) -> Mapping[str, Found]:
        """Ask the database; a subclass says how."""
        raise NotImplementedError

    def fault(self, what: str) -> Exception:
        """Return the error to raise for a database that does not answer."""
        raise NotImplementedError

    def join(
        self, ctxt: typing.Any, select: Select[Found], wanted: Collection[str]
    ) -> Question[Found]:
        """Join the next question, and send it if none is under way.

        :param ctxt: a nova RequestContext; a question has that of the first
            request
        :param select: only requests with the same one share a question; it
            must change nothing, because nobody ends a thread that hangs
        :returns: for :meth:`wait`
        :raises RuntimeError: there is no thread left for it
        """
        with self._lock:
            if self._pauses and self._is_silent():
                question = Question(ctxt, select)
                question.end(self._no_answer())
                return question
            question = self._find_room(ctxt, select, wanted)
            question.wanted.update(wanted)
            if self._under_way is None and not self._is_silent():
                self._start_next()
        return question

    def wait(self, question: Question[typing.Any]) -> None:
        """Wait until a question has an answer, or a fault."""
        while not question.ended.is_set():
            # Any who wait may find that the one under way is late: the
            # requests that sent it may be gone.
            with self._lock:
                seconds = self._give_up_if_late()
            question.ended.wait(seconds)

    def _is_silent(self) -> bool:
        hanging = len(self._hanging)
        if not self._pauses:
            return (
                hanging >= _MOST_HANGING
                and timeutils.now() < self._silent_since + AGAIN
            )
        pause = AGAIN if hanging < _FEW_HANGING else LATER
        return (
            hanging >= _MOST_HANGING
            or timeutils.now() < self._silent_since + pause
        )

    def _find_room(
        self, ctxt: typing.Any, select: Select[Found], wanted: Collection[str]
    ) -> Question[Found]:
        for question in self._waiting:
            if (
                question.select is select
                and len(question.wanted.union(wanted)) <= self._most
            ):
                return question
        question = Question(ctxt, select)
        self._waiting.append(question)
        return question

    def _send_next(self) -> Question[typing.Any] | None:
        self._under_way = self._waiting.pop(0) if self._waiting else None
        if self._under_way:
            self._under_way.sent = timeutils.now()
        return self._under_way

    def _start_next(self) -> None:
        question = self._send_next()
        assert question
        try:
            # A scheduler that stops does not wait for one that hangs.
            threading.Thread(
                target=self._work, args=(question,), daemon=True
            ).start()
        except BaseException:
            self._under_way = None
            question.end(self._no_answer())
            raise

    def _give_up_if_late(self) -> float:
        # Returns how many seconds the question under way has left.
        if self._under_way is None:
            if not self._waiting:
                return 0
            if self._is_silent():
                # One that hangs may end, and others are asked then.
                return 1
            self._start_next()
            assert self._under_way
        seconds = self._under_way.sent + self._limit() - timeutils.now()
        if seconds > 0:
            return seconds
        self._hanging.add(self._under_way)
        self._silent_since = timeutils.now()
        given_up = [self._under_way]
        if self._pauses:
            given_up += self._waiting
            self._waiting.clear()
        for question in given_up:
            question.end(self._no_answer())
        self._under_way = None
        if self._waiting and not self._is_silent():
            self._start_next()
        return 0

    def _limit(self) -> float:
        return SECONDS if self._seconds is None else self._seconds

    def _no_answer(self) -> Exception:
        return self.fault(f'has not answered in {self._limit()} seconds')

    def _work(self, question: Question[typing.Any] | None) -> None:
        while question is not None:
            answer: Mapping[str, typing.Any] = {}
            fault: Exception | None = None
            try:
                answer = self.call(
                    question.ctxt, question.select, question.wanted
                )
            except Exception as exc:
                fault = exc
            # Of greenlets, such as eventlet.Timeout and GreenletExit.
            except BaseException as exc:
                fault = self.fault(
                    f'gave no answer: {messages.say_error(exc)}'
                )
            with self._lock:
                self._hanging.discard(question)
                if question is not self._under_way:
                    # It was given up; another thread may ask by now.
                    return
                question.found = answer
                question.end(fault)
                question = self._send_next()
