# SPDX-License-Identifier: Apache-2.0

"""What the audit tells: a text to people, a document to programs."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import itertools
import typing

from nova_ext_sched import messages
from nova_ext_sched.cli import bars
from nova_ext_sched.cli import base
from nova_ext_sched.cli import report
from nova_ext_sched.cli import terminal
from nova_ext_sched.cli import topology
from nova_ext_sched.dryrun import heading

#: The columns of the servers found, and those of their numbers.
COLUMNS = ('Server', 'Name', 'Project', 'Host', 'Policy', 'Reason')
SUMMARY_COLUMNS = ('By', 'Name', 'Servers', 'Policies')

#: Changes when a reader of the document must change.
FORMAT = 2

# What the document has of the totals.
_ANSWER = ('servers', 'violating', 'not_judged', 'policies')

# Servers that people see of one group, or of all groups together, and how many
# groups: no more than 60 lines of 80 columns.
_MOST_SERVERS = 20
_MOST_GROUPS = 5
# Aggregates, projects or hosts that people see of a summary.
_MOST_PLACES = 10

#: Texts in the order of :data:`COLUMNS`.
Finding = tuple[str, str, str, str, str, str]


#: What the document has of the hosts.
Topology = Sequence[Mapping[str, typing.Any]]


def make(
    auditing: typing.Any,
    findings: Sequence[Finding],
    summary: bool,
    hosts: Topology = (),
) -> report.Report:
    """Return the report of what was found.

    :param auditing: an Auditor that has judged all servers
    :param summary: whether to tell numbers of servers in place of servers
    :param hosts: what :func:`.topology.describe` returned
    """
    totals, faults = auditing.totals, auditing.faults
    found = totals.head, *totals.remarks
    sentence, first = report.begin(*found, *faults, counts=totals.counts)
    names: Sequence[str] = COLUMNS
    rows: Sequence[Sequence[typing.Any]] = findings
    cells, details = rows, _tell_groups(findings, totals)
    if summary:
        names, rows = SUMMARY_COLUMNS, list(totals.lines())
        cells = [(*row, report.Cell(of, _say(of))) for *row, of in rows]
        details = _tell_places(rows)

    def make_document() -> dict[str, typing.Any]:
        """Return everything; ``schema.json`` has its form."""
        keys = [name.lower() for name in names]
        return {
            **heading.make(FORMAT),
            'answer': {
                'sentence': report.begin(*found, counts=totals.counts)[0],
                **{name: getattr(totals, name) for name in _ANSWER},
            },
            'topology': list(hosts),
            'summary' if summary else 'findings': [
                dict(zip(keys, row, strict=True)) for row in rows
            ],
            'faults': faults,
        }

    status = base.FINE
    if faults or totals.not_judged:
        status = base.FAULT
    elif totals.violating:
        status = base.SOME_FOUND
    sections = itertools.chain(first, details)
    return report.Report(sentence, sections, cells, make_document, status)


def draw(
    hosts: Topology, counts: Mapping[str, int], by: str | None
) -> topology.Map:
    """Return the map of the servers that violate a policy, by host."""
    return topology.Map(
        hosts,
        {host: topology.count(number) for host, number in counts.items()},
        counts,
        'Servers',
        {
            topology.COUNTED: 'servers that violate a policy',
            topology.NOTHING.shown: 'none',
        },
        by,
    )


def _tell_groups(
    findings: Sequence[Finding], totals: typing.Any
) -> Iterator[report.Section]:
    """Yield servers by policy, reason and project, the largest group first.

    The policies have their order; what cannot be judged comes last.
    """
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for one in findings:
        _, _, project, _, policy, reason = one
        groups.setdefault((policy, reason, project), []).append(one)
    place = {policy: n for n, (policy, _) in enumerate(totals.ranked)}
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
        yield report.Section(
            f'{policy}, {servers} of project {project}: {reason}',
            [
                report.Line(host, name=name, uuid=server)
                for server, name, _, host, *_ in groups[key]
            ],
            _MOST_SERVERS // len(shown),
            'server',
        )
    if folded := [len(groups[key]) for key in ranked if key not in shown]:
        yield report.Section(
            f'and {messages.count("more group", len(folded))} of reason and '
            f'project, {messages.count("server", sum(folded))} '
            f'({report.SEE_ALL})'
        )


def _tell_places(
    rows: Sequence[Sequence[typing.Any]],
) -> Iterator[report.Section]:
    for by, group in itertools.groupby(rows, lambda row: row[0]):
        found = list(group)
        shown = bars.compare([row[2] for row in found], terminal.BAD)
        yield report.Section(
            '',
            [
                (messages.clean(name), count, bar, _say(policies))
                for (_, name, count, policies), bar in zip(
                    found, shown, strict=True
                )
            ],
            _MOST_PLACES,
            by,
            (by.capitalize(), 'Servers', '', 'Policies'),
        )


def _say(policies: dict[str, int]) -> str:
    return ', '.join(f'{policy} {count}' for policy, count in policies.items())
