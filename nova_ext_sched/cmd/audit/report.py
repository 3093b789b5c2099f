# SPDX-License-Identifier: Apache-2.0

"""What the audit tells: a text to people, a document to programs."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import itertools
import types
import typing

from nova_ext_sched import messages
from nova_ext_sched.cli import bars
from nova_ext_sched.cli import base
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import names as cli_names
from nova_ext_sched.cli import report
from nova_ext_sched.cli import terminal
from nova_ext_sched.cli import topology
from nova_ext_sched.dryrun import heading

#: The columns of the servers found, and those of their numbers.
COLUMNS = ('Server', 'Name', 'Project', 'Host', 'Policy', 'Reason')
SUMMARY_COLUMNS = ('By', 'Name', 'Servers', 'Policies')

_KEYS, _SUMMARY_KEYS = (
    [name.lower() for name in names] for names in (COLUMNS, SUMMARY_COLUMNS)
)

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


class Finding(typing.NamedTuple):
    """What a policy says against a server; :data:`COLUMNS` are the first.

    :ivar server: UUID
    :ivar project: ID
    :ivar group: UUID of its server group; empty where it is in none
    :ivar group_name: of that
    """

    server: str
    name: str
    project: str
    host: str
    policy: str
    reason: str
    group: str = ''
    group_name: str = ''


#: What the document has of the hosts.
Topology = Sequence[Mapping[str, typing.Any]]


def make(
    auditing: typing.Any,
    findings: Sequence[Finding],
    summary: bool,
    hosts: Topology = (),
    projects: Mapping[str, str] = types.MappingProxyType({}),
) -> report.Report:
    """Return the report of what was found.

    :param auditing: an Auditor that has judged all servers
    :param summary: whether to tell numbers of servers in place of servers
    :param hosts: what :func:`.topology.describe` returned
    :param projects: the names of projects by ID, as far as they are known
    """
    totals, faults = auditing.totals, auditing.faults
    found = totals.head, *totals.remarks
    sentence, first = report.begin(*found, *faults, counts=totals.counts)
    groups = {one.group: one.group_name for one in findings if one.group_name}
    names = cli_names.Names(projects, groups)
    cells: Iterable[Sequence[typing.Any]]
    if summary:
        places = list(totals.lines())
        cells = [(*row, report.Cell(of, _say(of))) for *row, of in places]
        details = _tell_places(places, names)
    else:
        cells = (one[: len(COLUMNS)] for one in findings)
        details = _tell_groups(findings, totals, names)

    def make_document() -> dict[str, typing.Any]:
        """Return everything; ``schema.json`` has its form."""
        return {
            **heading.make(FORMAT),
            'answer': {
                'sentence': report.begin(*found, counts=totals.counts)[0],
                **{name: getattr(totals, name) for name in _ANSWER},
            },
            'topology': list(hosts),
            **(
                {'summary': [_describe_place(one, projects) for one in places]}
                if summary
                else {
                    'findings': [_describe(one, projects) for one in findings]
                }
            ),
            'faults': faults,
        }

    status = base.FINE
    if faults or totals.not_judged:
        status = base.FAULT
    elif totals.violating:
        status = base.SOME_FOUND
    sections = itertools.chain(first, details)
    return report.Report(
        sentence,
        sections,
        cells,
        make_document,
        status,
        [one['host'] for one in hosts],
    )


def draw(
    hosts: Topology, counts: Mapping[str, int], by: str | None
) -> topology.Map:
    """Return the map of the servers that violate a policy, by host."""
    return topology.Map(
        hosts,
        topology.count_all(counts),
        counts,
        'Servers',
        {
            topology.COUNTED: topology.say_counted(
                counts, 'servers that violate a policy'
            ),
            topology.NOTHING.shown: 'none',
        },
        by,
    )


def _describe(
    one: Finding, projects: Mapping[str, str]
) -> dict[str, typing.Any]:
    """Return what the document has of a finding."""
    group = {'id': one.group, 'name': one.group_name}
    return {
        **dict(zip(_KEYS, one, strict=False)),
        'project_name': projects.get(one.project),
        'server_group': group if one.group else None,
    }


def _describe_place(
    row: Sequence[typing.Any], projects: Mapping[str, str]
) -> dict[str, typing.Any]:
    """Return what the document has of a line of the summary."""
    found = dict(zip(_SUMMARY_KEYS, row, strict=True))
    if found['by'] == 'project':
        found['project_name'] = projects.get(found['name'])
    return found


def _tell_groups(
    findings: Sequence[Finding], totals: typing.Any, names: cli_names.Names
) -> Iterator[report.Section]:
    """Yield servers by policy and reason, the largest group first.

    The policies have their order; what cannot be judged comes last.
    """
    groups: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.policy, one.reason), []).append(one)
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
        policy, reason = key
        servers = messages.count('server', len(groups[key]))
        projects = dict.fromkeys(one.project for one in groups[key])
        whose = messages.count('project', len(projects))
        if len(projects) == 1:
            whose = f'project {names.say(*projects)}'
        yield report.Section(
            f'{policy}, {servers} of {whose}: {names.put_into(reason)}',
            _list_servers(groups[key], names, len(projects) > 1),
            _MOST_SERVERS // len(shown),
            'server',
        )
    if folded := [len(groups[key]) for key in ranked if key not in shown]:
        yield report.Section(
            f'and {messages.count("more reason", len(folded))}, '
            f'{messages.count("server", sum(folded))} ({report.SEE_ALL})'
        )


def _list_servers(
    findings: Sequence[Finding], names: cli_names.Names, with_project: bool
) -> list[report.Line]:
    """Return servers, in the order in which people count hosts."""
    wide = max(len(one.host) for one in findings) * with_project
    return [
        report.Line(
            layout.pad(one.host, wide)
            + f'  {names.say(one.project)}' * with_project,
            name=one.name,
            uuid=one.server,
        )
        for one in sorted(findings, key=lambda f: messages.in_order(f.host))
    ]


def _tell_places(
    rows: Sequence[Sequence[typing.Any]], names: cli_names.Names
) -> Iterator[report.Section]:
    for by, group in itertools.groupby(rows, lambda row: row[0]):
        named = [(_name(by, name, names), *end) for _, name, *end in group]
        # Projects of one number have the order of their IDs.
        found = sorted(
            named, key=lambda row: (-row[1], messages.in_order(row[0]))
        )
        shown = bars.compare([row[1] for row in found], terminal.BAD)
        yield report.Section(
            '',
            [
                (name, count, bar, _say(policies))
                for (name, count, policies), bar in zip(
                    found, shown, strict=True
                )
            ],
            _MOST_PLACES,
            by,
            (by.capitalize(), 'Servers', '', 'Policies'),
        )


def _name(by: str, name: str, names: cli_names.Names) -> str:
    return names.say(name) if by == 'project' else messages.clean(name)


def _say(policies: dict[str, int]) -> str:
    return ', '.join(f'{policy} {count}' for policy, count in policies.items())
