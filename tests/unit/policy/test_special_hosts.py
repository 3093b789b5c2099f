# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.policy import special_hosts

KEY = 'special'
VGPU, FPGA = {'VGPU'}, {'CUSTOM_FPGA'}


@ddt.ddt
class SpecialHostsTestCase(testtools.TestCase):
    @ddt.data(
        # PCI devices and marks of the host; what the request asks for.
        (False, set(), False, set(), False),
        (False, set(), True, VGPU, False),
        (True, set(), True, set(), False),
        (True, set(), False, VGPU, True),
        (False, VGPU, False, VGPU | {'VCPU'}, False),
        (False, VGPU | FPGA, False, FPGA, False),
        (False, VGPU, True, FPGA, True),
        (True, VGPU, True, set(), False),
        (True, VGPU, False, VGPU, False),
        (True, VGPU, False, FPGA, True),
    )
    @ddt.unpack
    def test_table(self, devices, marks, asks_devices, asked, last):
        found = special_hosts.is_last(devices, marks, asks_devices, asked)
        self.assertIs(last, found)

    @ddt.data(
        ({}, set(), False),
        ({KEY: 'VGPU'}, VGPU, False),
        ({KEY: ' CUSTOM_FPGA ,VGPU,'}, VGPU | FPGA, False),
        ({KEY: 'vgpu'}, set(), True),
        ({KEY: 'VGPU,true'}, set(), True),
        ({KEY: ','}, set(), True),
        ({KEY: None}, set(), True),
    )
    @ddt.unpack
    def test_marks(self, metadata, names, faulty):
        self.assertEqual(names, special_hosts.read_mark(metadata, KEY))
        faults = [*special_hosts.find_faults(metadata, KEY)]
        expected = 'special: expected traits or resource classes with commas '
        self.assertEqual(
            [True] * faulty, [one.startswith(expected) for one in faults]
        )
