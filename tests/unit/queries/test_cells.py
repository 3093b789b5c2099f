# SPDX-License-Identifier: Apache-2.0

from concurrent import futures
import threading
from unittest import mock

import fixtures
from nova import context
from nova import exception as nova_exception
from nova import objects
from oslo_db import exception as db_exception
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched.queries import cells

objects.register_all()


class CellsTestCase(testtools.TestCase):
    """Three cells; the database of one answers when the test lets it."""

    def setUp(self):
        super().setUp()
        self.now = 1000.0
        for name, new in (
            ('oslo_utils.timeutils.now', lambda: self.now),
            ('nova.context.CELL_CACHE', {}),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, new))
        self.useFixture(
            fixtures.MockPatchObject(
                objects.CellMapping,
                'get_by_uuid',
                side_effect=self.get_mapping,
            )
        )
        self.patience(0.1)
        self.cells = cells.Cells()
        self.looked_up, self.asked, self.threads = [], [], []
        self.at_once = 0
        self.answers = threading.Event()
        # Threads that wait end with the test.
        self.addCleanup(self.answers.set)

    def patience(self, seconds):
        self.useFixture(fixtures.MockPatchObject(cells, 'SECONDS', seconds))

    def get_mapping(self, ctxt, uuid):
        self.looked_up.append(uuid)
        return objects.CellMapping(
            uuid=uuid,
            name={uuids.silent: 'far\naway'}.get(uuid),
            transport_url='none:///',
            database_connection='sqlite://',
        )

    def select(self, ctxt, wanted):
        self.asked.append(ctxt.cell_uuid)
        self.threads.append(threading.current_thread())
        if ctxt.cell_uuid == uuids.silent:
            self.answers.wait()
        if ctxt.cell_uuid == uuids.broken:
            raise ZeroDivisionError('broken')
        return dict.fromkeys(wanted, ctxt.cell_uuid)

    def ask(self, *asked, select=None):
        return self.cells.ask(
            context.get_admin_context(),
            select or self.select,
            {uuid: [f'server of {uuid}'] for uuid in asked},
        )

    def assertSilent(self, times, answers):
        """Assert what is said, and how often the database was asked."""
        [(uuid, fault)] = answers.faults.items()
        self.assertEqual(uuids.silent, uuid)
        self.assertIsInstance(fault, nova_exception.CellTimeout)
        self.assertIn(r"cell 'far\naway'", str(fault))
        self.assertEqual(times, self.asked.count(uuids.silent))

    def test_each_is_asked_about_its_own(self):
        for _ in range(2):
            self.assertEqual(
                (
                    {
                        f'server of {uuids.one}': uuids.one,
                        f'server of {uuids.two}': uuids.two,
                    },
                    {},
                ),
                self.ask(uuids.one, uuids.two),
            )
        self.assertEqual([uuids.one, uuids.two], self.looked_up)
        self.assertEqual(({}, {}), self.ask())

    def test_a_cell_that_fails_is_asked_again(self):
        for _ in range(2):
            found, faults = self.ask(uuids.broken, uuids.one)
            self.assertEqual([uuids.one], [*found.values()])
            self.assertEqual([uuids.broken], [*faults])
            self.assertEqual('broken', str(faults[uuids.broken]))
        self.assertEqual(2, self.asked.count(uuids.broken))

    def test_a_silent_cell_is_left_alone_for_a_minute(self):
        answers = self.ask(uuids.silent, uuids.one)
        self.assertSilent(1, answers)
        self.assertEqual([uuids.one], [*answers.found.values()])
        self.now += 59
        self.assertSilent(1, self.ask(uuids.silent))
        self.now += 1
        self.assertSilent(2, self.ask(uuids.silent))

    def test_one_that_takes_no_connection(self):
        """It is asked again at once: nothing waits for it."""

        def fail(ctxt, wanted):
            self.asked.append(ctxt.cell_uuid)
            raise db_exception.DBConnectionError('refused')

        for times in (1, 2):
            answers = self.ask(uuids.silent, select=fail)
            self.assertSilent(times, answers)
            [fault] = answers.faults.values()
            self.assertIn('got DBConnectionError: refused', str(fault))

    def test_threads_that_hang_are_few(self):
        for times in (1, 2, 3, 3, 3):
            self.assertSilent(times, self.ask(uuids.silent))
            self.now += 60
        self.let_it_answer()
        self.assertEqual({}, self.ask(uuids.silent).faults)
        # As many as before, when it is silent again.
        self.answers.clear()
        for times in (5, 6, 7, 7):
            self.assertSilent(times, self.ask(uuids.silent))
            self.now += 60

    def let_it_answer(self):
        self.answers.set()
        for thread in self.threads:
            thread.join()

    def test_an_answer_that_comes_late_does_not_end_the_minute(self):
        self.ask(uuids.silent)
        # A scheduler that stops does not wait for it.
        self.assertTrue(self.threads[0].daemon)
        self.let_it_answer()
        self.assertSilent(1, self.ask(uuids.silent))

    def test_of_requests_that_come_together_one_asks(self):
        with futures.ThreadPoolExecutor(5) as pool:
            requests = [pool.submit(self.ask, uuids.silent) for _ in range(5)]
            for request in requests:
                self.assertSilent(1, request.result())

    def test_a_cell_that_is_well_answers_all_in_turn(self):
        self.patience(30)
        inside = []

        def select(ctxt, wanted):
            inside.append(True)
            self.at_once = max(self.at_once, len(inside))
            # Let another thread run.
            threading.Event().wait(0.001)
            inside.pop()
            return {'found': 1}

        with futures.ThreadPoolExecutor(5) as pool:
            for answers in pool.map(
                lambda _: self.ask(uuids.one, select=select), range(20)
            ):
                self.assertEqual(({'found': 1}, {}), answers)
        self.assertEqual(1, self.at_once)

    def test_a_turn_that_is_given_back_late(self):
        """Who waited for it does not ask beside who has the new one."""
        self.answers.set()
        self.assertEqual({}, self.ask(uuids.silent).faults)
        cell = self.cells._cells[uuids.silent]
        late = mock.Mock()

        def acquire(timeout):
            cell._turn = threading.Lock()
            return True

        late.acquire = acquire
        cell._turn = late
        self.assertSilent(1, self.ask(uuids.silent))

    def test_no_thread_can_be_started(self):
        with mock.patch.object(
            threading.Thread, 'start', side_effect=RuntimeError('no thread')
        ):
            self.assertRaises(RuntimeError, self.ask, uuids.one)
        self.assertEqual({}, self.ask(uuids.one).faults)
