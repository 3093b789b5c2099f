# SPDX-License-Identifier: Apache-2.0

import copy
import json

import ddt
import testtools

from nova_ext_sched import exception
from nova_ext_sched import plan_format
from tests import schemas

UUID = 'af497212-0000-4000-8000-000000000001'
SERVER = {'server': UUID, 'project': 'p', 'host': 'a', 'policies': []}
MOVE = SERVER | {
    'name': 'web',
    'to': 'b',
    'expected': 'b',
    'method': 'live',
    'why_cold': '',
    'batch': 1,
    'needs': [],
    'paused': False,
    'lacks': [],
    'newer': False,
    'turn': 1,
}
COLD = MOVE | {'to': None, 'method': 'cold', 'why_cold': 'stopped'}
COLD |= {'needs': [1], 'turn': 2}
STUCK = SERVER | {'name': 'db', 'reason': 'why', 'would_help': 'x'}
STUCK |= {'cause': 'VCPU', 'name_of_cause': '', 'cause_then': ''}
STRANDED = plan_format.Stranded(UUID, 'db', 'a', 'x', 'VCPU', 'why')
SUPPOSED = {'option': '--aggregate-host', 'value': 'lab a'}
HEAD = {
    'format': 3,
    'time': '2026-11-27T01:00:00Z',
    'versions': {'nova-ext-sched': '1', 'nova': '34'},
    'command': 'nova-ext-sched drain a',
    'supposed': [SUPPOSED],
    'answer': {'sentence': 'x'},
    'deleted_meanwhile': [],
    'topology': [],
    'services': {'a': 'uuid a', 'b': 'uuid b'},
    'faults': [],
}
DRAIN = HEAD | {
    'moved_meanwhile': [],
    'moves': [MOVE, COLD],
    'shut_down': [],
    'without_place': [STUCK],
    'mended_by_others': [],
    'groups': [],
    'to_be_empty': ['a'],
    'not_empty_after': ['a'],
    'still_enabled': [],
    'room_for_last': None,
    'crowded': [],
    'seconds': None,
}
FAILURE = {
    'room_for_last': None,
    'failure': 'rack 1',
    'hosts': ['a', 'c'],
    'moves': [MOVE | {'method': 'evacuate'}],
    'without_place': [STUCK],
    'causes': [{'cause': 'VCPU', 'name': '', 'servers': 1}],
}
SURVIVE = HEAD | {'lose': 'domain', 'failures': [FAILURE]}
SURVIVE |= {'flavors': [], 'remarks': []}
ROUNDS = HEAD | {'rounds': [], 'not_emptied': []}


def read(document):
    return plan_format.read(plan_format.write(document), 'plan.json')


@ddt.ddt
class ReadTestCase(testtools.TestCase):
    def test_documents(self):
        for document in (DRAIN, SURVIVE):
            schemas.validate(document, 'schemas/plan.json')
        plan = read(DRAIN | {'new': 1})
        for turn, (made, read_) in enumerate(
            zip((MOVE, COLD), plan.moves, strict=True), 1
        ):
            self.assertEqual(turn, read_.turn)
            for name in ('server', 'to', 'method', 'why_cold', 'needs'):
                self.assertEqual(made[name], getattr(read_, name))
        self.assertEqual(['a'], plan.to_be_empty)
        self.assertEqual(HEAD['time'], plan.time)
        self.assertEqual([STRANDED], plan.stranded)
        self.assertEqual([plan_format.Supposed(**SUPPOSED)], plan.supposed)
        self.assertEqual('nova-ext-sched drain a', plan.command)
        plan = read(SURVIVE)
        self.assertEqual(['evacuate'], [one.method for one in plan.moves])
        self.assertEqual(['a', 'c'], plan.to_be_empty)
        self.assertEqual([STRANDED], plan.stranded)

    @ddt.data(
        ('what nova-ext-sched mend, drain, make-room', '{'),
        ('what nova-ext-sched mend, drain, make-room', '[]'),
        ('what nova-ext-sched mend, drain, make-room', HEAD),
        ('format: expected 3, so make the plan again with',
         DRAIN | {'format': 2}),
        ('expected the key services', {'format': 3, 'time': ''}),
        ('expected the key needs',
         DRAIN | {'moves': [{k: v for k, v in MOVE.items() if k != 'needs'}]}),
        ('expected one failure', SURVIVE | {'failures': [FAILURE] * 2}),
        ('rounds: expected one round: name it to maintain, by --round',
         ROUNDS | {'rounds': [{'moves': []}]}),
        # No host can be emptied.
        ('not_emptied: expected a round',
         ROUNDS | {'not_emptied': [{'host': 'host1'}]}),
    )  # fmt: skip
    @ddt.unpack
    def test_what_is_no_plan(self, said, found):
        self.assertRefused(said, found)

    def assertRefused(self, said, found):
        text = found if isinstance(found, str) else json.dumps(found)
        exc = self.assertRaises(
            exception.InvalidValue, plan_format.read, text, 'plan.json'
        )
        self.assertIn(said, str(exc))
        self.assertIn('plan.json', str(exc))

    @ddt.data(
        ('moves[1].server: expected a UUID', {'server': '../os-services'}),
        ('moves[1].server: expected a UUID', {'server': f'{UUID}/action'}),
        ('moves[1].server: expected a UUID', {'server': f'{UUID}\n'}),
        ('moves[1].method', {'method': 'force'}),
        ('moves[1].why_cold', {'why_cold': 'hot'}),
        ('moves[1].to: expected a host', {'to': 1}),
        ('moves[1].batch: expected a number', {'batch': '1'}),
        ('moves[1].needs[0]: expected a number', {'needs': ['1']}),
        ('moves[1].needs: expected turns of moves before', {'needs': [2]}),
        ('moves[1].needs: expected turns of moves before', {'needs': [0]}),
    )
    @ddt.unpack
    def test_moves(self, said, fields):
        document = copy.deepcopy(DRAIN)
        document['moves'][1].update(fields)
        self.assertRefused(said, document)

    @ddt.data(
        # Nothing is left to do.
        ROUNDS,
        # The host holds no server, perhaps no more.
        SURVIVE | {'failures': []},
    )
    def test_no_move(self, document):
        self.assertEqual([], read(document).moves)


class DescribeTestCase(testtools.TestCase):
    def test_needs_are_turns(self):
        """One that moves no more is none."""
        moves = [
            {'server': 'a', 'needs': []},
            {'server': 'c', 'needs': ['a', 'b']},
            {'server': 'd', 'needs': ['c', 'a']},
        ]
        found = [one['needs'] for one in plan_format.make_moves(moves)]
        self.assertEqual([[], [1], [1, 2]], found)
