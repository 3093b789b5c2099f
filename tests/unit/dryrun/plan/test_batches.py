# SPDX-License-Identifier: Apache-2.0

import ddt
from nova import objects
import testtools

from nova_ext_sched.dryrun.plan import batches
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans
from tests.unit.dryrun.plan import small

objects.register_all()

SERVER = {'host': 'h1', 'target': 'h2', 'group': None, 'hints': None}
NUMA = {
    'numa_topology': objects.InstanceNUMATopology(
        cells=[objects.InstanceNUMACell()]
    ),
    'pci_requests': None,
}
DEVICE = {
    'numa_topology': None,
    'pci_requests': objects.InstancePCIRequests(
        requests=[objects.InstancePCIRequest()]
    ),
}


def order(of, moves):
    """Return the moves of servers, which are numbered as they move."""
    made, movables = [], {}
    for number, move in enumerate(moves, 1):
        mine = {'is_named': True, **SERVER, **move}
        spec_obj = objects.RequestSpec()
        if mine['group']:
            spec_obj.instance_group = objects.InstanceGroup(uuid=mine['group'])
        if mine['hints']:
            spec_obj.scheduler_hints = mine['hints']
        for name in NUMA.keys() & mine.keys():
            setattr(spec_obj, name, mine[name])
        movables[number] = movable.Evacuation(number, spec_obj, None)
        to = mine['target'] if mine['is_named'] else None
        made.append(
            plans.Move(
                *(number, '', 'p', mine['host'], []),
                *(to, mine['target'], 'evacuate'),
            )
        )
    return small.read(of(made, movables))


@ddt.ddt
class BatchTestCase(testtools.TestCase):
    @ddt.data(
        ([1, 1], {'host': 'h1'}, {'host': 'h3'}),
        ([1, 1], {'target': 'h2'}, {'target': 'h3'}),
        # What is left meanwhile is another's room.
        ([1, 1], {'target': 'h2'}, {'host': 'h2', 'target': 'h3'}),
        ([1, 2], {'host': 'h1'}, {'host': 'h3', 'target': 'h1'}),
        ([1, 2], {'group': 'a'}, {'group': 'a', 'target': 'h3'}),
        ([1, 1], {'group': 'a'}, {'group': 'b'}),
        # Which cell or device is left depends on who comes first.
        ([1, 2], NUMA, NUMA),
        ([1, 2], NUMA, DEVICE),
        ([1, 2], DEVICE, DEVICE),
        ([1, 1], NUMA, {**NUMA, 'target': 'h3'}),
        ([1, 1], NUMA, {}),
        ([1, 1, 2], {}, NUMA, NUMA),
        ([1, 2, 2], {'group': 'a'}, {'group': 'a'}, {'group': 'b'}),
        ([1, 2], {'is_named': False}, {}),
        ([1, 2, 3], {}, {'is_named': False}, {}),
        ([1, 2, 3], {}, {'hints': {'same_host': ['a']}}, {}),
        ([1, 1], {}, {'hints': {'group': ['a']}}),
        # A new batch has no memory of the one before.
        (
            [1, 2, 2],
            {'host': 'h1'},
            {'host': 'h3', 'target': 'h1'},
            {'host': 'h4', 'target': 'h1'},
        ),
    )
    def test_numbers(self, row):
        expected, *moves = row
        made = order(batches.number, moves)
        self.assertEqual(expected, [one.batch for one in made])


@ddt.ddt
class LinkTestCase(testtools.TestCase):
    @ddt.data(
        ([[], []], {'host': 'h1'}, {'host': 'h3'}),
        # Room that is left, whether or not nova is told where it goes.
        ([[], [1]], {'host': 'h1'}, {'host': 'h3', 'target': 'h1'}),
        (
            [[], [], [1, 2]],
            {'host': 'h1'},
            {'host': 'h1', 'target': 'h4'},
            {'host': 'h3', 'target': 'h1'},
        ),
        # Nobody comes to a host that it did not leave.
        ([[], []], {'target': 'h2'}, {'host': 'h2', 'target': 'h3'}),
        (
            [[], [], [1]],
            {'group': 'a'},
            {'group': 'b'},
            {'group': 'a', 'target': 'h3'},
        ),
        # A host that has the name of a group is none.
        ([[], [1]], {'group': 'a'}, {'group': 'a', 'host': 'h9'}),
        (
            [[], [], [1, 2], []],
            {},
            {'target': 'h3'},
            {'hints': {'same_host': ['a']}},
            {},
        ),
        ([[], []], {}, {'hints': {'group': ['a']}}),
        ([[], [1], [2], [2]], {}, {'is_named': False}, {}, {}),
    )
    def test_needs(self, row):
        expected, *moves = row
        made = order(batches.link, moves)
        self.assertEqual(expected, [one.needed for one in made])
