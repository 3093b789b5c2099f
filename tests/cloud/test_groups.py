# SPDX-License-Identifier: Apache-2.0

"""A group whose servers are created at the same time, to the last place."""

import collections
from concurrent import futures

from tests.cloud import world

#: Of the group.
LIMIT = 2


class GroupsTestCase(world.WorldTestCase):
    closed = False

    def test_the_group_fills(self):
        """Schedulers that see nothing of each other choose other hosts.

        They decide about several servers at a time. Without a turn for each
        server they choose the same hosts, and nova-compute refuses what is too
        much: nova tries other hosts of the same cell, three in all.
        """
        group = self.world.create_group(
            policy='anti-affinity', rules={'max_server_per_host': LIMIT}
        )
        places = LIMIT * len(self.world.hosts)

        def boot(_number):
            (server,) = self.world.boot('plain', hints={'group': group})
            return server

        with futures.ThreadPoolExecutor(places) as members:
            servers = list(members.map(boot, range(places)))
        self.assertEqual(
            dict.fromkeys(self.world.hosts, LIMIT),
            dict(collections.Counter(s.hypervisor_hostname for s in servers)),
            [server.fault for server in servers if server.fault],
        )
