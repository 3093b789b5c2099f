# SPDX-License-Identifier: Apache-2.0

"""Reports the audit: text for people, a document for programs."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
import operator
import types
import typing

from nova_ext_sched import document
from nova_ext_sched import messages
from nova_ext_sched.cli import bars
from nova_ext_sched.cli import base
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import names as cli_names
from nova_ext_sched.cli import report
from nova_ext_sched.cli import terminal
from nova_ext_sched.cli import topology
from nova_ext_sched.cmd import documents
from nova_ext_sched.cmd import plan_report

#: The columns of the servers found, and those of their numbers.
COLUMNS = ('Server', 'Name', 'Project', 'Host', 'Policy', 'Reason')
SUMMARY_COLUMNS = ('By', 'Name', 'Servers', 'Policies')

#: Changes when a reader of the document must change.
FORMAT = 2

# The most servers that people see, of all groups together, and the most
# groups: no more than 60 lines of 80 columns.
_MOST_SERVERS = 20
_MOST_GROUPS = 5
# The most aggregates, projects or hosts that people see of a summary.
_MOST_PLACES = 10


@dataclasses.dataclass(frozen=True)
class Group:
    """A server group.

    :ivar id: UUID
    """

    id: str
    name: str


@dataclasses.dataclass
class Finding:
    """A violation of a policy by a server.

    :ivar server: UUID
    :ivar project: ID
    :ivar policy: its name, or not-judged
    :ivar server_group: null where the server is in none
    :ivar project_name: null where keystone does not tell it
    """

    server: str
    name: str
    project: str
    host: str
    policy: str
    reason: str
    project_name: str | None = None
    server_group: Group | None = None


@dataclasses.dataclass(frozen=True)
class Place:
    """The number of servers that violate a policy in one place.

    :ivar name: the name of the place; the ID of a project
    :ivar servers: servers that violate a policy
    :ivar policies: of each policy, the servers that violate it
    :ivar project_name: of a project alone; null where keystone does not tell
        it
    """

    by: typing.Annotated[str, {'enum': ['aggregate', 'project', 'host']}]
    name: str
    servers: int
    policies: dict[str, int]
    project_name: str | None = None


@dataclasses.dataclass(frozen=True)
class Totals(documents.Answer):
    """The answer.

    :ivar servers: servers that were read
    :ivar violating: servers that violate a policy
    :ivar not_judged: servers that a policy could not judge
    :ivar policies: of every policy that is judged, the servers that violate it
    :ivar in_use: of each host that is kept for failures and is not empty, the
        servers on it
    :ivar lacking: hosts to keep free for failures besides those that are,
        until a failure is replaced however full the others are; null where no
        policy keeps hosts, or not all were read
    """

    servers: int
    violating: int
    not_judged: int
    policies: dict[str, int]
    in_use: document.MayLack[dict[str, int]] = dataclasses.field(
        default_factory=dict
    )
    lacking: document.MayLack[list[str] | None] = None


@dataclasses.dataclass(frozen=True)
class Findings:
    """The parts of the document without ``--summary``.

    :ivar findings: one for each server and policy
    """

    answer: Totals
    findings: list[Finding]


@dataclasses.dataclass(frozen=True)
class Summary:
    """The parts of the document with ``--summary``.

    :ivar summary: by aggregate, by project and by host, the most servers first
    """

    answer: Totals
    summary: list[Place]


#: The document's schema: its title, its format, the parts of each form.
SCHEMA = (
    'What nova-ext-sched audit prints with -f json and -f yaml',
    FORMAT,
    (Findings, *documents.COMMON),
    (Summary, *documents.COMMON),
)

#: The hosts in the document.
Topology = Sequence[Mapping[str, typing.Any]]


def make(
    auditing: typing.Any,
    findings: Sequence[Finding],
    summary: bool,
    hosts: Topology = (),
    projects: Mapping[str, str] = types.MappingProxyType({}),
) -> report.Report:
    """Return the report of the findings.

    :param auditing: an Auditor that has judged all servers
    :param summary: whether to list numbers of servers in place of servers
    :param hosts: the result of :func:`.topology.make_documents`
    :param projects: the names of projects by ID, as far as they are known
    """
    totals = auditing.totals
    for one in findings:
        one.project_name = projects.get(one.project)
    groups = {
        one.server_group.id: one.server_group.name
        for one in findings
        if one.server_group and one.server_group.name
    }
    names = cli_names.Names(projects, groups)
    rows: Iterable[Sequence[typing.Any]]
    listed: Sequence[Finding] | Sequence[Place] = findings
    if summary:
        listed = places = _make_places(totals, projects)
        rows = [
            (one.by, one.name, one.servers, report.Cell(one.policies, said))
            for one in places
            for said in [_say(one.policies)]
        ]
        details = _tell_places(places, names)
    else:
        rows = map(operator.attrgetter(*map(str.lower, COLUMNS)), findings)
        details = _tell_groups(findings, totals, names)

    def make_parts() -> dict[str, typing.Any]:
        return {
            'answer': {
                field.name: getattr(totals, field.name)
                for field in dataclasses.fields(Totals)[1:]
            },
            'summary' if summary else 'findings': [
                dataclasses.asdict(one) for one in listed
            ],
        }

    found_any = totals.violating or totals.in_use or totals.lacking
    status = base.SOME_FOUND if found_any else base.FINE
    told = documents.Told(
        head=totals.head,
        remarks=[
            *totals.remarks,
            *plan_report.say_lacking(totals.lacking),
        ],
        details=details,
        rows=rows,
        topology=hosts,
        faults=auditing.faults,
        status=base.FAULT if totals.not_judged else status,
        counts=totals.counts,
    )
    return documents.finish(told, FORMAT, make_parts)


def _make_places(
    totals: typing.Any, projects: Mapping[str, str]
) -> list[Place]:
    return [
        Place(
            by,
            name,
            number,
            policies,
            projects.get(name) if by == 'project' else None,
        )
        for by, name, number, policies in totals.lines()
    ]


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


def _tell_groups(
    findings: Sequence[Finding], totals: typing.Any, names: cli_names.Names
) -> Iterator[report.Section]:
    """Yield servers by policy and reason, the largest group first.

    The policies are in their order; servers that cannot be judged come last.
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
    turns = itertools.chain(*itertools.zip_longest(*of_policies))
    shown = {*itertools.islice(filter(None, turns), _MOST_GROUPS)}
    for key in filter(shown.__contains__, ranked):
        policy, reason = key
        servers = messages.count('server', len(groups[key]))
        projects = dict.fromkeys(one.project for one in groups[key])
        whose = (
            f'project {names.say(*projects)}'
            if len(projects) == 1
            else messages.count('project', len(projects))
        )
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
            layout.pad(finding.host, wide)
            + f'  {names.say(finding.project)}' * with_project,
            name=finding.name,
            uuid=finding.server,
        )
        for finding in sorted(
            findings, key=lambda f: messages.in_order(f.host)
        )
    ]


def _tell_places(
    places: Iterable[Place], names: cli_names.Names
) -> Iterator[report.Section]:
    for by, group in itertools.groupby(places, lambda one: one.by):
        # Projects with equal numbers are in the order of their IDs.
        ordered = sorted(
            ((_name(one, names), one.servers, one.policies) for one in group),
            key=lambda row: (-row[1], messages.in_order(row[0])),
        )
        shown = bars.compare([row[1] for row in ordered], terminal.BAD)
        yield report.Section(
            '',
            [
                (name, count, bar, _say(policies))
                for (name, count, policies), bar in zip(
                    ordered, shown, strict=True
                )
            ],
            _MOST_PLACES,
            by,
            (by.capitalize(), 'Servers', '', 'Policies'),
        )


def _name(one: Place, names: cli_names.Names) -> str:
    return (
        names.say(one.name)
        if one.by == 'project'
        else messages.clean(one.name)
    )


def _say(policies: dict[str, int]) -> str:
    return ', '.join(f'{policy} {count}' for policy, count in policies.items())
