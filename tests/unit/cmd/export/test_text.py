# SPDX-License-Identifier: Apache-2.0

import unittest

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from nova_ext_sched.cmd.export import text
from nova_ext_sched.cmd.export import unsaid
from nova_ext_sched.cmd.simulate import check
from nova_ext_sched.cmd.simulate import document


def write(**parts):
    """Write a document; return what is read of it, and the text."""
    data = {
        'hosts': [{'name': 'a'}],
        'flavors': {'f': {}},
        'steps': [],
        **parts,
    }
    written = text.write(data, unsaid.Unsaid())
    read = document.parse(written)
    assert not [*check.findings(read)], written
    return read, written


class WriteTest(unittest.TestCase):
    def test_same_values_once(self):
        """YAML refers to them; what is used is each host's own."""
        hosts = [
            {
                'name': name,
                'inventories': {'VCPU': {'total': 4, 'allocation_ratio': 1.5}},
                'used': {'VCPU': 3},
                'traits': ['CUSTOM_A'],
                'compute_node': {
                    'supported_instances': [['x86_64', 'kvm', 'hvm']]
                },
            }
            for name in 'ab'
        ]
        read, written = write(hosts=hosts)
        self.assertEqual(hosts, read['hosts'])
        for value, times in (
            ('total', 1),
            ('CUSTOM_A', 1),
            ('kvm', 1),
            ('VCPU: 3', 2),
        ):
            self.assertEqual(times, written.count(value), written)

    def test_what_the_simulator_refuses(self):
        boot = {'boot': 'x', 'flavor': 'f'}
        read, written = write(
            flavors={
                'f': {'extra_specs': {'hw:cpu_policy': 'never', 'k': 'v'}}
            },
            aggregates={
                'x': {'hosts': ['a'], 'metadata': {'k': 'v' * 300, 'l': 'v'}},
            },
            servers={
                'gone': {'host': 'nowhere', 'flavor': 'f'},
                'here': {'host': 'a', 'flavor': 'f'},
            },
            independent=True,
            steps=[
                {**boot, 'boot': 'y', 'flavor': 'g'},
                {**boot, 'hints': {'a': 'x' * 300, 'b': ['x', 'y' * 300]}},
            ],
        )
        self.assertEqual({'extra_specs': {'k': 'v'}}, read['flavors']['f'])
        self.assertEqual({'l': 'v'}, read['aggregates']['x']['metadata'])
        self.assertEqual(['here'], [*read['servers']])
        self.assertEqual([{**boot, 'hints': {}}], read['steps'])
        self.assertTrue(
            written.startswith(
                '# Not in this scenario:\n'
                '#   3 values of steps, which the simulator refuses\n'
                '#   1 value of servers, which the simulator refuses\n'
            ),
            written,
        )

    @settings(max_examples=30, deadline=None)
    @given(
        st.dictionaries(st.text(max_size=300), st.text(max_size=300)),
        st.text(min_size=1, max_size=40),
    )
    def test_whatever_a_tenant_writes(self, hints, name):
        """What stays is as it was, and the rest is left out."""
        step = {'boot': 'x', 'flavor': 'f', 'hints': dict(hints)}
        read, _ = write(
            independent=True,
            steps=[step],
            images={name: {'properties': {'os_distro': name}}},
        )
        for one in read['steps']:
            self.assertLessEqual(one['hints'].items(), hints.items())
        for key in read['images']:
            self.assertEqual(name, key)
