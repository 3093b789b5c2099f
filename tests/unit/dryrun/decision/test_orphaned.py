# SPDX-License-Identifier: Apache-2.0

"""tests/long/test_explain_orphaned.py shows what nova has."""

from unittest import mock

import fixtures
import testtools

from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import orphaned
from nova_ext_sched.dryrun.decision import refusals
from tests.unit.dryrun.cloud import clouds

NUMBER = 60
HOSTS = {f'{n:02}': f'host{n:02}' for n in range(NUMBER)}


class UnheldTestCase(testtools.TestCase):
    """Sixty hosts, each full by one consumer that nova does not know."""

    def setUp(self):
        super().setUp()
        name = 'nova_ext_sched.queries.servers.select_build_requests'
        self.useFixture(fixtures.MonkeyPatch(name, lambda ctxt, uuids: []))
        self.cloud = clouds.stub(HOSTS, providers=mock.Mock())
        self.cloud.ask_cells.return_value = {}
        self.cloud.providers.get_shared.return_value = {}
        self.hold(lambda uuid: {f'consumer{uuid}': {uuid: 2}})
        self.types = self.cloud.providers.get_consumer_type
        self.types.return_value = 'unknown'

    def hold(self, allocate, shared=False):
        """Let consumers hold CPUs of providers, by UUID of the host."""

        def read(uuid):
            found = {}
            for consumer, held in allocate(uuid).items():
                cpus = {one: {'VCPU': number} for one, number in held.items()}
                found[consumer] = clouds.make_request(**cpus)
            return found

        get = 'get_shared' if shared else 'get_held'
        getattr(self.cloud.providers, get).side_effect = read

    def find(self, missing=2):
        lacking = {uuid: {'VCPU': missing} for uuid in HOSTS}
        unheld, _ = orphaned.find(self.cloud, lacking)
        return unheld

    def test_fifty_hosts_are_asked(self):
        found = self.find()
        self.assertEqual((50, 50), (found.asked, len(found.hosts)))
        said = (
            '50 of 50 full hosts hold leaked allocations, of no server or '
            'migration: host00, host01, host02, host03, host04 and 45 more. '
            'Full only because of them: 50 (host00, '
        )
        self.assertIn(said, found.sentence)
        # They hold less than what is missing.
        self.assertIn('because of them: 0 (none). ', self.find(3).sentence)

    def test_fifty_consumers_are_asked_about(self):
        self.hold(lambda uuid: {f'{uuid}{n}': {uuid: 1} for n in '12'})
        self.assertEqual(25, len(self.find().hosts))
        self.assertEqual(50, self.types.call_count)

    def test_providers_below_a_host_and_shared_ones(self):
        self.assertNotIn('allocation delete', self.find().sentence)
        self.hold(lambda uuid: {f'consumer{uuid}': {uuid: 1, 'below': 1}})
        found = self.find()
        self.assertTrue(found.hosts[0].freed)
        self.assertIn('allocation delete" deletes them, ', found.sentence)
        # Of the host itself nobody holds anything.
        self.hold(lambda uuid: {})
        self.hold(lambda uuid: {'one': {'pool': 2}}, shared=True)
        found = self.find()
        self.assertEqual(50, len(found.hosts))
        self.assertEqual(['one'], found.hosts[0].consumers)
        self.assertIn('allocation delete" deletes them, ', found.sentence)

    def test_who_holds_them(self):
        # One is gone meanwhile.
        for kind, expected in (
            ('INSTANCE', 50),
            ('MIGRATION', 50),
            ('CONTAINER', None),
            (None, None),
        ):
            self.types.return_value = kind
            found = self.find()
            self.assertEqual(expected, found and len(found.hosts))
        self.cloud.silent_cells['cell'] = 'no answer'
        self.types.return_value = 'INSTANCE'
        self.assertIsNone(self.find())

    def test_full_hosts(self):
        """Not those that are too small; first what nothing else refuses."""
        hosts = {uuid: f'host {uuid}' for uuid in 'abcd'}
        found = matrix.Matrix(hosts)
        for resource, amount, free in (
            ('VCPU', 4, {'a': 1, 'b': 3, 'c': 2}),
            ('MEMORY_MB', 10, {'b': 7}),
        ):
            full = refusals.Refusal(f'are full ({resource})', resource)
            # Of d nothing could be read.
            refused = {**dict.fromkeys(free, full), 'd': full}
            refused['c'] = full._replace(lifts=False)
            capacity = conclusion.Capacity(resource, amount, 0, 0, 0, 0, 0)
            more = {'capacity': capacity, 'free': free}
            found.add('placement', resource, refused=refused, **more)
        down = refusals.Refusal('are down')
        found.add('host filter', 'x', refused={'a': down})
        expected = [('b', {'VCPU': 1, 'MEMORY_MB': 3}), ('a', {'VCPU': 3})]
        self.assertEqual(expected, [*orphaned.find_full(found).items()])
