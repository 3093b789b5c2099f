# SPDX-License-Identifier: Apache-2.0

"""Why the scheduler decided as it did, taken from what it logs."""

from collections.abc import Sequence
import logging
import re
import textwrap

_OURS = 'nova_ext_sched'
_OUR_REQUEST_FILTERS = f'{_OURS}.request_filters'
_LENGTH = 240

# nova's own lines that say which stage left no host, by their logger.
_NOVA = {
    'nova.filters': re.compile(r'Filter (\S+) returned 0 hosts'),
    # A move leaves its own host, whatever placement returned.
    'nova.scheduler.host_manager': re.compile(
        'Host filter ignoring hosts: (.*)|No hosts matched'
    ),
    'nova.scheduler.manager': re.compile('Got no allocation candidates'),
    'nova.scheduler.request_filter': re.compile('.'),
}

# nova names the cause of these itself, in the server's fault.
_CAUSE = re.compile('Scheduling failed: (.+)')

#: The loggers to listen to, with the lowest level that each tells reasons at.
LEVELS = {
    _OURS: logging.DEBUG,
    **dict.fromkeys(_NOVA, logging.INFO),
}


class Reasons(logging.Handler):
    """Collects the lines that tell why hosts were refused.

    All lines of our package, and of nova's scheduler those that name the
    stage at which the last host went.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._lines: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        line = record.getMessage()
        if record.name.partition('.')[0] != _OURS:
            wanted = _NOVA.get(record.name)
            if wanted is None or not wanted.match(line):
                return
        self._lines.append((record.name, line.splitlines()[0]))

    def take(self) -> list[tuple[str, str]]:
        """Return logger and line of what was collected since the last call."""
        lines = self._lines[:]
        self._lines.clear()
        return lines


def explain(
    lines: Sequence[tuple[str, str]], details: Sequence[str] = ()
) -> str:
    """Return why hosts were refused, in one sentence.

    ========================================  ==============================
    where the last host went                  the sentence
    ========================================  ==============================
    nova-api or a compute service refused     what it said
    a request filter ended the request        the cause that it gave
    a host filter                             what that filter logged, else
                                              its name
    placement                                 so, and what our request
                                              filters asked of it
    nowhere                                   what our package logged last
    ========================================  ==============================

    :param lines: logger and line, as :meth:`Reasons.take` returns them
    :param details: what nova said about each server that failed
    """
    return textwrap.shorten(
        _cause(lines, details), _LENGTH, placeholder=' ...'
    )


def _cause(lines: Sequence[tuple[str, str]], details: Sequence[str]) -> str:
    for detail in details:
        if cause := _CAUSE.search(detail):
            return cause[1]
        if not detail.startswith('No valid host'):
            return detail
    ours = [(name, line) for name, line in lines if name.startswith(_OURS)]
    stages = [(name, line) for name, line in lines if name in _NOVA]
    for name, line in reversed(stages):
        if name == 'nova.scheduler.manager':
            asked = [
                said
                for logger, said in ours
                if logger.startswith(_OUR_REQUEST_FILTERS)
            ]
            return '; '.join(
                ['placement has no host for the request', *asked[-1:]]
            )
        if match := _NOVA['nova.filters'].match(line):
            said = [said for _, said in ours if said.startswith(match[1])]
            return said[-1] if said else f'{match[1]} refused every host left'
    if ours and not details:
        return ours[-1][1]
    for name, line in stages[-1:]:
        match = _NOVA[name].match(line)
        own = match and match.groups() and match[1]
        return f'no host is left but its own, {own}' if own else line
    return next(iter(details), '')
