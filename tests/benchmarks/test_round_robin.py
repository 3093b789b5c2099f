# SPDX-License-Identifier: Apache-2.0

"""The share of the round-robin weigher in select_destinations.

10,000 hosts in 100 racks and a server group of 5,000, on a real nova and
placement; also one whose list has as many members that were deleted. The
servers that are created wait for a nova-compute, so that the weigher asks
nova's databases about them. In processor time.
"""

import logging
import statistics
import time
import uuid

import ddt
import fixtures
from nova.scheduler import host_manager
from nova.scheduler import manager

from nova_ext_sched import conf
from nova_ext_sched import request_state
from nova_ext_sched.weighers import round_robin
from tests.benchmarks import many_hosts
from tests.benchmarks import rows
from tests.benchmarks import test_select_destinations

ROUNDS = 5
# Of half a second, for nova to do something.
RETRIES = 240
#: The share that is allowed.
SHARE = 0.05


def seconds(function, *args):
    start = time.process_time()
    function(*args)
    return time.process_time() - start


@ddt.ddt
class RoundRobinTest(many_hosts.ManyHostsTestCase):
    host_filters = ('FailureDomainFilter',)
    options = {'request_filters': ['failure_domains']}
    weight_classes = (
        *many_hosts.ManyHostsTestCase.weight_classes,
        conf.weighers.ALL_WEIGHERS,
    )

    def setUp(self):
        # The copies' servers are above any quota.
        self.flags(
            server_group_members=-1,
            instances=-1,
            cores=-1,
            ram=-1,
            group='quota',
        )
        super().setUp()
        # As in a service of its own.
        logging.getLogger().setLevel(logging.INFO)
        self.spent = []
        self.weighed = []
        select = manager.SchedulerManager.select_destinations
        self._patch(
            manager.SchedulerManager,
            'select_destinations',
            test_select_destinations.timed(select, self.spent),
        )
        weigh = host_manager.HostManager.get_weighed_hosts

        def weigh_and_keep(manager, hosts, spec):
            self.weighed.append((manager, hosts, spec))
            return weigh(manager, hosts, spec)

        self._patch(
            host_manager.HostManager, 'get_weighed_hosts', weigh_and_keep
        )
        self.scheduler_service.stop()
        self.scheduler_service = self.start_service('scheduler')
        # A thread of nova's reads which servers the hosts have.
        known = self.scheduler_service.manager.host_manager
        self._wait_for_assert(
            lambda: self.assertLess(self.hosts, len(known._instance_info)),
            max_retries=RETRIES,
        )
        # As nova-compute says every two minutes.
        for of_host in known._instance_info.values():
            of_host['updated'] = True

    def _patch(self, owner, name, new):
        self.useFixture(fixtures.MockPatchObject(owner, name, new))

    def group(self, gone):
        """Create a group; half of each rack's hosts have a member.

        :param gone: how many members are deleted besides
        """
        created = self.create_group(3)
        groups = rows.read_ids(*self.table('nova_api.instance_groups'))
        group = groups[created]
        members = [
            server
            for number, server in enumerate(self.servers[: self.hosts])
            if number // many_hosts.RACKS % 2
        ] + [str(uuid.uuid4()) for _ in range(gone)]
        rows.insert(
            *self.table('nova_api.instance_group_member'),
            [{'group_id': group, 'instance_uuid': one} for one in members],
        )
        return created

    def select(self, hints):
        """Let nova place a server; return the time."""
        self.spent.clear()
        request = self._build_server(
            flavor_id=self.small, image_uuid=self.imaged, networks='none'
        )
        # No nova-compute runs on a copy: the server stays in BUILD.
        self.api.post_server({'server': request, 'os:scheduler_hints': hints})
        self._wait_for_assert(
            lambda: self.assertEqual(1, len(self.spent)),
            max_retries=RETRIES,
        )
        return self.spent[0]

    @ddt.data(
        ({}, 0),
        ({'max_server_per_failure_domain': '60'}, 0),
        ({}, 5000),
    )
    @ddt.unpack
    def test_share(self, hints, gone):
        hints = {'group': self.group(gone), **hints}
        self.small, self.imaged = self.flavor(), self.image()
        whole, ours = [], []
        for _ in range(ROUNDS):
            whole.append(self.select(hints))
            [(manager, hosts, spec)] = self.weighed
            self.weighed.clear()
            self.assertEqual(self.hosts + 1, len(hosts))
            weigh = manager.weight_handler.get_weighed_objects
            none = seconds(weigh, [], hosts, spec)
            [weigher] = [
                one
                for one in manager.weighers
                if isinstance(one, round_robin.ServerGroupRoundRobinWeigher)
            ]
            # What the weigher keeps for the request's next server.
            known = request_state.of(spec).group
            known.assignment, known.servers = None, []
            ours.append(seconds(weigh, [weigher], hosts, spec) - none)
        whole, ours = map(statistics.median, (whole, ours))
        print(
            f'\nROUND ROBIN {self.hosts} hosts, {sorted(hints)}, {gone} '
            f'deleted: the weigher {ours * 1000:.0f} ms of '
            f'{whole * 1000:.0f} ms, {ours / whole:.1%}'
        )
        self.assertLessEqual(ours / whole, SHARE)
