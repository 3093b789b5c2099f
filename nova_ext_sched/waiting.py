# SPDX-License-Identifier: Apache-2.0

"""Services that are away for a while: they are asked again.

A restart, a failover of a database or of a load balancer takes seconds or
minutes. Work of hours is not lost for that.
"""

from collections.abc import Callable
import sys
import time
import typing

from keystoneauth1 import exceptions

from nova_ext_sched import messages

#: Seconds between two requests to a service that is away.
SECONDS = 2
#: Seconds after which it is given up.
LONGEST = 600

_LONGEST_REASON = 200

# The names of openstacksdk's errors if a service does not answer at first; not
# every command that waits has openstacksdk.
_WITHOUT_VERSIONS = {
    'NotSupported',
    'SDKException',
    'ServiceDiscoveryException',
}

_AWAY = (
    exceptions.ConnectionError,
    exceptions.DiscoveryFailure,
    exceptions.HttpServerError,
)


def is_away(exc: BaseException) -> bool:
    """Return whether an error may pass when a service is asked later.

    ============================================  ========
    what was raised                               it may
    ============================================  ========
    no connection, or none in time                yes
    500 and above, 429                            yes
    its versions cannot be found out              yes
    another status, such as 403                   no
    anything else                                 no
    ============================================  ========
    """
    judged: bool | None = getattr(exc, 'is_away', None)
    if judged is not None:
        return judged
    if isinstance(exc, _AWAY):
        return True
    status = getattr(exc, 'status_code', None)
    status = status or getattr(exc, 'http_status', None)
    if isinstance(status, int):
        return status >= 500 or status == 429
    named = type(exc).__name__ in _WITHOUT_VERSIONS
    return named and 'version' in str(exc)


def shorten(exc: BaseException) -> str:
    """Return in a phrase why a service does not answer."""
    status = getattr(exc, 'status_code', None)
    status = status or getattr(exc, 'http_status', None)
    if isinstance(status, int):
        return str(status)
    if isinstance(exc, exceptions.ConnectionError):
        return 'no connection'
    if type(exc).__name__ in _WITHOUT_VERSIONS:
        return 'none of its versions is found'
    cause = getattr(exc, 'cause', None)
    text = messages.clean(cause) if cause else messages.say_error(exc)
    return text[:_LONGEST_REASON]


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Waiting:
    """Waits for a service that is away, and says so once.

    A proxy that is busy for a moment is not worth a line: it says so the
    second time.

    :param say: called with a line
    :ivar lost: seconds that were waited in all
    """

    def __init__(
        self, service: str, say: Callable[[str], object] = _print
    ) -> None:
        self.service, self._say = service, say
        self.lost = 0.0
        self._since: float | None = None
        self._last = 0.0
        self._is_said = False

    def wait(self, exc: BaseException) -> bool:
        """Wait for a moment; return whether to ask again.

        :param exc: the error of the last request
        :returns: False if the service is not away, or has been for too long
        """
        if not is_away(exc):
            return False
        now = time.monotonic()
        # A caller may not note each answer: a long pause counts as one.
        if self._since is None or now - self._last > LONGEST:
            self._since, self._is_said = now, False
        elif not self._is_said:
            self._is_said = True
            minutes = round(LONGEST / 60)
            self._say(
                f'{self.service} does not answer ({shorten(exc)}). '
                f'Retrying for {messages.count("minute", minutes)}.'
            )
        if now - self._since >= LONGEST:
            return False
        time.sleep(SECONDS)
        self._last = time.monotonic()
        self.lost += self._last - now
        return True

    def note_answer(self) -> None:
        """Report that a service answers again."""
        if self._since is not None and self._is_said:
            number = round(time.monotonic() - self._since)
            self._say(
                f'{self.service} answers again, after '
                f'{messages.count("second", number)}.'
            )
        self._since = None

    def ask(self, question: Callable[[], typing.Any]) -> typing.Any:
        """Return an answer, or raise the last error."""
        while True:
            try:
                answer = question()
            except Exception as exc:
                if not self.wait(exc):
                    raise
            else:
                self.note_answer()
                return answer
