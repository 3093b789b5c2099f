# SPDX-License-Identifier: Apache-2.0

"""Why the scheduler decided as it did, taken from what it logs."""

from collections.abc import Mapping
from collections.abc import Sequence
import logging
import re
import textwrap
import urllib.parse

_OURS = 'nova_ext_sched'
_CANDIDATES = '/allocation_candidates'
_NOVA_TRAITS = ('COMPUTE_', 'OWNER_NOVA')
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

    def add_query(self, url: str) -> None:
        """Take note of a request to placement."""
        parts = urllib.parse.urlsplit(url)
        if parts.path == _CANDIDATES:
            query = urllib.parse.parse_qs(parts.query)
            self._lines.append((_CANDIDATES, describe(query)))

    def take(self) -> list[tuple[str, str]]:
        """Return logger and line of what was collected since the last call."""
        lines = self._lines[:]
        self._lines.clear()
        return lines


def describe(query: Mapping[str, Sequence[str]]) -> str:
    """Return what a query for allocation candidates asks for, in words.

    Without the traits of nova's own that every request has.

    :param query: values by parameter, of any request group
    """
    words = []
    for parameter, values in sorted(query.items()):
        for value in values:
            prefix, _, names = value.rpartition(':')
            if parameter.startswith('in_tree'):
                words.append(f'on {value}')
            elif parameter.startswith('resources'):
                words.append(f'with {value}')
            elif parameter.startswith('member_of'):
                which = 'not in' if prefix.startswith('!') else 'in'
                words.append(f'{which} {names.replace(",", " or ")}')
            elif parameter.startswith(('required', 'root_required')):
                words += [
                    f'without {trait[1:]}'
                    if trait.startswith('!')
                    else f'with {trait}'
                    for trait in names.split(',')
                    if not trait.removeprefix('!').startswith(_NOVA_TRAITS)
                ]
    return ', '.join(words)


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
    placement                                 what it was asked for
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
            asked = [said for logger, said in lines if logger == _CANDIDATES]
            return ' '.join(['placement has no host', *asked[-1:]])
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
