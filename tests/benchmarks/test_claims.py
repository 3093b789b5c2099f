# SPDX-License-Identifier: Apache-2.0

"""What it costs to count members of a group that are under way.

A real API database (SQLite) and placement, 1,000 hosts, a group of 24 of which
some are under way. In milliseconds of wall time, since what costs is waiting:
with placement in this process, which leaves out the network.
"""

import statistics
import time

from nova import objects
from nova.scheduler import host_manager
from oslo_utils import uuidutils

from nova_ext_sched.filters import server_group_anti_affinity
from tests.functional import server_groups

HOSTS = 1000
MEMBERS = 24
ROUNDS = 15


class ClaimsBenchmark(server_groups.UnderWayTestCase):
    def make_hosts(self, members):
        hosts = []
        for number in range(HOSTS):
            state = host_manager.HostState(
                f'node{number}', f'node{number}', uuidutils.generate_uuid()
            )
            state.uuid = uuidutils.generate_uuid()
            state.instances = dict.fromkeys(
                uuidutils.generate_uuid() for _ in range(20)
            )
            hosts.append(state)
        for state, member in zip(hosts, members, strict=False):
            state.instances[member] = None
        return hosts

    def measure(self, members, hosts, policy='anti-affinity'):
        """Return the median of a request's time in the filter."""
        group = objects.InstanceGroup(
            uuid=uuidutils.generate_uuid(),
            policy=policy,
            _rules={'max_server_per_host': '3'},
            members=members,
            hosts=[],
        )
        filter_ = server_group_anti_affinity.ServerGroupAntiAffinityFilter()
        times = []
        for _ in range(ROUNDS):
            spec = objects.RequestSpec(
                instance_group=group,
                instance_uuid=uuidutils.generate_uuid(),
                num_instances=1,
                scheduler_hints={},
            )
            start = time.perf_counter()
            filter_.filter_all(hosts, spec)
            times.append((time.perf_counter() - start) * 1000)
        return statistics.median(times)

    def test_cost(self):
        group = self.create_group({'max_server_per_host': 3})
        waiting = [self.start_member(group) for _ in range(8)]
        placed = [self.start_member(group, 'host1') for _ in range(MEMBERS)]
        landed = [uuidutils.generate_uuid() for _ in range(MEMBERS)]
        cases = {
            'another policy': (landed, landed, 'soft-anti-affinity'),
            'all on hosts': (landed, landed),
            'all on other hosts, or deleted': (landed, []),
            '8 placed': (placed[:8] + landed[8:], landed),
            '24 placed': (placed, []),
            '8 wait for a host': (waiting + landed[8:], landed),
        }
        found = {
            name: self.measure(members, self.make_hosts(seen), *policy)
            for name, (members, seen, *policy) in cases.items()
        }
        print()
        for name, milliseconds in found.items():
            print(f'{name:32} {milliseconds:8.2f} ms')
        self.assertLess(found['another policy'], found['all on hosts'])
        self.assertLess(found['all on hosts'], found['24 placed'])
