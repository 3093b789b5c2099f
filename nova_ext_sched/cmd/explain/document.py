# SPDX-License-Identifier: Apache-2.0

"""Everything that an explanation says, as one document.

``schema.json`` beside this module has its form. What people read is written
from the document alone (:mod:`.answer`), so that a document that was kept
reads like a new one.
"""

import collections
from collections.abc import Collection
import typing

from nova_ext_sched import messages
from nova_ext_sched.cli import lister
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.queries import fields

#: Changes when a reader of the document must change.
FORMAT = 1

#: Of a host that is judged by a constraint.
PASSES, REFUSED, NOT_JUDGED = 'passes', 'refused', 'not judged'

# Reasons begin with a verb of these, so that they can follow a number.
_SINGULAR = {'are': 'is', 'have': 'has', 'lack': 'lacks', 'get': 'gets'}


def describe_request(
    spec_obj: typing.Any,
    operation: str = 'boot',
    server: str | None = None,
    server_name: str | None = None,
) -> dict[str, typing.Any]:
    """Return what is asked, before the scheduler changes it.

    :param spec_obj: a nova RequestSpec
    :param server: the UUID of a server that exists
    """
    flavor = spec_obj.flavor
    group = fields.get_field(spec_obj, 'instance_group')
    destination = fields.get_field(spec_obj, 'requested_destination')
    image = fields.get_field(spec_obj, 'image')
    return {
        'operation': operation,
        'server': server,
        'server_name': server_name,
        'project': fields.get_field(spec_obj, 'project_id'),
        'flavor': {
            'id': fields.get_field(flavor, 'flavorid'),
            'name': fields.get_field(flavor, 'name'),
            'vcpus': flavor.vcpus,
            'memory_mb': flavor.memory_mb,
            'root_gb': flavor.root_gb,
            'ephemeral_gb': flavor.ephemeral_gb,
            'swap': flavor.swap,
            'extra_specs': dict(fields.get_field(flavor, 'extra_specs') or {}),
        },
        'image': {
            'id': fields.get_field(image, 'id') if image else None,
            'name': fields.get_field(image, 'name') if image else None,
        },
        'boot_from_volume': bool(fields.get_field(spec_obj, 'is_bfv')),
        'availability_zone': fields.get_field(spec_obj, 'availability_zone'),
        'server_group': group
        and {
            'id': fields.get_field(group, 'uuid'),
            'name': fields.get_field(group, 'name'),
            'policy': fields.get_field(group, 'policy'),
        },
        'hints': {
            key: value if isinstance(value, list) else [value]
            for key, value in (
                fields.get_field(spec_obj, 'scheduler_hints') or {}
            ).items()
            if not key.startswith('_nova')
        },
        'destination': destination and fields.get_field(destination, 'host'),
        'force_hosts': list(fields.get_field(spec_obj, 'force_hosts') or ()),
        'ignore_hosts': list(fields.get_field(spec_obj, 'ignore_hosts') or ()),
        'instances': fields.get_field(spec_obj, 'num_instances') or 1,
    }


def build(
    found: funnel.Funnel,
    request: dict[str, typing.Any],
    detailed: Collection[str] | None = None,
) -> dict[str, typing.Any]:
    """Return the document of an explanation.

    :param request: what :func:`describe_request` returned
    :param detailed: UUIDs of the hosts to list; None for all
    """
    constraints = [
        _describe_constraint(found, constraint)
        for constraint in found.constraints
    ]
    document = {
        **lister.begin_document(FORMAT),
        'request': request,
        'answer': {
            'sentence': '',
            'finds_host': found.finds_host,
            'hosts': len(found.hosts),
            'left': len(found.left),
            'best': _name(found, found.order[0][0])
            if found.finds_host
            else None,
            'reasons': funnel.group(found.count_reasons()),
            'freed': [
                {'causes': list(causes), 'hosts': number}
                for causes, number in (
                    [] if found.left or found.end else found.count_freed()
                )
            ],
            'end': found.end and found.end._asdict(),
            'shortage': found.shortage,
        },
        'constraints': constraints,
        'query': found.query,
        'hosts': [
            _describe_host(found, uuid)
            for uuid in sorted(
                found.hosts if detailed is None else detailed,
                key=found.hosts.__getitem__,
            )
        ],
        'order': [
            {
                'host': _name(found, uuid),
                'uuid': uuid,
                'weight': weight,
                'weights': found.weights.get(uuid, {}),
            }
            for uuid, weight in found.order
        ],
        'remarks': found.remarks,
    }
    document['answer']['sentence'] = _say(document)
    return document


def _describe_constraint(
    found: funnel.Funnel, constraint: funnel.Constraint
) -> dict[str, typing.Any]:
    counts = collections.Counter(
        refusal
        for uuid in constraint.refused
        for refusal in constraint.refusals(uuid)
    )
    judged = found.hosts if constraint.judged is None else constraint.judged
    # A number of hosts that nobody looked at is none.
    is_judged = bool(judged)
    is_known = is_judged or found.end is None
    return {
        'stage': constraint.stage,
        'constraint': constraint.name,
        'asks': constraint.asks,
        'causes': list(dict.fromkeys(one.cause for one in counts)),
        'judged': len(judged),
        'refused': len(constraint.refused) if is_judged else None,
        'alone': found.count_alone(constraint) if is_judged else None,
        'left': constraint.left
        if is_known or constraint is found.constraints[-1]
        else None,
        'reasons': funnel.group(counts.items()),
        'capacity': constraint.capacity
        and _describe_capacity(found, constraint.capacity),
    }


def _describe_capacity(
    found: funnel.Funnel, capacity: funnel.Capacity
) -> dict[str, typing.Any]:
    described = vars(capacity).copy()
    # Hosts that a smaller flavor alone would open.
    alone = {
        uuid
        for uuid, causes in found.causes.items()
        if causes == {capacity.resource}
    }
    free = {
        uuid: amount
        for uuid, amount in described.pop('free').items()
        if amount > 0 and uuid in alone
    }
    amounts = sorted(free.values(), reverse=True)
    most = amounts[0] if amounts else 0
    half = amounts[(len(amounts) - 1) // 2] if amounts else 0
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
            for amount in dict.fromkeys(filter(None, (most, half)))
        ],
    }


def _describe_host(found: funnel.Funnel, uuid: str) -> dict[str, typing.Any]:
    verdicts = []
    for number, constraint in enumerate(found.constraints):
        verdict, reason = PASSES, ''
        if uuid in constraint.refused:
            verdict = REFUSED
            reason = '; '.join(
                singular(one.kind) + (f' ({one.detail})' if one.detail else '')
                for one in constraint.refusals(uuid)
            )
        elif constraint.judged is not None and uuid not in constraint.judged:
            verdict = NOT_JUDGED
        if verdict != PASSES:
            verdicts.append(
                {'constraint': number, 'verdict': verdict, 'reason': reason}
            )
    return {
        'host': _name(found, uuid),
        'uuid': uuid,
        'left': uuid in found.left,
        'verdicts': verdicts,
    }


def _say(document: dict[str, typing.Any]) -> str:
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


def get_cause(document: dict[str, typing.Any]) -> str | None:
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


def count_reason(reason: dict[str, typing.Any], most: int = 3) -> str:
    """Return a reason with its number of hosts, and how the names share it.

    :param reason: of the document
    :param most: how many names are shown
    """
    text = say_number(reason)
    names = reason['names']
    if names:
        shown = [
            f'{one["name"]} {one["hosts"]}'
            if len(names) > 1
            else str(one['name'])
            for one in names[:most]
        ]
        if len(names) > most:
            shown.append(f'and {len(names) - most} more')
        text += f' ({", ".join(shown)})'
    elif len(reason['details']) == 1:
        text += f' ({reason["details"][0]["detail"]})'
    return text


def say_number(reason: dict[str, typing.Any]) -> str:
    """Return a reason with its number of hosts."""
    number, kind = reason['hosts'], reason['reason']
    return f'{number} {singular(kind) if number == 1 else kind}'


def singular(kind: str) -> str:
    """Return a reason as it is said of one host."""
    verb, _, rest = kind.partition(' ')
    return f'{_SINGULAR.get(verb, verb)} {rest}'


def _name(found: funnel.Funnel, uuid: str) -> str:
    return messages.clean(found.hosts[uuid])
