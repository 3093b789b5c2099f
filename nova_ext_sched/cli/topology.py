# SPDX-License-Identifier: Apache-2.0

"""A map of the hosts, with one sign for each.

A row is a failure domain, a zone or an aggregate. The map is drawn from the
``topology`` of a document and the findings of a command for each host. Signs
can be told apart without colours.
"""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import textwrap
import typing

from rich import console
from rich import measure
from rich import text

from nova_ext_sched import grouping
from nova_ext_sched import messages
from nova_ext_sched.cli import bars
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import terminal

#: The nouns of rows, by the choices of ``--map-by``.
GROUPS = {
    'domain': 'failure domain',
    'zone': 'zone',
    'aggregate': 'aggregate',
}
# The keys of lists of names in a host's entry; its zone is a single name.
_KEYS = {'domain': 'domains', 'aggregate': 'aggregates'}
#: The name of the row of hosts in no group.
NO_GROUP = '(none)'

# The most rows; further ones are folded.
_MOST_ROWS = 24
# About how many lines of signs the map has: one screen.
_MOST_LINES = 40
# The most hosts named in a row whose signs do not fit.
_MOST_NAMED = 3
# The width of the column of signs.
_NARROWEST, _WIDEST = 10, 60

_LEVELS = '▁▂▃▄▅▆▇█'
_PLAIN_LEVELS = 'ABCDEFGH'
_MOST_COUNTED = 9
_MORE = '+'


class Sign(typing.NamedTuple):
    """A sign for a host, with its colour and meaning.

    :ivar shown: one character
    :ivar plain: the sign for encodings without block characters such as U+2588
    :ivar entry: the legend entry that several signs share, such as ``1-9``;
        empty if the sign has its own
    """

    shown: str
    plain: str = ''
    style: str = ''
    entry: str = ''

    @property
    def legend_key(self) -> str:
        """The key of the sign's entry in the legend."""
        return self.entry or self.shown

    def write(self, paper: console.Console) -> str:
        """Return the sign, or one that the encoding can show."""
        return (self.plain or self.shown) if _is_plain(paper) else self.shown


#: A host without anything to report.
NOTHING = Sign('·', '.')
# For hosts without findings: the sign and its legend, by ``state`` or
# ``closed`` of the host's entry in the document.
_STATES = {
    'down': (Sign('x', style=terminal.BAD), 'down'),
    'disabled': (Sign('-', style=terminal.BAD), 'disabled'),
    'isolated': (Sign('i', style=terminal.ASIDE), 'isolated'),
    'reserved': (Sign('r', style=terminal.ASIDE), 'reserved'),
}
#: The legend entries that stand for several signs: digits, and bars.
COUNTED = '1-9'
LEVELLED = f'{_LEVELS[0]}-{_LEVELS[-1]}'


def count_all(numbers: Mapping[str, int]) -> dict[str, Sign]:
    """Return the sign of each host, from its number of problems.

    ======  ====
    number  sign
    ======  ====
    1 to 9  the digit
    more    ``+``
    ======  ====
    """
    return {
        host: Sign(
            str(number) if number <= _MOST_COUNTED else _MORE,
            style=terminal.BAD_COUNT,
            entry=COUNTED,
        )
        for host, number in numbers.items()
    }


def say_counted(numbers: Mapping[str, int], what: str) -> str:
    """Return the legend of :func:`count_all`."""
    has_more = max(numbers.values(), default=0) > _MOST_COUNTED
    return what + f' ({_MORE}: {_MOST_COUNTED + 1} or more)' * has_more


def level(number: float, most: float) -> Sign:
    """Return a block whose height shows a host's number.

    :param most: the largest number of all hosts
    """
    last = len(_LEVELS) - 1
    step = last if number >= most else int(len(_LEVELS) * number / most)
    return Sign(_LEVELS[step], _PLAIN_LEVELS[step], terminal.GOOD, LEVELLED)


def say_levels(most: int, noun: str = '') -> str:
    """Return the legend of :func:`level`.

    :param noun: the name of what is counted, in the singular
    """
    if noun:
        noun = f' {noun}' + 's' * (most != 1)
    return f'1{noun}' if most == 1 else f'1 to {most}{noun}'


#: The options of a map.
OPTIONS: Mapping[str, Mapping[str, typing.Any]] = {
    '--map': {
        'action': 'store_true',
        'help': 'draw one sign for each host',
    },
    '--map-by': {
        'choices': GROUPS,
        'help': 'rows of the map (default: failure domains, or zones where '
        'there are none)',
    },
}


def is_wanted(parsed_args: argparse.Namespace) -> bool:
    """Return whether a map is asked for."""
    return bool(parsed_args.map or parsed_args.map_by)


class Group(typing.NamedTuple):
    """A group of hosts, with the sum of their numbers."""

    name: str
    hosts: Sequence[str]
    number: int


@dataclasses.dataclass(frozen=True)
class Map:
    """The map, for a rich Console.

    :ivar hosts: the hosts' entries in a document
    :ivar signs: the signs of hosts with findings
    :ivar numbers: the numbers to add up for each row, by host
    :ivar head: the name of these numbers
    :ivar legend: the meanings of signs, by :attr:`Sign.legend_key`, including
        that of :data:`NOTHING`
    :ivar by: the kind of rows, a key of :data:`GROUPS`; None for failure
        domains, or zones if there are none
    :ivar style: of the bars
    """

    hosts: Sequence[Mapping[str, typing.Any]]
    signs: Mapping[str, Sign]
    numbers: Mapping[str, int]
    head: str
    legend: Mapping[str, str]
    by: str | None = None
    style: str = terminal.BAD

    def __rich_console__(
        self, paper: console.Console, options: console.ConsoleOptions
    ) -> console.RenderResult:
        by, groups, signs = self.collect_rows()
        ranked = sorted(groups, key=lambda group: -group.number)
        # One more row takes no more room than a line that counts it.
        is_one_more = len(groups) == _MOST_ROWS + 1
        most = len(groups) if is_one_more else _MOST_ROWS
        seen = {group.name for group in ranked[:most]}
        lines = [
            group._replace(name=group.name or NO_GROUP)
            for group in groups
            if group.name in seen
        ]
        if folded := [group for group in groups if group.name not in seen]:
            more = messages.count(f'more {GROUPS[by]}', len(folded))
            # A host may be in several rows.
            hosts = dict.fromkeys(h for group in folded for h in group.hosts)
            lines.append(self._sum_up(f'and {more}', [*hosts]))
        yield layout.Table(
            (GROUPS[by].capitalize(), 'Hosts', self.head, ''),
            [
                (
                    messages.clean(name),
                    _Row(
                        hosts,
                        [signs[host] for host in hosts],
                        self.numbers,
                        max(_MOST_LINES // len(lines), 2),
                    ),
                    number,
                    bar,
                )
                for (name, hosts, number), bar in zip(
                    lines,
                    bars.compare([one[2] for one in lines], self.style),
                    strict=True,
                )
            ],
        )
        # NUL stands for a blank inside an entry: entries are not broken.
        entries = [
            f'{_write_entry(entry, paper)} {meant}'.replace(' ', '\0')
            for entry, meant in self.explain(signs.values())
        ]
        for line in textwrap.wrap('   '.join(entries), options.max_width):
            yield text.Text(
                line.replace('\0', ' '),
                terminal.ASIDE,
                no_wrap=True,
                overflow='ignore',
            )

    def collect_rows(self) -> tuple[str, list[Group], dict[str, Sign]]:
        """Return the kind of rows, the rows, and the sign of each host.

        Hosts in no group are the last row, whose name is empty.
        """
        by = self.by
        if by is None:
            by = 'domain' if any(h['domains'] for h in self.hosts) else 'zone'
        rows = [
            self._sum_up(name, hosts)
            for name, hosts in self._group(by).items()
        ]
        return (
            by,
            rows,
            {one['host']: self._find_sign(one) for one in self.hosts},
        )

    def _sum_up(self, name: str, hosts: Sequence[str]) -> Group:
        number = sum(self.numbers.get(host, 0) for host in hosts)
        return Group(name, hosts, number)

    def explain(self, signs: Iterable[Sign]) -> Iterator[tuple[str, str]]:
        """Return the legend entries of these signs with their meanings."""
        meanings = dict(self.legend)
        meanings |= {sign.shown: meant for sign, meant in _STATES.values()}
        seen = {sign.legend_key for sign in signs}
        return (item for item in meanings.items() if item[0] in seen)

    def _group(self, by: str) -> dict[str, list[str]]:
        """Return the hosts of each row, by the row's name.

        Rows are in natural order, hosts in the order of the document.
        """
        hosts_by_name = grouping.by_key(
            (name, one['host'])
            for one in self.hosts
            for name in (
                one[_KEYS[by]] or [''] if by in _KEYS else [one['zone']]
            )
        )
        # The row of hosts in no group comes last.
        order = sorted(
            hosts_by_name, key=lambda n: (not n, messages.in_order(n))
        )
        return {name: hosts_by_name[name] for name in order}

    def _find_sign(self, host: Mapping[str, typing.Any]) -> Sign:
        if sign := self.signs.get(host['host']):
            return sign
        for state in (host['state'], host['closed']):
            if state in _STATES:
                return _STATES[state][0]
        return NOTHING


@dataclasses.dataclass(frozen=True)
class _Row:
    """The signs of a row's hosts.

    If they do not fit, the row says how many hosts there are, and names those
    with the largest numbers.

    :ivar numbers: by host
    :ivar most: the most lines of signs
    """

    hosts: Sequence[str]
    signs: Sequence[Sign]
    numbers: Mapping[str, int]
    most: int

    def __rich_console__(
        self, paper: console.Console, options: console.ConsoleOptions
    ) -> console.RenderResult:
        width = options.max_width
        shown = text.Text(overflow='fold')
        if len(self.signs) <= width * self.most:
            for sign in self.signs:
                shown.append(sign.write(paper), sign.style)
        else:
            shown.append(self._name_first())
        yield from shown.wrap(paper, width)

    def _name_first(self) -> str:
        """Return how many hosts there are; name those with most."""
        said = messages.count('host', len(self.hosts))
        numbers = {
            host: number
            for host in self.hosts
            if (number := self.numbers.get(host, 0))
        }
        if numbers:
            first = sorted(numbers, key=lambda host: -numbers[host])
            said += f', most on {messages.first_few(first, _MOST_NAMED)}'
        return said

    def __rich_measure__(
        self, paper: console.Console, options: console.ConsoleOptions
    ) -> measure.Measurement:
        most = min(len(self.signs), _WIDEST)
        return measure.Measurement(min(most, _NARROWEST), most)


def _write_entry(entry: str, paper: console.Console) -> str:
    if not _is_plain(paper):
        return entry
    plain = {
        NOTHING.shown: NOTHING.plain,
        LEVELLED: f'{_PLAIN_LEVELS[0]}-{_PLAIN_LEVELS[-1]}',
    }
    return plain.get(entry, entry)


def _is_plain(paper: console.Console) -> bool:
    return not bars.can_show(_LEVELS + NOTHING.shown, paper.encoding)
