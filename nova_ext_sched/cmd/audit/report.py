# SPDX-License-Identifier: Apache-2.0

"""What the audit writes: a text for people, a document for programs."""

from collections.abc import Iterable
from collections.abc import Sequence
import functools
import itertools
import typing

from cliff import columns

from nova_ext_sched import messages
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import lister

#: Changes when a reader of the document must change.
FORMAT = 1

# What the document has of the totals.
_ANSWER = ('sentence', 'servers', 'violating', 'not_judged', 'policies')

# Hosts that people see of those to which a server could go.
_FEW = 3
# Servers that people see of one group, or of all groups together, and how many
# groups: no more than 60 lines of 80 columns.
_MOST_SERVERS = 20
_MOST_GROUPS = 5
# Of a name that a user gave a server, this much is seen on every terminal.
_SHORTEST_NAME = 12
# Aggregates, projects or hosts that people see of a summary.
_MOST_PLACES = 10

_ALL = '-f csv lists all'


class Where(columns.FormattableColumn[list[str] | None]):
    """The hosts to which a server could go; None where they are unknown."""

    def human_readable(self) -> str:
        """See cliff."""
        if self._value is None:
            return 'unknown'
        return messages.first_few(self._value, _FEW) or 'none'


class Policies(columns.FormattableColumn[dict[str, int]]):
    """Numbers of servers by policy."""

    def human_readable(self) -> str:
        """See cliff."""
        return ', '.join(
            f'{policy} {count}' for policy, count in self._value.items()
        )


def write(
    out: layout.Layout,
    auditing: typing.Any,
    rows: Sequence[lister.Row],
    summary: bool,
) -> None:
    """Write the totals, then the servers, or where they are.

    :param auditing: an Auditor, whose findings were read with the rows
    :param summary: whether the rows are numbers of servers
    """
    totals = auditing.totals
    if totals.violating:
        out.say(f'{totals.head}:')
        counts = [(n, policy) for policy, n in totals.ranked if n]
        if totals.not_judged:
            counts.append((totals.not_judged, 'cannot be judged'))
        out.counts(counts)
    else:
        out.say(totals.sentence)
    for fault in auditing.faults:
        out.say(messages.without_secrets(fault))
    if summary:
        _write_places(out, rows)
    else:
        _write_groups(out, rows, [policy for policy, _ in totals.ranked])


def _write_groups(
    out: layout.Layout, rows: Sequence[lister.Row], policies: Sequence[str]
) -> None:
    """Write servers by policy, reason and project, the largest group first.

    :param policies: in order; what cannot be judged comes last
    """
    groups: dict[tuple[str, str, str], list[lister.Row]] = {}
    for row in rows:
        key = row['Policy'], row['Reason'], row['Project']
        groups.setdefault(key, []).append(row)
    place = {policy: number for number, policy in enumerate(policies)}
    ranked = sorted(
        groups,
        key=lambda key: (place.get(key[0], len(place)), -len(groups[key])),
    )
    # The largest of each policy, then the second of each, and so on.
    of_policies = [
        list(keys) for _, keys in itertools.groupby(ranked, lambda key: key[0])
    ]
    turns = filter(None, itertools.chain(*itertools.zip_longest(*of_policies)))
    shown = set(itertools.islice(turns, _MOST_GROUPS))
    for key in filter(shown.__contains__, ranked):
        policy, reason, project = key
        servers = messages.count('server', len(groups[key]))
        out.section(f'{policy}, {servers} of project {project}: {reason}')
        out.fold(
            groups[key],
            _MOST_SERVERS // len(shown),
            functools.partial(_write_server, out),
            'server',
            _ALL,
        )
    if folded := [len(groups[key]) for key in ranked if key not in shown]:
        out.section(
            f'and {messages.count("more group", len(folded))} of reason and '
            f'project, {messages.count("server", sum(folded))} ({_ALL})'
        )


def _write_server(out: layout.Layout, row: lister.Row) -> None:
    text = add_name(out, f'{row["Server"]}  {row["Host"]}', row['Name'])
    if 'Where' in row:
        text += f'; could go to: {row["Where"].human_readable()}'
    out.say(text, 2, hang=4)


def add_name(out: layout.Layout, text: str, name: str, indent: int = 2) -> str:
    """Return a line with as much of a server's name as it has room for.

    :param text: what comes before the name
    :param indent: how far the line is set in
    """
    name = messages.clean(name)
    room = max(_SHORTEST_NAME, out.width - len(text) - indent - 2)
    if len(name) > room:
        name = f'{name[: room - 3]}...'
    return f'{text}  {name}' if name else text


def _write_places(out: layout.Layout, rows: Sequence[lister.Row]) -> None:
    for by, found in itertools.groupby(rows, lambda row: row['By']):
        out.section(f'By {by}:')
        out.counts(
            [
                (
                    row['Servers'],
                    f'{messages.clean(row["Name"])}: '
                    f'{row["Policies"].human_readable()}',
                )
                for row in found
            ],
            _MOST_PLACES,
            by,
            _ALL,
        )


def list_rows(rows: Iterable[lister.Row]) -> list[dict[str, object]]:
    """Return what the document has of rows."""
    return [
        {name.lower(): lister.machine_readable(row[name]) for name in row}
        for row in rows
    ]


def make_document(
    auditing: typing.Any, **listed: object
) -> dict[str, typing.Any]:
    """Return everything as one document; ``schema.json`` has its form.

    :param auditing: see :func:`write`
    :param listed: ``findings`` or ``summary`` (:func:`list_rows`), or ``plan``
    """
    return {
        **lister.begin_document(FORMAT),
        'answer': {name: getattr(auditing.totals, name) for name in _ANSWER},
        **listed,
        'faults': [
            messages.without_secrets(fault) for fault in auditing.faults
        ],
    }
