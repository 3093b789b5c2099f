# SPDX-License-Identifier: Apache-2.0

import types

import ddt
import testtools

from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.decision import numbered

GROUP = '1: required=CUSTOM_A&resources=VGPU%3A1'
PLAIN = '1: resources=VGPU%3A1'


def vgpu(total=2, used=0, reserved=0, max_unit=2):
    return {
        'VGPU': {
            'total': total,
            'reserved': reserved,
            'allocation_ratio': 1.0,
            'max_unit': max_unit,
            'capacity': total - reserved,
            'used': used,
        }
    }


@ddt.ddt
class ExplainTestCase(testtools.TestCase):
    """What is said of a host with some providers, of which a has the trait."""

    def explain(self, text, providers, name=''):
        known = types.SimpleNamespace(
            find_fitting=lambda params: {'a'},
            get_tree=lambda host: ['host', *providers],
            get_inventories=lambda one: providers.get(one, {}),
        )
        part = query.Part('group', text)
        return numbered.explain(known, part, ['host'], name)

    @ddt.data(
        # Used up; reserved, as what is not cleaned yet; less than that.
        (PLAIN, {'b': vgpu(used=2)}, 'are full (VGPU)'),
        (GROUP, {'a': vgpu(used=2)}, 'are full (VGPU with CUSTOM_A)'),
        (GROUP, {'a': vgpu(reserved=2)}, 'have VGPU with CUSTOM_A reserved'),
        (GROUP, {'a': vgpu(0)}, 'are too small (VGPU with CUSTOM_A)'),
        (
            GROUP,
            {'a': vgpu(max_unit=0)},
            'are too small (VGPU with CUSTOM_A)',
        ),
        # None there, or none as asked.
        (GROUP, {}, 'have no VGPU'),
        (GROUP, {'a': {}}, 'have no VGPU'),
        (GROUP, {'b': vgpu()}, 'have no VGPU with CUSTOM_A'),
        # The best of several.
        (
            GROUP,
            {'a': vgpu(used=2), 'b': vgpu()},
            'are full (VGPU with CUSTOM_A)',
        ),
    )
    @ddt.unpack
    def test_explain(self, text, providers, expected):
        found = self.explain(text, providers)['host']
        self.assertEqual((expected, 'VGPU'), found[:2])
        is_full = expected.startswith('are full')
        self.assertEqual(is_full, found.is_full)
        may_be_free = is_full or 'reserved' in expected
        self.assertEqual(may_be_free, found.lifts)

    def test_a_pci_alias(self):
        found = self.explain(PLAIN, {'b': vgpu(used=2)}, 'nic')['host']
        self.assertEqual('are full (VGPU, PCI alias nic)', found.phrase)

    def test_what_nobody_knows(self):
        """Of several classes none is to blame; nor is another constraint."""
        for text in (
            '1: resources=VGPU%3A1%2CFPGA%3A1',
            '1: member_of=in%3Ax&resources=VGPU%3A1',
        ):
            self.assertEqual({}, self.explain(text, {'b': vgpu()}))
