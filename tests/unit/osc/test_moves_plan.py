# SPDX-License-Identifier: Apache-2.0

import copy
import json

import ddt
import testtools

from nova_ext_sched import exception
from nova_ext_sched.osc import moves_plan
from tests import schemas

UUID = 'af497212-0000-4000-8000-000000000001'
MOVE = {
    'server': UUID,
    'name': 'web',
    'project': 'p',
    'host': 'a',
    'policies': [],
    'to': 'b',
    'expected': 'b',
    'kind': 'live',
    'stage': 1,
}
HEAD = {
    'format': 2,
    'time': '2026-11-27T01:00:00Z',
    'versions': {'nova-ext-sched': '1', 'nova': '34'},
    'answer': {'sentence': 'x'},
    'deleted_meanwhile': [],
    'topology': [],
    'services': {'a': 'uuid a', 'b': 'uuid b'},
    'faults': [],
}
DRAIN = HEAD | {
    'moves': [MOVE, MOVE | {'to': None}],
    'without_place': [],
    'mended_by_others': [],
    'groups': [],
    'to_be_empty': ['a'],
}
FAILURE = {
    'left': None,
    'failure': 'rack 1',
    'hosts': ['a', 'c'],
    'moves': [MOVE | {'kind': 'evacuate'}],
    'without_place': [],
}
SURVIVE = HEAD | {'by': 'domain', 'failures': [FAILURE], 'flavors': []}


def read(document):
    return moves_plan.read(json.dumps(document), 'plan.json')


@ddt.ddt
class ReadTestCase(testtools.TestCase):
    def test_documents(self):
        for document in (DRAIN, SURVIVE):
            schemas.validate(document, 'cmd/moves/schema.json')
        plan = read(DRAIN | {'new': 1})
        self.assertEqual(
            [(1, UUID, 'b', 'live'), (2, UUID, None, 'live')],
            [(m.turn, m.server, m.to, m.kind) for m in plan.moves],
        )
        self.assertEqual(['a'], plan.to_be_empty)
        self.assertEqual(HEAD['time'], plan.time)
        plan = read(SURVIVE)
        self.assertEqual(['evacuate'], [one.kind for one in plan.moves])
        self.assertEqual(['a', 'c'], plan.to_be_empty)

    @ddt.data(
        ('what nova-ext-sched mend, drain, maintain', '{'),
        ('what nova-ext-sched mend, drain, maintain', '[]'),
        ('what nova-ext-sched mend, drain, maintain', json.dumps(HEAD)),
        ('format: expected 2, got 1', json.dumps(DRAIN | {'format': 1})),
        ('expected the key services', json.dumps({'format': 2, 'time': ''})),
    )
    @ddt.unpack
    def test_what_is_no_plan(self, said, text):
        self.assertRefused(said, text)

    def assertRefused(self, said, text):
        exc = self.assertRaises(
            exception.InvalidValue, moves_plan.read, text, 'plan.json'
        )
        self.assertIn(said, str(exc))
        self.assertIn('plan.json', str(exc))

    @ddt.data(
        ('moves[0].server: expected a UUID', {'server': '../os-services'}),
        ('moves[0].server: expected a UUID', {'server': f'{UUID}/action'}),
        ('moves[0].server: expected a UUID', {'server': f'{UUID}\n'}),
        ('moves[0].kind', {'kind': 'force'}),
        ('moves[0].to: expected a host', {'to': 1}),
        ('moves[0].stage: expected a number', {'stage': '1'}),
    )
    @ddt.unpack
    def test_moves(self, said, fields):
        document = copy.deepcopy(DRAIN)
        document['moves'][0].update(fields)
        self.assertRefused(said, json.dumps(document))

    def test_several_failures(self):
        document = SURVIVE | {'failures': [FAILURE] * 2}
        self.assertRefused('expected one failure', json.dumps(document))

    def test_several_rounds(self):
        document = HEAD | {'rounds': [{'moves': []}], 'not_emptied': []}
        self.assertRefused(
            'rounds: expected one round: name it to maintain, by --round',
            json.dumps(document),
        )

    def test_no_failure(self):
        """The host holds no server, perhaps no more."""
        self.assertEqual([], read(SURVIVE | {'failures': []}).moves)


@ddt.ddt
class CloudTestCase(testtools.TestCase):
    @ddt.data(
        {'a': 'uuid a', 'b': 'uuid b', 'c': 'uuid c'},
        # Its nova-compute is gone; the other is this cloud's.
        {'b': 'uuid b'},
    )
    def test_the_same(self, found):
        read(DRAIN).check_cloud(found)

    @ddt.data(
        {},
        {'c': 'uuid a'},
        {'a': 'another', 'b': 'uuid b'},
    )
    def test_another(self, found):
        exc = self.assertRaises(
            exception.InvalidValue, read(DRAIN).check_cloud, found
        )
        self.assertIn('expected a plan of this cloud', str(exc))

    def test_a_plan_that_does_not_say_of_which(self):
        plan = read(DRAIN | {'services': {}})
        self.assertRaises(
            exception.InvalidValue, plan.check_cloud, {'a': 'uuid a'}
        )

    def test_a_plan_of_nothing(self):
        empty = DRAIN | {'moves': [], 'to_be_empty': [], 'services': {}}
        read(empty).check_cloud({'a': 'uuid a'})
