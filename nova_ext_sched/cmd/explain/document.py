# SPDX-License-Identifier: Apache-2.0

"""Everything that an explanation says, as one document.

``schema.json`` beside this module has its form. What people read is written
from the document alone (:mod:`.answer`), so that a document that was kept
reads like a new one.
"""

import collections
from collections.abc import Collection
import importlib.metadata
import typing

from oslo_utils import timeutils

from nova_ext_sched import messages
from nova_ext_sched.cmd.explain import funnel

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
    group = _field(spec_obj, 'instance_group')
    destination = _field(spec_obj, 'requested_destination')
    image = _field(spec_obj, 'image')
    return {
        'operation': operation,
        'server': server,
        'server_name': server_name,
        'project': _field(spec_obj, 'project_id'),
        'flavor': {
            'id': _field(flavor, 'flavorid'),
            'name': _field(flavor, 'name'),
            'vcpus': flavor.vcpus,
            'memory_mb': flavor.memory_mb,
            'root_gb': flavor.root_gb,
            'ephemeral_gb': flavor.ephemeral_gb,
            'swap': flavor.swap,
            'extra_specs': dict(_field(flavor, 'extra_specs') or {}),
        },
        'image': {
            'id': _field(image, 'id') if image else None,
            'name': _field(image, 'name') if image else None,
        },
        'boot_from_volume': bool(_field(spec_obj, 'is_bfv')),
        'availability_zone': _field(spec_obj, 'availability_zone'),
        'server_group': group
        and {
            'id': _field(group, 'uuid'),
            'name': _field(group, 'name'),
            'policy': _field(group, 'policy'),
        },
        'hints': {
            key: value if isinstance(value, list) else [value]
            for key, value in (
                _field(spec_obj, 'scheduler_hints') or {}
            ).items()
            if not key.startswith('_nova')
        },
        'destination': destination and _field(destination, 'host'),
        'force_hosts': list(_field(spec_obj, 'force_hosts') or ()),
        'ignore_hosts': list(_field(spec_obj, 'ignore_hosts') or ()),
        'instances': _field(spec_obj, 'num_instances') or 1,
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
        'format': FORMAT,
        'time': timeutils.utcnow().isoformat(timespec='seconds') + 'Z',
        'versions': {
            name: importlib.metadata.version(name)
            for name in ('nova-ext-sched', 'nova')
        },
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
    causes = {
        cause: None
        for refusal in sorted(set(constraint.refused.values()))
        for cause in (refusal.cause or constraint.name, *refusal.more)
    }
    return {
        'stage': constraint.stage,
        'constraint': constraint.name,
        'asks': constraint.asks,
        'causes': list(causes),
        'judged': len(
            found.hosts if constraint.judged is None else constraint.judged
        ),
        'refused': len(constraint.refused),
        'alone': found.count_alone(constraint),
        'left': constraint.left,
        'reasons': funnel.group(
            collections.Counter(constraint.refused.values()).items()
        ),
        'capacity': constraint.capacity and vars(constraint.capacity),
    }


def _describe_host(found: funnel.Funnel, uuid: str) -> dict[str, typing.Any]:
    verdicts = []
    for number, constraint in enumerate(found.constraints):
        verdict, reason = PASSES, ''
        if uuid in constraint.refused:
            verdict = REFUSED
            refusal = constraint.refused[uuid]
            reason = singular(refusal.kind)
            if refusal.detail:
                reason += f' ({refusal.detail})'
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


def count_reason(reason: dict[str, typing.Any], most: int = 3) -> str:
    """Return a reason with its number of hosts, and how the names share it.

    :param reason: of the document
    :param most: how many names are shown
    """
    number, kind = reason['hosts'], reason['reason']
    text = f'{number} {singular(kind) if number == 1 else kind}'
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


def singular(kind: str) -> str:
    """Return a reason as it is said of one host."""
    verb, _, rest = kind.partition(' ')
    return f'{_SINGULAR.get(verb, verb)} {rest}'


def _name(found: funnel.Funnel, uuid: str) -> str:
    return messages.clean(found.hosts[uuid])


def _field(obj: typing.Any, name: str) -> typing.Any:
    return getattr(obj, name) if name in obj else None
