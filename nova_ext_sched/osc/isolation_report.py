# SPDX-License-Identifier: Apache-2.0

"""What people read of isolation: the totals, then the worst."""

from collections.abc import Collection
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Sequence
import typing

from cliff import columns

from nova_ext_sched import messages
from nova_ext_sched.cli import layout
from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.osc import isolation_findings
from nova_ext_sched.osc import isolation_plan
from nova_ext_sched.osc import isolation_run

# What people see of many names, kinds of faults, aggregates without faults, or
# changes of one sort; and of the aggregates with faults. No more than 60 lines
# of 80 columns.
_FEW = 5
_MOST_FAULTY = 10

_ALL = '-f json lists all'

#: An aggregate with a ``trait:`` key, and what is wrong with it.
Judged = tuple[isolation_cloud.Aggregate, list[isolation_findings.Finding]]


def _few(names: Sequence[str]) -> str:
    return messages.first_few(names, _FEW)


def describe(finding: isolation_findings.Finding) -> str:
    """Return a finding and the first of its hosts."""
    if not finding.hosts:
        return finding.problem
    return f'{finding.problem}: {_few(finding.hosts)}'


class FaultsColumn(
    columns.FormattableColumn[Sequence[isolation_findings.Finding]]
):
    """What is wrong with an aggregate."""

    def human_readable(self) -> str:
        """Return a line for each."""
        return '\n'.join(f'{one.kind}: {describe(one)}' for one in self._value)

    def machine_readable(self) -> list[dict[str, typing.Any]]:
        """Return a dictionary for each."""
        return [fault._asdict() for fault in self._value]


def _hosts(judged: Iterable[Judged], kinds: Container[str]) -> set[str]:
    """Return the hosts that findings of some kinds are about."""
    return {
        host
        for aggregate, findings in judged
        for one in findings
        if one.kind in kinds
        for host in one.hosts or aggregate.hosts
    }


def _rank(judged: Collection[Judged], kinds: set[str]) -> tuple[int, ...]:
    """Return a key by which the worst is first.

    Worst is what leaves most hosts that no server can land on, then what
    concerns most hosts, then most aggregates.
    """
    closed = _hosts(judged, kinds & isolation_findings.CLOSING)
    return -len(closed), -len(_hosts(judged, kinds)), -len(judged)


class Report:
    """What is wrong with isolated aggregates, the worst first.

    :param found: every aggregate with a ``trait:`` key
    :param with_fine: whether to show those without faults
    :ivar faulty: those that have some
    :ivar fine: the others, by name
    """

    def __init__(self, found: Iterable[Judged], with_fine: bool) -> None:
        found = sorted(found, key=lambda one: one[0].name)
        self._number = len(found)
        self.fine = [one for one in found if with_fine and not one[1]]
        self.faulty = sorted(
            (one for one in found if one[1]),
            key=lambda one: _rank([one], {*isolation_findings.KINDS}),
        )
        by_kind = isolation_cloud.index(
            (kind, one)
            for one in self.faulty
            for kind in dict.fromkeys(finding.kind for finding in one[1])
        )
        self._kinds = sorted(
            by_kind.items(), key=lambda item: _rank(item[1], {item[0]})
        )

    @property
    def head(self) -> str:
        """How many aggregates have faults, and how many hosts they close."""
        if not self._number:
            return 'No aggregate has a trait: key'
        if not self.faulty:
            aggregates = messages.count('aggregate', self._number)
            return f'{aggregates} with a trait: key, no faults'
        text = messages.part(
            len(self.faulty),
            self._number,
            'aggregate',
            'with a trait: key has faults',
            'with a trait: key have faults',
        )
        if closed := len(_hosts(self.faulty, isolation_findings.CLOSING)):
            hosts = messages.count('host', closed)
            text += f', and no server can land on {hosts}'
        return text

    @property
    def repairs(self) -> str:
        """What sync mends, and which aggregates need a person."""
        if not self.faulty:
            return ''
        people = [
            aggregate.name
            for aggregate, findings in self.faulty
            if not all(one.by_sync for one in findings)
        ]
        mended = messages.count('aggregate', len(self.faulty) - len(people))
        text = f'openstack aggregate isolation sync repairs {mended}'
        if people:
            needs = messages.agree(len(people), 'needs', 'need')
            text += f'; {len(people)} {needs} you: {_few(people)}'
        return f'{text}.'

    @property
    def sentence(self) -> str:
        """The totals and the repairs."""
        kinds = ', '.join(f'{kind} {len(mine)}' for kind, mine in self._kinds)
        head = f'{self.head}: {kinds}.' if kinds else f'{self.head}.'
        return f'{head} {self.repairs}'.rstrip()

    def write(self, out: layout.Layout) -> None:
        """Write the totals, each kind of fault, and what to do."""
        out.say(self.head + (':' if self.faulty else '.'))
        out.counts([(len(mine), kind) for kind, mine in self._kinds])
        shown = self._kinds[:_FEW]
        for kind, mine in shown:
            _write_kind(out, kind, mine, _MOST_FAULTY // len(shown))
        if more := [kind for kind, _ in self._kinds[_FEW:]]:
            out.section(f'Also {", ".join(more)} ({_ALL}).')
        if self.fine:
            out.section('Without faults:')
            out.fold(
                [
                    f'{messages.clean(aggregate.name)}, '
                    f'{messages.count("host", len(aggregate.hosts))}: '
                    f'requires {_few(aggregate.traits)}'
                    for aggregate, _ in self.fine
                ],
                _FEW,
                lambda text: out.say(text, 2),
                'aggregate',
                _ALL,
            )
        if self.repairs:
            out.section(self.repairs)


def _write_kind(
    out: layout.Layout, kind: str, mine: Sequence[Judged], most: int
) -> None:
    aggregates = messages.count('aggregate', len(mine))
    hosts = messages.count('host', len(_hosts(mine, {kind})))
    meant = isolation_findings.KINDS[kind]
    out.section(
        f'{kind}, {aggregates}, {hosts}: {meant.consequence}. {meant.remedy}.'
    )

    def write(one: Judged) -> None:
        aggregate, findings = one
        for finding in findings:
            if finding.kind == kind:
                name = messages.clean(aggregate.name)
                out.say(f'{name}: {describe(finding)}', 2)

    out.fold(mine, most, write, 'aggregate', _ALL)


def write_steps(
    out: layout.Layout, steps: Sequence[isolation_plan.Step]
) -> None:
    """Write what sync did or would do: the totals, then by result.

    Equal changes are one line, with the traits or the hosts that they are
    about.
    """
    out.say(isolation_run.summarize(steps))
    record = isolation_cloud.RECORD
    by_result: dict[str, dict[str, dict[str, list[str]]]] = {}
    for step in steps:
        records = {record + name for name in step.names}
        plain = [name for name in step.names if name not in records]
        changes = by_result.setdefault(step.result, {})
        by_names = changes.setdefault(step.change, {})
        if step.host:
            by_names.setdefault(_few(plain), []).append(step.host)
        else:
            by_names.setdefault('', []).extend(plain)
    for result, changes in by_result.items():
        out.section(f'{result}:')
        for change, by_names in changes.items():
            ranked = sorted(by_names.items(), key=lambda one: -len(one[1]))
            out.fold(
                [
                    f'{change} {names}'.rstrip()
                    + f' ({len(folded)}): {_few(folded)}'
                    for names, folded in ranked
                ],
                _FEW,
                lambda text: out.say(text, 2, hang=4),
                'change',
                _ALL,
            )
    if any(name.startswith(record) for step in steps for name in step.names):
        out.section(
            f'With a trait sync gives {record}<trait>, by which sync --prune '
            f'takes back what sync gave and nothing else.'
        )
