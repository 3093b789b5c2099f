# SPDX-License-Identifier: Apache-2.0

"""Why the scheduler decided as it did, taken from what it logs."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import logging
import re
import textwrap
import urllib.parse

from nova_ext_sched import messages

_OURS = 'nova_ext_sched'
_CANDIDATES = '/allocation_candidates'
# Where it answered with an error.
_REFUSED = 'refused'
_NO_HOST = 'placement has no host'
_NOVA_TRAITS = ('COMPUTE_', 'OWNER_NOVA')
_LENGTH = 240

# The line of the request filter that keeps servers out of full domains.
_SPREAD = 'nova_ext_sched.request_filters.failure_domains'
_FULL = (
    'failure domains are full for server group %(group)s (limit %(limit)d in '
    'each): %(held)s'
)

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

#: The loggers to listen to, with the lowest level at which each gives reasons.
LEVELS = {
    _OURS: logging.DEBUG,
    **dict.fromkeys(_NOVA, logging.INFO),
}


class Reasons(logging.Handler):
    """Collects the lines that say why hosts were refused.

    All lines of our package, and of nova's scheduler those that name the
    stage at which the last host went.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._lines: list[tuple[str, str]] = []
        # Of the last request to placement: what it asked for, which hosts
        # came back, and why the filters refused some of these.
        self._query: str | None = None
        self._refused = ''
        self._returned: Collection[str] = ()
        self._refusals: dict[str, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        line = record.getMessage()
        if record.name.partition('.')[0] != _OURS:
            wanted = _NOVA.get(record.name)
            if wanted is None or not wanted.match(line):
                return
        line = line.splitlines()[0]
        if record.name == _SPREAD and isinstance(record.args, Mapping):
            # What leaves no host where every domain is full.
            if record.args.get('full'):
                line = _FULL % record.args
        self._lines.append((record.name, line))

    def add_query(
        self, url: str, hosts: Collection[str] = (), status: int = 200
    ) -> None:
        """Take note of a request to placement.

        :param hosts: the hosts in the answer
        :param status: of the answer
        """
        parts = urllib.parse.urlsplit(url)
        if parts.path == _CANDIDATES:
            self._query = describe(urllib.parse.parse_qs(parts.query))
            self._returned = hosts
            self._refusals = {}
            self._refused = ''
            if status != 200:
                self._refused = f'placement answered {status}' + (
                    ', because the query is too long' * (status == 414)
                )
            self._lines.append(
                (_REFUSED, self._refused)
                if self._refused
                else (_CANDIDATES, self._query)
            )

    def add_refusal(self, host: str, reason: str) -> None:
        """Take note of a host that a host filter refused."""
        self._refusals[host] = reason

    def explain_unused(self, hosts: Iterable[str]) -> str:
        """Return why a step did not use hosts; empty where it is not known.

        ===============================  =================================
        the host                         the sentence
        ===============================  =================================
        was not in placement's answer    what placement was asked for
        was not, it was an error         its status
        was refused by a host filter     the filter, and why if it is ours
        passed all filters               another host has more weight
        ===============================  =================================
        """
        if self._query is None:
            return ''
        by_reason: dict[str, list[str]] = {}
        for host in hosts:
            if self._refused:
                reason = self._refused
            elif host not in self._returned:
                reason = f'placement returned only hosts {self._query}'
            else:
                reason = self._refusals.get(
                    host, 'it passed every filter, another host weighed more'
                )
            by_reason.setdefault(reason, []).append(host)
        return textwrap.shorten(
            '; '.join(
                f'{messages.first_few(names, 3)} not used: {reason}'
                for reason, names in by_reason.items()
            ),
            _LENGTH,
            placeholder=' ...',
        )

    def take(self) -> list[tuple[str, str]]:
        """Return logger and line of what was collected since the last call."""
        lines = self._lines[:]
        self._lines.clear()
        self._query = None
        return lines


def describe(query: Mapping[str, Sequence[str]]) -> str:
    """Return what a query for allocation candidates asks for.

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
    placement                                 what it was asked for, or the
                                              error that it answered with
    either, with full failure domains         these come first
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
    full = [line for _, line in ours if line.startswith(_FULL[:20])][-1:]
    for name, line in reversed(stages):
        if name == 'nova.scheduler.manager':
            asked = [
                said if logger == _REFUSED else f'{_NO_HOST} {said}'
                for logger, said in lines
                if logger in (_CANDIDATES, _REFUSED)
            ]
            return '; '.join([*full, *(asked[-1:] or [_NO_HOST])])
        if match := _NOVA['nova.filters'].match(line):
            said = [said for _, said in ours if said.startswith(match[1])]
            rest = said[-1] if said else f'{match[1]} refused every host left'
            return '; '.join([*full, rest])
    if ours and not details:
        return ours[-1][1]
    for name, line in stages[-1:]:
        match = _NOVA[name].match(line)
        own = match and match.groups() and match[1]
        return f'no host is left but its own, {own}' if own else line
    return next(iter(details), '')
