# SPDX-License-Identifier: Apache-2.0

"""Makes the document of an explanation.

Its keys are fields of dataclasses (:mod:`.conclusion`). What people read is
written from the document alone, so that one that was kept reads like a new
one.
"""

from collections.abc import Collection
from collections.abc import Sequence
import dataclasses
import functools
import typing

from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched.dryrun import heading
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import refusals

#: A document as schemas/explain.json describes it, or a part of it.
Document = dict[str, typing.Any]

#: Changes when a reader of the document must change.
FORMAT = 2

_FLAVOR = ('name', 'vcpus', 'memory_mb', 'root_gb', 'ephemeral_gb', 'swap')

# The most names of a reason, hosts of the order, and weighers that are shown.
_MOST_NAMES = 3
_MOST_HOSTS = 5
_MOST_DECIDERS = 3


def make_request(
    spec_obj: typing.Any,
    operation: str = 'boot',
    server: str | None = None,
    server_name: str | None = None,
    stands: str = '',
) -> Document:
    """Describe the request, before the scheduler changes it.

    :param spec_obj: a nova RequestSpec
    :param server: the UUID of a server that exists
    :param stands: see :class:`.conclusion.Request`
    """
    get = functools.partial(fields.get_field, spec_obj)
    flavor, group = spec_obj.flavor, get('instance_group')
    hints = get('scheduler_hints') or {}
    asked = conclusion.Request(
        operation=operation,
        server=server,
        server_name=server_name,
        project=get('project_id'),
        flavor=conclusion.Flavor(
            fields.get_field(flavor, 'flavorid'),
            **fields.get_fields(flavor, *_FLAVOR),
            extra_specs=dict(fields.flavor_extra_specs(spec_obj)),
        ),
        image=conclusion.Identified(
            **fields.get_fields(get('image'), 'id', 'name')
        ),
        boot_from_volume=bool(get('is_bfv')),
        availability_zone=get('availability_zone'),
        server_group=group
        and conclusion.ServerGroup(
            fields.get_field(group, 'uuid'),
            **fields.get_fields(group, 'name', 'policy'),
        ),
        hints={
            # PyYAML does not write nova's own kind of list.
            key: list(value) if isinstance(value, list) else [value]
            for key, value in hints.items()
            if not key.startswith('_nova')
        },
        destination=fields.get_field(get('requested_destination'), 'host'),
        force_hosts=list(get('force_hosts') or ()),
        ignore_hosts=list(get('ignore_hosts') or ()),
        instances=get('num_instances') or 1,
        stands=stands,
    )
    return dataclasses.asdict(asked)


def build(
    judged: matrix.Matrix,
    request: Document,
    detailed: Collection[str] | None = None,
    topology: Sequence[Document] = (),
) -> Document:
    """Return the document of an explanation.

    :param judged: all constraints are in
    :param request: the result of :func:`make_request`
    :param detailed: UUIDs of the hosts to list; None for all
    :param topology: the result of :func:`..cloud.selection.make_documents`
    """
    answer = make_answer(judged)
    return {
        **heading.make(FORMAT),
        'request': request,
        **dataclasses.asdict(judged.conclude(answer, detailed)),
        'topology': list(topology),
    }


def make_answer(judged: matrix.Matrix) -> conclusion.Answer:
    """Return the answer of an explanation, with its sentence.

    :param judged: all constraints are in
    """
    answer = judged.make_answer()
    head, why = tell(
        {
            'answer': dataclasses.asdict(answer),
            # No copy of thousands of hosts, of which it tells a few.
            'order': list(map(vars, judged.order)),
        }
    )
    said = *judged.faults, head, ', '.join(why), *judged.remarks
    answer.sentence = _join(*said)
    return answer


def tell(explained: Document) -> tuple[str, list[str]]:
    """Return the answer: sentences, and the reasons of hosts."""
    answer, end = explained['answer'], explained['answer']['end']
    if end:
        ended = f'{end["name"]} ends the request: {end["reason"]}'
        return _join(ended, end['detail']), []
    hosts = messages.count('host', answer['hosts'])
    said = [f'{answer["left"]} of {hosts} can take it']
    # Records of old releases have none.
    if refusal := answer.get('refusal', ''):
        said = [refusal, f'Then {said[0]}']
    if answer['finds_host'] or (refusal and answer['left']):
        best, *others = [
            one['host'] for one in explained['order'][:_MOST_HOSTS]
        ]
        order = ', then '.join(filter(None, (best, ', '.join(others))))
        said.append(
            _tell_drawn(explained)
            or f'The scheduler prefers {order}{_tell_deciders(explained)}'
        )
    elif answer['left']:
        said.append(answer['shortage'])
    return _join(*said), list(map(count_reason, answer['reasons']))


def _join(*sentences: str) -> str:
    return ' '.join(f'{text.rstrip(".")}.' for text in sentences if text)


def _tell_drawn(explained: Document) -> str:
    """Describe the hosts among which nova chooses at random; empty if none."""
    # Records of old releases have none.
    number = explained['answer'].get('drawn', 1)
    if number == 1:
        return ''
    best = explained['order'][:number]
    hosts = messages.first_few([one['host'] for one in best], _MOST_HOSTS)
    if len({one['weight'] for one in best}) == 1:
        return (
            f'nova picks at random one of {number} with the same weight: '
            f'{hosts}'
        )
    return (
        f'nova picks at random one of the best {number} '
        f'(host_subset_size): {hosts}'
    )


def _tell_deciders(explained: Document) -> str:
    """Describe the weighers that decide the first choice."""
    first, *others = explained['order']
    if even := sum(one['weight'] == first['weight'] for one in others):
        weigh = messages.agree(even, 'weighs', 'weigh')
        return f'; {messages.count("other host", even)} {weigh} as much'
    if deciders := explained['answer']['deciders']:
        shown = [f'{one["weigher"]}: {one["best"]}' for one in deciders]
        if len(shown) > 1:
            few = messages.first_few(shown, _MOST_DECIDERS, str)
            return f'. It would be, without {few}'
        # Records of old releases have no preference.
        prefers = deciders[0].get('prefers')
        which = f' (prefers {prefers})' if prefers else ''
        return '. Without {weigher}{which} it would be {best}'.format(
            **deciders[0], which=which
        )
    return '; no single weigher decides it' if first['weights'] else ''


def count_reason(reason: Document) -> str:
    """Describe a reason with its number of hosts, by name.

    :param reason: a reason of the document
    """
    text = refusals.say_number(reason['hosts'], reason['reason'])
    names = reason['names']
    if names:
        shown = [
            f'{one["name"]} {one["hosts"]}' if len(names) > 1 else one['name']
            for one in names
        ]
        text += f' ({messages.first_few(shown, _MOST_NAMES, str)})'
    elif details := [one['detail'] for one in reason['details']]:
        # Each host has its own values: the first is an example.
        example = 'for example: ' * (len(details) > 1)
        text += f' ({example}{details[0]})'
    return text
