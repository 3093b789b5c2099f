# SPDX-License-Identifier: Apache-2.0

"""How moves follow each other; tests/functional/test_osc_moves.py has nova."""

import itertools
from unittest import mock

import ddt
from openstack import exceptions
import testtools

from nova_ext_sched.osc import moves_again
from nova_ext_sched.osc import moves_making
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_progress
from nova_ext_sched.osc import moves_run
from nova_ext_sched.osc.moves_making import HELD
from nova_ext_sched.osc.moves_making import LOST
from nova_ext_sched.osc.moves_plan import Remedy
from nova_ext_sched.osc.moves_seen import FORGOTTEN
from nova_ext_sched.osc.moves_seen import STALE
from tests import clock
from tests.unit.osc.test_moves_step import make_migration
from tests.unit.osc.test_moves_step import make_move
from tests.unit.osc.test_moves_step import make_server
from tests.unit.osc.test_moves_step import TIME

REFUSED = exceptions.ConflictException(details='it is locked', http_status=409)
UNANSWERED = exceptions.HttpException('503', http_status=503)


class Cloud:
    """Stands for nova, where a migration lasts for some looks at it.

    :param looks: by server; how many, or what a look raises in the end
    """

    user = 'me'
    lost = 0

    def __init__(self, **looks):
        self.looks = {name.replace('_', ' '): n for name, n in looks.items()}
        self.left, self.log, self.most = {}, [], 0

    def read_services(self):
        return {}

    def read_server(self, uuid):
        left = self.left.get(uuid)
        if isinstance(left, list):
            raise left[0]
        if left:
            self.left[uuid] -= 1
            return make_server(task='migrating')
        return make_server('a' if left is None else 'b')

    def read_migrations(self, uuid):
        found = self.left.get(uuid)
        if found is None:
            return []
        return [make_migration(status='running' if found else 'completed')]

    def holds(self, own):
        return False

    def wait_for_placement(self, uuid):
        pass

    def find_silent(self, uuid):
        return []

    def find_reason(self, uuid):
        return 'why'

    def confirm(self, move):
        pass

    def begin(self, move):
        found = self.looks.get(move.server, 0)
        if isinstance(found, Exception):
            raise found
        self.left[move.server] = found
        self.log.append(move.turn)
        under_way = sum(bool(n) for n in self.left.values())
        self.most = max(self.most, under_way)


def change_status(server, status):
    """Return a server with another status; others share the given one."""
    return make_server(server.compute_host, status, server.task_state)


@ddt.ddt
class RunTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = self.useFixture(clock.Clock())

    def run_moves(
        self, cloud, *batches, at_once=1, needs=(), empty=(), how=(), **fields
    ):
        """Return what became of the moves, and whether none failed.

        :param needs: turns that moves need, by turn
        :param how: arguments of the run
        """
        self.moves = [
            make_move(turn=turn, batch=batch, needs=dict(needs).get(turn, ()))
            for turn, batch in enumerate(batches, 1)
        ]
        for move in self.moves:
            vars(move).update(fields)
        plan = moves_plan.Plan(TIME, {}, empty, self.moves)
        self.progress = mock.Mock(spec=moves_progress.Progress)
        run = moves_run.Run(plan, cloud, progress=self.progress, **dict(how))
        is_fine = run.carry_out(at_once)
        return ', '.join(one.result for one in self.moves), is_fine

    def assertMoved(self, expected, cloud, *batches, **kwargs):
        """Check what becomes of the moves; one that fails fails the run."""
        found = self.run_moves(cloud, *batches, **kwargs)
        self.assertEqual((expected, 'failed' not in expected), found)

    def assertSaid(self, reason, remedy=None):
        """Check what is said of the first move."""
        self.assertEqual(reason, self.moves[0].reason)
        if remedy is not None:
            self.assertEqual(remedy, self.moves[0].remedy)

    def fail_first(self, cloud, error, arrives=False):
        """Let the first request raise an error; return the times of all."""
        begin, times = cloud.begin, []

        def begin_now(move):
            times.append(self.clock.now)
            if len(times) > 1 or arrives:
                begin(move)
            if len(times) == 1:
                raise error

        cloud.begin = begin_now
        return times

    def show(self, before, after, migrations):
        """Return a cloud that shows so much before and after a request."""
        cloud = Cloud()
        cloud.read_server = lambda _: after if cloud.log else before
        cloud.read_migrations = lambda _: migrations if cloud.log else []
        return cloud

    def show_first(self, cloud, server):
        """Let the first server stay as it is, whatever nova is asked for."""
        look = cloud.read_server
        cloud.read_server = lambda uuid: (
            server if uuid == 'server 1' else look(uuid)
        )
        return cloud

    @ddt.data((1, 1), (2, 2), (9, 3))
    @ddt.unpack
    def test_at_once(self, at_once, most):
        """No more than asked for, and of one stage alone."""
        cloud = Cloud(**{f'server_{n}': n % 3 + 1 for n in range(1, 7)})
        moved = ', '.join(['moved'] * 6)
        self.assertMoved(moved, cloud, 1, 1, 1, 2, 2, 3, at_once=at_once)
        self.assertEqual([1, 2, 3, 4, 5, 6], cloud.log)
        self.assertEqual(most, cloud.most)
        self.assertEqual(6, self.progress.end.call_count)

    def test_what_is_under_way_ends_after_a_failure(self):
        cloud = Cloud(server_1=5, server_2=REFUSED)
        expected = 'moved, failed, not tried, not tried'
        self.assertMoved(expected, cloud, 1, 1, 1, 2, at_once=2)
        self.assertEqual('it is locked', self.moves[1].reason)

    def test_it_is_deleted_between_a_look_and_the_request(self):
        cloud = Cloud(server_1=REFUSED)
        there = iter([make_server(), make_server(task='deleting'), None])
        look = cloud.read_server
        cloud.read_server = lambda uuid: next(there, look(uuid))
        self.assertMoved('gone, moved', cloud, 1, 1)
        self.assertSaid('')

    @ddt.data(
        (('a', 'ACTIVE', 'deleting'), HELD, 'its task is deleting'),
        (('a', 'SOFT_DELETED'), 0, 'it is soft-deleted'),
    )
    @ddt.unpack
    def test_a_deletion_that_does_not_end(self, shown, seconds, said):
        """Its host is not free, and no move counts on that."""
        cloud = self.show_first(Cloud(), make_server(*shown))
        expected = 'being deleted, not tried, moved'
        self.assertMoved(expected, cloud, 1, 1, 1, needs={2: [1]})
        self.assertIn(said, self.moves[0].reason)
        self.assertIn(self.clock.now, range(seconds, seconds + 9))
        self.assertFalse(self.moves[0].is_over)

    def test_nova_does_not_answer(self):
        """For longer than it is asked again."""
        cloud = Cloud(server_1=[UNANSWERED])
        self.assertMoved('failed, not tried', cloud, 1, 1)
        self.assertSaid('503', Remedy.RUN_AGAIN)

    @ddt.data((True, [0]), (False, [0, moves_making.QUIET]))
    @ddt.unpack
    def test_a_request_without_an_answer(self, arrives, expected):
        """It is made again where nova shows nothing of it for long."""
        cloud = Cloud(server_1=3)
        times = self.fail_first(cloud, UNANSWERED, arrives)
        self.assertMoved('moved', cloud, 1)
        self.assertEqual(expected, times)

    def test_a_request_that_did_not_arrive_after_a_run_that_failed(self):
        """What an earlier run left is no answer to it."""
        cloud = Cloud()
        look, old = cloud.read_migrations, make_migration(0, 'error')
        cloud.read_migrations = lambda uuid: [old, *look(uuid)]
        self.fail_first(cloud, UNANSWERED)
        self.assertMoved('moved', cloud, 1)

    # What is said of a server that is so at once; or after its migration
    # ended so, where its fault is as given.
    @ddt.data(
        (Remedy.RUN_AGAIN, 'its task is image_snapshot',
         ('a', 'ACTIVE', 'image_snapshot')),
        (Remedy.FIX, 'it is on a in ERROR, power state Running. See the '
         'nova-compute log of a. If its guest runs: openstack server set '
         '--state active server 1', ('a', 'ERROR')),
        (Remedy.FIX, 'it is on a in ERROR, power state Running: its '
         'live-migration failed (why). If its guest runs: openstack server '
         'set --state active server 1', ('a', 'ERROR'), 'error'),
        (Remedy.RUN_AGAIN, 'its live-migration was cancelled; it is on a',
         ('a',), 'cancelled'),
        (Remedy.FIX, 'why', ('a',), 'error'),
        (Remedy.NEW_PLAN, 'No valid host was found. Why: nova has no '
         'nova-compute of b', ('a',), 'error',
         'No valid host was found. Why.'),
        (Remedy.NEW_PLAN, 'it is on b in ERROR, power state Running (why). If '
         'its guest runs: openstack server set --state active server 1',
         ('b', 'ERROR'), 'error'),
    )  # fmt: skip
    @ddt.unpack
    def test_what_is_to_be_done(
        self, remedy, reason, shown, own='', why='why'
    ):
        """It depends on how a move ended."""
        after = make_server(*shown)
        before = make_server() if own else after
        cloud = self.show(before, after, [make_migration(status=own)])
        cloud.find_reason = lambda uuid: why
        self.assertMoved('failed', cloud, 1)
        self.assertSaid(reason, remedy)

    @ddt.data(
        ('moved', REFUSED),
        ('moved', UNANSWERED),
        ('failed', exceptions.ForbiddenException('no', http_status=403)),
    )
    @ddt.unpack
    def test_a_confirmation(self, result, raised):
        """nova may have heard of it already, or does not answer."""
        cloud, confirmed, waited = Cloud(), [], []

        def show(uuid):
            waits = cloud.log and len(confirmed) < 2
            status = 'VERIFY_RESIZE' if waits else 'SHUTOFF'
            return make_server('b' if cloud.log else 'a', status)

        def list_migrations(uuid):
            status = 'confirmed' if len(confirmed) > 1 else 'finished'
            return [make_migration(status=status)] * bool(cloud.log)

        def confirm(move):
            # Each time, and before the move began.
            confirmed.append(move)
            self.assertEqual(len(confirmed) + 1, len(waited))
            if len(confirmed) == 1:
                raise raised

        cloud.read_server, cloud.confirm = show, confirm
        cloud.wait_for_placement = waited.append
        cloud.read_migrations = list_migrations
        self.assertMoved(result, cloud, 1, method='cold', actual='cold')

    def test_a_confirmation_of_what_an_earlier_run_began(self):
        """It is a move of this run: the server was not there before."""
        cloud, confirmed = Cloud(), []
        cloud.confirm = confirmed.append
        cloud.read_server = lambda _: make_server(
            'b', 'SHUTOFF' if confirmed else 'VERIFY_RESIZE'
        )
        cloud.read_migrations = lambda _: [
            make_migration(status='confirmed' if confirmed else 'finished')
        ]
        self.assertMoved('moved', cloud, 1, method='cold', actual='cold')
        self.assertEqual(1, len(confirmed))

    def test_a_request_that_arrived_and_failed(self):
        """It is not made again: nova has an answer."""
        failed = [make_migration(status='error')]
        cloud = self.show(make_server(), make_server(), failed)
        times = self.fail_first(cloud, UNANSWERED, arrives=True)
        self.assertMoved('failed', cloud, 1)
        self.assertEqual(1, len(times))
        self.assertSaid('why')

    def test_no_request_is_answered(self):
        cloud = Cloud()
        cloud.begin = mock.Mock(side_effect=UNANSWERED)
        self.assertMoved('failed', cloud, 1)
        self.assertIn('did not answer', self.moves[0].reason)
        self.assertIn(self.clock.now, range(LOST, LOST + 9))
        self.assertEqual(
            moves_making.LOST // moves_making.QUIET + 1, cloud.begin.call_count
        )

    @ddt.data(
        ('live', '', 'ACTIVE', 'SHUTOFF', 'cold'),
        ('cold', 'stopped', 'SHUTOFF', 'ACTIVE', 'live'),
    )
    @ddt.unpack
    def test_it_changes_between_a_look_and_the_request(
        self, planned, why, before, after, method
    ):
        """nova refuses; it is made as the server is now."""
        cloud = Cloud()
        look, times = cloud.read_server, self.fail_first(cloud, REFUSED)

        def show(uuid):
            return change_status(look(uuid), after if times else before)

        cloud.read_server = show
        how = {'method': planned, 'why_cold': why, 'actual': planned}
        self.assertMoved('moved', cloud, 1, **how)
        self.assertEqual(method, self.moves[0].actual)
        self.assertTrue(self.moves[0].reason.startswith('it '))

    @ddt.data(
        ('live', '', 'ACTIVE', 'SHUTOFF', 'cold'),
        ('cold', 'stopped', 'SHUTOFF', 'ACTIVE', 'live'),
    )
    @ddt.unpack
    def test_it_changes_while_placement_is_away(
        self, planned, why, before, after, method
    ):
        """nova is asked once, for what the server is then."""
        cloud, waited, asked = Cloud(), [], []
        look, begin = cloud.read_server, cloud.begin

        def show(uuid):
            return change_status(look(uuid), after if waited else before)

        cloud.wait_for_placement = waited.append
        cloud.begin = lambda move: asked.append(move.actual) or begin(move)
        cloud.read_server = show
        how = {'method': planned, 'why_cold': why, 'actual': planned}
        self.assertMoved('moved', cloud, 1, **how)
        self.assertEqual([method], asked)

    def test_a_refusal_counts_for_its_step_alone(self):
        """The server is stopped, and started again, while nova is asked."""
        cloud, asked = Cloud(), []
        look, begin = cloud.read_server, cloud.begin
        raised = iter([REFUSED, UNANSWERED])

        def begin_now(move):
            asked.append(move.actual)
            for error in raised:
                raise error
            begin(move)

        def show(uuid):
            return change_status(
                look(uuid), 'SHUTOFF' if len(asked) == 1 else 'ACTIVE'
            )

        cloud.begin, cloud.read_server = begin_now, show
        self.assertMoved('moved', cloud, 1, method='live', actual='live')
        self.assertEqual(['live', 'cold', 'live'], asked)

    @ddt.data('refused', 'failed')
    def test_a_server_that_runs_is_not_shut_down(self, how):
        """It is left out, and what does not need it is moved."""
        cloud = Cloud()
        if how == 'refused':
            cloud.looks['server 1'] = REFUSED
        else:
            self.show_first(cloud, make_server())
        cold = {'method': 'cold', 'actual': 'cold', 'why_cold': 'stopped'}
        expected = 'left out, not tried, moved'
        self.assertMoved(expected, cloud, 1, 1, 1, needs={2: [1]}, **cold)
        first, second, _ = self.moves
        self.assertIn(
            'it is running now, and nova does not live-migrate it: ',
            first.reason,
        )
        self.assertEqual(Remedy.NEW_PLAN, first.remedy)
        self.assertEqual('it depends on move 1', second.reason)

    @ddt.data(
        (False, {}, 'failed, not tried, not tried, not tried'),
        (True, {}, 'failed, moved, moved, moved'),
        (True, {2: [1]}, 'failed, not tried, moved, moved'),
        (True, {2: [1], 4: [2]}, 'failed, not tried, moved, not tried'),
        (True, {4: [3]}, 'failed, moved, moved, moved'),
    )
    @ddt.unpack
    def test_after_a_failure(self, keeps_going, needs, expected):
        cloud, how = Cloud(server_1=REFUSED), {'keeps_going': keeps_going}
        self.assertMoved(expected, cloud, 1, 1, 2, 3, needs=needs, how=how)

    @ddt.data((2, 2), (3, 1), (4, 1))
    @ddt.unpack
    def test_three_servers_in_error_are_enough(self, number, begun):
        """Whatever is to be kept going."""
        cloud = Cloud()
        look, broken = cloud.read_server, make_server(status='ERROR')
        cloud.read_server = lambda uuid: (
            broken if int(uuid[-1]) <= number else look(uuid)
        )
        how = {'how': {'keeps_going': True}}
        results, _ = self.run_moves(cloud, 1, 1, 1, 1, 2, **how)
        most = min(number, moves_run.MOST_IN_ERROR)
        left = 'moved' if number < most + 1 and number < 3 else 'not tried'
        self.assertEqual(
            ', '.join(['failed'] * most + [left] * (5 - most)), results
        )

    def test_what_an_earlier_run_began_ends_after_a_failure(self):
        """Though it is not its turn: a new plan would not know of it."""
        cloud = Cloud(server_1=REFUSED)
        cloud.left = {'server 3': 4, 'server 4': 4}
        how = {'skipped': ['server 4']}
        expected = 'failed, not tried, moved, not tried'
        self.assertMoved(expected, cloud, 1, 1, 2, 2, how=how)
        self.assertEqual([], cloud.log)
        self.assertEqual(4, cloud.left['server 4'])

    def test_servers_that_are_skipped(self):
        how = {'needs': {2: [1]}, 'how': {'skipped': ['server 1']}}
        expected = 'left out, not tried, moved'
        self.assertMoved(expected, Cloud(), 1, 1, 1, **how)

    @ddt.data(
        ({}, (), 'elsewhere, moved'),
        ({2: [1]}, (), 'failed, not tried'),
        # It is no more empty than before.
        ({}, ('c',), 'failed, not tried'),
    )
    @ddt.unpack
    def test_somebody_has_moved_it(self, needs, empty, expected):
        cloud = self.show_first(Cloud(), make_server('c'))
        self.assertMoved(expected, cloud, 1, 1, needs=needs, empty=empty)
        if 'failed' in expected:
            self.assertSaid('it is on c, not on b', Remedy.NEW_PLAN)

    def test_room_that_is_not_given_back(self):
        """What does not need it is moved; in the next run at once."""
        cloud, needs = Cloud(), {2: [1]}
        cloud.holds = lambda one: len(cloud.log) == 1
        self.assertMoved(
            'moved, not tried, moved', cloud, 1, 1, 1, needs=needs
        )
        self.assertIn(self.clock.now, range(HELD, HELD + 9))
        self.assertEqual(
            'the allocation of its live-migration, None (completed), still '
            'holds its room on a: openstack resource provider allocation '
            'delete None',
            self.moves[0].held,
        )
        cloud.left = {'server 1': 0, 'server 2': 0, 'server 3': 0}
        cloud.log, self.clock.now = [1], 0
        self.assertMoved('already there, not tried', cloud, 1, 1, needs=needs)
        self.assertEqual(0, self.clock.now)

    def test_room_that_is_given_back_after_a_long_migration(self):
        """The minute begins when the server is there."""
        cloud, times = Cloud(server_1=HELD), []
        cloud.holds = lambda one: times.append(1) or len(times) < 3
        self.assertMoved('moved', cloud, 1)
        self.assertEqual('', self.moves[0].held)

    def test_what_waits_is_told(self):
        self.run_moves(Cloud(server_1=3), 1)
        self.assertEqual(
            ['nova has not started it yet']
            + ['its live-migration is running'] * 3,
            [call.args[1] for call in self.progress.wait.mock_calls],
        )

    def test_a_migration_that_does_not_end(self):
        self.patch(moves_making, 'LONGEST', 700)
        self.assertMoved('failed', Cloud(server_1=10**9), 1)
        self.assertSaid('it takes too long: its live-migration is running')
        self.assertLessEqual(moves_making.LONGEST, self.clock.now)

    @ddt.data('accepted', 'running')
    def test_a_migration_that_nova_has_forgotten(self, status):
        """Its database was away, or it started anew: it is asked once more."""
        cloud = Cloud(server_1=3)
        cloud.left = {'server 1': None}
        read, stale = cloud.read_migrations, make_migration(0, status)
        cloud.read_migrations = lambda one: [stale, *read(one)]
        self.assertMoved('moved', cloud, 1)
        self.assertEqual([1], cloud.log)
        self.assertIn(self.clock.now, range(FORGOTTEN, FORGOTTEN + 20))
        expected = mock.call(
            self.moves[0],
            f'its live-migration is {status}, but the server has no task',
        )
        self.assertEqual(expected, self.progress.wait.call_args_list[0])

    def test_room_that_a_forgotten_migration_holds(self):
        """It was begun anew since; nova gives that room back to nobody."""
        cloud = Cloud()
        cloud.left = {'server 1': None}
        read, lost = cloud.read_migrations, make_migration(0, uuid='lost')
        cloud.read_migrations = lambda one: [lost, *read(one)]
        cloud.holds = lambda one: one.uuid == 'lost'
        self.assertMoved('moved', cloud, 1)
        self.assertIn('allocation delete lost', self.moves[0].held)

    def test_a_task_that_nova_has_not_ended(self):
        """keystone was away when nova-compute undid the migration."""
        cloud = Cloud(server_1=10**9)
        own = make_migration(status='error')
        cloud.read_migrations = lambda _: [own] if cloud.log else []
        self.assertMoved('failed', cloud, 1)
        self.assertIn(self.clock.now, range(STALE, STALE + 20))
        task = 'its live-migration is over (error), but its task is still'
        self.assertSaid(
            f'{task} migrating. Check in the nova-compute log of a that it '
            'does not go on, then: openstack server set --state active '
            'server 1',
            Remedy.FIX,
        )
        self.assertIn(
            mock.call(self.moves[0], f'{task} migrating'),
            self.progress.wait.call_args_list,
        )

    def test_a_migration_that_nova_ceases_to_confirm(self):
        """The cell's database was away: nova-api refuses to confirm it."""
        cloud = Cloud(server_1=0)
        own = make_migration(status='confirming', migration_type='migration')
        cloud.read_migrations = lambda _: [own] if cloud.log else []
        cloud.read_server = lambda _: (
            make_server('b', 'VERIFY_RESIZE') if cloud.log else make_server()
        )
        self.assertMoved('failed', cloud, 1)
        self.assertIn(self.clock.now, range(STALE, STALE + 20))
        self.assertSaid(
            'its migration is confirming. Check in the nova-compute log of a '
            'that it does not go on, then: openstack server set --state '
            'active server 1',
            Remedy.FIX,
        )

    def test_a_task_that_nova_ends_late(self):
        cloud, own = Cloud(), make_migration(status='error')
        cloud.read_migrations = lambda _: [own] if cloud.log else []

        def read_server(_):
            is_over = not cloud.log or self.clock.now > STALE - 9
            return make_server(task=None if is_over else 'migrating')

        cloud.read_server = read_server
        self.assertMoved('failed', cloud, 1)
        self.assertSaid('why')

    def test_one_without_a_task_for_less_than_a_minute(self):
        """As when nova-compute is slow to take it, or to end it."""
        cloud, looks = Cloud(server_1=0), itertools.count(1)
        own = [make_migration(0)]

        def read_server(uuid):
            look = next(looks)
            task = None if look % 25 else 'migrating'
            return make_server('a' if look < 100 else 'b', task=task)

        cloud.read_server = read_server
        cloud.read_migrations = lambda _: own
        self.run_moves(cloud, 1)
        self.assertEqual([], cloud.log)

    @ddt.data(
        ('but nova has no migration of it', []),
        ('and its live-migration is still accepted',
         [make_migration(status='accepted')]),
    )  # fmt: skip
    @ddt.unpack
    def test_what_nova_has_lost(self, why, own):
        """A task that nova does not begin: after two minutes that is said."""
        cloud = Cloud(server_1=10**9)
        cloud.read_migrations = lambda one: own if cloud.log else []
        said = {}
        self.assertMoved('failed', cloud, 1)
        self.assertIn(self.clock.now, range(LOST, LOST + 9))
        self.assertSaid(
            f'its task is migrating, {why}. Check in the nova-conductor log '
            'that the request was lost, then: openstack server set --state '
            'active server 1',
            Remedy.FIX,
        )
        for call in self.progress.wait.call_args_list:
            said.setdefault(call.args[1], 0)
            said[call.args[1]] += moves_run.SECONDS
        first, second, third = said.items()
        shown = 'live-migration is accepted' if own else 'task is migrating'
        self.assertEqual(f'its {shown}', second[0])
        self.assertIn(second[1], range(STALE, STALE + 9))
        self.assertEqual(self.moves[0].reason, third[0])

    # After which refusals nova is asked anew: what does not answer then, how
    # often it is asked, and whether the move is made in the end.
    @ddt.data(
        ([[]], 2, True),
        ([[], []], 2, False),
        ([['placement'], []], 3, True),
        ([['placement'], [], []], 3, False),
        ([['nova'], ['nova'], ['nova']], 4, True),
        ([['nova']] * 4, 4, False),
    )
    @ddt.unpack
    def test_no_host_was_found(self, silent, asked, is_made):
        cloud, answers, begin = Cloud(), iter(silent), Cloud.begin
        looks, refusals = [], len(silent)

        def fail(move):
            looks.append(self.clock.now)
            if len(looks) > refusals:
                begin(cloud, move)

        cloud.begin = fail
        cloud.read_migrations = lambda uuid: [
            make_migration(n, 'error') for n in range(1, len(looks) + 1)
        ]
        cloud.find_reason = lambda uuid: 'No valid host was found.'
        cloud.find_silent = lambda uuid: next(answers)
        self.assertMoved('moved' if is_made else 'failed', cloud, 1)
        self.assertEqual(asked, len(looks))
        for before, after in itertools.pairwise(looks):
            self.assertIn(
                after - before, range(moves_again.AGAIN, moves_again.AGAIN + 9)
            )

    @ddt.data(
        ([], 'nova found no host'),
        (['nova'], 'nova does not answer'),
        (['placement', 'nova'], 'placement and nova do not answer'),
    )
    @ddt.unpack
    def test_what_is_said_until_nova_is_asked_again(self, silent, said):
        own = [make_migration(status='error')]
        cloud = self.show(make_server(), make_server(), own)
        cloud.find_reason = lambda uuid: 'No valid host was found.'
        cloud.find_silent = lambda uuid: silent
        self.run_moves(cloud, 1)
        shown = [call.args[1] for call in self.progress.wait.call_args_list]
        self.assertEqual(
            [
                'nova has not started it yet',
                f'{said}; nova is asked again in a minute',
                'nova found no host for it, and is asked again within a '
                'minute',
            ],
            shown[:3],
        )

    @ddt.data('unanswered', 'stopped', 'another reason')
    def test_a_refusal_that_is_final(self, why):
        """nova may carry out the first request yet, or is right."""
        after = 'SHUTOFF' if why == 'stopped' else 'ACTIVE'
        cloud = self.show(
            make_server(),
            make_server(status=after),
            [make_migration(status='error')],
        )
        if why == 'unanswered':
            self.fail_first(cloud, UNANSWERED, arrives=True)
        cloud.find_reason = lambda uuid: (
            'CPU' if why == 'another reason' else 'No valid host was found.'
        )
        self.assertMoved('failed', cloud, 1)
        self.assertEqual([1], cloud.log)

    @ddt.data(True, False)
    def test_it_comes_into_error_after_its_migration_ended(self, comes):
        """nova-compute undoes it first; without a reason that is awaited."""
        for status in ('cancelled', 'error'):
            cloud, broken = Cloud(), make_server(status='ERROR')
            self.clock.now = 0
            cloud.read_server = lambda _, broken=broken: (
                broken if comes and self.clock.now > 5 else make_server()
            )
            cloud.read_migrations = lambda _, cloud=cloud, status=status: (
                [make_migration(status=status)] * bool(cloud.log)
            )
            cloud.find_reason = lambda _: ''
            self.assertMoved('failed', cloud, 1)
            said = self.moves[0].reason
            self.assertEqual(comes, 'it is on a in ERROR' in said)
            seconds = 6 if comes else moves_making.SETTLED
            self.assertIn(self.clock.now, range(seconds, seconds + 5))
            self.assertEqual(comes, self.moves[0].is_in_error)

    def test_room_that_an_earlier_try_left(self):
        cloud = Cloud()
        cloud.read_migrations = lambda uuid: [
            make_migration(1, 'error', uuid='first'),
            *[make_migration(2, 'completed', uuid='second')] * bool(cloud.log),
        ]
        cloud.holds = lambda one: one.uuid == 'first'
        self.assertMoved('moved', cloud, 1)
        self.assertIn('allocation delete first', self.moves[0].held)
        self.assertNotIn('second', self.moves[0].held)

    def test_time_in_which_services_were_away_does_not_count(self):
        cloud = Cloud(server_1=moves_making.LOST)
        cloud.read_migrations = lambda one: []
        type(cloud).lost = property(lambda _: self.clock.now)
        self.addCleanup(setattr, Cloud, 'lost', 0)
        self.assertMoved('moved', cloud, 1)

    def test_a_migration_ends_between_two_looks(self):
        """nova may show a server without a task where it was until then."""
        cloud, looks = Cloud(), []

        def look(name, before, after):
            def answer(uuid):
                if not cloud.log:
                    return {'server': before, 'migrations': []}[name]
                looks.append(name)
                return after if looks[1:] else before

            return answer

        running, ended = (
            [make_migration(status=one)] for one in ('running', 'completed')
        )
        cloud.read_server = look('server', make_server(), make_server('b'))
        cloud.read_migrations = look('migrations', running, ended)
        self.assertMoved('moved', cloud, 1)

    def test_it_ended_where_it_began(self):
        cloud = Cloud()
        cloud.read_server = lambda uuid: make_server()
        self.assertMoved('failed, not tried', cloud, 1, 1)
        self.assertSaid('why')

    def test_evacuation_of_a_host_that_nova_does_not_know(self):
        self.assertMoved('failed', Cloud(), 1, method='evacuate')
        self.assertIn('is not forced down', self.moves[0].reason)
