# SPDX-License-Identifier: Apache-2.0

import threading
from unittest import mock

import fixtures
from nova import exception as nova_exception
import testtools

from nova_ext_sched.queries import allocations
from nova_ext_sched.queries import joined


class GetProvidersTestCase(testtools.TestCase):
    """nova's report client is replaced.

    :ivar asked: the servers that placement was asked about
    :ivar faults: what it raises of some of them
    """

    def setUp(self):
        super().setUp()
        self.asked, self.faults = [], {}

        def client():
            return mock.Mock(get_allocs_for_consumer=self.get)

        for name, new in (
            ('report.report_client_singleton', client),
            ('_placement', allocations._Placement(100)),
        ):
            path = f'nova_ext_sched.queries.allocations.{name}'
            self.useFixture(fixtures.MonkeyPatch(path, new))

    def get(self, ctxt, uuid):
        self.asked.append(uuid)
        if uuid in self.faults:
            raise self.faults[uuid]
        return {'allocations': {f'node of {uuid}': {}, 'shared disk': {}}}

    def providers(self, *servers):
        return allocations.get_providers(None, servers)

    def test_each_has_its_own(self):
        self.assertEqual({}, self.providers())
        self.assertEqual([], self.asked)
        expected = {one: {f'node of {one}', 'shared disk'} for one in 'ab'}
        self.assertEqual(expected, self.providers('a', 'b'))

    def test_eight_at_a_time(self):
        begun, answers = threading.Semaphore(0), threading.Event()
        self.addCleanup(answers.set)

        def get(ctxt, uuid):
            begun.release()
            assert answers.wait(60)
            return {'allocations': {}}

        self.get = get
        question = allocations._placement.join(
            None, allocations._select_providers, [*map(str, range(16))]
        )
        for _ in range(8):
            self.assertTrue(begun.acquire(timeout=30))
        self.assertFalse(begun.acquire(timeout=0.2))
        answers.set()
        allocations._placement.wait(question)
        self.assertEqual(16, len(question.found))

    def test_requests_at_once(self):
        """Placement is asked once about what several want."""
        first = threading.Event()
        self.addCleanup(first.set)
        get = self.get

        def wait(ctxt, uuid):
            assert first.wait(30)
            return get(ctxt, uuid)

        self.get = wait
        placement = allocations._placement
        questions = [
            placement.join(None, allocations._select_providers, [*wanted])
            for wanted in ('x', 'abc', 'bcd', 'cde')
        ]
        first.set()
        for question in questions:
            placement.wait(question)
            self.assertIsNone(question.fault)
        self.assertEqual([*'abcdex'], sorted(self.asked))

    def test_a_fault_of_one(self):
        """It is that of the requests that want it."""
        self.faults['b'] = ZeroDivisionError()
        self.assertRaises(ZeroDivisionError, self.providers, 'a', 'b')
        # Others joined the question.
        found = allocations._select_providers(None, ['a', 'b'])
        self.assertEqual({'node of a', 'shared disk'}, found['a'])
        self.assertIs(self.faults['b'], found['b'])

    def test_placement_is_silent(self):
        self.patch(joined, 'SECONDS', 0.1)
        end = threading.Event()
        self.addCleanup(end.set)
        self.get = lambda ctxt, uuid: end.wait(60)
        error = self.assertRaises(
            nova_exception.PlacementAPIConnectFailure, self.providers, 'a'
        )
        self.assertIn('placement has not answered in 0.1 seconds', str(error))
