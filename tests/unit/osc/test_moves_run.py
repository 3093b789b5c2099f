# SPDX-License-Identifier: Apache-2.0

"""How moves follow each other; tests/functional/test_osc_moves.py has nova."""

from unittest import mock

import ddt
import fixtures
from openstack import exceptions
import testtools

from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_run
from nova_ext_sched.osc.moves_plan import Result
from tests.unit.osc import test_moves_step

TASK = {'task': 'migrating'}


class Cloud:
    """Stands for nova, where a migration lasts for some looks at it.

    :param looks: by server; how many, or what a look raises in the end
    """

    user = 'me'

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

    def run_moves(self, cloud, *stages, at_once=1, **fields):
        """Return whether all were made, and the results."""
        moves = [
            test_moves_step.make_move(turn=turn, stage=stage)
            for turn, stage in enumerate(stages, 1)
        ]
        for move in moves:
            vars(move).update(fields)
        plan = moves_plan.Plan(test_moves_step.TIME, {}, [], moves)
        self.moves, self.advanced = moves, []
        run = moves_run.Run(
            plan, cloud, advance=lambda: self.advanced.append(1)
        )
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
        self.assertEqual(6, len(self.advanced))

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
        fault = exceptions.SDKException('no connection')
        cloud = Cloud(server_1=[fault])
        found = self.run_moves(cloud, 1, 1)
        self.assertEqual((False, [Result.FAILED, Result.NOT_TRIED]), found)
        self.assertEqual('no connection', self.moves[0].reason)

    def test_a_migration_that_does_not_end(self):
        self.useFixture(
            fixtures.MonkeyPatch(f'{moves_run.__name__}.LONGEST', 3600)
        )
        found = self.run_moves(Cloud(server_1=10**9), 1)
        self.assertEqual((False, [Result.FAILED]), found)
        self.assertEqual('it does not end', self.moves[0].reason)
        self.assertLessEqual(moves_run.LONGEST, self.now)

    @ddt.data('holds', 'read_migrations')
    def test_what_nova_has_lost(self, name):
        """Room that stays taken, a task without a migration."""
        cloud = Cloud(server_1=10**9 if name == 'read_migrations' else 0)
        answer = {'holds': True, 'read_migrations': []}[name]
        setattr(cloud, name, lambda one: answer)
        self.assertEqual((False, [Result.FAILED]), self.run_moves(cloud, 1))
        self.assertIn(self.now, range(moves_run.LOST, moves_run.LOST + 9))

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
        found = self.run_moves(Cloud(), 1, kind='evacuate')
        self.assertEqual((False, [Result.FAILED]), found)
        self.assertIn('is not forced down', self.moves[0].reason)
