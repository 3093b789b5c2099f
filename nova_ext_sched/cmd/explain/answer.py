# SPDX-License-Identifier: Apache-2.0

"""What people read of an explanation: the answer first, then the table.

Everything comes from the document (:mod:`.document`).
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from urllib import parse

from nova_ext_sched import messages
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import lister
from nova_ext_sched.cmd.explain import document

Document = document.Document

#: The columns of :func:`rows`.
COLUMNS = (
    'Stage',
    'Constraint',
    'Asks',
    'Refuses',
    'Alone',
    'Left',
    'Reasons',
)
#: The columns of :func:`host_rows`.
HOST_COLUMNS = ('Host', 'Stage', 'Constraint', 'Verdict', 'Reason')

# What the document has of their cells.
_CELLS = ('stage', 'constraint', 'asks', 'refused', 'alone', 'left')

# How many reasons, causes, hosts of the order and names are shown.
_MOST_REASONS = 8
_MOST_CAUSES = 5
_MOST_HOSTS = 5

_ALL = '-f json lists all'

# How people read amounts of these; of others they read the resource class.
_UNITS = {'MEMORY_MB': 'MB', 'DISK_GB': 'GB of disk'}


def rows(found: Document, all_: bool) -> list[Sequence[object]]:
    """Return the table of the constraints.

    What was not judged has :data:`.layout.NONE` for a number.

    :param all_: also those that refuse no host
    """
    answer = found['answer']
    listed: list[Sequence[object]] = [
        ('', 'all hosts', '', '', '', answer['hosts'], lister.Several([]))
    ]
    for one in found['constraints']:
        ends = answer['end'] and one is found['constraints'][-1]
        if one['refused'] or ends or all_:
            cells = [
                layout.NONE if one[key] is None else one[key] for key in _CELLS
            ]
            reasons = map(document.count_reason, one['reasons'])
            listed.append((*cells, lister.Several(list(reasons))))
    return listed


def host_rows(found: Document, all_: bool) -> list[Sequence[object]]:
    """Return what the constraints say of each host.

    :param all_: not only those that refuse it
    """
    return [
        (host['host'], *verdict)
        for host in found['hosts']
        for verdict in _list_verdicts(found, host, all_)
    ]


def _list_verdicts(
    found: Document, host: Document, all_: bool
) -> Iterator[Sequence[object]]:
    passes = {'verdict': document.PASSES, 'reason': ''}
    verdicts = {one['constraint']: one for one in host['verdicts']}
    for number, by in enumerate(found['constraints']):
        one = verdicts.get(number, passes)
        if all_ or one['verdict'] == document.REFUSED:
            said = one['verdict'], one['reason']
            yield (by['stage'], by['constraint'], *said)


def write(
    out: layout.Layout,
    found: Document,
    listed: Sequence[lister.Row],
    all_: bool = False,
    by_host: bool = False,
) -> None:
    """Write the answer, then the table of constraints or of hosts.

    :param listed: what :func:`rows` returned
    :param all_: also what each constraint asks, and placement's query
    """
    if late := found['answer'].get('late'):
        out.say(f'{late}.')
    out.say(f'{_describe_server(found["request"])}:')
    _write_answer(out, found)
    out.section('The request:')
    for line in _describe_request(found['request']):
        out.say(line, 2)
    if by_host:
        _write_hosts(out, found, all_)
    elif len(listed) > 1:
        out.say()
        _write_constraints(out, listed, all_)
    for query in found['query'] if all_ else ():
        out.section('GET /allocation_candidates')
        for key, value in parse.parse_qsl(query):
            # Lists of UUIDs: as people read them, and where they wrap.
            out.say(f'{key}={value.replace(",", ", ")}', 2)


def _write_answer(out: layout.Layout, found: Document) -> None:
    answer = found['answer']
    hosts = messages.count('host', answer['hosts'])
    takers = f'{answer["left"]} of {hosts} can take it'
    end = answer['end']
    if end:
        out.say(f'No host: {end["name"]} ends the request.')
        for text in filter(None, (end['reason'], end['detail'])):
            out.say(f'{text}.', 2)
    elif answer['finds_host']:
        best, *others = [one['host'] for one in found['order'][:_MOST_HOSTS]]
        order = ', then '.join(filter(None, (best, ', '.join(others))))
        out.say(f'{takers}. The scheduler prefers {order}.')
    elif answer['left']:
        out.say(f'No host for every instance: {takers}.')
        out.say(f'{answer["shortage"]}.', 2)
    else:
        out.say(f'No host: {takers}.')
    out.fold(
        answer['reasons'],
        _MOST_REASONS,
        lambda reason: out.say(document.count_reason(reason), 2),
        'reason',
        _ALL,
    )
    if not answer['left'] and not end:
        _write_freed(out, found)
    for remark in found['remarks']:
        out.section(f'{remark.rstrip(".")}.')


def _describe_server(request: Document) -> str:
    operation = request['operation']
    verb = 'create' if operation == 'boot' else operation
    if request['server'] is None:
        return f'To {verb} {messages.count("server", request["instances"])}'
    shown = _name_and_id(request['server_name'], request['server'])
    return f'To {verb} server {shown}'


def _name_and_id(name: str | None, uuid: str | None) -> str:
    if name and uuid:
        return f'{messages.clean(name)} ({messages.clean(uuid)})'
    return messages.clean(name or uuid or '')


def _describe_request(request: Document) -> Iterator[str]:
    flavor = request['flavor']
    disk = flavor['root_gb'] + flavor['ephemeral_gb']
    yield (
        f'flavor {messages.clean(flavor["name"])}: {flavor["vcpus"]} VCPU, '
        f'{flavor["memory_mb"]} MB, {disk} GB of disk'
    )
    if flavor['extra_specs']:
        specs = [
            f'{key}={value}' for key, value in flavor['extra_specs'].items()
        ]
        yield f'extra specs {messages.first_few(sorted(specs))}'
    image = request['image']
    if image['id'] or image['name']:
        yield f'image {_name_and_id(image["name"], image["id"])}'
    for name in ('project', 'availability_zone', 'destination'):
        if request[name]:
            value = messages.clean(request[name])
            yield f'{name.replace("_", " ")} {value}'
    if request['force_hosts']:
        yield f'forced host {messages.first_few(request["force_hosts"])}'
    group = request['server_group']
    if group:
        yield (
            f'server group {messages.clean(group["name"])} '
            f'({group["policy"]}, {group["id"]})'
        )
    for key, values in request['hints'].items():
        if key != 'group':
            shown = messages.first_few(values)
            yield f'hint {messages.clean(key)}={shown}'


def _write_freed(out: layout.Layout, found: Document) -> None:
    """Write what to lift, and which flavor would fit."""
    freed = found['answer']['freed']
    capacities = {
        one['capacity']['resource']: one['capacity']
        for one in found['constraints']
        if one['capacity'] and one['capacity']['fits']
    }
    text = (
        'No constraint lifted alone would free a host. Hosts that two lifted '
        'together would free:'
    )
    if not freed:
        text = 'No constraint lifted, nor two together, would free a host.'
    elif len(freed[0]['causes']) == 1:
        text = 'Hosts that lifting one constraint alone would free:'
    out.section(text)
    out.counts(
        [(one['hosts'], ' and '.join(one['causes'])) for one in freed],
        _MOST_CAUSES,
        'cause',
        _ALL,
    )
    for resource, capacity in capacities.items():
        (most, hosts), *others = [
            (
                _amount(resource, one['amount']),
                messages.count('host', one['hosts']),
            )
            for one in capacity['fits']
        ]
        name = messages.clean(capacity['most_free_host'])
        text = f'A flavor of at most {most} would fit {hosts}, {name}'
        text += ' and others' * (capacity['fits'][0]['hosts'] > 1)
        text += ''.join(f'; one of {most} {hosts}' for most, hosts in others)
        out.say(f'{text}; {_amount(resource, capacity["requested"])} asked.')


def _amount(resource: str, number: int) -> str:
    return f'{number} {_UNITS.get(resource, resource)}'


def _write_constraints(
    out: layout.Layout, listed: Iterable[lister.Row], all_: bool
) -> None:
    names = ('Stage', 'Constraint', 'Refuses', 'Alone', 'Left')
    table = []
    for row in listed:
        notes = row['Reasons'].machine_readable()
        if all_ and row['Asks'] not in ('', row['Constraint']):
            notes = [row['Asks'], *notes]
        cells = {**row, 'Constraint': [row['Constraint'], *notes]}
        table.append([cells[name] for name in names])
    out.table(names, table)


def _write_hosts(out: layout.Layout, found: Document, all_: bool) -> None:
    for host in found['hosts']:
        verdicts = [one['verdict'] for one in host['verdicts']]
        unjudged = verdicts.count(document.NOT_JUDGED)
        refuse_it = messages.part(
            verdicts.count(document.REFUSED),
            len(found['constraints']) - unjudged,
            'constraint',
            'that judged it refuses it',
            'that judged it refuse it',
        )
        out.section(
            f'{host["host"]}: {refuse_it}'
            + (f'; {unjudged} did not judge it' if unjudged else '')
        )
        if listed := list(_list_verdicts(found, host, all_)):
            out.table(HOST_COLUMNS[1:], listed)
