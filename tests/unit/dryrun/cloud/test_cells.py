# SPDX-License-Identifier: Apache-2.0

import threading
import time

import fixtures
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched.dryrun.cloud import cells

objects.register_all()


class AskTestCase(testtools.TestCase):
    """With threads as they are; the databases are never asked."""

    def setUp(self):
        super().setUp()
        urls = {
            'transport_url': 'none:///',
            'database_connection': 'sqlite://',
        }
        self.mappings = [
            objects.CellMapping(uuid=uuid, name='cell', **urls)
            for uuid in (uuids.first, uuids.second)
        ]
        self.cells = cells.Cells()
        self.instead = {}
        self.threads = set()

    def ask(self, seconds=60.0):
        found, failed = self.cells.ask(self.mappings, self.select, seconds)
        return found, {
            uuid: cells.say_problem(problem)
            for uuid, problem in failed.items()
        }

    def select(self, context):
        self.assertTrue(context.is_admin)
        self.threads.add(threading.current_thread())
        self.instead.get(context.cell_uuid, lambda: None)()
        return context.cell_uuid

    def test_all_at_once(self):
        both = threading.Barrier(2, timeout=60)
        self.instead = dict.fromkeys((uuids.first, uuids.second), both.wait)
        expected = ({uuid: uuid for uuid in (uuids.first, uuids.second)}, {})
        self.assertEqual(expected, self.ask())

    def test_some_at_once(self):
        busy = threading.Lock()

        def work():
            self.assertTrue(busy.acquire(blocking=False))
            time.sleep(0.1)
            busy.release()

        self.instead = dict.fromkeys((uuids.first, uuids.second), work)
        self.cells.at_once = 1
        expected = ({uuid: uuid for uuid in (uuids.first, uuids.second)}, {})
        self.assertEqual(expected, self.ask())

    def test_nobody(self):
        self.mappings = []
        self.assertEqual(({}, {}), self.ask())

    def test_one_that_fails(self):
        def fail():
            raise LookupError('no table at http://nova:s3cret@host')

        self.instead[uuids.second] = fail
        found, silent = self.ask()
        self.assertEqual({uuids.first: uuids.first}, found)
        said = 'LookupError: no table at http://nova:***@host'
        self.assertEqual({uuids.second: said}, silent)

    def test_one_that_hangs(self):
        """It is left to itself, also where the process ends."""
        now = self.useFixture(
            fixtures.MockPatch('oslo_utils.timeutils.now', return_value=1.0)
        ).mock
        end = threading.Event()
        self.addCleanup(end.set)
        self.instead[uuids.first] = end.wait
        # It costs its time once in ten minutes, or until it answers.
        for moment, threads in ((0, 1), (1, 1), (599, 1), (600, 2), (1199, 2)):
            now.return_value = moment
            begin = time.monotonic()
            found, silent = self.ask(0.3)
            self.assertLess(time.monotonic() - begin, 30)
            self.assertEqual({uuids.second: uuids.second}, found)
            self.assertEqual({uuids.first: 'no answer in 0.3 seconds'}, silent)
            hanging = [one for one in self.threads if one.is_alive()]
            self.assertEqual(threads, len(hanging))
            self.assertTrue(all(one.daemon for one in hanging))
        end.set()
        for one in hanging:
            one.join(60)
        self.assertEqual(({u: u for u in found | silent}, {}), self.ask())
