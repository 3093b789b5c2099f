# SPDX-License-Identifier: Apache-2.0

"""Pinned CPUs and PCI devices that are used up, and what helps then."""

from tests.functional import explain
from tests.long import devices


class AdviceMixin:
    def ask(self, flavor):
        return explain.read('--flavor', flavor)

    def check(self, flavor, said, act, server):
        """Check what is said of a flavor, and that the first act helps."""
        answer = self.ask(flavor)
        self.assertEqual(3, answer.status, answer)
        self.assertEqual(f'0 of 2 hosts can take it. {said}.', answer.sentence)
        self.assertEqual(act, answer.acts[0])
        self.boot(flavor, expected_state='ERROR')
        self._delete_server(server)
        self.boot(flavor)


class PinnedTestCase(AdviceMixin, devices.DevicesBase):
    dedicated = '0-11'

    def test_pinned_cpus(self):
        for specs, said in (
            # All hosts have threads; nobody takes these away.
            (
                devices.PINNED | {'hw:cpu_thread_policy': 'isolate'},
                '2 have the forbidden trait HW_CPU_HYPERTHREADING',
            ),
            (
                devices.PINNED | {'hw:numa_nodes': '3'},
                '2 are refused by NUMATopologyFilter',
            ),
        ):
            # Each NUMA node gets as much memory.
            answer = self.ask(self.large(3, 384, **specs))
            self.assertIn(said, answer.sentence)
            self.assertEqual([], answer.acts)
        six = self.large(6, **devices.PINNED)
        servers = [self.boot(six) for _ in range(4)]
        for number in (13, 14):
            sentence = self.ask(self.large(number, **devices.PINNED)).sentence
            self.assertIn('2 are too small (PCPU)', sentence)
        two = self.large(2, **devices.PINNED)
        self.check(
            two,
            '2 are full (PCPU)',
            'free 2 PCPU on one of host1, host2',
            servers[0],
        )


class PlacementTestCase(AdviceMixin, devices.DevicesBase):
    in_placement = True

    def test_devices(self):
        nic = self.large(1, **{'pci_passthrough:alias': 'nic:1'})
        servers = [self.boot(nic) for _ in range(6)]
        name = 'CUSTOM_PCI_{vendor_id}_{product_id}'.format(**devices.DEVICE)
        self.check(
            nic,
            f'2 are full ({name.upper()}, PCI alias nic)',
            f'free {name.upper()} on one of host1, host2',
            servers[0],
        )
        [row] = [
            one
            for one in self.ask(nic).rows
            if one['refused'] and one['stage'] == 'placement'
        ]
        self.assertEqual(2, row['refused'])
