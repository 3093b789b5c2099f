# SPDX-License-Identifier: Apache-2.0

"""Failover hosts, through nova's API to the host.

host1 is held, and the scheduler prefers it for everything; host2 is next.
"""

from tests.functional import audits

HELD = 'host1'


class FailoverTestCase(audits.AuditTestCase):
    host_filters = ('FailoverHostsFilter',)
    weigher_classes = ('nova_ext_sched.weighers.all_weighers',)
    options = {'enable_failover_hosts': True}
    weights = {HELD: 400, 'host2': 300, 'host3': 200, 'host4': 100}

    def setUp(self):
        super().setUp()
        self.uuid = self.aggregate('spare', [HELD], failover='true')

    def evacuate(self, server, to, *, lose=True, **body):
        """Let its host fail, and nova evacuate it."""
        source = self.host_of(server)
        if lose:
            self.lose(source)
        self.act(server, 'evacuate', **body)
        self._wait_for_server_parameter(
            server,
            {'OS-EXT-SRV-ATTR:host': to, 'OS-EXT-STS:task_state': None},
        )


class StoryTestCase(FailoverTestCase):
    def test_story(self):
        server = self.assertBootsOn('host2')
        self.assertEqual([f'!in:{self.uuid}'], self.queries[-1]['member_of'])
        for forced in ({'host': HELD}, {'az': f'nova:{HELD}'}):
            self.assertNoValidHost(**forced)
        self._migrate_server(server)
        self.assertEqual('host3', self.host_of(server))
        self._confirm_resize(server)
        self._live_migrate(server)
        self.assertEqual('host2', self.host_of(server))
        self.act(server, 'shelve', 'SHELVED_OFFLOADED')
        self.act(server, 'unshelve', 'ACTIVE')
        self.assertEqual('host2', self.host_of(server))
        self.evacuate(server, HELD)
        self.assertNotIn('member_of', self.queries[-1])
        # It may stay while the failed host is away; the host is in use.
        self.assertEqual((3, []), self.audit())
        # In place: nova asks the host filters alone.
        self.rebuild_server(server, self.image(), 'SHUTOFF')
        self.assertEqual(HELD, self.host_of(server))
        # Its own host is no destination.
        self.flags(allow_resize_to_same_host=True)
        self._resize_server(server, self.flavor())
        self.assertEqual('host3', self.host_of(server))
