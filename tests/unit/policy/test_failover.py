# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.policy import failover
from nova_ext_sched.policy import verdict

KEY = 'failover'
EVACUATED = failover.Move(
    'rebuilding', 'evacuation', 'accepted', 'a', 'b', True
)
LIVE = EVACUATED._replace(task='migrating', kind='live-migration')
THERE = failover.Move(None, 'evacuation', 'done', 'a', 'b', True)
NEVER_MOVED = failover.Move(None, None, None, None, None, False)
REFUSED = verdict.reject('why')


@ddt.ddt
class MarkTestCase(testtools.TestCase):
    @ddt.data(
        *(({KEY: value}, True, False) for value in
          ('true', 'True', '1', 'yes', 'on', 'y', 't', ' true ')),
        *(({KEY: value}, False, False) for value in
          ('false', 'FALSE', '0', 'no', 'off', 'n', 'f')),
        *(({KEY: value}, True, True) for value in
          ('perhaps', '', None, '2', 'true,false')),
        ({}, False, False),
        ({'Failover': 'true'}, False, False),
    )  # fmt: skip
    @ddt.unpack
    def test_marks(self, metadata, held, faulty):
        self.assertEqual(held, failover.read_mark(metadata, KEY))
        faults = [*failover.find_faults(metadata, KEY)]
        self.assertEqual(
            [True] * faulty,
            [one.startswith('failover: expected true or ') for one in faults],
        )

    def test_any_marked_aggregate_holds_a_host(self):
        found = failover.judge([('b', {KEY: 'yes'}), ('a', {KEY: '0'})], KEY)
        self.assertEqual((False, 'b'), (found.passes, found.aggregate))
        self.assertEqual(
            'aggregate b keeps its hosts for failures (failover=yes)',
            found.reason,
        )
        self.assertTrue(failover.judge([('a', {})], KEY).passes)


@ddt.ddt
class MoveTestCase(testtools.TestCase):
    @ddt.data(
        (EVACUATED, ['a'], 'evacuation'),
        (EVACUATED, ['c', 'a'], 'evacuation'),
        (LIVE, ['a'], 'live-migration'),
        (EVACUATED, ['b'], ''),
        (EVACUATED, [], ''),
        (EVACUATED._replace(status='done'), ['a'], ''),
        # An old record.
        (EVACUATED._replace(task='migrating'), ['a'], ''),
        (EVACUATED._replace(task='resize_prep'), ['a'], ''),
        (EVACUATED._replace(task=None), ['a'], ''),
        # A rebuild in place after a live migration that nova forgot.
        (LIVE._replace(task='rebuilding'), ['a'], ''),
        (EVACUATED._replace(kind='resize', task=None), ['a'], ''),
        (EVACUATED._replace(kind=None, task=None), ['a'], ''),
        (EVACUATED._replace(source=None), ['a'], ''),
        (None, ['a'], ''),
    )
    @ddt.unpack
    def test_what_nova_recorded(self, move, ignored, kind):
        self.assertEqual(kind, failover.name_move(move, ignored))

    @ddt.data(
        (THERE, 'stays'),
        # It is not over yet, and its host is set already.
        (THERE._replace(status='accepted'), 'stays'),
        (THERE._replace(status='completed'), 'why: to leave, its host a is '
         'back'),
        (THERE._replace(has_source=False), 'why: to leave, its host a is '
         'gone'),
        # Not by an evacuation to here: when it came decides.
        (THERE._replace(kind='live-migration', begun=2), 'why: to leave, it '
         'was there before'),
        (THERE._replace(kind='live-migration', begun=3), 'why'),
        (THERE._replace(to='c', begun=3, created=1), 'why: to leave, it was '
         'there before'),
        (THERE._replace(to='c', begun=1, created=3), 'why'),
        (NEVER_MOVED._replace(created=2), 'why: to leave, it was there '
         'before'),
        (NEVER_MOVED._replace(created=3), 'why'),
        (NEVER_MOVED, 'why'),
        (None, 'why'),
    )  # fmt: skip
    @ddt.unpack
    def test_a_server_that_is_there(self, move, expected):
        found = failover.judge_standing(REFUSED, move, 'b', 2)
        self.assertEqual(expected == 'stays', found.passes)
        self.assertEqual('to leave' in expected, found.is_leaving)
        self.assertEqual(expected, found.reason or 'stays')

    def test_a_mark_that_is_only_supposed(self):
        move = NEVER_MOVED._replace(created=3)
        found = failover.judge_standing(REFUSED, move, 'b', None)
        self.assertTrue(found.is_leaving)

    @ddt.data(
        ('evacuation', [], True),
        ('', [], False),
        ('live-migration', [], False),
        ('live-migration', ['live-migrations'], True),
        ('', ['live-migrations'], False),
    )
    @ddt.unpack
    def test_what_is_taken(self, move, takes, taken):
        self.assertEqual(taken, failover.is_taken(move, takes))
