# SPDX-License-Identifier: Apache-2.0

"""Moves by NUMA cells and PCI devices, with nova's libvirt driver.

See :mod:`.devices`.
"""

import json

from nova import context
from nova import objects

from nova_ext_sched.cmd import drain
from tests.functional import explain
from tests.functional import test_survive
from tests.long import devices


class MovesBase(devices.DevicesBase):
    #: How often servers that are alike are asked about: once, and once more
    #: why the last one has no place.
    judged = 2

    def plan(self, host):
        """Return a plan that empties a host, of cold moves.

        Its servers are alike, and asked about once.
        """
        with test_survive.counting() as judged:
            found = explain.ask(drain.Drain, 'drain', host)
        plan = found.plan
        self.assertEqual(
            {'cold'}, {one['method'] for one in plan['moves']}, plan
        )
        self.assertEqual(self.judged, len(judged))
        return plan


class CellsTestCase(MovesBase):
    """CPUs are shared, and the memory of a cell is enough for two servers.

    Placement has room for five on a host, the cells for four.
    """

    def setUp(self):
        super().setUp()
        self.one = self.large(1, 3000, **{'hw:numa_nodes': '1'})

    def test_hosts_that_fail(self):
        for host in (*['host1'] * 3, *['host2'] * 2):
            self.boot(self.one, host=host)
        self.assertEqual(3, self.count_spare(self.one)[1])
        [failure] = [
            one
            for one in self.survive()['failures']
            if one['failure'] == 'host1'
        ]
        self.assertEqual(
            (['host2'] * 2, ['NUMATopologyFilter']),
            (
                [one['to'] for one in failure['moves']],
                [one['cause'] for one in failure['without_place']],
            ),
        )
        self.fail_hosts(failure)

    def test_a_host_that_is_to_be_empty(self):
        for host in (*['host1'] * 3, *['host2'] * 2):
            self.boot_stopped(flavor=self.one, host=host)
        plan = self.plan('host1')
        # Both go to one host, and the order decides which cells are left.
        self.assertEqual(
            [('host2', 1), ('host2', 2)],
            [(one['to'], one['batch']) for one in plan['moves']],
        )
        [stuck] = plan['without_place']
        self.assertEqual('NUMATopologyFilter', stuck['cause'])
        self.carry_out(plan)


class DevicesTestCase(MovesBase):
    """Three devices on each host."""

    def test_a_host_that_is_to_be_empty(self):
        flavor = self.large(1, **{'pci_passthrough:alias': 'nic:1'})
        for host in (*['host1'] * 3, 'host2'):
            self.boot_stopped(flavor=flavor, host=host)
        plan = self.plan('host1')
        self.assertEqual(2, len(plan['moves']))
        self.assertEqual(1, len(plan['without_place']))
        self.carry_out_devices(plan)

    def carry_out_devices(self, plan):
        self.carry_out(plan)


class DevicesInPlacementTestCase(DevicesTestCase):
    """Each device is a provider in the host's tree."""

    in_placement = True
    # And twice to try what would help: a free device, and one more host.
    judged = 4

    def carry_out_devices(self, plan):
        # On a cold migration nova-compute takes any device, not that which
        # the scheduler took: the next move may find neither free.
        self.carry_out({'moves': plan['moves'][:1]})


class DevicesOfThoseThatLeftTestCase(MovesBase):
    """Three devices on each host, of which some are given back."""

    def test_rounds(self):
        """Host1 takes three only if that of the first server is free."""
        flavor = self.large(1, **{'pci_passthrough:alias': 'nic:1'})
        servers = [
            self.boot_stopped(flavor=flavor, host=host)
            for host in ('host1', 'host2', 'host2')
        ]
        rounds = self.maintain()['rounds']
        self.assertEqual(
            [['host1'], ['host2']], [one['hosts'] for one in rounds]
        )
        self.assertEqual(['host1'] * 3, [self.host_of(one) for one in servers])


class ProcessorsTestCase(devices.DevicesBase):
    """CPUs as nova-compute has them: a guest that runs has no own model."""

    hosts = ('host1', 'host2', 'host3')

    def test_hosts_that_lack_features(self):
        server = self.boot(self.large(1), host='host1')
        for lesser, to, lacks in (
            ((), 'host2', []),
            (('host2',), 'host3', []),
            (('host2', 'host3'), 'host2', ['avx512f']),
        ):
            for host in self.hosts:
                self.set_features(host, 'avx512f' * (host not in lesser))
            plan = explain.ask(drain.Drain, 'drain', 'host1').plan
            [move] = plan['moves']
            found = move['server'], move['method'], move['to'], move['lacks']
            self.assertEqual((server['id'], 'live', to, lacks), found)

    def set_features(self, host, feature):
        node = objects.ComputeNode.get_first_node_by_host_for_old_compat(
            context.get_admin_context(), host
        )
        info = json.loads(node.cpu_info)
        node.cpu_info = json.dumps({**info, 'features': ['sse', feature]})
        node.save()
