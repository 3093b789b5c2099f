# SPDX-License-Identifier: Apache-2.0

"""Reports capacity: the answer first, then the flavors.

Everything comes from the document (:mod:`.answer`).
"""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import math
import typing

from nova_ext_sched import messages
from nova_ext_sched.cli import bars
from nova_ext_sched.cli import base
from nova_ext_sched.cli import report
from nova_ext_sched.cli import terminal
from nova_ext_sched.cli import topology
from nova_ext_sched.cmd import documents
from nova_ext_sched.dryrun import heading
from nova_ext_sched.dryrun.fit import answer

#: The number of the document's format: raised when its readers must change.
FORMAT = 2

#: The document's schema: its title, its format, its parts.
SCHEMA = (
    'What nova-ext-sched capacity prints with -f json and -f yaml',
    FORMAT,
    (
        answer.Tally,
        documents.Said,
        documents.Hosts,
        heading.Heading,
        documents.Asked,
    ),
)

#: The hosts in the document.
Hosts = Sequence[dict[str, typing.Any]]

#: The columns of the flavors.
COLUMNS = ('Flavor', 'Servers', 'Hosts', 'Limiting factors')
#: The columns of the room that hosts have for them.
HOST_COLUMNS = ('Flavor', 'Host', 'Servers', 'Limiting factors')

#: The nouns of groups of hosts, by the choices of --by.
GROUPS = {
    'zone': 'zone',
    'aggregate': 'aggregate',
    'domain': 'failure domain',
}
# The sign of a host that is counted only in a sum with others.
_UNKNOWN = topology.Sign('?', style=terminal.ASIDE)

# The most hosts or groups of a flavor in the text.
_MOST_LINES = 20


def get_group_columns(by: str) -> tuple[str, ...]:
    """Return the columns of the room that groups of hosts have."""
    flavor, *columns = COLUMNS
    return flavor, GROUPS[by].capitalize(), *columns


def make(
    tally: answer.Tally,
    hosts: Hosts,
    by_host: bool,
    status: int = base.FINE,
    is_long: bool = False,
    is_part: bool = False,
) -> report.Report:
    """Return the report of a tally.

    :param hosts: the result of :func:`.selection.make_documents`
    :param by_host: whether to list the room of each host
    :param is_long: whether to list every limit of a flavor
    :param is_part: whether flavors were not counted, after an interrupt
    """
    sentences = [*_list_sentences(tally)]
    if is_part:
        sentences.insert(
            1,
            f'Interrupted after {messages.count("flavor", len(tally.flavors))}'
            f'; the others were not counted.',
        )
    sentence, sections = report.begin(*sentences)
    rows: list[Sequence[typing.Any]] = []
    by = tally.by
    columns: Sequence[str]
    for flavor in tally.flavors:
        number, ends = _number(flavor), _say_ends(flavor)
        if by_host:
            columns, noun, lines = HOST_COLUMNS, 'host', _list_rooms(flavor)
        elif by:
            columns, noun = get_group_columns(by), GROUPS[by]
            lines = _list_groups(flavor)
        else:
            fitting = (
                report.NONE if flavor.fault else report.make_cell(flavor.hosts)
            )
            rows.append((flavor.name, number, fitting, _list_ends(ends)))
            continue
        rows += [(flavor.name, *line) for line in lines]
        sections.append(
            report.Section(
                _say_head(flavor), lines, _MOST_LINES, noun, columns[1:]
            )
        )
        several = flavor.in_several
        if several and (several.servers or several.unlimited):
            sections.append(
                report.Section(
                    f'{several.servers or "Some"} of these would be on hosts '
                    f'in several {noun}s, and count in each.',
                    apart=False,
                )
            )
    if rows and not by_host and not by:
        sections.append(_tell_flavors(tally, rows, is_long))
    return report.Report(
        sentence,
        sections,
        rows,
        lambda: {
            **heading.make(FORMAT),
            'answer': {'sentence': sentence},
            **dataclasses.asdict(tally),
            'topology': [*hosts],
        },
        status,
        [host['host'] for host in hosts],
    )


def draw(
    tally: answer.Tally,
    hosts: Hosts,
    by: str | None,
) -> Iterator[topology.Map]:
    """Yield the map of the room of each flavor that was counted."""
    for flavor in tally.flavors:
        rooms = {
            room.host: math.inf if room.unlimited else room.servers
            for room in flavor.rooms or ()
        }
        counted = {
            host: int(number)
            for host, number in rooms.items()
            if number is not None and number < math.inf
        }
        most = max(counted.values(), default=0)
        yield topology.Map(
            hosts,
            {
                host: _UNKNOWN
                if number is None
                else topology.level(number, most or 1)
                for host, number in rooms.items()
                if number != 0
            },
            counted,
            flavor.name,
            {
                topology.LEVELLED: 'room for '
                + topology.say_levels(most or 1),
                topology.NOTHING.shown: 'no room',
                _UNKNOWN.shown: 'only the sum is known',
            },
            by,
            terminal.GOOD,
        )


def _tell_flavors(
    tally: answer.Tally, rows: Sequence[Sequence[typing.Any]], is_long: bool
) -> report.Section:
    """Return the flavors with bars and their limiting resource."""
    shown = bars.compare([number for _, number, *_ in rows])
    lines = [
        (name, number, bar, hosts, cell.human_readable())
        for (name, number, hosts, cell), bar in zip(rows, shown, strict=True)
    ]
    head = 'Limiting factors'
    if not is_long and len(rows) > 1:
        head = 'Limited by'
        lines = [
            (*line[:-1], _find_limit(one))
            for line, one in zip(lines, tally.flavors, strict=True)
        ]
    return report.Section(
        rows=lines, columns=('Flavor', 'Servers', '', 'Hosts', head)
    )


def _find_limit(flavor: answer.RoomForFlavor) -> str:
    """Return the limit of the most hosts' room, or why none has room."""
    if flavor.end or flavor.fault:
        return flavor.end or 'could not be counted'
    ends = max(flavor.ends, key=lambda end: end.hosts, default=None)
    if ends:
        return ends.ends
    refused = max(flavor.refused, key=lambda by: by.hosts, default=None)
    return refused.say() if refused else ''


def _list_rooms(flavor: answer.RoomForFlavor) -> list[Sequence[typing.Any]]:
    return [
        (room.host, _number(room), report.Cell(room.ends))
        for room in flavor.rooms or ()
    ]


def _list_groups(flavor: answer.RoomForFlavor) -> list[Sequence[typing.Any]]:
    return [
        (
            group.name or topology.NO_GROUP,
            _number(group),
            report.make_cell(group.hosts),
            _list_ends(_say_hosts(group.ends)),
        )
        for group in flavor.groups or ()
    ]


def _list_ends(ends: Sequence[str]) -> report.Cell:
    return report.Cell(ends, '; '.join(ends))


def _list_sentences(tally: answer.Tally) -> Iterator[str]:
    """Yield the answer, without its stop, and further sentences."""
    flavors = tally.flavors
    faults = [one for one in flavors if one.fault]
    if len(flavors) == 1 and not faults:
        yield say_flavor(flavors[0], tally.hosts)
    else:
        roomy = sum(one.unlimited or bool(one.servers) for one in flavors)
        counted = len(flavors) - len(faults)
        have = messages.part(roomy, counted, 'flavor', 'has', 'have')
        yield (
            f'{have} room on {messages.count("host", tally.hosts)}. Each '
            'number assumes that nothing else is created'
        )
    for remark in tally.remarks:
        yield f'{remark.rstrip(".")}.'
    for one in faults:
        yield f'{say_flavor(one, tally.hosts)}.'


def say_flavor(flavor: answer.RoomForFlavor, hosts: int) -> str:
    """Describe the room of a flavor, without the stop.

    :param hosts: number of hosts
    """
    if flavor.fault:
        return (
            f'{flavor.name} could not be counted: {flavor.fault.rstrip(".")}'
        )
    number = _number(flavor)
    if not number:
        return f'No more servers of flavor {flavor.name} fit'
    text = (
        f'{messages.count("more server", number)} of flavor {flavor.name} '
        f'{messages.agree(number, "fits", "fit")}'
    )
    if flavor.hosts is not None:
        text += f', on {flavor.hosts} of {messages.count("host", hosts)}'
    return text


def _say_head(flavor: answer.RoomForFlavor) -> str:
    """Describe how many servers of a flavor fit, and their limit."""
    number, ends = _number(flavor), '; '.join(_say_ends(flavor))
    if isinstance(number, int):
        number = messages.count('server', number)
    text = f'{flavor.name}: {number}'
    if not ends:
        return text
    # Without an end, all hosts are refused.
    is_limited = flavor.ends and not flavor.end
    return text + (', limited by ' if is_limited else '; ') + ends


def _number(
    flavor: answer.RoomForFlavor | answer.RoomInGroup | answer.RoomOnHost,
) -> typing.Any:
    return (
        'unlimited' if flavor.unlimited else report.make_cell(flavor.servers)
    )


def _say_ends(one: answer.RoomForFlavor) -> list[str]:
    """Describe the limits of hosts' room, and why others have none."""
    if one.end:
        return [one.end]
    return [*_say_hosts(one.ends), *(by.say() for by in one.refused)]


def _say_hosts(ends: Sequence[answer.RoomEnd]) -> list[str]:
    return [
        f'{end.ends} on {messages.count("host", end.hosts)}' for end in ends
    ]
