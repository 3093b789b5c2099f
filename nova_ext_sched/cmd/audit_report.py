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
from nova_ext_sched import grouping
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

#: The columns of the findings; each is a field of :class:`Finding`.
COLUMNS = ('Server', 'Name', 'Project', 'Host', 'Policy', 'Reason')
#: The columns of the summary.
SUMMARY_COLUMNS = ('By', 'Name', 'Servers', 'Policies')

#: The number of the document's format: raised when its readers must change.
FORMAT = 2

# The most servers in the text, divided among at most this many pairs of policy
# and reason. Together they fill at most 60 lines of 80 columns.
_MOST_SERVERS = 20
_MOST_REASONS = 5
# The most aggregates, projects or hosts in the text of a summary.
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
    """A server that violates a policy, or that could not be judged.

    :ivar server: UUID
    :ivar project: ID
    :ivar policy: the name of the policy, or not-judged
    :ivar server_group: the server's group; null if it has none
    :ivar project_name: the name of the project; null if keystone does not tell
        it
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
    """The number of servers of an aggregate, project or host that violate.

    :ivar by: what the servers have in common
    :ivar name: the name of the aggregate or host; the ID of the project
    :ivar servers: number of servers that violate a policy
    :ivar policies: number of servers that violate each policy, by the name of
        the policy
    :ivar project_name: the name of the project, if keystone knows it; else
        null
    """

    by: typing.Annotated[str, {'enum': ['aggregate', 'project', 'host']}]
    name: str
    servers: int
    policies: dict[str, int]
    project_name: str | None = None


@dataclasses.dataclass(frozen=True)
class TotalsPart(documents.Answer):
    """The answer, with the totals.

    :ivar servers: number of servers read
    :ivar violating: number of servers that violate a policy
    :ivar not_judged: number of servers that a policy could not judge
    :ivar policies: number of servers that violate each policy, by the name of
        each policy that is checked
    :ivar in_use: number of servers on each host that is kept for failures and
        is not empty, by the name of the host
    :ivar lacking: further hosts to keep free so that any one host can fail
        even when all are full; null if no policy keeps hosts free, or if some
        hosts could not be read
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

    answer: TotalsPart
    findings: list[Finding]


@dataclasses.dataclass(frozen=True)
class Summary:
    """The parts of the document with ``--summary``.

    :ivar summary: by aggregate, by project and by host, the most servers first
    """

    answer: TotalsPart
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

    :param auditing: an :class:`.auditor.Auditor` that has judged all servers
    :param summary: whether to list numbers of servers in place of servers
    :param hosts: the result of :func:`.selection.make_documents`
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
            (
                place.by,
                place.name,
                place.servers,
                report.Cell(place.policies, _say_counts(place.policies)),
            )
            for place in places
        ]
        details = _tell_places(places, names)
    else:
        rows = map(operator.attrgetter(*map(str.lower, COLUMNS)), findings)
        details = _tell_groups(findings, totals, names)

    def make_parts() -> dict[str, typing.Any]:
        return {
            'answer': {
                field.name: getattr(totals, field.name)
                for field in dataclasses.fields(TotalsPart)
                if field.name != 'sentence'
            },
            'summary' if summary else 'findings': [
                dataclasses.asdict(one) for one in listed
            ],
        }

    found_any = totals.violating or totals.in_use or totals.lacking
    status = base.SOME_FOUND if found_any else base.FINE
    draft = documents.Draft(
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
    return documents.finish(draft, FORMAT, make_parts)


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
    """Yield the findings by policy and reason.

    The policy with the most servers comes first. Within a policy the most
    frequent reason comes first. Servers that could not be judged come last.
    """
    groups = grouping.by_key(
        ((one.policy, one.reason), one) for one in findings
    )
    place = {policy: n for n, (policy, _) in enumerate(totals.ranked)}
    ranked = sorted(
        groups,
        key=lambda key: (place.get(key[0], len(place)), -len(groups[key])),
    )
    # The most frequent reason of each policy, then each's second, and so on.
    of_policies = [
        list(keys) for _, keys in itertools.groupby(ranked, lambda key: key[0])
    ]
    turns = itertools.chain(*itertools.zip_longest(*of_policies))
    shown = {*itertools.islice(filter(None, turns), _MOST_REASONS)}
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
    """Return servers in the natural order of hosts: host2 before host10."""
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
    """Yield a table for each kind of place."""
    for by, group in itertools.groupby(places, lambda one: one.by):
        # The places order projects with equal numbers by ID. People see names,
        # so these are sorted again.
        ordered = sorted(
            ((_name(one, names), one.servers, one.policies) for one in group),
            key=lambda row: (-row[1], messages.in_order(row[0])),
        )
        shown = bars.compare([row[1] for row in ordered], terminal.BAD)
        yield report.Section(
            '',
            [
                (name, count, bar, _say_counts(policies))
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


def _say_counts(policies: dict[str, int]) -> str:
    return ', '.join(f'{policy} {count}' for policy, count in policies.items())
