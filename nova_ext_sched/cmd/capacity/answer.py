# SPDX-License-Identifier: Apache-2.0

"""What people read of the capacity: the answer first, then the flavors.

Everything comes from the document (:mod:`.document`).
"""

import typing

from nova_ext_sched import messages
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import lister
from nova_ext_sched.cmd.explain import document as explain_document

Document = dict[str, typing.Any]

#: The columns of :func:`rows`.
COLUMNS = ('Flavor', 'Servers', 'Hosts', 'Ends with')
#: The columns of :func:`host_rows`.
HOST_COLUMNS = ('Flavor', 'Host', 'Servers', 'Ends with')

UNLIMITED = 'unlimited'
# Hosts of a flavor that people see.
_MOST_HOSTS = 20


def rows(found: Document) -> list[tuple[typing.Any, ...]]:
    """Return a row for each flavor, the most room first."""
    return [
        (
            one['name'],
            _number(one),
            layout.NONE if one['fault'] else one['hosts'],
            lister.Several(_say_ends(one)),
        )
        for one in found['flavors']
    ]


def host_rows(found: Document) -> list[tuple[typing.Any, ...]]:
    """Return a row for each host of each flavor, the most room first."""
    return [
        (
            one['name'],
            room['host'],
            _number(room),
            lister.Several(room['ends']),
        )
        for one in found['flavors']
        for room in one['rooms']
    ]


def sum_up(found: Document) -> str:
    """Return the answer as sentences on one line."""
    flavors = found['flavors']
    hosts = messages.count('host', found['hosts'])
    if len(flavors) == 1 and not flavors[0]['fault']:
        [one] = flavors
        number = _number(one)
        verb = messages.agree(number, 'fits', 'fit')
        sentences = [
            f'{messages.count("more server", number)} of flavor '
            f'{one["name"]} {verb}, on {one["hosts"]} of {hosts}'
        ]
    else:
        counted = sum(not one['fault'] for one in flavors)
        roomy = sum(
            one['unlimited'] or bool(one['servers']) for one in flavors
        )
        sentences = [
            messages.part(roomy, counted, 'flavor', 'has', 'have')
            + f' room on {hosts}',
            'Each number is what fits if nothing else is created',
        ]
    sentences += found['remarks']
    sentences += [
        f'{one["name"]} could not be counted: {one["fault"]}'
        for one in flavors
        if one['fault']
    ]
    return ' '.join(f'{text.rstrip(".")}.' for text in sentences)


def write(out: layout.Layout, found: Document, by_host: bool) -> None:
    """Write the answer, then a table of the flavors, or one for each."""
    out.say(sum_up(found), hang=0)
    if not by_host:
        if found['flavors']:
            out.say()
            shown = [
                (*cells, '; '.join(ends.machine_readable()))
                for *cells, ends in rows(found)
            ]
            out.table(COLUMNS, shown)
        return
    for one in found['flavors']:
        out.section(
            '; '.join((f'{one["name"]}: {_number(one)}', *_say_ends(one)))
        )
        rooms = host_rows({'flavors': [one]})
        out.table(
            HOST_COLUMNS[1:],
            [
                (*cells, ends.human_readable())
                for _, *cells, ends in rooms[:_MOST_HOSTS]
            ],
        )
        if len(rooms) > _MOST_HOSTS:
            more = messages.count('more host', len(rooms) - _MOST_HOSTS)
            out.say(f'and {more} (-f csv lists all)')


def _number(one: Document) -> typing.Any:
    if one['unlimited']:
        return UNLIMITED
    return layout.NONE if one['servers'] is None else one['servers']


def _say_ends(one: Document) -> list[str]:
    """Return what ends the room of hosts, and why others have none."""
    if one['end']:
        return [one['end']]
    ends = [
        f'{end["ends"]} on {messages.count("host", end["hosts"])}'
        for end in one['ends']
    ]
    return ends + list(map(explain_document.say_number, one['refused']))
