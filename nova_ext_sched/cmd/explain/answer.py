# SPDX-License-Identifier: Apache-2.0

"""What people read of an explanation: the answer first, then the table.

Everything comes from the document (:mod:`.document`).
"""

from collections.abc import Iterator
from collections.abc import Sequence
import io
import textwrap
import typing
from urllib import parse

from rich import console
from rich import padding
from rich import table

from nova_ext_sched import messages
from nova_ext_sched.cmd.explain import document as document_

Document = dict[str, typing.Any]

#: The columns of :func:`rows`.
COLUMNS = ('Stage', 'Constraint', 'Refuses', 'Alone', 'Left', 'Reasons')
#: The columns of :func:`host_rows`.
HOST_COLUMNS = ('Host', 'Stage', 'Constraint', 'Verdict', 'Reason')

#: The narrowest output.
WIDTH = 80

# How many causes, hosts of the order and names are shown.
_MOST_CAUSES = 5
_MOST_HOSTS = 5
_MOST_NAMES = 3

# What an operation does to a server, in words.
_WORDS = {
    'boot': 'create',
    'migrate': 'migrate',
    'live-migrate': 'live-migrate',
    'evacuate': 'evacuate',
    'unshelve': 'unshelve',
    'resize': 'resize',
    'rebuild': 'rebuild',
}


def rows(document: Document, all_: bool) -> list[Sequence[object]]:
    """Return the table of the constraints.

    :param all_: also those that refuse no host
    """
    found: list[Sequence[object]] = [
        ('', 'all hosts', 0, 0, document['answer']['hosts'], '')
    ]
    for one in document['constraints']:
        if one['refused'] or all_:
            found.append(
                (
                    one['stage'],
                    one['constraint'],
                    one['refused'],
                    one['alone'],
                    one['left'],
                    ', '.join(map(_count, one['reasons'])),
                )
            )
    return found


def host_rows(document: Document, all_: bool) -> list[Sequence[object]]:
    """Return what the constraints say of each host.

    :param all_: not only those that refuse it
    """
    found: list[Sequence[object]] = []
    for host in document['hosts']:
        verdicts = {one['constraint']: one for one in host['verdicts']}
        for number, constraint in enumerate(document['constraints']):
            verdict = verdicts.get(
                number, {'verdict': document_.PASSES, 'reason': ''}
            )
            if all_ or verdict['verdict'] == document_.REFUSED:
                found.append(
                    (
                        host['host'],
                        constraint['stage'],
                        constraint['constraint'],
                        verdict['verdict'],
                        verdict['reason'],
                    )
                )
    return found


def write(
    document: Document,
    stream: typing.Any,
    width: int,
    all_: bool = False,
    by_host: bool = False,
) -> None:
    """Write the answer, then the table of constraints or of hosts.

    :param all_: also what refuses no host, and placement's query
    :param width: number of columns of the terminal
    """
    for line in lines(document):
        # A UUID or a query is cut rather than left too wide.
        stream.write(_wrap(line, width))
    text = io.StringIO()
    shown = console.Console(
        file=text,
        width=width,
        color_system=None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    if by_host:
        _write_hosts(document, shown, all_)
    elif len(rows(document, all_)) > 1:
        shown.print()
        shown.print(_table(document, all_))
    # rich fills lines with blanks.
    stream.writelines(
        f'{line.rstrip()}\n' for line in text.getvalue().splitlines()
    )
    if all_:
        for query in document['query']:
            stream.write('\nGET /allocation_candidates\n')
            for key, value in parse.parse_qsl(query):
                # Lists of UUIDs: as people read them, and where they wrap.
                values = value.replace(',', ', ')
                stream.write(_wrap(f'  {key}={values}', width))


def lines(document: Document) -> Iterator[str]:
    """Yield the answer; what belongs together, and is to wrap, is a line."""
    request, answer = document['request'], document['answer']
    yield _describe_server(request)
    yield from _describe_request(request)
    yield ''
    found = f'{answer["left"]} of {messages.count("host", answer["hosts"])}'
    end = answer['end']
    if end:
        yield f'No host: {end["name"]} ends the request.'
        yield f'  {end["reason"]}.'
        if end['detail']:
            yield f'  {end["detail"]}.'
    elif answer['finds_host']:
        yield f'{found} can take it. {_describe_order(document)}'
    elif answer['left']:
        yield f'No host for every instance: {found} can take it.'
        yield f'  {answer["shortage"]}.'
    else:
        yield f'No host: {found} can take it.'
    if not end:
        for reason in answer['reasons']:
            yield f'  {_count(reason)}'
    if not answer['left'] and not end:
        yield from _describe_freed(document)
    for remark in document['remarks']:
        yield ''
        yield f'{remark.rstrip(".")}.'


def _describe_server(request: Document) -> str:
    words = _WORDS[request['operation']]
    if request['server'] is None:
        number = request['instances']
        return f'To {words} {messages.count("server", number)}'
    shown = _name_and_id(request['server_name'], request['server'])
    return f'To {words} server {shown}'


def _name_and_id(name: str | None, uuid: str | None) -> str:
    if name and uuid:
        return f'{messages.clean(name)} ({messages.clean(uuid)})'
    return messages.clean(name or uuid or '')


def _describe_request(request: Document) -> Iterator[str]:
    flavor = request['flavor']
    disk = flavor['root_gb'] + flavor['ephemeral_gb']
    yield (
        f'  flavor {messages.clean(flavor["name"])}: {flavor["vcpus"]} VCPU, '
        f'{flavor["memory_mb"]} MB, {disk} GB of disk'
    )
    if flavor['extra_specs']:
        specs = [
            f'{key}={value}' for key, value in flavor['extra_specs'].items()
        ]
        yield f'    {messages.first_few(sorted(specs))}'
    image = request['image']
    if image['id'] or image['name']:
        yield f'  image {_name_and_id(image["name"], image["id"])}'
    for name in ('project', 'availability_zone', 'destination'):
        if request[name]:
            value = messages.clean(request[name])
            yield f'  {name.replace("_", " ")} {value}'
    if request['force_hosts']:
        yield f'  forced host {messages.first_few(request["force_hosts"])}'
    group = request['server_group']
    if group:
        yield (
            f'  server group {messages.clean(group["name"])} '
            f'({group["policy"]}, {group["id"]})'
        )
    for key, values in request['hints'].items():
        if key != 'group':
            shown = messages.first_few(values)
            yield f'  hint {messages.clean(key)}={shown}'


def _describe_order(document: Document) -> str:
    best, *others = [one['host'] for one in document['order']]
    text = f'The scheduler prefers {best}'
    if others:
        text += f', then {", ".join(others[: _MOST_HOSTS - 1])}'
    return text + '.'


def _describe_freed(document: Document) -> Iterator[str]:
    freed = document['answer']['freed']
    yield ''
    if not freed:
        yield 'No two constraints lifted together would free a host.'
    elif len(freed[0]['causes']) == 1:
        yield 'Hosts that lifting one constraint alone would free:'
    else:
        yield (
            'No constraint lifted alone would free a host. Hosts that two '
            'lifted together would free:'
        )
    wide = max((len(str(one['hosts'])) for one in freed), default=0)
    for one in freed[:_MOST_CAUSES]:
        causes = ' and '.join(one['causes'])
        notes = [
            note
            for cause in one['causes']
            if (note := _describe_capacity(document, cause))
        ]
        text = f'  {one["hosts"]:>{wide}}  {causes}'
        yield f'{text} ({"; ".join(notes)})' if notes else text
    if len(freed) > _MOST_CAUSES:
        yield f'  and {len(freed) - _MOST_CAUSES} more with fewer hosts'
    shown = {cause for one in freed[:_MOST_CAUSES] for cause in one['causes']}
    for constraint in document['constraints']:
        capacity = constraint['capacity']
        if capacity and capacity['resource'] not in shown:
            note = _describe_capacity(document, capacity['resource'])
            yield f'{capacity["resource"]}: {note}'


def _describe_capacity(document: Document, cause: str) -> str:
    for constraint in document['constraints']:
        capacity = constraint['capacity']
        if capacity and capacity['resource'] == cause:
            text = f'asked {capacity["requested"]}; '
            if capacity['most_free_host']:
                text += (
                    f'most free {capacity["most_free"]}, on '
                    f'{messages.clean(capacity["most_free_host"])}; '
                )
            else:
                text += 'nothing free; '
            number = capacity['large_enough']
            verb = messages.agree(number, 'is', 'are')
            return (
                text + f'{messages.count("host", number)} {verb} large enough'
            )
    return ''


def _table(document: Document, all_: bool) -> table.Table:
    shown = table.Table(box=None, pad_edge=False)
    shown.add_column('Stage', no_wrap=True)
    shown.add_column('Constraint', overflow='fold')
    for name in ('Refuses', 'Alone', 'Left'):
        shown.add_column(name, justify='right', no_wrap=True)
    shown.add_row('', 'all hosts', '', '', str(document['answer']['hosts']))
    for one in document['constraints']:
        if not one['refused'] and not all_:
            continue
        shown.add_row(
            one['stage'],
            one['constraint'],
            *(str(one[key]) for key in ('refused', 'alone', 'left')),
        )
        notes = [_count(reason) for reason in one['reasons']]
        if all_ and one['asks'] and one['asks'] != one['constraint']:
            notes.insert(0, one['asks'])
        for note in notes:
            shown.add_row('', padding.Padding(note, (0, 0, 0, 2)))
    return shown


def _write_hosts(
    document: Document, shown: console.Console, all_: bool
) -> None:
    for host in document['hosts']:
        refused = sum(
            one['verdict'] == document_.REFUSED for one in host['verdicts']
        )
        refuse_it = messages.part(
            refused,
            len(document['constraints']),
            'constraint',
            'refuses it',
            'refuse it',
        )
        shown.print()
        shown.print(f'{host["host"]}: {refuse_it}')
        found = host_rows({**document, 'hosts': [host]}, all_)
        if not found:
            continue
        listed = table.Table(box=None, pad_edge=False)
        for name in HOST_COLUMNS[1:]:
            listed.add_column(
                name, no_wrap=name in ('Stage', 'Verdict'), overflow='fold'
            )
        for row in found:
            listed.add_row(*(str(cell) for cell in row[1:]))
        shown.print(listed)


def _count(reason: Document) -> str:
    return document_.count_reason(reason, _MOST_NAMES)


def _wrap(line: str, width: int) -> str:
    text = line.lstrip()
    indent = ' ' * (len(line) - len(text))
    return (
        '\n'.join(
            textwrap.wrap(
                text,
                width,
                initial_indent=indent,
                subsequent_indent=indent + '  ',
                break_on_hyphens=False,
            )
        )
        + '\n'
    )
