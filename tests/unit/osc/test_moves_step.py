# SPDX-License-Identifier: Apache-2.0

import ddt
from openstack.compute.v2 import migration
from openstack.compute.v2 import server
import testtools

from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_step
from nova_ext_sched.osc.moves_step import Step

TIME = '2026-11-27T01:00:00Z'


def make_move(to='b', method='live', turn=1, batch=1, why='', needs=()):
    return moves_plan.Move(
        turn,
        f'server {turn}',
        'web',
        'a',
        to,
        to or 'b',
        method,
        why,
        batch,
        needs,
    )


def make_server(host='a', status='ACTIVE', task=None, power=1):
    return server.Server(
        compute_host=host, status=status, task_state=task, power_state=power
    )


def make_migration(id_=1, status='running', to='b', **fields):
    return migration.Migration(
        id=id_,
        status=status,
        dest_compute=to,
        **{
            'migration_type': 'live-migration',
            'source_compute': 'a',
            'user_id': 'me',
            'created_at': '2026-11-27T01:00:00.000000',
            **fields,
        },
    )


RUNNING = make_migration()
FINISHED = make_migration(status='finished')
DONE = make_migration(status='confirmed')
RESIZE = make_migration(
    2, 'finished', migration_type='resize', source_compute='b', to='c'
)
AWAY = make_migration(2, source_compute='a')
BROKEN = {'host': 'b', 'status': 'ERROR'}
STOPPED = {'method': 'cold', 'why': 'stopped'}
# A guest that has shut itself down; nova's number.
OFF = {'power': 4}


@ddt.ddt
class DecideTestCase(testtools.TestCase):
    @ddt.data(
        (Step.GONE, None),
        (Step.GONE, {'task': 'deleting'}),
        (Step.GONE, {'task': 'soft-deleting'}),
        (Step.GONE, {'status': 'SOFT_DELETED'}),
        (Step.GONE, {'host': None, 'status': 'SHELVED_OFFLOADED'}),
        (Step.GONE, {'task': 'deleting'}, {'own': RUNNING}),
        (Step.STOP, {'host': None, 'status': 'UNKNOWN'}),
        # A migration is under way.
        (Step.WAIT, {'task': 'migrating'}, {'own': RUNNING}),
        (Step.WAIT, {'host': 'b'}, {'own': RUNNING}),
        (Step.WAIT, {'task': 'resize_finish'}, {'own': FINISHED}),
        (
            Step.WAIT,
            {'host': 'b', 'status': 'VERIFY_RESIZE', 'task': 'x'},
            {'own': FINISHED},
        ),
        (
            Step.CONFIRM,
            {'host': 'b', 'status': 'VERIFY_RESIZE'},
            {'own': FINISHED},
        ),
        (Step.WAIT, {'host': 'b', 'status': 'RESIZE'}, {'own': FINISHED}),
        # nova-api has heard of it already.
        (
            Step.WAIT,
            {'host': 'b', 'status': 'VERIFY_RESIZE'},
            {'own': make_migration(status='confirming')},
        ),
        (Step.BUSY, {}, {'migrations': [AWAY]}),
        (Step.BUSY, {'host': 'b'}, {'migrations': [AWAY]}),
        (
            Step.STOP,
            {'host': 'c', 'status': 'VERIFY_RESIZE'},
            {'migrations': [RESIZE]},
        ),
        (
            Step.MOVED,
            {'host': 'b', 'status': 'VERIFY_RESIZE'},
            {'migrations': [RESIZE], 'own': DONE},
        ),
        # None is.
        (Step.STOP, {'status': 'VERIFY_RESIZE'}),
        (Step.WAIT, {'status': 'VERIFY_RESIZE'}, {'begun': True}),
        (Step.WAIT, {'host': 'b', 'status': 'VERIFY_RESIZE'}, {'own': DONE}),
        (Step.WAIT, {'task': 'migrating'}),
        (Step.WAIT, {'task': 'resize_prep'}),
        (Step.WAIT, {'task': 'rebuilding'}, {'begun': True}),
        (Step.MOVED, {'host': 'b'}),
        (Step.MOVED, {'host': 'b'}, {'begun': True}),
        (Step.MOVED, {'host': 'b', 'task': 'image_snapshot'}),
        # It was in ERROR before, or its owner has brought it there since.
        (Step.MOVED, BROKEN),
        (
            Step.MOVED,
            BROKEN,
            {
                'own': make_migration(status='completed'),
                'migrations': [make_migration(2, 'error', user_id='other')],
            },
        ),
        (Step.BROKEN, BROKEN, {'begun': True}),
        # nova goes no further, in this run and in each one after it.
        (Step.BROKEN, BROKEN, {'own': RUNNING, 'begun': True}),
        (Step.BROKEN, BROKEN, {'own': RUNNING}),
        (Step.BROKEN, BROKEN, {'own': make_migration(status='error')}),
        (Step.BROKEN, BROKEN, {'own': DONE}),
        (Step.WAIT, BROKEN | {'task': 'rebuilding'}, {'own': RUNNING}),
        (Step.ELSEWHERE, {'host': 'c'}),
        (Step.ELSEWHERE, {'host': 'c'}, {'begun': True}),
        (Step.FAILED, {}, {'begun': True}),
        (
            Step.FAILED,
            {},
            {'begun': True, 'own': make_migration(status='error')},
        ),
        (
            Step.CANCELLED,
            {},
            {'begun': True, 'own': make_migration(status='cancelled')},
        ),
        (Step.BEGIN, {}, {'own': make_migration(status='cancelled')}),
        (Step.BUSY, {'task': 'image_snapshot'}),
        (Step.STOP, {'status': 'ERROR'}),
        # Its own failed there.
        (
            Step.STOP,
            {'status': 'ERROR'},
            {'own': make_migration(status='error')},
        ),
        (Step.BEGIN, {'task': 'powering-off'}, {'method': 'evacuate'}),
        (Step.BEGIN, {'status': 'ERROR'}, {'method': 'evacuate'}),
        (Step.BEGIN, {}),
        (Step.BEGIN, {}, {'own': make_migration(status='error')}),
        # It was stopped, and runs now.
        (Step.BEGIN, {'status': 'SHUTOFF'}, STOPPED),
        (Step.BEGIN, OFF, STOPPED),
        (Step.BEGIN_LIVE, {}, STOPPED),
        (Step.BEGIN_LIVE, {'status': 'PAUSED'}, STOPPED),
        (Step.BEGIN_LIVE, {'power': 0}, STOPPED),
        # One with a device is shut down, as planned.
        (Step.BEGIN, {}, {'method': 'cold', 'why': 'device'}),
        # It ran, and is stopped now.
        (Step.BEGIN_COLD, {'status': 'SHUTOFF'}),
        (Step.BEGIN_COLD, OFF),
        (Step.BEGIN, {'power': 0}),
        (Step.BEGIN, {'status': 'SHUTOFF'}, {'method': 'evacuate'}),
        # nova-api says why not.
        (Step.BEGIN, {'status': 'SUSPENDED'}),
        (Step.BEGIN, {'status': 'SUSPENDED'}, STOPPED),
    )
    def test_table(self, row):
        expected, found, *more = row
        rest = {
            'migrations': [],
            'own': None,
            'begun': False,
            'method': 'live',
        }
        rest |= {'why': ''} | (more[0] if more else {})
        own = rest['own']
        step, reason = moves_step.decide(
            make_move(method=rest['method'], why=rest['why']),
            None if found is None else make_server(**found),
            [*([own] if own else []), *rest['migrations']],
            own,
            rest['begun'],
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
    )
    @ddt.unpack
    def test_what_is_left_of_a_run(self, expected, fields):
        one = make_migration(**fields)
        own = moves_step.find_own(make_move(), [one], 'me', TIME)
        self.assertEqual(one if expected else None, own)

    @ddt.data('b', 'c')
    def test_where_nova_chooses(self, to):
        one = make_migration(to=to)
        own = moves_step.find_own(make_move(None), [one], 'me', TIME)
        self.assertIs(one, own)

    def test_what_this_run_began(self):
        """Whatever the clocks say, and no other than that."""
        fields = {'created_at': '2026-11-27T00:00:00.000000'}
        old, new = (make_migration(id_, **fields) for id_ in (1, 2))
        for found, expected in (([old], None), ([old, new], new)):
            own = moves_step.find_own(make_move(), found, 'me', TIME, {1})
            self.assertIs(expected, own)

    def test_the_last_one(self):
        found = [make_migration(1, 'error'), make_migration(2)]
        own = moves_step.find_own(make_move(), found, 'me', TIME)
        self.assertEqual(2, own.id)

    @ddt.data(('cold', 'migration'), ('evacuate', 'evacuation'))
    @ddt.unpack
    def test_kinds(self, kind, type_):
        one = make_migration(migration_type=type_)
        own = moves_step.find_own(make_move(method=kind), [one], 'me', TIME)
        self.assertIs(one, own)


@ddt.ddt
class ForgottenTestCase(testtools.TestCase):
    @ddt.data(
        (True, {}),
        (True, {'status': 'SHUTOFF'}),
        (False, {'task': 'migrating'}),
        (False, {'host': 'b'}),
        (False, {'status': 'VERIFY_RESIZE'}),
        (False, {}, DONE),
        (False, None),
    )
    def test_table(self, row):
        expected, fields, own = (*row, RUNNING)[:3]
        found = None if fields is None else make_server(**fields)
        self.assertEqual(expected, moves_step.is_forgotten(own, found))
