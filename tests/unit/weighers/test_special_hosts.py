# SPDX-License-Identifier: Apache-2.0

from nova import objects
from nova.pci import stats

from nova_ext_sched.weighers import special_hosts
from tests.unit.request_filters import base as test_base
from tests.unit.weighers import preferences

FPGA = 'CUSTOM_FPGA'


def asking(**extra_specs):
    return {'flavor': test_base.flavor(extra_specs=extra_specs)}


class SpecialHostsWeigherTestCase(preferences.PreferenceTestCase):
    weigher = special_hosts.SpecialHostsWeigher

    def setUp(self):
        super().setUp()
        self.plain = self.host('plain')
        self.devices = self.host('devices')
        self.devices.pci_stats = stats.PciDeviceStats(objects.NUMATopology())
        self.devices.pci_stats.pools = [{'count': 0}]
        self.marked = self.host('marked', special=f'VGPU,{FPGA}')
        self.states = [self.plain, self.devices, self.marked]

    def test_a_plain_request(self):
        self.assertEqual([0, -1000, -1000], self.weigh(self.states))
        self.set(special_hosts_weight_multiplier=7.0)
        self.assertEqual([0, -7, -7], self.weigh(self.states))

    def test_devices(self):
        alias = objects.InstancePCIRequest(count=1)
        requests = objects.InstancePCIRequests(requests=[alias])
        found = self.weigh(self.states, pci_requests=requests)
        self.assertEqual([0, 0, -1000], found)
        requests.requests = []
        found = self.weigh(self.states, pci_requests=requests)
        self.assertEqual([0, -1000, -1000], found)

    def test_what_a_mark_names(self):
        at_home = [0, -1000, 0]
        for request in (
            asking(**{'resources:VGPU': '1'}),
            asking(**{'resources_A:VGPU': '1'}),
            asking(**{f'trait:{FPGA}': 'required'}),
            # Of a port or a device profile.
            {'requested_resources': [
                objects.RequestGroup(resources={'VGPU': 1})
            ]},
        ):  # fmt: skip
            self.assertEqual(at_home, self.weigh(self.states, **request))
        other = asking(**{'resources:PGPU': '1', 'trait:CUSTOM_B': 'required'})
        self.assertEqual([0, -1000, -1000], self.weigh(self.states, **other))

    def test_nothing_is_special(self):
        states = [self.plain, self.host('b')]
        self.assertEqual([0, 0], self.weigh(states))

    def test_a_host_that_reports_no_device(self):
        none = self.host('none')
        none.pci_stats = stats.PciDeviceStats(objects.NUMATopology())
        self.assertEqual([0, -1000], self.weigh([none, self.marked]))

    def test_another_key(self):
        self.set(special_hosts_key='kept')
        kept = self.host('kept', kept='VGPU')
        self.assertEqual([0, -1000], self.weigh([self.marked, kept]))

    def test_what_cannot_be_read(self):
        wrong = self.host('wrong', special='gpu')
        for _ in range(2):
            self.assertEqual([0, -1000], self.weigh([wrong, self.devices]))
        warning = 'aggregate of wrong: special: expected traits or resource '
        self.assertEqual(1, self.output.output.count(warning))

    def test_traits_that_nova_cannot_read(self):
        request = asking(**{'resources:VGPU': 'x', 'trait:A B': 'required'})
        self.assertEqual([0, -1000, 0], self.weigh(self.states, **request))
