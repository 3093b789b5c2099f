# SPDX-License-Identifier: Apache-2.0

import functools

import ddt
from openstack.compute.v2 import migration
from openstack.compute.v2 import server
import testtools

from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_step
from nova_ext_sched.osc.moves_step import Stall
from nova_ext_sched.osc.moves_step import Step

TIME = '2026-11-27T01:00:00Z'


def make_move(to='b', method='live', turn=1, batch=1, why='', needs=()):
    first = (turn, f'server {turn}', 'web', 'a')
    return moves_plan.Move(*first, to, to or 'b', method, why, batch, needs)


# openstacksdk takes milliseconds for one, and a run looks at thousands.
@functools.cache
def make_server(host='a', status='ACTIVE', task=None, power=1):
    return server.Server(
        compute_host=host, status=status, task_state=task, power_state=power
    )


def make_migration(id_=1, status='running', to='b', **fields):
    values = {
        'migration_type': 'live-migration',
        'source_compute': 'a',
        'user_id': 'me',
        'created_at': '2026-11-27T01:00:00.000000',
    }
    return migration.Migration(
        id=id_, status=status, dest_compute=to, **values | fields
    )


RUNNING = make_migration()
ACCEPTED = make_migration(status='accepted')
FINISHED = make_migration(status='finished')
CONFIRMING = make_migration(status='confirming')
DONE = make_migration(status='confirmed')
COMPLETED = make_migration(2, 'completed')
FAILED = make_migration(status='error')
CANCELLED = make_migration(status='cancelled')
RESIZE = make_migration(
    2, 'finished', migration_type='resize', source_compute='b', to='c'
)
AWAY = make_migration(2)
OF_ANOTHER = make_migration(2, 'error', user_id='other')
STOPPED = {'method': 'cold', 'why': 'stopped'}
EVACUATE = {'method': 'evacuate'}
# A guest that has shut itself down; nova's number.
OFF = ('a', 'ACTIVE', None, 4)
UNKNOWN = ('a', 'ACTIVE', None, 0)


@ddt.ddt
class DecideTestCase(testtools.TestCase):
    # The step; what nova shows of the server (host, status, task, power
    # state), or None; of its migrations, and of the move.
    @ddt.data(
        (Step.GONE, None),
        (Step.GONE, ('a', 'DELETED')),
        (Step.GONE, (None, 'SHELVED_OFFLOADED')),
        # It has its host until its deletion has ended.
        (Step.DELETING, ('a', 'ACTIVE', 'deleting')),
        (Step.DELETING, ('a', 'ACTIVE', 'soft-deleting')),
        (Step.DELETING, ('a', 'SOFT_DELETED')),
        (Step.DELETING, ('a', 'ACTIVE', 'deleting'), {'own': RUNNING}),
        (Step.GONE, ('b', 'ACTIVE', 'deleting')),
        (Step.GONE, ('a', 'ACTIVE', 'deleting'), EVACUATE),
        (Step.GONE, (None, 'ERROR', 'deleting')),
        (Step.STOP, (None, 'UNKNOWN')),
        # A migration is under way.
        (Step.WAIT, ('a', 'ACTIVE', 'migrating'), {'own': RUNNING}),
        (Step.WAIT, ('b',), {'own': RUNNING}),
        (Step.WAIT, ('a', 'ACTIVE', 'resize_finish'), {'own': FINISHED}),
        (Step.WAIT, ('b', 'VERIFY_RESIZE', 'x'), {'own': FINISHED}),
        (Step.CONFIRM, ('b', 'VERIFY_RESIZE'), {'own': FINISHED}),
        (Step.WAIT, ('b', 'RESIZE'), {'own': FINISHED}),
        (Step.WAIT, ('b', 'ACTIVE', 'x'), {'own': CONFIRMING}),
        # nova has ceased to confirm it, and its state was set.
        (Step.MOVED, ('b',), {'own': CONFIRMING}),
        (Step.MOVED, ('b', 'SHUTOFF'), {'own': CONFIRMING}),
        (Step.WAIT, ('a',), {'own': CONFIRMING}),
        # nova-api has heard of it already.
        (Step.WAIT, ('b', 'VERIFY_RESIZE'), {'own': CONFIRMING}),
        (Step.BUSY, ('a',), {'others': [AWAY]}),
        (Step.BUSY, ('b',), {'others': [AWAY]}),
        # nova left it as it was; later ones arrived, or did not.
        (Step.MOVED, ('b',), {'before': [ACCEPTED], 'own': COMPLETED}),
        (Step.MOVED, ('b',), {'before': [ACCEPTED], 'others': [COMPLETED]}),
        (Step.BEGIN, ('a',), {'before': [ACCEPTED], 'others': [COMPLETED]}),
        (Step.BUSY, ('a',), {'before': [ACCEPTED], 'own': FAILED}),
        (Step.MOVED, ('b',), {'own': ACCEPTED, 'others': [COMPLETED]}),
        (Step.BUSY, ('b',), {'before': [COMPLETED, ACCEPTED]}),
        (Step.STOP, ('c', 'VERIFY_RESIZE'), {'others': [RESIZE]}),
        (Step.MOVED, ('b', 'VERIFY_RESIZE'),
         {'others': [RESIZE], 'own': DONE}),
        # None is.
        (Step.STOP, ('a', 'VERIFY_RESIZE')),
        (Step.WAIT, ('a', 'VERIFY_RESIZE'), {'begun': True}),
        (Step.WAIT, ('b', 'VERIFY_RESIZE'), {'own': DONE}),
        (Step.WAIT, ('a', 'ACTIVE', 'migrating')),
        (Step.WAIT, ('a', 'ACTIVE', 'resize_prep')),
        (Step.WAIT, ('b', 'RESIZE', 'resize_finish')),
        (Step.WAIT, ('a', 'ACTIVE', 'rebuilding'), {'begun': True}),
        (Step.MOVED, ('b',)),
        (Step.MOVED, ('b',), {'begun': True}),
        (Step.MOVED, ('b', 'ACTIVE', 'image_snapshot')),
        # It was in ERROR before, or its owner has brought it there since.
        (Step.MOVED, ('b', 'ERROR')),
        (Step.MOVED, ('b', 'ERROR'),
         {'own': make_migration(status='completed'), 'others': [OF_ANOTHER]}),
        (Step.BROKEN, ('b', 'ERROR'), {'begun': True}),
        # nova goes no further, in this run and in each one after it.
        (Step.BROKEN, ('b', 'ERROR'), {'own': RUNNING, 'begun': True}),
        (Step.BROKEN, ('b', 'ERROR'), {'own': RUNNING}),
        (Step.BROKEN, ('b', 'ERROR'), {'own': FAILED}),
        (Step.BROKEN, ('b', 'ERROR'), {'own': DONE}),
        (Step.WAIT, ('b', 'ERROR', 'rebuilding'), {'own': RUNNING}),
        (Step.ELSEWHERE, ('c',)),
        (Step.ELSEWHERE, ('c',), {'begun': True}),
        (Step.FAILED, ('a',), {'begun': True}),
        (Step.FAILED, ('a',), {'begun': True, 'own': FAILED}),
        (Step.CANCELLED, ('a',), {'begun': True, 'own': CANCELLED}),
        (Step.BEGIN, ('a',), {'own': CANCELLED}),
        (Step.BUSY, ('a', 'ACTIVE', 'image_snapshot')),
        (Step.BROKEN_AT_HOME, ('a', 'ERROR')),
        # Its own failed there, in this run or before.
        (Step.BROKEN_AT_HOME, ('a', 'ERROR'), {'own': FAILED}),
        (Step.BROKEN_AT_HOME, ('a', 'ERROR'), {'own': FAILED, 'begun': True}),
        (Step.BROKEN_AT_HOME, ('a', 'ERROR'),
         {'own': CANCELLED, 'begun': True}),
        (Step.BROKEN_AT_HOME, ('a', 'ERROR'), {'begun': True}),
        (Step.BROKEN_AT_HOME, ('a', 'ERROR'), {**EVACUATE, 'begun': True}),
        (Step.BUSY, ('a', 'ERROR', 'rebooting_hard')),
        # nova may yet say that it is over.
        (Step.WAIT, ('a', 'ERROR'), {'own': RUNNING, 'begun': True}),
        (Step.BEGIN, ('a', 'ACTIVE', 'powering-off'), EVACUATE),
        (Step.BEGIN, ('a', 'ERROR'), EVACUATE),
        (Step.BEGIN, ('a',)),
        (Step.BEGIN, ('a',), {'own': FAILED}),
        (Step.BEGIN, ('a',), {'others': [make_migration(2, 'reverted')]}),
        # It was stopped, and runs now.
        (Step.BEGIN, ('a', 'SHUTOFF'), STOPPED),
        (Step.BEGIN, OFF, STOPPED),
        (Step.BEGIN_LIVE, ('a',), STOPPED),
        (Step.BEGIN_LIVE, ('a', 'PAUSED'), STOPPED),
        (Step.BEGIN_LIVE, UNKNOWN, STOPPED),
        # One with a device is shut down, as planned.
        (Step.BEGIN, ('a',), {'method': 'cold', 'why': 'device'}),
        # It ran, and is stopped now.
        (Step.BEGIN_COLD, ('a', 'SHUTOFF')),
        (Step.BEGIN_COLD, OFF),
        (Step.BEGIN_COLD, ('a', 'ACTIVE', None, 6)),
        (Step.BEGIN, UNKNOWN),
        (Step.BEGIN, ('a', 'SHUTOFF'), EVACUATE),
        # nova-api says why not.
        (Step.BEGIN, ('a', 'SUSPENDED')),
        (Step.BEGIN, ('a', 'SUSPENDED'), STOPPED),
    )  # fmt: skip
    def test_table(self, row):
        expected, shown, rest = (*row, {})[:3]
        own = rest.get('own')
        step, reason = moves_step.decide(
            make_move(
                method=rest.get('method', 'live'), why=rest.get('why', '')
            ),
            shown and make_server(*shown),
            [
                *rest.get('before', ()),
                *[own] * bool(own),
                *rest.get('others', ()),
            ],
            own,
            rest.get('begun', False),
        )
        self.assertEqual(expected, step)
        says = expected in (Step.STOP, Step.BUSY, Step.ELSEWHERE)
        self.assertEqual(says, bool(reason))


@ddt.ddt
class OwnTestCase(testtools.TestCase):
    @ddt.data(
        (True, {}),
        (True, {'to': None}),
        (True, {'status': 'finished'}),
        (False, {'to': 'c'}),
        (False, {'source_compute': 'c'}),
        (False, {'user_id': 'another'}),
        # It was stopped then.
        (True, {'migration_type': 'migration'}),
        (False, {'migration_type': 'resize'}),
        (False, {'migration_type': 'evacuation'}),
        (False, {'created_at': '2026-11-27T00:59:59.000000'}),
        # nova chooses where.
        (True, {'to': 'b'}, {'to': None}),
        (True, {'to': 'c'}, {'to': None}),
        (True, {'migration_type': 'migration'}, {'method': 'cold'}),
        (True, {'migration_type': 'evacuation'}, EVACUATE),
    )
    def test_what_is_left_of_a_run(self, row):
        expected, fields, move = (*row, {})[:3]
        one = make_migration(**fields)
        own = moves_step.list_own(make_move(**move), [one], 'me', TIME)
        self.assertEqual([one] * expected, own)

    def test_what_this_run_began(self):
        """Whatever the clocks say, and no other than that."""
        fields = {'created_at': '2026-11-27T00:00:00.000000'}
        old, new = (make_migration(id_, **fields) for id_ in (1, 2))
        for found, expected in (([old], []), ([old, new], [new])):
            own = moves_step.list_own(make_move(), found, 'me', TIME, {1})
            self.assertEqual(expected, own)


@ddt.ddt
class StallTestCase(testtools.TestCase):
    # How nova lost it, what it shows of the server, and the own migration.
    @ddt.data(
        (Stall.FORGOTTEN, ('a',), RUNNING),
        (Stall.FORGOTTEN, ('a', 'SHUTOFF'), RUNNING),
        (None, ('a', 'ACTIVE', 'migrating'), RUNNING),
        (None, ('b',), RUNNING),
        (None, ('a', 'VERIFY_RESIZE'), RUNNING),
        (None, ('a',), DONE),
        (None, None, RUNNING),
        (Stall.TASK_LEFT, ('a', 'MIGRATING', 'migrating'), FAILED),
        (Stall.TASK_LEFT, ('a', 'SHUTOFF', 'resize_prep'), FAILED),
        (Stall.TASK_LEFT, ('b', 'MIGRATING', 'migrating'), FAILED),
        (None, ('a',), FAILED),
        (None, ('a', 'ACTIVE', 'image_snapshot'), FAILED),
        (None, ('a', 'MIGRATING', 'migrating'), RUNNING),
        (None, None, FAILED),
        (Stall.UNCONFIRMED, ('b', 'VERIFY_RESIZE'), CONFIRMING),
        (None, ('b', 'VERIFY_RESIZE', 'x'), CONFIRMING),
        (None, ('b',), CONFIRMING),
        (None, ('b', 'VERIFY_RESIZE'), FINISHED),
        (None, None, CONFIRMING),
        (None, ('a',), None),
        (None, None, None),
        (Stall.UNHEARD, ('a', 'MIGRATING', 'migrating'), None),
        (Stall.UNHEARD, ('a', 'MIGRATING', 'migrating'), ACCEPTED),
        (Stall.FORGOTTEN, ('a',), ACCEPTED),
        (None, ('a', 'ACTIVE', 'image_snapshot'), ACCEPTED),
        (Stall.UNHEARD, ('a', 'RESIZE', 'resize_prep'), None, [FAILED]),
        (None, ('a', 'MIGRATING', 'migrating'), None, [FAILED, AWAY]),
        # One that nova left as it was, before another one arrived.
        (Stall.UNHEARD, ('a', 'MIGRATING', 'migrating'), None,
         [ACCEPTED, COMPLETED]),
        (None, ('a', 'MIGRATING', 'migrating'), None, [COMPLETED, AWAY]),
    )  # fmt: skip
    def test_table(self, row):
        expected, shown, own, others = (*row, [])[:4]
        found = shown and make_server(*shown)
        self.assertEqual(expected, moves_step.find_stall(own, found, others))
