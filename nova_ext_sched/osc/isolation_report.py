# SPDX-License-Identifier: Apache-2.0

"""What people see of isolation: lines of their terminal's width.

Each class stands in for cliff's formatter of tables.
"""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import typing

from cliff import columns

from nova_ext_sched import messages
from nova_ext_sched.cmd import lines
from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.osc import isolation_findings

# Names that people see of many.
_FEW = 5
# Aggregates with faults of the same kinds that people see one by one.
_FEW_ALIKE = 2


def describe(finding: isolation_findings.Finding) -> str:
    """Return a finding and the first of its hosts."""
    if not finding.hosts:
        return f'{finding.kind}: {finding.problem}'
    return f'{finding.kind}: {finding.problem}: {_few(finding.hosts)}'


class FaultsColumn(columns.FormattableColumn):
    """What is wrong with an aggregate."""

    @property
    def findings(self) -> list[isolation_findings.Finding]:
        """Each of them."""
        return self._value

    def human_readable(self) -> str:
        """Return a line for each."""
        return '\n'.join(map(describe, self._value))

    def machine_readable(self) -> list[dict[str, typing.Any]]:
        """Return a dictionary for each."""
        return [fault._asdict() for fault in self._value]


def summarize(
    number: int,
    faulty: Sequence[
        tuple[isolation_cloud.Aggregate, list[isolation_findings.Finding]]
    ],
) -> str:
    """Return how many aggregates have which faults."""
    if not number:
        return 'No aggregate has a trait: key.'
    if not faulty:
        aggregates = messages.count('aggregate', number)
        return f'{aggregates} with a trait: key, no faults.'
    kinds = collections.Counter(
        kind for _, found in faulty for kind in {one.kind for one in found}
    )
    ranked = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    counts = ', '.join(f'{kind} {count}' for kind, count in ranked)
    have_faults = messages.part(
        len(faulty),
        number,
        'aggregate',
        'with a trait: key has faults',
        'with a trait: key have faults',
    )
    return f'{have_faults}: {counts}.'


class Aggregates(lines.Text):
    """An aggregate in a line, and its faults below it.

    Where more than two have faults of the same kinds, the first is shown, and
    the others by their names.
    """

    def render(self, rows: Iterable[lines.Row]) -> Iterator[str]:
        by_kinds: dict[tuple[str, ...], list[lines.Row]] = {}
        for row in rows:
            kinds = dict.fromkeys(one.kind for one in row['Faults'].findings)
            by_kinds.setdefault(tuple(kinds), []).append(row)
        for key, found in by_kinds.items():
            folded = found[1:] if key and len(found) > _FEW_ALIKE else []
            for row in found[: len(found) - len(folded)]:
                yield from self._aggregate(row)
            if folded:
                aggregates = messages.count('more aggregate', len(folded))
                names = _few([row['Name'] for row in folded])
                yield from self.fill(
                    f'{aggregates} with {", ".join(key)}: {names}',
                    later=' ' * 4,
                )

    def _aggregate(self, row: lines.Row) -> Iterator[str]:
        hosts = row['Hosts'].machine_readable()
        traits = row['Traits'].machine_readable()
        yield from self.fill(
            f'{messages.clean(row["Name"])}, '
            f'{messages.count("host", len(hosts))}: '
            + (f'requires {_few(traits)}' if traits else 'not isolated'),
            later=' ' * 4,
        )
        for finding in row['Faults'].findings:
            yield from self.fill(describe(finding), '  ', ' ' * 4)


class Steps(lines.Text):
    """By result; equal changes in one line, with their traits or hosts."""

    def render(self, rows: Iterable[lines.Row]) -> Iterator[str]:
        by_result: dict[str, dict[str, list[str]]] = {}
        for row in rows:
            names = row['Names'].machine_readable()
            change, folded = row['Change'], names
            if row['Host']:
                change += f' {_fold_records(names)}'
                folded = [row['Host']]
            found = by_result.setdefault(row['Result'], {})
            found.setdefault(change, []).extend(folded)
        for result, found in by_result.items():
            yield from self.fill(f'{result}:', later='')
            for change, folded in found.items():
                yield from self.fill(
                    f'{change} ({len(folded)}): {_few(folded)}', '  ', ' ' * 6
                )


def _fold_records(names: Sequence[str]) -> str:
    """Return names without the record of each that has one."""
    plain = [
        name
        for name in names
        if name.removeprefix(isolation_cloud.RECORD) not in names
        or not name.startswith(isolation_cloud.RECORD)
    ]
    more = '' if len(plain) == len(names) else ' and record'
    return _few(plain) + more + ('s' if more and len(plain) > 1 else '')


def _few(names: Sequence[str]) -> str:
    return messages.first_few(names, _FEW)
