# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import fixtures
import testtools

from nova_ext_sched import faults
from nova_ext_sched import instances
from nova_ext_sched.request_filters import group_members

WAITING = instances.Place(frozenset(), True)


class GetHostsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.places = {}
        self.client = mock.Mock()
        self.client.get_allocs_for_consumer.side_effect = lambda ctxt, uuid: {
            'allocations': {f'node of {uuid}': {}, f'device of {uuid}': {}}
        }
        for module, name, replacement in (
            (instances, 'get_places', lambda ctxt, uuids: self.places),
            (
                instances,
                'get_compute_hosts',
                lambda ctxt, uuids: {
                    uuid: f'host of {uuid}'
                    for uuid in uuids
                    if uuid.startswith('node')
                },
            ),
            (
                group_members.report,
                'report_client_singleton',
                lambda: self.client,
            ),
            (
                group_members,
                '_faults',
                faults.FaultLog(group_members.LOG),
            ),
        ):
            self.useFixture(
                fixtures.MockPatchObject(module, name, replacement)
            )

    def test_table(self):
        self.places = {
            'claimed': instances.Place(frozenset(['h1']), False),
            'moves': instances.Place(frozenset(['h1', 'h2']), False),
            'waits': WAITING,
            'shelved': instances.Place(frozenset(), False),
        }
        self.assertEqual(
            {
                'claimed': {'h1'},
                'moves': {'h1', 'h2'},
                'waits': {'host of node of waits'},
            },
            group_members.get_hosts(None, [*self.places, 'deleted']),
        )
        self.client.get_allocs_for_consumer.assert_called_once_with(
            None, 'waits'
        )

    def test_no_allocation_is_no_host(self):
        self.places = {'waits': WAITING}
        self.client.get_allocs_for_consumer.side_effect = None
        self.client.get_allocs_for_consumer.return_value = {'allocations': {}}
        self.assertEqual({}, group_members.get_hosts(None, ['waits']))

    def test_placement_is_not_asked_for_nothing(self):
        self.places = {'on': instances.Place(frozenset(['h1']), False)}
        group_members.get_hosts(None, ['on'])
        self.client.get_allocs_for_consumer.assert_not_called()

    def test_bound(self):
        most = group_members.MOST_UNDER_WAY
        self.places = {f'w{i:03}': WAITING for i in range(most + 1)}
        found = group_members.get_hosts(None, self.places)
        self.assertEqual(most, len(found))
        self.assertIn('More than 50 servers', self.log.output)
