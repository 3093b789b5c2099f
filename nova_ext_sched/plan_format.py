# SPDX-License-Identifier: Apache-2.0

"""The document of a plan, which commands write and apply reads.

``schemas/plan.json`` has the whole form. A reader takes keys that it does
not know, and refuses a plan without those that it needs.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import json
import typing

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import schema

#: Changes when a reader of the document must change.
FORMAT = 3

#: What the reason of a host begins with that is disabled for a plan.
DISABLED_FOR = 'nova-ext-sched: '

#: How nova moves a server.
LIVE, COLD, EVACUATE = 'live', 'cold', 'evacuate'
#: The cause of a server that the operator leaves out of all plans.
LEFT_OUT = 'left out'

#: Why a move is cold: the server is stopped, or has a device; or nova-api
#: refuses to live-migrate it for another reason.
STOPPED, DEVICE, REFUSED = 'stopped', 'device', 'refused'
NOT_COLD = ''

#: Why nova shuts down a server that runs to move it, of one and of several.
SHUT_DOWN = {
    DEVICE: ('has a device', 'have a device'),
    REFUSED: ('cannot be live-migrated', 'cannot be live-migrated'),
}

#: What types cannot say of the fields of moves, in the words of JSON schema.
Method = typing.Annotated[str, {'enum': [LIVE, COLD, EVACUATE]}]
WhyCold = typing.Annotated[str, {'enum': [NOT_COLD, STOPPED, DEVICE, REFUSED]}]
Turn = typing.Annotated[int, {'minimum': 1}]
#: The turns of moves, in place of what stands for them until it is written.
TURNS = {'items': {'type': 'integer', 'minimum': 1}}

# What is expected of a file.
_JSON = (
    'what nova-ext-sched mend, drain, make-room, maintain --round or survive '
    'writes with -f json or --output'
)

_THIS_FORMAT = f'{FORMAT}, so make the plan again with this release'

_NAME = {'type': 'string', 'description': 'a text'}
_NUMBER = {'type': 'integer', 'description': 'a number'}
# It is part of a URL.
_UUID = {
    'type': 'string',
    'pattern': r'^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z',
    'description': 'a UUID',
}
_TIME = {
    'type': 'string',
    'pattern': r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z',
    'description': 'a time in UTC',
}
_WHY_COLD = {'enum': [NOT_COLD, STOPPED, DEVICE, REFUSED]}
_MOVES = {
    'type': 'array',
    'description': 'moves',
    'items': {
        'type': 'object',
        'description': 'a move',
        'required': [
            *(
                'server',
                'name',
                'host',
                'to',
                'expected',
                'method',
                'why_cold',
            ),
            *('batch', 'needs'),
        ],
        'properties': {
            'server': _UUID,
            'name': _NAME,
            'host': _NAME,
            'to': {'type': ['string', 'null'], 'description': 'a host'},
            'expected': _NAME,
            'method': {'enum': [LIVE, COLD, EVACUATE]},
            'why_cold': _WHY_COLD,
            'batch': _NUMBER,
            'needs': {
                'type': 'array',
                'description': 'turns',
                'items': _NUMBER,
            },
        },
    },
}
_HOSTS = {'type': 'array', 'description': 'hosts', 'items': _NAME}
_STUCK = {
    'type': 'array',
    'description': 'servers that cannot be moved',
    'items': {
        'type': 'object',
        'description': 'a server',
        'required': ['server', 'name', 'host', 'would_help'],
        'properties': {
            name: _NAME
            for name in 'server name host would_help cause reason'.split()
        },
    },
}
_FORM = {
    'type': 'object',
    'description': _JSON,
    'required': ['format', 'time', 'services'],
    'properties': {
        'format': {'const': FORMAT, 'description': _THIS_FORMAT},
        'time': _TIME,
        'command': _NAME,
        'origin': {
            'type': 'object',
            'description': 'the file of a saved cloud',
            'required': ['saved'],
            'properties': {'saved': _TIME},
        },
        'supposed': {
            'type': 'array',
            'description': 'what was supposed',
            'items': {
                'type': 'object',
                'description': 'an option with its value',
                'required': ['option', 'value'],
                'properties': {'option': _NAME, 'value': _NAME},
            },
        },
        'services': {
            'type': 'object',
            'description': 'UUIDs by host',
            'additionalProperties': _NAME,
        },
        'moves': _MOVES,
        'without_place': _STUCK,
        'to_be_empty': _HOSTS,
        'room_on': {
            'type': 'array',
            'description': 'hosts',
            'items': {'type': ['string', 'null'], 'description': 'a host'},
        },
        'rounds': {
            'type': 'array',
            'description': 'one round: name it to maintain, by --round',
            'maxItems': 0,
        },
        'not_emptied': {
            'type': 'array',
            'description': 'a round: what keeps these hosts from it is in '
            'their without_place',
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
                'properties': {
                    'moves': _MOVES,
                    'hosts': _HOSTS,
                    'without_place': _STUCK,
                },
            },
        },
    },
    'dependentRequired': {'moves': ['to_be_empty']},
    'anyOf': [
        {'required': [name]} for name in ('moves', 'failures', 'rounds')
    ],
}


@dataclasses.dataclass(frozen=True)
class Supposed:
    """A supposition of an answer: an option, with its value.

    :ivar option: such as --aggregate-property
    :ivar value: its value, without passwords
    """

    option: str
    value: str


@dataclasses.dataclass(frozen=True)
class Origin:
    """The file of a saved cloud that an answer is of.

    :ivar file: its name, without the folder
    :ivar saved: when the cloud was saved, in UTC
    :ivar versions: that it was saved with, by name
    :ivar notes: a sentence for each part that the file lacks
    """

    file: str
    saved: typing.Annotated[str, {'format': 'date-time'}]
    versions: dict[str, str]
    notes: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Stranded:
    """A server that had no place when the plan was made.

    :ivar would_help: an act to do first; empty if none is known
    :ivar cause: a word, such as :data:`LEFT_OUT`
    """

    server: str
    name: str
    host: str
    would_help: str
    cause: str = ''
    reason: str = ''


@dataclasses.dataclass
class Move:
    """The move of a server; its fields are those of the document.

    :ivar turn: from 1 on
    :ivar server: UUID
    :ivar to: a host; None where nova chooses
    :ivar expected: the host that moves after it take for granted
    :ivar method: :data:`LIVE`, :data:`COLD` or :data:`EVACUATE`
    :ivar why_cold: of a cold one :data:`STOPPED`, :data:`DEVICE` or
        :data:`REFUSED`
    :ivar needs: turns of the moves before it without which it may not be
        possible
    :ivar from_image: of an evacuation: whether its root disk is on its host
    """

    turn: int
    server: str
    name: str
    host: str
    to: str | None
    expected: str
    method: str
    why_cold: str
    batch: int
    needs: Sequence[int]
    from_image: bool = False


@dataclasses.dataclass(frozen=True)
class Plan:
    """Moves, one after the other.

    :ivar time: when it was made
    :ivar services: the UUID of nova-compute of each of its hosts, by name
    :ivar to_be_empty: the hosts that are empty afterwards
    :ivar command: the command that made it; empty if unknown
    :ivar room_on: the hosts of new servers that fit afterwards
    :ivar saved: when the cloud was saved that it was made from; empty where
        it was made from the cloud itself
    """

    time: str
    services: Mapping[str, str]
    to_be_empty: Sequence[str]
    moves: Sequence[Move]
    stranded: Sequence[Stranded] = ()
    supposed: Sequence[Supposed] = ()
    command: str = ''
    room_on: Sequence[str] = ()
    saved: str = ''


def shuts_down(move: typing.Any) -> bool:
    """Return whether nova shuts down a running server to move it.

    :param move: has the ``method`` and ``why_cold`` of the document
    """
    return move.method == COLD and move.why_cold != STOPPED


def make_supposed(
    supposed: Iterable[Supposed],
) -> list[dict[str, typing.Any]]:
    """Return the suppositions for documents."""
    return [*map(dataclasses.asdict, supposed)]


def make_moves(
    moves: Iterable[Mapping[str, typing.Any]],
) -> list[dict[str, typing.Any]]:
    """Return the moves for a document, with their turns.

    :param moves: each with the fields of the document, and the UUIDs of the
        servers whose moves it needs; of these some may not move any more
    """
    moves = list(moves)
    turns = {move['server']: turn for turn, move in enumerate(moves, 1)}
    return [
        {
            **move,
            'turn': turns[move['server']],
            'needs': sorted(
                turns[uuid] for uuid in move['needs'] if uuid in turns
            ),
        }
        for move in moves
    ]


def say_from_image(moves: Iterable[typing.Any]) -> Iterator[str]:
    """Yield how many servers start from their image after an evacuation.

    :param moves: with ``from_image``
    """
    if number := sum(one.from_image for one in moves):
        have = messages.agree(number, 'has its', 'have their')
        come = messages.agree(number, 'it comes', 'they come')
        yield (
            f'{messages.count("server", number)} {have} root disk on a host '
            f'that failed: unless disks are shared, {come} back from '
            f'{messages.agree(number, "its", "their")} image.'
        )


def write(document: Mapping[str, typing.Any]) -> str:
    """Return the text of a document."""
    return json.dumps(document, indent=2) + '\n'


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
    moves = [
        _pick(Move, {**one, 'turn': turn})
        for turn, one in enumerate(whole.get('moves', ()), 1)
    ]
    _check_needs(moves, where)
    return Plan(
        time=document['time'],
        services=document['services'],
        to_be_empty=whole.get('to_be_empty', []),
        moves=moves,
        stranded=[
            _pick(Stranded, one) for one in whole.get('without_place', ())
        ],
        supposed=[
            _pick(Supposed, one) for one in document.get('supposed', ())
        ],
        command=document.get('command', ''),
        room_on=[*dict.fromkeys(filter(None, whole.get('room_on', ())))],
        saved=document.get('origin', {}).get('saved', ''),
    )


def _pick(class_: typing.Any, found: Mapping[str, typing.Any]) -> typing.Any:
    """Create a dataclass from its part of a document."""
    names = [one.name for one in dataclasses.fields(class_)]
    # What became a field later has a default.
    return class_(**{name: found[name] for name in names if name in found})


def _check_needs(moves: Iterable[Move], where: str) -> None:
    """Refuse a move that needs one which is not before it.

    :raises exception.InvalidValue: there is one
    """
    for one in moves:
        for turn in one.needs:
            if not 0 < turn < one.turn:
                raise exception.InvalidValue(
                    where=f'{where}: moves[{one.turn - 1}].needs',
                    expected='turns of moves before it',
                    got=turn,
                )
