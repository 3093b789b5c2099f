# SPDX-License-Identifier: Apache-2.0

"""Reports isolation: the totals, then the worst."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import itertools

from nova_ext_sched import grouping
from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cli import report
from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.osc import isolation_findings
from nova_ext_sched.osc import isolation_run
from nova_ext_sched.osc import isolation_step
from nova_ext_sched.policy import isolation

#: The columns of the aggregates, and those of the changes.
COLUMNS = ('ID', 'Name', 'UUID', 'Traits', 'Hosts', 'Faults', 'Elsewhere')
STEP_COLUMNS = ('Change', 'Names', 'Host', 'Provider', 'Result')

# The most names, faults, or aggregates without faults that people see; the
# most aggregates with faults, and changes with one result. No more than 60
# lines of 80 columns.
_FEW = 5
_MOST_FAULTY = 10
_MOST_CHANGES = 15

#: An aggregate with a ``trait:`` key, and its faults.
Judged = tuple[isolation_cloud.Aggregate, list[isolation_findings.Finding]]


def make(
    judged: Iterable[Judged], cloud: isolation_cloud.Cloud
) -> report.Report:
    """Return the report of aggregates, the worst first, then by name.

    :param judged: every aggregate with a ``trait:`` key
    """
    judged = sorted(judged, key=lambda one: one[0].name)
    fine = [one for one in judged if not one[1]]
    faulty = sorted(
        (one for one in judged if one[1]),
        key=lambda one: _rank([one], isolation_findings.FAULTS),
    )
    by_fault = grouping.by_key(
        (fault, one)
        for one in faulty
        for fault in dict.fromkeys(finding.fault for finding in one[1])
    )
    faults = sorted(
        by_fault.items(), key=lambda item: _rank(item[1], [item[0]])
    )
    # Leftovers of traits that no aggregate requires any more.
    leftovers = [
        finding
        for trait in sorted(
            isolation.get_recorded(cloud.traits)
            - isolation_cloud.get_traits(cloud.aggregates)
        )
        for finding in isolation_findings.find_leftovers(cloud, trait)
    ]
    sentence, sections = report.begin(
        *_list_sentences(faulty, len(judged)),
        *(
            f'{one.fault}: {say_finding(one)}. '
            f'{isolation_findings.FAULTS[one.fault].remedy}.'
            for one in leftovers
        ),
        counts=[(len(affected), fault) for fault, affected in faults],
    )
    shown = faults[:_FEW]
    for fault, affected in shown:
        most = _MOST_FAULTY // len(shown)
        sections.append(_tell_fault(fault, affected, most))
    if more := [fault for fault, _ in faults[_FEW:]]:
        sections.append(
            report.Section(f'Also {", ".join(more)} ({report.SEE_ALL}).')
        )
    places = [list(cloud.find_elsewhere(one)) for one, _ in (*faulty, *fine)]
    sections += _tell_fine([one for one, _ in fine])
    sections += _tell_elsewhere(itertools.chain(*places))
    rows = [
        *map(_make_row, (*faulty, *fine), places),
        *(_make_row((None, [finding]), []) for finding in leftovers),
    ]
    return report.Report(
        sentence,
        sections,
        rows,
        status=base.SOME_FOUND if faulty or leftovers else base.FINE,
    )


def _make_row(
    judged: tuple[
        isolation_cloud.Aggregate | None, list[isolation_findings.Finding]
    ],
    places: Sequence[isolation_cloud.Place],
) -> tuple[object, ...]:
    """Return a row of :data:`COLUMNS`.

    :param judged: an aggregate and its findings; for a leftover that no
        aggregate requires any more, None and one finding
    :param places: the traits that its hosts have elsewhere
    """
    one, findings = judged
    return (
        *((one.id, one.name, one.uuid) if one else ('', '', '')),
        report.Cell(one.traits if one else []),
        report.Cell(one.hosts if one else findings[0].hosts),
        report.Cell(
            [finding.make_document() for finding in findings],
            '\n'.join(f'{f.fault}: {say_finding(f)}' for f in findings),
        ),
        report.Cell(
            [place._asdict() for place in places],
            ', '.join(place.trait for place in places),
        ),
    )


def _tell_fine(
    aggregates: Sequence[isolation_cloud.Aggregate],
) -> Iterator[report.Section]:
    lines = [
        f'{messages.clean(one.name)}, '
        f'{messages.count("host", len(one.hosts))}: requires '
        f'{_few(one.traits)}'
        for one in aggregates
    ]
    if lines:
        yield report.Section('Without faults:', lines, _FEW, 'aggregate')


def _tell_elsewhere(
    places: Iterable[isolation_cloud.Place],
) -> Iterator[report.Section]:
    # Two aggregates may have the same hosts.
    lines = dict.fromkeys(
        f'{place.trait} on provider {_few(place.providers)}: '
        f'{messages.in_ranges(place.hosts, _FEW)}'
        for place in places
    )
    if lines:
        text = (
            'These traits are not on the provider of the host itself, so only '
            'requests that use these providers find the hosts:'
        )
        yield report.Section(text, [*lines], _FEW, 'trait')


def _few(names: Sequence[str]) -> str:
    return messages.first_few(names, _FEW)


def say_finding(finding: isolation_findings.Finding) -> str:
    """Return a finding and the first of its hosts."""
    if not finding.hosts:
        return finding.problem
    return f'{finding.problem}: {messages.in_ranges(finding.hosts, _FEW)}'


def _hosts(judged: Iterable[Judged], faults: Collection[str]) -> set[str]:
    """Return the hosts that findings of these faults concern."""
    return {
        host
        for aggregate, findings in judged
        for one in findings
        if one.fault in faults
        for host in one.hosts or aggregate.hosts
    }


def _rank(
    judged: Collection[Judged], faults: Iterable[str]
) -> tuple[int, ...]:
    """Return a sort key that puts the worst first.

    The worst has the most hosts that no server can land on, then the most
    hosts concerned, then the most aggregates.
    """
    closed = _hosts(judged, isolation_findings.CLOSING.intersection(faults))
    return -len(closed), -len(_hosts(judged, {*faults})), -len(judged)


def _list_sentences(faulty: Sequence[Judged], number: int) -> Iterator[str]:
    """Yield the numbers of aggregates with faults, and of those sync repairs.

    :param number: of the aggregates with a ``trait:`` key
    """
    if not faulty:
        aggregates = messages.count('aggregate', number)
        yield (
            f'{aggregates} with a trait: key, no faults'
            if number
            else 'No aggregate has a trait: key'
        )
        return
    text = messages.part(
        len(faulty),
        number,
        'aggregate',
        'with a trait: key has faults',
        'with a trait: key have faults',
    )
    if closed := len(_hosts(faulty, isolation_findings.CLOSING)):
        text += f', and no server can land on {messages.count("host", closed)}'
    yield text
    manual = [
        aggregate.name
        for aggregate, findings in faulty
        if not all(one.by_sync for one in findings)
    ]
    by_sync = len(faulty) - len(manual)
    them = messages.count('aggregate', by_sync) if by_sync else 'none of them'
    text = f'openstack aggregate isolation sync repairs {them}'
    if manual:
        text += (
            f'; {len(manual)} {messages.agree(len(manual), "needs", "need")} '
            f'manual repair: {_few(manual)}'
        )
    yield f'{text}.'


def _tell_fault(
    fault: str, faulty: Sequence[Judged], most: int
) -> report.Section:
    aggregates = messages.count('aggregate', len(faulty))
    hosts = messages.count('host', len(_hosts(faulty, {fault})))
    meant = isolation_findings.FAULTS[fault]
    lines = [
        f'{messages.clean(one.name)}: '
        + '; '.join(say_finding(f) for f in findings if f.fault == fault)
        for one, findings in faulty
    ]
    return report.Section(
        f'{fault}, {aggregates}, {hosts}: {meant.consequence}. '
        f'{meant.remedy}.',
        lines,
        most,
        'aggregate',
    )


def make_of_steps(
    steps: Sequence[isolation_step.Step], status: int, *remarks: str
) -> report.Report:
    """Return the report of steps done or planned: the totals, by result.

    A line folds the hosts that get the same names, or the names that are
    created.

    :param remarks: sentences on traits that were not checked, or on the error
        that ended the run early
    """
    sentence, sections = report.begin(isolation_run.sum_up(steps), *remarks)
    record = isolation.RECORD
    by_result: dict[
        str, dict[tuple[isolation_step.Change, str], list[str]]
    ] = {}
    for step in steps:
        records = {record + name for name in step.names}
        plain = [name for name in step.names if name not in records]
        change = step.change, _few(plain) if step.host else ''
        changes = by_result.setdefault(step.result, {})
        members = changes.setdefault(change, [])
        members += [step.host] if step.host else plain
    order = list(isolation_step.Change)
    for result, changes in by_result.items():
        lines = [
            f'{change} {names}'.rstrip()
            + f' ({len(members)}): '
            # Members are the hosts that get these names, or without names the
            # names that are created.
            + (messages.in_ranges(members, _FEW) if names else _few(members))
            for (change, names), members in sorted(
                changes.items(),
                key=lambda one: (order.index(one[0][0]), -len(one[1])),
            )
        ]
        sections.append(
            report.Section(
                f'{result[0].upper()}{result[1:]}:',
                lines,
                _MOST_CHANGES,
                'change',
            )
        )
    if any(name.startswith(record) for step in steps for name in step.names):
        sections.append(
            report.Section(
                f'sync marks each trait that it gives with {record}<trait>; '
                'sync --prune removes no others.'
            )
        )
    rows = [
        (
            str(step.change),
            report.Cell(step.names),
            step.host,
            step.provider,
            str(step.result),
        )
        for step in steps
    ]
    return report.Report(sentence, sections, rows, status=status)
