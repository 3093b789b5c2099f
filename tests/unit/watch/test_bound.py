# SPDX-License-Identifier: Apache-2.0

import copy
import json

import ddt
import testtools

from nova_ext_sched.watch import bound
from nova_ext_sched.watch import records
from tests import explanations
from tests import schemas


def host(number):
    return {
        'host': f'host{number}',
        'uuid': '0' * 36,
        'weight': 1.0,
        'weights': {f'Weigher{weigher}': 0.123456 for weigher in range(9)},
    }


@ddt.ddt
class ShortenTestCase(testtools.TestCase):
    def shorten(self, found):
        before = copy.deepcopy(found)
        short = bound.shorten(found)
        self.assertEqual(before, found)
        schemas.validate(short, 'schemas/explain.json')
        self.assertLess(len(json.dumps(short)), records.RECORD_BYTES)
        return short

    def test_what_fits_is_whole(self):
        found = explanations.document()
        self.assertEqual(found, self.shorten(found))

    def test_the_order_of_all_hosts(self):
        """The best are what people read."""
        order = [host(number) for number in range(10_000)]
        short = self.shorten(explanations.document(order=order))
        self.assertEqual(order[:20], short['order'])
        self.assertEqual(['a remark'], short['remarks'])

    @ddt.data(
        {'x' * 60_000: ['y'], 'z': ['w' * 60_000]},
        {f'key{number}': ['y' * 10] * 10 for number in range(9000)},
        {'key': ['y' * 9] * 9000},
        {'key': ['\U0001f600' * 30_000], **{c: [c] for c in 'abc'}},
        {chr(0x1F600 + n) * 300: ['\U0001f600' * 300] * 9 for n in range(300)},
    )
    def test_hints(self, hints):
        short = self.shorten(explanations.document(hints=hints))
        self.assertIn('Cut, because a record', short['remarks'][-1])
        # Of the rest nothing is missing.
        self.assertEqual(
            explanations.document()['constraints'], short['constraints']
        )

    def test_no_more_is_cut_than_has_to_be(self):
        """A list of twice the length that the remark tells does not fit."""
        constraints = [
            explanations.constraint(number, f'c{number} ' + 700 * 'x')
            for number in range(300)
        ]
        found = explanations.document(constraints=constraints)
        short = self.shorten(found)
        kept = len(short['constraints'])
        self.assertIn(f'lists have {kept} entries', short['remarks'][-1])
        refused = [one['refused'] for one in short['constraints']]
        self.assertEqual([*range(kept)], refused)
        found['constraints'] = constraints[: 2 * kept]
        room = records.RECORD_BYTES - 9 * 1024
        self.assertLess(room, len(json.dumps(found)))

    def test_everything_is_long(self):
        text = '\U0001f600' * 300
        lists = {
            'names': [{'name': text, 'hosts': 1}] * 9,
            'details': [{'detail': text, 'hosts': 1}] * 9,
        }
        many = [explanations.reason(1, text) | lists] * 9
        constraint = explanations.constraint(9, text) | {'reasons': many}
        found = explanations.document(
            hints={text + str(n): [text] * 9 for n in range(30)},
            constraints=[constraint] * 9,
            query=[text] * 9,
            remarks=[text] * 30,
            order=[host(number) | {'host': text} for number in range(30)],
        )
        found['answer'] |= {'reasons': many, 'sentence': text}
        self.shorten(found)

    def test_no_secret(self):
        said = ['http://nova:s3cret@host is away']
        short = self.shorten(explanations.document(remarks=said))
        self.assertEqual(['http://nova:***@host is away'], short['remarks'])

    def test_clean(self):
        self.assertEqual(
            {'a': 'x' * 1000 + '...', 'b': None, 'c': {'d': 1}},
            bound.clean({'a': 'x' * 1001, 'b': None, 'c': {'d': 1}}),
        )
