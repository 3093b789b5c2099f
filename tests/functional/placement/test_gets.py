# SPDX-License-Identifier: Apache-2.0

"""GETs of requests to a real placement, behind a server with faults."""

from concurrent import futures
import time

import ddt
import fixtures
from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from nova import context
from nova import exception as nova_exception
from nova.scheduler.client import report
from oslo_utils import uuidutils
import testtools

from nova_ext_sched.queries import gets
from nova_ext_sched.queries import placement
from tests.benchmarks import placement_burst
from tests.deployment import hanging
from tests.functional.placement import servers

NODE = '11111111-0000-4000-8000-000000000001'


@ddt.ddt
class GetsTestCase(testtools.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.members = [uuidutils.generate_uuid() for _ in range(30)]
        server = servers.Placement('gunicorn', workers=2)
        server.setUp()
        cls.addClassCleanup(server.cleanUp)
        cls.port = int(server.url.rpartition(':')[2])
        placement_burst.fill_placement(server.url, cls.members, NODE)

    def setUp(self):
        super().setUp()
        self.proxy = hanging.Hanging(self.port)
        self.use(self.proxy.port)
        self.found = dict.fromkeys(self.members, frozenset([NODE]))
        self.output = self.useFixture(fixtures.FakeLogger())

    def use(self, port, seconds=gets.SECONDS):
        """Ask a port, and give up after some seconds without an answer."""
        auth = token_endpoint.Token(f'http://127.0.0.1:{port}', 'admin')
        made = adapter.Adapter(
            session.Session(auth=auth),
            service_type='placement',
            raise_exc=False,
        )
        client = placement._Client()
        client._client = report.SchedulerReportClient(adapter=made)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.queries.placement.current',
                gets.Gets(client.send, seconds),
            )
        )

    def ask(self, members):
        ctxt = context.get_admin_context()
        return placement.get_providers(ctxt, members)

    @ddt.data([502], [503, 504], [None, None, None], [None, 503] * 5)
    def test_away_for_a_moment(self, statuses):
        """Each is asked again until placement answers."""
        self.proxy.statuses += statuses
        self.assertEqual(self.found, self.ask(self.members))
        self.assertEqual([], self.proxy.statuses)
        self.assertIn('wait, at most 90 seconds', self.output.output)
        self.assertNotIn('pool is full', self.output.output)

    def test_away_for_too_long(self):
        self.use(servers.free_port(), seconds=1)
        start = time.monotonic()
        self.assertRaises(gets.Away, self.ask, self.members)
        self.assertLess(1, time.monotonic() - start)
        # Nobody waits after it.
        self.use(self.proxy.port)
        self.assertEqual(self.found, self.ask(self.members))

    @ddt.data(401, 404, 500)
    def test_no_answer(self, status):
        """Not that a member has no allocation."""
        self.proxy.statuses.append(status)
        error = self.assertRaises(
            nova_exception.NovaException, self.ask, self.members
        )
        self.assertIn(f'status {status}', str(error))
        self.proxy.statuses.clear()
        self.assertEqual(self.found, self.ask(self.members))

    def test_one_hangs(self):
        """Requests that do not need its answer go on."""
        hung, *others = self.members
        self.proxy.paths = (f'GET /allocations/{hung}',)
        with futures.ThreadPoolExecutor(9) as pool:
            stopped = pool.submit(self.ask, self.members)
            found = [*pool.map(self.ask, [others] * 8, timeout=60)]
            self.assertEqual([{one: {NODE} for one in others}] * 8, found)
            self.assertFalse(stopped.done())
            self.proxy.paths = ()
            # Whoever hangs goes on when the connection ends.
            self.proxy.end()
            self.assertEqual(self.found, stopped.result(60))
