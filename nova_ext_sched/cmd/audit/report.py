# SPDX-License-Identifier: Apache-2.0

"""What the audit writes: a text for people, a document for programs.

Both stand in for a formatter of cliff, which sorts rows and selects columns
before it hands them on.
"""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import importlib.metadata
import typing

from cliff import columns
from oslo_utils import timeutils

from nova_ext_sched import messages
from nova_ext_sched.cmd import base
from nova_ext_sched.cmd import lines

#: Changes when a reader of the document must change.
FORMAT = 1

# Hosts that people see of those to which a server could go.
_FEW = 3
# With it, a server and its project take two lines of 80 columns.
_LONGEST_NAME = 24


class Where(columns.FormattableColumn):
    """The hosts to which a server could go; None where they are unknown."""

    @property
    def hosts(self) -> list[str] | None:
        """All of them, the best first."""
        return self._value

    def human_readable(self) -> str:
        return self._describe(_FEW)

    def machine_readable(self) -> str:
        return self._describe(len(self._value or ()), ' ')

    def _describe(self, most: int, separator: str = ', ') -> str:
        if self._value is None:
            return 'unknown'
        shown = messages.first_few(self._value, most)
        return shown.replace(', ', separator) or 'none'


class Policies(columns.FormattableColumn):
    """Numbers of servers by policy."""

    @property
    def counts(self) -> dict[str, int]:
        """As they are."""
        return self._value

    def human_readable(self) -> str:
        return ', '.join(
            f'{policy} {count}' for policy, count in self._value.items()
        )

    machine_readable = human_readable


class Findings(lines.Text):
    """The totals, then each reason once, with its servers.

    :param auditing: an Auditor, whose findings are read with the rows
    """

    def __init__(self, auditing: typing.Any) -> None:
        self._auditing = auditing

    def render(self, rows: Iterable[lines.Row]) -> Iterator[str]:
        yield from self._head()
        yield from self._rows(rows)

    def _head(self) -> Iterator[str]:
        totals = self._auditing.totals
        if not totals.violating:
            yield from self.fill(totals.sentence)
        else:
            yield f'{totals.head}:'
            for policy, count in totals.policies.items():
                if count:
                    yield f'{count:8}  {policy}'
            if totals.not_judged:
                yield f'{totals.not_judged:8}  cannot be judged'
        for fault in self._auditing.faults:
            yield from self.fill(base.without_secrets(fault))

    def _rows(self, rows: Iterable[lines.Row]) -> Iterator[str]:
        order = [*self._auditing.totals.policies]
        by_reason: dict[tuple[str, str], list[lines.Row]] = {}
        for row in rows:
            key = row['Policy'], row['Reason']
            by_reason.setdefault(key, []).append(row)
        ranked = sorted(
            by_reason.items(),
            key=lambda item: (
                # What cannot be judged comes last.
                order.index(item[0][0]) if item[0][0] in order else len(order),
                -len(item[1]),
            ),
        )
        for (policy, reason), found in ranked:
            yield ''
            servers = messages.count('server', len(found))
            yield from self.fill(f'{policy}, {servers}: {reason}')
            for row in found:
                yield from self.fill(_describe(row), '  ', ' ' * 6)


class Summary(Findings):
    """The totals, then numbers by aggregate, project and host."""

    def _rows(self, rows: Iterable[lines.Row]) -> Iterator[str]:
        by = ''
        for row in rows:
            if row['By'] != by:
                by = row['By']
                yield ''
                yield f'By {by}:'
            name = messages.clean(row['Name'])
            policies = row['Policies'].human_readable()
            text = f'{row["Servers"]:8}  {name}: {policies}'
            yield from self.fill(text, later=' ' * 12)


class Document:
    """One document with everything; ``schema.json`` has its form.

    :param auditing: an Auditor, whose findings are read with the rows
    :param formatter: cliff's of JSON or YAML
    """

    def __init__(self, auditing: typing.Any, formatter: typing.Any) -> None:
        self._auditing = auditing
        self._formatter = formatter

    def emit_list(
        self,
        names: Sequence[str],
        data: Iterable[Sequence[typing.Any]],
        stdout: typing.TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        """Write the document, once all is read."""
        keys = [name.lower() for name in names]
        rows = [dict(zip(keys, map(_value, row), strict=True)) for row in data]
        totals = self._auditing.totals
        document = {
            'format': FORMAT,
            'time': timeutils.utcnow().isoformat(timespec='seconds') + 'Z',
            'versions': {
                name: importlib.metadata.version(name)
                for name in ('nova-ext-sched', 'nova')
            },
            'answer': {
                'sentence': totals.sentence,
                'servers': totals.servers,
                'violating': totals.violating,
                'not_judged': totals.not_judged,
                'policies': totals.policies,
            },
            'summary' if parsed_args.summary else 'findings': rows,
            'faults': [
                base.without_secrets(fault) for fault in self._auditing.faults
            ],
        }
        self._formatter.emit_one(
            list(document), list(document.values()), stdout, parsed_args
        )


def _describe(row: lines.Row) -> str:
    """Return the server of a finding."""
    text = f'{row["Server"]}  {row["Host"]}'
    if row['Name']:
        text += f'  {messages.clean(row["Name"], _LONGEST_NAME)}'
    text += f', project {row["Project"]}'
    if 'Where' in row:
        text += f'; could go to: {row["Where"].human_readable()}'
    return text


def _value(cell: typing.Any) -> typing.Any:
    if isinstance(cell, Where):
        return cell.hosts
    return cell.counts if isinstance(cell, Policies) else cell
