# SPDX-License-Identifier: Apache-2.0

"""Everything that an explanation says, as one document.

``schema.json`` beside this module has its form. What people read is written
from the document alone (:mod:`.answer`), so that a document that was kept
reads like a new one.
"""

import collections
from collections.abc import Collection
import functools
import itertools
import typing

from nova_ext_sched import messages
from nova_ext_sched.cli import lister
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.queries import fields

#: What schema.json describes, or a part of it.
Document = dict[str, typing.Any]

#: Changes when a reader of the document must change.
FORMAT = 1

#: Of a host that is judged by a constraint.
PASSES, REFUSED, NOT_JUDGED = 'passes', 'refused', 'not judged'

_FLAVOR = ('name', 'vcpus', 'memory_mb', 'root_gb', 'ephemeral_gb', 'swap')

# How many names of a reason are shown.
_MOST_NAMES = 3

# Reasons begin with a verb of these, so that they can follow a number.
_SINGULAR = {'are': 'is', 'have': 'has', 'lack': 'lacks', 'get': 'gets'}


def describe_request(
    spec_obj: typing.Any,
    operation: str = 'boot',
    server: str | None = None,
    server_name: str | None = None,
) -> Document:
    """Return what is asked, before the scheduler changes it.

    :param spec_obj: a nova RequestSpec
    :param server: the UUID of a server that exists
    """
    get = functools.partial(fields.get_field, spec_obj)
    group = get('instance_group')
    hints = get('scheduler_hints') or {}
    return {
        'operation': operation,
        'server': server,
        'server_name': server_name,
        'project': get('project_id'),
        'flavor': {
            'id': fields.get_field(spec_obj.flavor, 'flavorid'),
            **_read(spec_obj.flavor, *_FLAVOR),
            'extra_specs': dict(fields.flavor_extra_specs(spec_obj)),
        },
        'image': _read(get('image'), 'id', 'name'),
        'boot_from_volume': bool(get('is_bfv')),
        'availability_zone': get('availability_zone'),
        'server_group': group
        and {
            'id': fields.get_field(group, 'uuid'),
            **_read(group, 'name', 'policy'),
        },
        'hints': {
            key: value if isinstance(value, list) else [value]
            for key, value in hints.items()
            if not key.startswith('_nova')
        },
        'destination': _read(get('requested_destination'), 'host')['host'],
        'force_hosts': list(get('force_hosts') or ()),
        'ignore_hosts': list(get('ignore_hosts') or ()),
        'instances': get('num_instances') or 1,
    }


def _read(obj: typing.Any, *names: str) -> Document:
    return {name: obj and fields.get_field(obj, name) for name in names}


def build(
    found: funnel.Funnel,
    request: Document,
    detailed: Collection[str] | None = None,
) -> Document:
    """Return the document of an explanation.

    :param request: what :func:`describe_request` returned
    :param detailed: UUIDs of the hosts to list; None for all
    """
    order = [
        {
            'host': _name(found, uuid),
            'uuid': uuid,
            'weight': weight,
            'weights': found.weights.get(uuid, {}),
        }
        for uuid, weight in found.order
    ]
    listed = found.hosts if detailed is None else detailed
    document = {
        **lister.begin_document(FORMAT),
        'request': request,
        'answer': {
            'sentence': '',
            'finds_host': found.finds_host,
            'hosts': len(found.hosts),
            'left': len(found.left),
            'best': order[0]['host'] if found.finds_host else None,
            'reasons': funnel.group(found.count_reasons()),
            'freed': [] if found.left or found.end else found.count_freed(),
            'end': found.end and found.end._asdict(),
            'shortage': found.shortage,
        },
        'constraints': [
            _describe_constraint(found, one) for one in found.constraints
        ],
        'query': found.query,
        'hosts': [
            _describe_host(found, uuid)
            for uuid in sorted(listed, key=found.hosts.__getitem__)
        ],
        'order': order,
        'remarks': found.remarks,
    }
    document['answer']['sentence'] = _say(document)
    return document


def _describe_constraint(
    found: funnel.Funnel, constraint: funnel.Constraint
) -> Document:
    counts = collections.Counter(
        itertools.chain.from_iterable(constraint.refused.values())
    )
    # A number of hosts that nobody looked at is none.
    is_judged = bool(constraint.judged)
    is_known = is_judged or found.end is None
    return {
        'stage': constraint.stage,
        'constraint': constraint.name,
        'asks': constraint.asks,
        'causes': list(dict.fromkeys(one.cause for one in counts)),
        'judged': len(constraint.judged),
        'refused': len(constraint.refused) if is_judged else None,
        'alone': found.count_alone(constraint) if is_judged else None,
        'left': constraint.left
        if is_known or constraint is found.constraints[-1]
        else None,
        'reasons': funnel.group(counts.items()),
        'capacity': constraint.capacity
        and _describe_capacity(found, constraint.capacity),
    }


def _describe_capacity(found: funnel.Funnel, capacity: Document) -> Document:
    described = dict(capacity)
    # Hosts that a smaller flavor alone would open.
    alone = {
        uuid
        for uuid, causes in found.causes.items()
        if causes == {capacity['resource']}
    }
    free = {
        uuid: amount
        for uuid, amount in described.pop('free').items()
        if amount > 0 and uuid in alone
    }
    amounts = sorted(free.values(), reverse=True) or [0]
    most, half = amounts[0], amounts[(len(amounts) - 1) // 2]
    return {
        **described,
        'alone': len(alone),
        'most_free': most,
        'most_free_host': min(
            (_name(found, uuid) for uuid in free if free[uuid] == most),
            default=None,
        ),
        'fits': [
            {'amount': amount, 'hosts': sum(one >= amount for one in amounts)}
            for amount in dict.fromkeys((most, half))
            if amount
        ],
    }


def _describe_host(found: funnel.Funnel, uuid: str) -> Document:
    verdicts = []
    for number, constraint in enumerate(found.constraints):
        if uuid in constraint.refused:
            verdict = REFUSED
        elif uuid not in constraint.judged:
            verdict = NOT_JUDGED
        else:
            continue
        reason = '; '.join(
            singular(one.kind) + (f' ({one.detail})' if one.detail else '')
            for one in constraint.refused.get(uuid, ())
        )
        verdicts.append(
            {'constraint': number, 'verdict': verdict, 'reason': reason}
        )
    return {
        'host': _name(found, uuid),
        'uuid': uuid,
        'left': uuid in found.left,
        'verdicts': verdicts,
    }


def _say(document: Document) -> str:
    """Return the answer as sentences on one line."""
    answer = document['answer']
    hosts = messages.count('host', answer['hosts'])
    sentence = f'{answer["left"]} of {hosts}'
    end = answer['end']
    if end:
        sentences = [
            f'{sentence}: {end["name"]} ends the request: {end["reason"]}',
            end['detail'],
        ]
    else:
        parts = [count_reason(one) for one in answer['reasons']]
        sentences = [f'{sentence}: {", ".join(parts)}' if parts else sentence]
    if answer['best']:
        sentences.append(f'The scheduler prefers {answer["best"]}')
    sentences += [answer['shortage'], *document['remarks']]
    return ' '.join(f'{text.rstrip(".")}.' for text in sentences if text)


def get_cause(document: Document) -> str | None:
    """Return what a refusal is told by where there is room for one word.

    It is the policy that ended the request, or the cause of the first reason:
    of those that refuse hosts, the one that refuses most
    (:func:`.funnel.group`).

    :returns: None where nothing refuses a host
    """
    answer = document['answer']
    if answer['end']:
        return str(answer['end']['cause'])
    return answer['reasons'][0]['cause'] if answer['reasons'] else None


def count_reason(reason: Document) -> str:
    """Return a reason with its number of hosts, and how the names share it.

    :param reason: of the document
    """
    text = say_number(reason)
    names = reason['names']
    if names:
        shown = [
            f'{one["name"]} {one["hosts"]}' if len(names) > 1 else one['name']
            for one in names[:_MOST_NAMES]
        ]
        if len(names) > _MOST_NAMES:
            shown.append(f'and {len(names) - _MOST_NAMES} more')
        text += f' ({", ".join(shown)})'
    elif len(reason['details']) == 1:
        text += f' ({reason["details"][0]["detail"]})'
    return text


def say_number(reason: Document) -> str:
    """Return a reason with its number of hosts."""
    number, kind = reason['hosts'], reason['reason']
    return f'{number} {singular(kind) if number == 1 else kind}'


def singular(kind: str) -> str:
    """Return a reason as it is said of one host."""
    verb, _, rest = kind.partition(' ')
    return f'{_SINGULAR.get(verb, verb)} {rest}'


def _name(found: funnel.Funnel, uuid: str) -> str:
    return messages.clean(found.hosts[uuid])
