# SPDX-License-Identifier: Apache-2.0

"""Reports an explanation: the answer first, then the table.

:func:`make` writes from the document alone, so that a recorded explanation
reads like a new one (:mod:`nova_ext_sched.dryrun.decision.document`).
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import re
import typing
from urllib import parse

from nova_ext_sched import document as schema_types
from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.cli import bars
from nova_ext_sched.cli import base
from nova_ext_sched.cli import report
from nova_ext_sched.cli import terminal
from nova_ext_sched.cmd import documents
from nova_ext_sched.cmd import plan_report
from nova_ext_sched.dryrun import heading
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import document
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.policy import act

Document = document.Document


@dataclasses.dataclass(frozen=True)
class MadeRoom:
    """The plan of make-room for the server.

    :ivar sentence: whether moves make room for it, and if not, why
    :ivar room_on: the host of each new server that fits after the moves; null
        where only nova can choose it
    """

    sentence: str
    moves: Sequence[plans.Move]
    room_on: Sequence[str | None]


@dataclasses.dataclass(frozen=True)
class Tried:
    """The moves that ``--try`` adds to an explanation.

    :ivar make_room: moves that make room
    """

    make_room: schema_types.MayLack[MadeRoom]


#: The document's schema: its title, its format, its parts.
SCHEMA = (
    'What nova-ext-sched explain prints with -f json and -f yaml',
    document.FORMAT,
    (
        conclusion.Conclusion,
        conclusion.Subject,
        heading.Heading,
        documents.Asked,
        Tried,
    ),
)

#: The columns of the constraints. Alone counts the hosts that nothing else
#: refuses.
COLUMNS = (
    'Stage',
    'Constraint',
    'Asks',
    'Refuses',
    'Alone',
    'Left',
    'Reasons',
)
#: The columns of the constraints' verdicts on each host.
HOST_COLUMNS = ('Host', 'Stage', 'Constraint', 'Verdict', 'Reason')

_LEFT = COLUMNS.index('Left')

# The fields of the document that the columns show.
_CELLS = ('stage', 'constraint', 'asks', 'refused', 'alone', 'left')

# The most reasons, acts and hints that are shown.
_MOST_REASONS = 8
_MOST_ACTS = 5
_MOST_HINTS = 5
# Up to this number of hosts, each rank has a section of its own. Above it,
# hosts that the same weigher puts behind the first choice share a section.
_MOST_APART = 10
# A longer list of host names gets blanks after its commas, where it can wrap.
_LONGEST_RANGES = 60

# Units in the text, by resource class; others are shown by their class.
_UNITS = {'MEMORY_MB': 'MB', 'DISK_GB': 'GB of disk'}


def make(
    explained: Document, all_: bool = False, by_host: bool = False
) -> report.Report:
    """Return the report of an explanation.

    :param explained: its document, new or recorded
    :param all_: whether to list constraints that refuse no host, too, and
        placement's query
    :param by_host: whether to list the verdicts on each host
    """
    rows = (
        [
            (host['host'], *verdict)
            for host in explained['hosts']
            for verdict in _list_verdicts(explained, host, all_)
        ]
        if by_host
        else _list(explained, all_)
    )
    # People read the group's name; programs get its ID.
    named = _name_group(explained)
    sections = [*_tell_answer(named, all_), *_tell_request(named['request'])]
    if by_host:
        sections += _tell_hosts(named, all_)
    elif len(rows) > 1:
        sections.append(_tell_constraints(_list(named, all_), all_))
    sections += [_tell_query(query) for query in named['query'] if all_]
    answer = explained['answer']
    status = base.FINE if answer['finds_host'] else base.SOME_FOUND
    if explained.get('faults'):
        status = base.FAULT
    return report.Report(
        answer['sentence'],
        sections,
        rows,
        document=lambda: explained,
        status=status,
        hosts=[one['host'] for one in explained.get('topology', ())],
    )


def _name_group(explained: Document) -> Document:
    """Return a document with the server group's name in place of its ID.

    Commands keep the ID; so does the request, which has the name, too.
    """
    group = explained['request']['server_group'] or {}
    id_, name = group.get('id'), messages.clean(group.get('name') or '')
    if not id_ or not name:
        return explained
    # Two groups may have the same name.
    kept = ('commands', 'request')
    return typing.cast(
        Document,
        messages.change_texts(
            explained, lambda text: text.replace(id_, name), kept
        ),
    )


def _list(explained: Document, all_: bool) -> list[Sequence[object]]:
    """Return the rows: all hosts, then each constraint that refuses some.

    The constraint that ended the request has a row, too; with ``all_`` every
    constraint has. For one that judged no host, numbers are
    :data:`.report.NONE`.
    """
    answer = explained['answer']
    rows: list[Sequence[object]] = [
        ('', 'all hosts', '', '', '', answer['hosts'], report.Cell([]))
    ]
    for constraint in explained['constraints']:
        # The constraint that ended the request is the last one.
        is_last = constraint is explained['constraints'][-1]
        if constraint['refused'] or (answer['end'] and is_last) or all_:
            cells = [report.make_cell(constraint[key]) for key in _CELLS]
            reasons = map(document.count_reason, constraint['reasons'])
            rows.append((*cells, report.Cell([*reasons])))
    return rows


def _list_verdicts(
    explained: Document, host: Document, all_: bool
) -> Iterator[Sequence[object]]:
    """Yield the constraints that refuse a host; with ``all_`` each one.

    :returns: stage, constraint, verdict and reason
    """
    passes = {'verdict': conclusion.PASSES, 'reason': ''}
    verdicts = {one['constraint']: one for one in host['verdicts']}
    for index, constraint in enumerate(explained['constraints']):
        verdict = verdicts.get(index, passes)
        if all_ or verdict['verdict'] == conclusion.REFUSED:
            yield (
                constraint['stage'],
                constraint['constraint'],
                verdict['verdict'],
                verdict['reason'],
            )


def _tell_answer(explained: Document, all_: bool) -> Iterator[report.Section]:
    """Yield the sections of the answer.

    They are: for which time it is, faults, the server, the conclusion, what
    would help, allocations without their server, and remarks.
    """
    answer, end = explained['answer'], explained['answer']['end']
    # A refusal that was recorded may be explained later; this sentence says
    # for which time the answer is.
    if late := answer.get('late'):
        yield report.Section(f'{late}.')
    # Records of old releases have none.
    for fault in explained.get('faults', ()):
        yield report.Section(f'{fault.rstrip(".")}.', apart=False)
    yield report.Section(_say_server(explained['request']), apart=False)
    head, why = document.tell(explained)
    # A refusal by nova-api is a head of its own.
    if not (answer['finds_host'] or answer.get('refusal')):
        is_short = bool(answer['left'])
        none = 'Not every instance can be placed' if is_short else 'No host'
        head = f'{none}: {head}'
    yield report.Section(
        head,
        why,
        _MOST_REASONS,
        'reason',
        apart=False,
        style=terminal.ANSWER,
    )
    if not answer['left'] and not end:
        yield from _tell_helps(explained, all_)
    # Allocations that belong to no server or migration. Records of old
    # releases have none.
    if unheld := explained.get('unheld'):
        yield report.Section(f'{unheld["sentence"]}.')
    if elsewhere := explained.get('elsewhere'):
        yield report.Section(
            'Full hosts have allocations of servers that do not run there:',
            [one['sentence'] for one in elsewhere],
            _MOST_REASONS,
            'allocation',
        )
    for remark in explained['remarks']:
        yield report.Section(f'{remark.rstrip(".")}.')


def tell_room(
    room: plans.Room,
) -> tuple[Document, Sequence[report.Section]]:
    """Return make-room's moves as a part of the document, and as sections."""
    if len(room.room_on) < room.count:
        # `never`: not even an empty host takes the server. `in_the_way`: what
        # keeps it off the hosts after the moves.
        reasons = [room.never] if room.never else room.in_the_way
        sentence = ' '.join(('No moves make room for it.', *reasons))
    else:
        sentence = f'{plan_report.say_room(room)}.'
    made = MadeRoom(sentence, room.moves, room.room_on)
    described = dataclasses.asdict(made)
    described['moves'] = plan_format.make_moves(described['moves'])
    return described, [
        report.Section(sentence),
        *plan_report.list_moves(room.moves),
    ]


def _tell_helps(explained: Document, all_: bool) -> Iterator[report.Section]:
    """Yield the changes that would let a host take the request.

    They are repairs, changes of a policy, and a smaller flavor. A sentence
    names what the request does not ask for and some hosts are kept for. If no
    change helps, the text says so. Changes of a policy are listed if there are
    no repairs, or with ``--all``; their commands only with ``--all``.
    """
    answer = explained['answer']
    # Records of old releases have none.
    advice = answer.get('advice', [])
    repairs = [one for one in advice if one['kind'] == act.REPAIR]
    changes = [one for one in advice if one['kind'] == act.POLICY]
    capacities = {
        one['capacity']['resource']: one['capacity']
        for one in explained['constraints']
        if one['capacity'] and one['capacity']['fits']
    }
    if repairs:
        yield _list_acts('What helps:', repairs, True)
    if changes and (all_ or not repairs):
        yield _list_acts('What would change a policy:', changes, all_)
    if unasked := answer.get('unasked'):
        yield report.Section(
            f'This request does not ask for {unasked}: hosts for that are '
            'closed to it, as configured.',
            apart=False,
        )
    if answer['hosts'] and not advice:
        title = 'No change that was tried frees a host'
        title += '; a smaller flavor would fit.' if capacities else '.'
        yield report.Section(title, apart=False)
    for resource, capacity in capacities.items():
        and_others = ' and others' * (capacity['fits'] > 1)
        yield report.Section(
            f'A flavor of at most {_amount(resource, capacity["most_free"])} '
            f'would fit {messages.count("host", capacity["fits"])}, '
            f'{messages.clean(capacity["most_free_host"])}{and_others}; '
            f'{_amount(resource, capacity["requested"])} requested.',
            apart=False,
        )


def _list_acts(
    title: str, acts: Sequence[Document], shows_commands: bool
) -> report.Section:
    lines = [_say_act(one, shows_commands) for one in acts]
    return report.Section(title, lines, _MOST_ACTS, 'act')


def _say_act(advice: Document, shows_commands: bool) -> report.Line:
    """Describe an act and its effect, with its commands.

    The effect is how many hosts then take the request, and who else could use
    them.
    """
    effect = 'not tried'
    if advice['hosts'] is not None:
        verb = messages.agree(advice['hosts'], 'takes', 'take')
        effect = f'then {messages.count("host", advice["hosts"])} {verb} it'
    if advice['admits']:
        effect += f'; lets in {advice["admits"]}'
    return report.Line(
        f'{advice["act"]} ({effect})',
        commands=advice['commands'] if shows_commands else (),
    )


def _amount(resource: str, number: int) -> str:
    return f'{number} {_UNITS.get(resource, resource)}'


def _say_server(request: Document) -> str:
    operation = request['operation']
    verb = 'create' if operation == 'boot' else operation
    if request['server'] is None:
        return f'To {verb} {messages.count("server", request["instances"])}:'
    shown = _name_and_id(request['server_name'], request['server'])
    # Where the server is now, as in "is on host1". Records of old releases
    # lack it.
    if stands := request.get('stands'):
        return (
            f'Server {shown} {stands.rstrip(".")}. To see where it can go, '
            f'add --operation migrate (or live-migrate, evacuate, resize). To '
            f'create it again:'
        )
    return f'To {verb} server {shown}:'


def _name_and_id(name: str | None, uuid: str | None) -> str:
    if name and uuid:
        return f'{messages.clean(name)} ({messages.clean(uuid)})'
    return messages.clean(name or uuid or '')


def _tell_request(request: Document) -> Iterator[report.Section]:
    yield report.Section('The request:', list(_say_request(request)))
    # A user can send thousands of hints, each with as many values.
    yield report.Section(
        rows=[
            f'hint {messages.clean(key)}={messages.first_few(values)}'
            for key, values in request['hints'].items()
            if key != 'group'
        ],
        most=_MOST_HINTS,
        noun='hint',
        apart=False,
    )


def _say_request(request: Document) -> Iterator[str]:
    flavor = request['flavor']
    disk = flavor['root_gb'] + flavor['ephemeral_gb']
    yield (
        f'flavor {messages.clean(flavor["name"])}: {flavor["vcpus"]} VCPU, '
        f'{flavor["memory_mb"]} MB, {disk} GB of disk'
    )
    if flavor['extra_specs']:
        specs = sorted(map('='.join, flavor['extra_specs'].items()))
        yield f'extra specs {messages.first_few(specs)}'
    image = request['image']
    if image['id'] or image['name']:
        yield f'image {_name_and_id(image["name"], image["id"])}'
    for name in ('project', 'availability_zone', 'destination'):
        if value := request[name]:
            yield f'{name.replace("_", " ")} {messages.clean(value)}'
    if request['force_hosts']:
        yield f'forced host {messages.first_few(request["force_hosts"])}'
    if group := request['server_group']:
        yield (
            f'server group {messages.clean(group["name"])} '
            f'({group["policy"]}, {group["id"]})'
        )


def _tell_constraints(
    rows: Sequence[Sequence[typing.Any]], all_: bool
) -> report.Section:
    """Return the table of constraints with the hosts left, stage by stage."""
    table: list[Sequence[typing.Any]] = []
    # The first row is that of all hosts.
    last_stage, last_left, all_hosts = '', None, rows[0][_LEFT]
    for stage, name, asks, *numbers, reasons in rows:
        notes = [asks] if all_ and asks not in ('', name) else []
        notes += reasons.machine_readable()
        left, bar = numbers[-1], bars.NO_BAR
        if all_hosts and left != report.NONE:
            taken = 0 if last_left is None else last_left - left
            bar, last_left = bars.Bar((left, taken), all_hosts), left
        if stage != last_stage:
            table.append((f'{stage}:', *[''] * (len(numbers) + 1)))
            last_stage = stage
        cell = [name, *notes]
        table.append((report.Indented(cell) if stage else cell, *numbers, bar))
    return report.Section(
        rows=table,
        columns=('Constraint', 'Refuses', 'Alone', 'Left', ''),
    )


def _tell_hosts(explained: Document, all_: bool) -> Iterator[report.Section]:
    """Yield a section for each set of hosts with the same verdicts.

    The hosts of a section that passed have the same rank. If there are many
    hosts, they have the same reason for their ranks (:func:`_find_rank_key`).
    Refused hosts come first.
    """
    by_verdicts: dict[tuple[typing.Any, ...], list[Document]] = {}
    # Refusals first: people ask for hosts to learn why they are refused.
    hosts = sorted(
        explained['hosts'],
        key=lambda host: (bool(host['rank']), messages.in_order(host['host'])),
    )
    for host in hosts:
        rank_key = host['rank']
        if rank_key and len(hosts) > _MOST_APART:
            rank_key = _find_rank_key(explained, host)
        key = (
            _count_refusing(explained, host),
            rank_key,
            *_list_verdicts(explained, host, all_),
        )
        by_verdicts.setdefault(key, []).append(host)
    for (summary, _, *verdicts), alike in by_verdicts.items():
        of_many = ''
        if len(alike) > 1:
            of_many = f' ({len(alike)} hosts)'
            summary = _count_refusing(explained, alike[0], is_one=False)
        names = messages.in_ranges(host['host'] for host in alike)
        if len(names) > _LONGEST_RANGES:
            # Blanks, where the list can wrap.
            names = re.sub(', *', ', ', names)
        # The title of a table of refusals ends with a colon. The sentence on
        # hosts that pass ends with a full stop.
        colon, stop = ('', '.') if summary.startswith('pass') else (':', '')
        ranks = _tell_ranks(explained, alike)
        yield report.Section(
            f'{names}{of_many}{colon} {summary}{ranks}{stop}',
            _by_stage(verdicts),
            columns=('Verdict', 'Constraint'),
        )


def _by_stage(
    verdicts: Iterable[Sequence[typing.Any]],
) -> list[Sequence[object]]:
    """Return the rows of a host's verdicts in the text, stage by stage.

    Names and reasons are long: they share a column, which has the room.
    """
    rows: list[Sequence[object]] = []
    last_stage = ''
    for stage, constraint, verdict, reason in verdicts:
        if stage and stage != last_stage:
            rows.append(('', f'{stage}:'))
            last_stage = stage
        cell = [constraint, reason] if reason else constraint
        rows.append((verdict, report.Indented(cell) if stage else cell))
    return rows


def _count_refusing(
    explained: Document, host: Document, is_one: bool = True
) -> str:
    """Return a clause: how many constraints refuse a host or did not check it.

    :param is_one: whether the clause is about one host; False for several with
        the same verdicts
    """
    verdicts = [one['verdict'] for one in host['verdicts']]
    unjudged = verdicts.count(conclusion.NOT_JUDGED)
    judging = len(explained['constraints']) - unjudged
    refusing = verdicts.count(conclusion.REFUSED)
    it, them = ('it', 'it') if is_one else ('each', 'them')
    refuse_it = messages.part(
        refusing,
        judging,
        'constraint',
        f'refuses {it}',
        f'refuse {it}',
    )
    if judging and not refusing:
        refuse_it = 'passes all filters' if is_one else 'pass all filters'
    return refuse_it + (
        f'; {unjudged} did not check {them}' if unjudged else ''
    )


def _find_rank_key(explained: Document, host: Document) -> str:
    """Return a key: hosts with the same one share a section.

    It is empty for the first choice, and ``even`` for other hosts of the same
    weight. For the rest it names the weigher that costs the host most.
    """
    order = explained['order']
    if host['rank'] == 1:
        return ''
    if order[host['rank'] - 1]['weight'] == order[0]['weight']:
        return 'even'
    return f'by {_find_weigher(host)}'


def _find_weigher(host: Document) -> str:
    return str(max(host['loses'], key=host['loses'].get, default=''))


def _tell_ranks(explained: Document, hosts: Sequence[Document]) -> str:
    """Return the end of the sentence about hosts: their ranks, and why.

    It names the weigher that costs the first of these hosts most weight. It is
    empty for refused hosts, which have no rank.
    """
    ranks = [host['rank'] for host in hosts]
    if not ranks[0]:
        return ''
    order = explained['order']
    first, places = order[0], [order[rank - 1] for rank in ranks]
    it, them = 'It is', 'it'
    choices = f'choice {ranks[0]} of {len(order)}'
    if len(hosts) > 1:
        low, high = min(ranks), max(ranks)
        it, them = 'They are', 'them'
        has_gaps = high - low >= len(ranks)
        among = 'among ' * has_gaps
        choices = f'{among}choices {low} to {high} of {len(order)}'
    text = f'. {it} {choices}'
    if ranks[0] > 1 and all(
        one['weight'] == first['weight'] for one in places
    ):
        return f'{text}, with the same weight as {first["host"]}'
    if weigher := _find_weigher(hosts[0]):
        text += f'; {weigher} puts {them} behind {first["host"]}'
    return text


def _tell_query(query: str) -> report.Section:
    return report.Section(
        'GET /allocation_candidates',
        [
            # Blanks in lists of UUIDs, where they can wrap.
            f'{key}={value.replace(",", ", ")}'
            for key, value in parse.parse_qsl(query)
        ],
    )
