# SPDX-License-Identifier: Apache-2.0

"""A plan of moves, as it is read from the JSON of another command."""

from collections.abc import Mapping
import dataclasses
import enum
import json

from nova_ext_sched import exception
from nova_ext_sched import schema

# What is expected of a file.
_JSON = (
    'what nova-ext-sched mend, drain, maintain --round or survive writes with '
    '-f json'
)

_NAME = {'type': 'string', 'description': 'a text'}
_MOVES = {
    'type': 'array',
    'description': 'moves',
    'items': {
        'type': 'object',
        'description': 'a move',
        'required': [
            *('server', 'name', 'host', 'to', 'expected', 'kind', 'stage')
        ],
        'properties': {
            # It is part of a URL.
            'server': {
                'type': 'string',
                'pattern': r'^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z',
                'description': 'a UUID',
            },
            'name': _NAME,
            'host': _NAME,
            'to': {'type': ['string', 'null'], 'description': 'a host'},
            'expected': _NAME,
            'kind': {'enum': ['live', 'cold', 'evacuate']},
            'stage': {'type': 'integer', 'description': 'a number'},
        },
    },
}
_HOSTS = {'type': 'array', 'description': 'hosts', 'items': _NAME}

# What is read of nova_ext_sched/cmd/moves/schema.json.
_FORM = {
    'type': 'object',
    'description': _JSON,
    'required': ['format', 'time', 'services'],
    'properties': {
        'format': {'const': 2, 'description': '2'},
        'time': {
            'type': 'string',
            'pattern': r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z',
            'description': 'a time in UTC',
        },
        'services': {
            'type': 'object',
            'description': 'UUIDs by host',
            'additionalProperties': _NAME,
        },
        'moves': _MOVES,
        'to_be_empty': _HOSTS,
        'rounds': {
            'type': 'array',
            'description': 'one round: name it to maintain, by --round',
            'maxItems': 0,
        },
        'failures': {
            'type': 'array',
            'description': 'one failure: name it to survive, by --host',
            'maxItems': 1,
            'items': {
                'type': 'object',
                'description': 'a failure',
                'required': ['moves', 'hosts'],
                'properties': {'moves': _MOVES, 'hosts': _HOSTS},
            },
        },
    },
    'dependentRequired': {'moves': ['to_be_empty']},
    'anyOf': [
        {'required': [name]} for name in ('moves', 'failures', 'rounds')
    ],
}


class Result(enum.StrEnum):
    """What became of a move."""

    FAILED = 'failed'
    UNDER_WAY = 'under way'
    PLANNED = 'planned'
    NOT_TRIED = 'not tried'
    MOVED = 'moved'
    ELSEWHERE = 'elsewhere'
    THERE = 'there before'
    GONE = 'gone'


@dataclasses.dataclass
class Move:
    """The move of a server; its fields are those of the document.

    :ivar turn: from 1 on
    :ivar server: UUID
    :ivar reason: of a result, where there is something to say
    """

    turn: int
    server: str
    name: str
    host: str
    to: str | None
    expected: str
    kind: str
    stage: int
    result: Result = Result.NOT_TRIED
    reason: str = ''


@dataclasses.dataclass(frozen=True)
class Plan:
    """Moves, one after the other.

    :ivar time: when it was made
    :ivar services: the UUID of nova-compute of each of its hosts, by name
    :ivar to_be_empty: the hosts that are empty afterwards
    """

    time: str
    services: Mapping[str, str]
    to_be_empty: list[str]
    moves: list[Move]

    def check_cloud(self, found: Mapping[str, str]) -> None:
        """Refuse another cloud than that of the plan.

        A host may have lost its nova-compute since; no other has its UUID.

        :param found: the UUID of each nova-compute of a cloud, by host
        :raises exception.InvalidValue: it is another cloud
        """
        there = self.services.keys() & found.keys()
        other = [h for h in there if self.services[h] != found[h]]
        if other or ((self.services or self.moves) and not there):
            host = min(other or self.services, default='')
            raise exception.InvalidValue(
                where=f'services.{host} of the plan',
                expected=f'a plan of this cloud, in which nova-compute of the '
                f'host has the UUID {found.get(host)}',
                got=self.services.get(host),
            )


def read(text: str, where: str) -> Plan:
    """Return the plan of a document.

    :param where: the name of its file, for errors
    :raises exception.InvalidValue: it is none, or has not one plan
    """
    try:
        document = json.loads(text)
    except ValueError as exc:
        raise exception.InvalidValue(
            where=where, expected=_JSON, got=text[:100]
        ) from exc
    for finding in schema.find(schema.Validator(_FORM).iter_errors(document)):
        raise exception.InvalidValue(
            where=f'{where}: {schema.format_path(finding.path)}',
            expected=finding.expected,
            got=finding.value,
        )
    whole = document if 'moves' in document else {}
    for failure in document.get('failures', ()):
        whole = {**failure, 'to_be_empty': failure['hosts']}
    names = [one.name for one in dataclasses.fields(Move)][1:-2]
    return Plan(
        time=document['time'],
        services=document['services'],
        to_be_empty=whole.get('to_be_empty', []),
        moves=[
            Move(turn, *(one[name] for name in names))
            for turn, one in enumerate(whole.get('moves', ()), 1)
        ],
    )
