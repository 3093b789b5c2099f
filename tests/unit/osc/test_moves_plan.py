# SPDX-License-Identifier: Apache-2.0

"""What a plan becomes; tests/unit/test_plan_format.py has its form."""

import datetime
import json

import ddt
import testtools

from nova_ext_sched.cli import base
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc.moves_plan import Result
from tests.unit import test_plan_format
from tests.unit.osc import test_moves_step

DRAIN = test_plan_format.DRAIN


def read(document):
    return moves_plan.read(json.dumps(document), 'plan.json')


class MoveTestCase(testtools.TestCase):
    def test_what_others_may_count_on(self):
        for result in Result:
            move = test_moves_step.make_move()
            move.result = result
            over = result in ('moved', 'already there', 'elsewhere', 'gone')
            self.assertEqual(over, move.is_over)
            move.held = 'an allocation'
            self.assertFalse(move.is_over)

    def test_how_nova_makes_it(self):
        methods = [one.actual for one in read(DRAIN).moves]
        self.assertEqual(['live', 'cold'], methods)


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
        (DRAIN, {}, 'there is no host a here'),
        (DRAIN, {'c': 'uuid a'}, 'there is no host a here'),
        (
            *(DRAIN, {'a': 'another', 'b': 'uuid b'}),
            'nova-compute of a has another UUID here',
        ),
        (DRAIN | {'services': {}}, {'a': 'uuid a'}, 'it names no host'),
    )
    @ddt.unpack
    def test_another(self, document, found, why):
        check = read(document).check_cloud
        exc = self.assertRaises(base.UsageError, check, found)
        self.assertEqual(f'This plan is for another cloud: {why}.', str(exc))

    def saved(self, minutes, **more):
        document = DRAIN | {'origin': {'saved': '2026-11-29T09:00:00Z'}}
        saved = datetime.datetime(2026, 11, 29, 9, tzinfo=datetime.UTC)
        now = saved + datetime.timedelta(minutes=minutes)
        plan = read(document | more)
        uuids = {'a': 'uuid a', 'b': 'uuid b', 'c': 'uuid c'}
        return lambda there=uuids, exists=lambda _: True: plan.check_saved(
            there, exists, now
        )

    def test_of_a_file_of_this_cloud(self):
        for minutes in (-4, 0, 59):
            self.saved(minutes)()

    @ddt.data(
        (61, {}, 'an hour is the most'),
        (-6, {}, 'an hour is the most'),
        (1, {'there': {'a': 'uuid a'}}, 'nova-compute of b is another'),
        (1, {'there': {'a': 'x', 'b': 'uuid b'}}, 'nova-compute of a is'),
        (1, {'exists': lambda _: False}, 'there is no server'),
    )
    @ddt.unpack
    def test_of_a_file_of_another(self, minutes, asked, expected):
        check = self.saved(minutes)
        exc = self.assertRaises(base.UsageError, check, **asked)
        self.assertIn(expected, str(exc))

    def test_of_the_cloud_itself(self):
        read(DRAIN).check_saved({}, lambda _: False, None)

    def test_a_plan_of_nothing(self):
        empty = DRAIN | {'moves': [], 'to_be_empty': [], 'services': {}}
        read(empty).check_cloud({'a': 'uuid a'})
