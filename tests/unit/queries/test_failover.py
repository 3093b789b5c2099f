# SPDX-License-Identifier: Apache-2.0

import threading
import time

import ddt
import fixtures
from nova import context
from nova import exception as nova_exception
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched.policy import failover as policy
from nova_ext_sched.queries import failover
from nova_ext_sched.queries import servers
from tests.unit.request_filters import base as test_base

objects.register_all()

MOVE = policy.Move('rebuilding', 'evacuation', 'accepted', 'a', None, True)


@ddt.ddt
class EvacuationsTestCase(testtools.TestCase):
    """A cell that answers when the test lets it."""

    def setUp(self):
        super().setUp()
        #: How much later it is than the machine says.
        self.later = 0.0

        def now():
            return time.monotonic() + self.later

        mapping = objects.CellMapping(
            uuid=uuids.cell,
            name='cell1',
            transport_url='none:',
            database_connection='sqlite://',
        )
        for name, new in (
            ('oslo_utils.timeutils.now', now),
            ('nova.context.CELL_CACHE', {}),
            ('nova.objects.CellMapping.get_by_uuid', lambda *_: mapping),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, new))
        self.patch(servers, 'select_cells', self.select_cells)
        self.patch(servers, 'select_moves', self.select_moves)
        self.patch(failover._CELLS, '_cells', {})
        self.asked = threading.Semaphore(0)
        self.answers = threading.Event()
        # Threads that wait end with the test.
        self.addCleanup(self.answers.set)

    def select_cells(self, ctxt, wanted):
        return [servers.Mapped(one, uuids.cell, False) for one in wanted]

    def select_moves(self, ctxt, wanted):
        self.asked.release()
        self.answers.wait()
        return dict.fromkeys(wanted, MOVE)

    def begin(self, number=1):
        """Let requests of evacuations come, each in a thread of its own."""
        found, threads = [], []

        def ask(uuid):
            spec = test_base.request_spec(
                instance_uuid=uuid, ignore_hosts=['a']
            )
            try:
                answer = failover.find_move(context.get_admin_context(), spec)
            except nova_exception.CellTimeout:
                answer = 'silent'
            found.append(answer)

        for one in range(number):
            uuid = getattr(uuids, f'server{one}')
            threads.append(threading.Thread(target=ask, args=(uuid,)))
            threads[-1].start()

        def end():
            for thread in threads:
                thread.join(20)
            return found

        return end

    @ddt.data((20, 'evacuation'), (40, 'evacuation'), (60, 'silent'))
    @ddt.unpack
    def test_a_slow_statement(self, seconds, expected):
        """Who comes while it is asked finds no silence either."""
        end = self.begin()
        self.asked.acquire(timeout=20)
        self.later += seconds
        threading.Timer(0.3, self.answers.set).start()
        # Of those that come now, all look how late it is.
        self.assertEqual(['evacuation'] * 3, self.begin(3)())
        self.assertEqual([expected], end())

    def test_a_cell_that_was_silent_until_just_now(self):
        end = self.begin()
        self.asked.acquire(timeout=20)
        self.later += context.CELL_TIMEOUT
        waiting = self.begin()
        self.assertEqual(['silent'], end())
        self.later += 1
        self.answers.set()
        self.assertEqual(['evacuation'] * 64, self.begin(64)())
        self.assertEqual(['evacuation'], waiting())
