# SPDX-License-Identifier: Apache-2.0

"""Which provider gives what one that placement listed has no more of."""

import types

import ddt
import testtools

from nova_ext_sched.dryrun.fit import swap
from tests.unit.dryrun.cloud import clouds

VGPU = 'resources=VCPU%3A1%2CVGPU%3A1&required=CUSTOM_FAST'
TWO = 'resources_A=VGPU%3A1&resources_B=VGPU%3A1&group_policy=isolate'
STORED = {'min_unit': 1, 'max_unit': 4, 'step_size': 1}


def summary(parent='host', *traits):
    return {'parent_provider_uuid': parent, 'traits': list(traits)}


@ddt.ddt
class SwapTestCase(testtools.TestCase):
    """A host with devices one to four; placement lists some of them."""

    def find(self, queries, requests, free, traits=(), **others):
        """Return the providers of what is found first.

        :param requests: the devices of each candidate
        :param free: of each device, and the CPUs of the host
        :param traits: by device
        :param others: what differs: parents, and what inventories give
        """
        traits = dict(traits)
        tree = {'host': summary(None)}
        for name in ('one', 'two', 'three', 'four'):
            parent = others.get('parents', {}).get(name, 'host')
            tree[name] = summary(parent, *traits.get(name, ()))
        stored = STORED | others.get('stored', {})
        has, has_free = {'VGPU': stored}, lambda uuid, name: free.get(uuid, 0)
        providers = types.SimpleNamespace(get_stored=lambda uuid: has)
        book = types.SimpleNamespace(get_free=has_free)
        one, cpu = {'VGPU': 1}, {'VCPU': 1}
        requests = [
            clouds.make_request(host=cpu, **dict.fromkeys(devices, one))
            for devices in requests
        ]
        made = swap.Swap(providers, queries)
        found = next(made.find(requests, tree, book), None)
        if found is None:
            return None
        self.assertEqual([*found['allocations']], found['mappings'][''])
        return [*found['allocations']][1:]

    @ddt.data(
        # The first that has room.
        ([['one']], {'three': 1, 'four': 1}, {}, ['three']),
        ([['one'], ['two']], {'four': 1}, {}, ['four']),
        # None has, or the host itself is full.
        ([['one']], {}, {}, None),
        ([['one']], {'host': 0, 'two': 1}, {}, None),
        # One of two, and both.
        ([['one', 'two']], {'two': 1, 'three': 1}, {}, ['three', 'two']),
        ([['one', 'two']], {'three': 1, 'four': 1}, {}, ['three', 'four']),
        # Two are wanted.
        ([['one', 'two']], {'three': 2}, {}, None),
        # Traits that the query names are the same; others are nobody's matter.
        ([['one']], {'two': 1}, {'traits': {'one': ['CUSTOM_FAST']}}, None),
        ([['one']], {'two': 1}, {'traits': {'one': ['CUSTOM_X']}}, ['two']),
        # What is below something else.
        ([['one']], {'two': 1}, {'parents': {'two': 'nic'}}, None),
        # It gives no such amount.
        ([['one']], {'two': 3}, {'stored': {'min_unit': 2}}, None),
    )
    @ddt.unpack
    def test_first(self, requests, free, others, expected):
        free = {'host': 9, **free}
        self.assertEqual(expected, self.find([VGPU], requests, free, **others))

    @ddt.data(
        (TWO, ['two']),
        (f'{TWO}&same_subtree=_A%2C_B', None),
        (f'{TWO}&member_of_A=in%3Ax', None),
        (f'{TWO}&member_of=in%3Ax', ['two']),
    )
    @ddt.unpack
    def test_what_says_more_of_a_group(self, text, expected):
        found = self.find([text], [['one']], {'host': 9, 'two': 1})
        self.assertEqual(expected, found)
