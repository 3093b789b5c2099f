# SPDX-License-Identifier: Apache-2.0

"""Hosts that are down or fill up, and hosts of two cells."""

import collections
import typing

import ddt

from tests.functional import test_round_robin


class DownTest(test_round_robin.RoundRobinTestCase):
    def test_hosts_that_are_down(self):
        self.a_soft_group_is_refused_nothing()
        self.evacuated_members_go_to_different_hosts()

    def a_soft_group_is_refused_nothing(self):
        group = self.create_group(policy='soft-anti-affinity')
        circle = self.circle(group)
        for _ in range(3):
            self.boot_in(group, host=circle[1])
        # Its host has the most members, and all others are down.
        for host in {*circle} - {circle[1]}:
            self.set_service(host, forced_down=True)
        self.assertEqual([circle[1]] * 2, self.boot_many(group, 2))
        self.set_service(circle[0], forced_down=False)
        self.assertEqual([circle[0]] * 2, self.boot_many(group, 2))
        for host in circle:
            self.set_service(host, forced_down=False)

    def evacuated_members_go_to_different_hosts(self):
        group = self.create_group(2)
        hosts = self.boot_at_once(group, 6)
        down = hosts[0]
        self.assertEqual(2, hosts.count(down))
        self.lose(down)
        for uuid, host in zip(self.members(group), hosts, strict=True):
            if host == down:
                self._evacuate_server({'id': uuid})
        hosts = collections.Counter(
            self.host_of({'id': uuid}) for uuid in self.members(group)
        )
        self.assertNotIn(down, hosts)
        self.assertEqual(2, max(hosts.values()))


@ddt.ddt
class SizesTest(test_round_robin.RoundRobinTestCase):
    """Hosts that fill up before the group does."""

    started = ()
    sizes: typing.ClassVar = {'a1': 1, 'a2': 1, 'a3': 2, 'b1': 9, 'b2': 9}

    def setUp(self):
        super().setUp()
        for host, size in self.sizes.items():
            # Rounded up: placement truncates the product with the vCPUs.
            self.flags(
                initial_cpu_allocation_ratio=(size + 0.5)
                / test_round_robin.VCPUS
            )
            self._start_compute(host)

    @ddt.data(('anti-affinity', 3), ('soft-anti-affinity', 9))
    @ddt.unpack
    def test_full_hosts_keep_their_slots(self, policy, most):
        group = self.create_group(most, policy)
        assignment = self.assignment(
            group, {host: min(most, n) for host, n in self.sizes.items()}
        )
        expected, members = [], []
        for number in range(8):
            members.append(f'server{number}')
            expected.append(assignment.order_hosts(members, members[-1])[0])
            assignment.places[members[-1]] = (None,)
        self.assertEqual(expected, self.boot_many(group, 8))


class CellsTest(test_round_robin.RoundRobinTestCase):
    NUMBER_OF_CELLS = 2
    cells = {'a3': 'cell2', 'b2': 'cell2'}

    def test_the_hosts_of_every_cell(self):
        group = self.create_group()
        self.assertEqual(self.circle(group), self.boot_many(group, 5))
