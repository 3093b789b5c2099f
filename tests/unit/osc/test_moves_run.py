# SPDX-License-Identifier: Apache-2.0

"""How moves follow each other; tests/functional/test_osc_moves.py has nova."""

from unittest import mock

import ddt
import fixtures
from openstack import exceptions
import testtools

from nova_ext_sched.osc import moves_making
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_run
from nova_ext_sched.osc.moves_making import FORGOTTEN
from nova_ext_sched.osc.moves_making import HELD
from nova_ext_sched.osc.moves_making import LOST
from nova_ext_sched.osc.moves_plan import End
from nova_ext_sched.osc.moves_plan import Result
from tests.unit.osc import test_moves_step

TASK = {'task': 'migrating'}
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
            return test_moves_step.make_server(**TASK)
        return test_moves_step.make_server('a' if left is None else 'b')

    def read_migrations(self, uuid):
        found = self.left.get(uuid)
        if found is None:
            return []
        status = 'running' if found else 'completed'
        return [test_moves_step.make_migration(status=status)]

    def holds(self, own):
        return False

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


@ddt.ddt
class RunTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 0
        for name, new in (('sleep', self.sleep), ('monotonic', self.time)):
            patch = mock.patch.object(moves_run.time, name, new)
            patch.start()
            self.addCleanup(patch.stop)

    def sleep(self, seconds):
        self.now += seconds

    def time(self):
        return self.now

    def run_moves(
        self, cloud, *batches, at_once=1, needs=(), empty=(), how=(), **fields
    ):
        """Return whether none failed, and the results.

        :param needs: turns that moves need, by turn
        :param how: arguments of the run
        """
        moves = [
            test_moves_step.make_move(
                turn=turn, batch=batch, needs=dict(needs).get(turn, ())
            )
            for turn, batch in enumerate(batches, 1)
        ]
        for move in moves:
            vars(move).update(fields)
        plan = moves_plan.Plan(test_moves_step.TIME, {}, empty, moves)
        self.moves = moves
        self.progress = mock.Mock(spec=moves_run.Progress)
        run = moves_run.Run(plan, cloud, progress=self.progress, **dict(how))
        is_fine = run.carry_out(at_once)
        return is_fine, [one.result for one in moves]

    @ddt.data((1, 1), (2, 2), (9, 3))
    @ddt.unpack
    def test_at_once(self, at_once, most):
        """No more than asked for, and of one stage alone."""
        cloud = Cloud(**{f'server_{n}': n % 3 + 1 for n in range(1, 7)})
        found = self.run_moves(cloud, 1, 1, 1, 2, 2, 3, at_once=at_once)
        self.assertEqual((True, [Result.MOVED] * 6), found)
        self.assertEqual([1, 2, 3, 4, 5, 6], cloud.log)
        self.assertEqual(most, cloud.most)
        self.assertEqual(6, self.progress.end.call_count)

    def test_what_is_under_way_ends_after_a_failure(self):
        refused = exceptions.ConflictException(details='it is locked')
        cloud = Cloud(server_1=5, server_2=refused)
        found = self.run_moves(cloud, 1, 1, 1, 2, at_once=2)
        self.assertEqual(
            (False, [Result.MOVED, Result.FAILED] + [Result.NOT_TRIED] * 2),
            found,
        )
        self.assertEqual('it is locked', self.moves[1].reason)

    @ddt.data(None, test_moves_step.make_server(task='deleting'))
    def test_it_is_deleted_between_a_look_and_the_request(self, after):
        refused = exceptions.ConflictException(details='it is deleting')
        cloud = Cloud(server_1=refused)
        there = iter([test_moves_step.make_server(), after])
        look = cloud.read_server
        cloud.read_server = lambda uuid: next(there, look(uuid))
        found = self.run_moves(cloud, 1, 1)
        self.assertEqual((True, [Result.GONE, Result.MOVED]), found)
        self.assertEqual('', self.moves[0].reason)

    def test_nova_does_not_answer(self):
        """For longer than it is asked again."""
        cloud = Cloud(server_1=[UNANSWERED])
        found = self.run_moves(cloud, 1, 1)
        self.assertEqual((False, [Result.FAILED, Result.NOT_TRIED]), found)
        self.assertEqual('503', self.moves[0].reason)
        self.assertEqual(End.RUN_AGAIN, self.moves[0].end)

    @ddt.data(True, False)
    def test_a_request_without_an_answer(self, arrives):
        """It is made again where nova shows nothing of it for long."""
        cloud = Cloud(server_1=3)
        begin, times = cloud.begin, []

        def begin_once(move):
            times.append(self.now)
            if len(times) > 1 or arrives:
                begin(move)
            if len(times) == 1:
                raise UNANSWERED

        cloud.begin = begin_once
        self.assertEqual((True, [Result.MOVED]), self.run_moves(cloud, 1))
        if arrives:
            self.assertEqual([0], times)
        else:
            self.assertEqual([0, moves_making.QUIET], times)

    def test_a_request_that_did_not_arrive_after_a_run_that_failed(self):
        """What an earlier run left is no answer to it."""
        cloud = Cloud()
        begin, look = cloud.begin, cloud.read_migrations
        old = test_moves_step.make_migration(0, 'error')
        cloud.read_migrations = lambda uuid: [old, *look(uuid)]
        times = []

        def begin_later(move):
            times.append(self.now)
            if len(times) == 1:
                raise UNANSWERED
            begin(move)

        cloud.begin = begin_later
        self.assertEqual((True, [Result.MOVED]), self.run_moves(cloud, 1))

    @ddt.data(
        (End.RUN_AGAIN, 'its task is image_snapshot', 'image_snapshot', 'a'),
        (End.FIX, 'it is on a in ERROR', None, 'a', 'ERROR'),
        (
            *(End.RUN_AGAIN, 'its live-migration was cancelled; it is on a'),
            *(None, 'a', 'ACTIVE', 'cancelled'),
        ),
        (End.FIX, 'why', None, 'a', 'ACTIVE', 'error'),
        (
            *(End.NEW_PLAN, 'No valid host was found. Why.'),
            *(None, 'a', 'ACTIVE', 'error', 'No valid host was found. Why.'),
        ),
        (
            *(End.NEW_PLAN, 'it is on b in ERROR (why)'),
            *(None, 'b', 'ERROR', 'error'),
        ),
    )
    @ddt.unpack
    def test_what_is_to_be_done(
        self, end, reason, task, host, status='ACTIVE', own='', why='why'
    ):
        """It depends on how a move ended.

        :param host: where the server is, once nova was asked for the move
        :param own: the status of its migration then
        """
        cloud = Cloud()
        cloud.find_reason = lambda uuid: why
        cloud.read_server = lambda uuid: test_moves_step.make_server(
            host if cloud.log or not own else 'a',
            status if cloud.log or not own else 'ACTIVE',
            task,
        )
        cloud.read_migrations = lambda uuid: (
            [test_moves_step.make_migration(status=own)] * bool(cloud.log)
        )
        found = self.run_moves(cloud, 1)
        self.assertEqual((False, [Result.FAILED]), found)
        self.assertEqual(
            (end, reason), (self.moves[0].end, self.moves[0].reason)
        )

    @ddt.data(
        (Result.MOVED, REFUSED),
        (Result.MOVED, UNANSWERED),
        (
            Result.FAILED,
            exceptions.ForbiddenException(details='no', http_status=403),
        ),
    )
    @ddt.unpack
    def test_a_confirmation(self, result, raised):
        """nova may have heard of it already, or does not answer."""
        cloud, confirmed = Cloud(), []

        def show(uuid):
            waits = cloud.log and len(confirmed) < 2
            return test_moves_step.make_server(
                'b' if cloud.log else 'a',
                'VERIFY_RESIZE' if waits else 'SHUTOFF',
            )

        def list_migrations(uuid):
            status = 'confirmed' if len(confirmed) > 1 else 'finished'
            return [test_moves_step.make_migration(status=status)] * bool(
                cloud.log
            )

        def confirm(move):
            confirmed.append(move)
            if len(confirmed) == 1:
                raise raised

        cloud.read_server, cloud.confirm = show, confirm
        cloud.read_migrations = list_migrations
        found = self.run_moves(cloud, 1, method='cold', actual='cold')
        self.assertEqual([result], found[1])

    def test_a_request_that_arrived_and_failed(self):
        """It is not made again: nova has an answer."""
        cloud = Cloud()
        cloud.read_server = lambda uuid: test_moves_step.make_server()
        cloud.begin = mock.Mock(side_effect=UNANSWERED)
        cloud.read_migrations = lambda uuid: (
            [test_moves_step.make_migration(status='error')]
            * bool(cloud.begin.call_count)
        )
        found = self.run_moves(cloud, 1)
        self.assertEqual((False, [Result.FAILED]), found)
        self.assertEqual(1, cloud.begin.call_count)
        self.assertEqual('why', self.moves[0].reason)

    def test_no_request_is_answered(self):
        cloud = Cloud()
        cloud.begin = mock.Mock(side_effect=UNANSWERED)
        found = self.run_moves(cloud, 1)
        self.assertEqual((False, [Result.FAILED]), found)
        self.assertIn('did not answer', self.moves[0].reason)
        self.assertIn(self.now, range(LOST, LOST + 9))
        self.assertEqual(
            moves_making.LOST // moves_making.QUIET + 1, cloud.begin.call_count
        )

    @ddt.data(
        ('live', '', 'SHUTOFF', 'cold', Result.MOVED),
        ('cold', 'stopped', 'ACTIVE', 'live', Result.MOVED),
    )
    @ddt.unpack
    def test_it_changes_between_a_look_and_the_request(
        self, kind, why, status, method, result
    ):
        """nova refuses; it is made as the server is now."""
        before = {'live': 'ACTIVE', 'cold': 'SHUTOFF'}[kind]
        cloud, state = Cloud(), [before]
        begin, look = cloud.begin, cloud.read_server

        def begin_now(move):
            if state == [before]:
                state[:] = [status]
                raise REFUSED
            begin(move)

        def show(uuid):
            found = look(uuid)
            found.status = state[0]
            return found

        cloud.begin, cloud.read_server = begin_now, show
        found = self.run_moves(
            cloud, 1, method=kind, why_cold=why, actual=kind
        )
        self.assertEqual((True, [result]), found)
        self.assertEqual(method, self.moves[0].actual)
        self.assertTrue(self.moves[0].reason.startswith(f'{method}: it '))

    @ddt.data('refused', 'failed')
    def test_a_server_that_runs_is_not_shut_down(self, how):
        """It is left out, and what does not need it is moved."""
        cloud = Cloud()
        if how == 'refused':
            cloud.looks['server 1'] = REFUSED
        else:
            look = cloud.read_server
            cloud.read_server = lambda uuid: (
                test_moves_step.make_server()
                if uuid == 'server 1'
                else look(uuid)
            )
        found = self.run_moves(
            cloud,
            *(1, 1, 1),
            needs={2: [1]},
            method='cold',
            actual='cold',
            why_cold='stopped',
        )
        self.assertEqual(
            (True, [Result.LEFT_OUT, Result.NOT_TRIED, Result.MOVED]), found
        )
        first, second, _ = self.moves
        self.assertIn(
            'it is running now, and nova does not live-migrate it: ',
            first.reason,
        )
        self.assertEqual(End.NEW_PLAN, first.end)
        self.assertEqual('it depends on move 1', second.reason)

    @ddt.data(
        (False, {}, '- . . .'),
        (True, {}, '- m m m'),
        (True, {2: [1]}, '- . m m'),
        (True, {2: [1], 4: [2]}, '- . m .'),
        (True, {4: [3]}, '- m m m'),
    )
    @ddt.unpack
    def test_after_a_failure(self, keeps_going, needs, expected):
        results = {
            '-': Result.FAILED,
            '.': Result.NOT_TRIED,
            'm': Result.MOVED,
        }
        cloud = Cloud(server_1=REFUSED)
        found = self.run_moves(
            cloud, 1, 1, 2, 3, needs=needs, how={'keeps_going': keeps_going}
        )
        self.assertEqual(
            (False, [results[one] for one in expected.split()]), found
        )

    def test_servers_that_are_skipped(self):
        found = self.run_moves(
            Cloud(), 1, 1, 1, needs={2: [1]}, how={'skipped': ['server 1']}
        )
        self.assertEqual(
            (True, [Result.LEFT_OUT, Result.NOT_TRIED, Result.MOVED]), found
        )

    @ddt.data(
        ({}, (), Result.ELSEWHERE, Result.MOVED),
        ({2: [1]}, (), Result.FAILED, Result.NOT_TRIED),
        # It is no more empty than before.
        ({}, ('c',), Result.FAILED, Result.NOT_TRIED),
    )
    @ddt.unpack
    def test_somebody_has_moved_it(self, needs, empty, *results):
        cloud = Cloud()
        look = cloud.read_server
        cloud.read_server = lambda uuid: (
            test_moves_step.make_server('c')
            if uuid == 'server 1'
            else look(uuid)
        )
        found = self.run_moves(cloud, 1, 1, needs=needs, empty=empty)
        self.assertEqual((results[0] != Result.FAILED, [*results]), found)
        if results[0] == Result.FAILED:
            self.assertEqual(End.NEW_PLAN, self.moves[0].end)
            self.assertEqual('it is on c, not on b', self.moves[0].reason)

    def test_room_that_is_not_given_back(self):
        """What does not need it is moved; in the next run at once."""
        cloud = Cloud()
        cloud.holds = lambda one: len(cloud.log) == 1
        found = self.run_moves(cloud, 1, 1, 1, needs={2: [1]})
        self.assertEqual(
            (True, [Result.MOVED, Result.NOT_TRIED, Result.MOVED]), found
        )
        self.assertIn(self.now, range(HELD, HELD + 9))
        self.assertEqual(
            'the allocation of its live-migration, None (completed), still '
            'holds its room on a: openstack resource provider allocation '
            'delete None',
            self.moves[0].held,
        )
        cloud.left = {'server 1': 0, 'server 2': 0, 'server 3': 0}
        cloud.log, self.now = [1], 0
        found = self.run_moves(cloud, 1, 1, needs={2: [1]})
        self.assertEqual((True, [Result.THERE, Result.NOT_TRIED]), found)
        self.assertEqual(0, self.now)

    def test_room_that_is_given_back_after_a_long_migration(self):
        """The minute begins when the server is there."""
        cloud, times = Cloud(server_1=HELD), []
        cloud.holds = lambda one: times.append(1) or len(times) < 3
        self.assertEqual((True, [Result.MOVED]), self.run_moves(cloud, 1))
        self.assertEqual('', self.moves[0].held)

    def test_what_waits_is_told(self):
        self.run_moves(Cloud(server_1=3), 1)
        self.assertEqual(
            [
                mock.call(self.moves[0], 'nova has not started it yet'),
                *[mock.call(self.moves[0], 'its live-migration is running')]
                * 3,
            ],
            self.progress.wait.call_args_list,
        )

    def test_a_migration_that_does_not_end(self):
        self.useFixture(
            fixtures.MonkeyPatch(f'{moves_making.__name__}.LONGEST', 700)
        )
        found = self.run_moves(Cloud(server_1=10**9), 1)
        self.assertEqual((False, [Result.FAILED]), found)
        self.assertEqual(
            'it takes too long: its live-migration is running',
            self.moves[0].reason,
        )
        self.assertLessEqual(moves_making.LONGEST, self.now)

    @ddt.data('accepted', 'running')
    def test_a_migration_that_nova_has_forgotten(self, status):
        """Its database was away, or it started anew: it is asked once more."""
        cloud = Cloud(server_1=3)
        stale = test_moves_step.make_migration(0, status)
        cloud.left = {'server 1': None}
        read = cloud.read_migrations
        cloud.read_migrations = lambda one: [stale, *read(one)]
        self.assertEqual((True, [Result.MOVED]), self.run_moves(cloud, 1))
        self.assertEqual([1], cloud.log)
        self.assertIn(self.now, range(FORGOTTEN, FORGOTTEN + 20))
        self.assertEqual(
            mock.call(
                self.moves[0],
                f'its live-migration is {status}, but the server has no task',
            ),
            self.progress.wait.call_args_list[0],
        )

    def test_one_without_a_task_for_less_than_a_minute(self):
        """As when nova-compute is slow to take it, or to end it."""
        cloud = Cloud(server_1=0)
        own = test_moves_step.make_migration(0)
        looks = []

        def read_server(uuid):
            looks.append(uuid)
            task = None if len(looks) % 25 else 'migrating'
            return test_moves_step.make_server(
                'a' if len(looks) < 100 else 'b', task=task
            )

        cloud.read_server = read_server
        cloud.read_migrations = lambda _: [own]
        self.run_moves(cloud, 1)
        self.assertEqual([], cloud.log)

    def test_what_nova_has_lost(self):
        """A task without a migration."""
        cloud = Cloud(server_1=10**9)
        cloud.read_migrations = lambda one: []
        self.assertEqual((False, [Result.FAILED]), self.run_moves(cloud, 1))
        self.assertIn(self.now, range(LOST, LOST + 9))
        self.assertIn('its task is migrating', self.moves[0].reason)

    def test_time_in_which_services_were_away_does_not_count(self):
        cloud = Cloud(server_1=moves_making.LOST)
        cloud.read_migrations = lambda one: []
        type(cloud).lost = property(lambda _: self.now)
        self.addCleanup(setattr, Cloud, 'lost', 0)
        self.assertEqual((True, [Result.MOVED]), self.run_moves(cloud, 1))

    def test_a_migration_ends_between_two_looks(self):
        """nova may show a server without a task where it was until then."""
        cloud, looks = Cloud(), []

        def look(name, before, after):
            def answer(uuid):
                looks.extend([name] * bool(cloud.log))
                if not cloud.log:
                    return {'server': before, 'migrations': []}[name]
                return after if looks[1:] else before

            return answer

        cloud.read_server = look(
            'server',
            test_moves_step.make_server('a'),
            test_moves_step.make_server('b'),
        )
        cloud.read_migrations = look(
            'migrations',
            [test_moves_step.make_migration()],
            [test_moves_step.make_migration(status='completed')],
        )
        self.assertEqual((True, [Result.MOVED]), self.run_moves(cloud, 1))

    def test_it_ended_where_it_began(self):
        cloud = Cloud()
        cloud.read_server = lambda uuid: test_moves_step.make_server()
        found = self.run_moves(cloud, 1, 1)
        self.assertEqual((False, [Result.FAILED, Result.NOT_TRIED]), found)
        self.assertEqual('why', self.moves[0].reason)

    def test_evacuation_of_a_host_that_nova_does_not_know(self):
        found = self.run_moves(Cloud(), 1, method='evacuate')
        self.assertEqual((False, [Result.FAILED]), found)
        self.assertIn('is not forced down', self.moves[0].reason)
