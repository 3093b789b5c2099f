# SPDX-License-Identifier: Apache-2.0

"""Anti-affinity with rules, from nova's API to the host.

nova's own filter is made to raise, and the scheduler prefers the host that
holds the group already: a pass proves that ours acted.
"""

import threading
from unittest import mock

from oslo_config import fixture as config_fixture

from nova_ext_sched.filters import anti_affinity
from tests.functional import base
from tests.functional import server_groups


class LimitTest(server_groups.AntiAffinityTestCase):
    def test_limits(self):
        enabled = self.scheduler_service.manager.host_manager.enabled_filters
        ours = [
            type(filter_)
            for filter_ in enabled
            if type(filter_).__name__ == 'ServerGroupAntiAffinityFilter'
        ]
        self.assertEqual([anti_affinity.ServerGroupAntiAffinityFilter], ours)
        # The default is one, of several servers in one request too. They are
        # the first: nova keeps what it picked for those that failed.
        group = self.create_group()
        known = set()
        self.post(group, min_count=3, max_count=3)
        for server in self.new(known):
            self._wait_for_state_change(server, 'ERROR')
            known.add(server['id'])
        self.post(group, min_count=2, max_count=2)
        servers = [
            self._wait_for_state_change(server, 'ACTIVE')
            for server in self.new(known)
        ]
        hosts = self.hosts(*servers)
        self.assertEqual(['host1', 'host2'], sorted(hosts))
        # A delete frees the place.
        self._delete_server(servers[0])
        self.assertEqual(hosts[:1], self.hosts(self.boot(group)))
        # Other groups and policies are not limited by it.
        other = self.create_group(policy='affinity')
        self.assertEqual(['host1'], self.hosts(self.boot(other)))
        group = self.create_group(2)
        servers = [self.boot(group) for _ in range(4)]
        self.assertEqual(['host1'] * 2 + ['host2'] * 2, self.hosts(*servers))
        self.boot(group, expected='ERROR')

    def new(self, known):
        return [
            server
            for server in self.api.get_servers()
            if server['id'] not in known
        ]


class LateCheckTest(server_groups.AntiAffinityTestCase):
    def setUp(self):
        # The scheduler then learns of instances from the database alone, so
        # it does not know what it has placed a moment ago: as if another
        # scheduler had.
        self.useFixture(config_fixture.Config(base.CONF)).config(
            group='filter_scheduler', track_instance_changes=False
        )
        super().setUp()

    def test_two_schedulers_race_for_the_last_place(self):
        chosen = []
        second_is_chosen = threading.Event()
        first_is_built = threading.Event()
        build = self.computes['host1'].manager._do_build_and_run_instance

        def hold(context, instance, *args, **kwargs):
            chosen.append(instance.uuid)
            if len(chosen) == 1:
                second_is_chosen.wait(30)
            else:
                second_is_chosen.set()
                first_is_built.wait(30)
            return build(context, instance, *args, **kwargs)

        group = self.create_group(1)
        with mock.patch.object(
            self.computes['host1'].manager,
            '_do_build_and_run_instance',
            side_effect=hold,
        ):
            first = self.post(group)
            self._wait_for_assert(
                lambda: self.assertEqual([first['id']], chosen)
            )
            second = self.post(group)
            first = self._wait_for_state_change(first, 'ACTIVE')
            self.assertEqual([first['id'], second['id']], chosen)
            first_is_built.set()
            second = self._wait_for_state_change(second, 'ACTIVE')
        self.assertEqual(['host1', 'host2'], self.hosts(first, second))
