# SPDX-License-Identifier: Apache-2.0

"""Moves in an order: from host h1 to h2, of a group a ("h1>h2+a"), with a hint
("~same_host"), NUMA cells or a device ("*numa"), or as nova chooses ("?").
"""

import re

import ddt
from nova import objects
import testtools

from nova_ext_sched.dryrun.plan import ending
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans
from tests.unit.dryrun.plan import small

objects.register_all()

MOVE = re.compile(r'(\w+)>(\w+)(?:\+(\w+))?(?:~(\w+))?(?:\*(\w+))?(\?)?')


def order(of, *moves):
    """Return the moves of servers, which are numbered as they move."""
    made, movables = [], {}
    for number, text in enumerate(moves, 1):
        host, target, group, hint, fit, chosen = MOVE.fullmatch(text).groups()
        spec_obj = objects.RequestSpec(numa_topology=None, pci_requests=None)
        if group:
            spec_obj.instance_group = objects.InstanceGroup(uuid=group)
        if hint:
            spec_obj.scheduler_hints = {hint: ['x']}
        if fit == 'numa':
            cells = [objects.InstanceNUMACell()]
            spec_obj.numa_topology = objects.InstanceNUMATopology(cells=cells)
        if fit == 'device':
            devices = [objects.InstancePCIRequest()]
            found = objects.InstancePCIRequests(requests=devices)
            spec_obj.pci_requests = found
        movables[number] = movable.Evacuation(number, spec_obj, None)
        to = None if chosen else target
        made.append(
            plans.Move(number, '', 'p', host, [], to, target, 'evacuate')
        )
    return small.read(of(made, movables))


@ddt.ddt
class OrderTestCase(testtools.TestCase):
    @ddt.data(
        ('1 1', 'h1>h2', 'h3>h2'),
        ('1 1', 'h1>h2', 'h1>h3'),
        # What is left meanwhile is another's room.
        ('1 1', 'h1>h2', 'h2>h3'),
        ('1 2', 'h1>h2', 'h3>h1'),
        ('1 2', 'h1>h2+a', 'h1>h3+a'),
        ('1 1', 'h1>h2+a', 'h1>h2+b'),
        # Which cell or device is left depends on who comes first.
        ('1 2', 'h1>h2*numa', 'h1>h2*numa'),
        ('1 2', 'h1>h2*numa', 'h1>h2*device'),
        ('1 2', 'h1>h2*device', 'h1>h2*device'),
        ('1 1', 'h1>h2*numa', 'h1>h3*numa'),
        ('1 1', 'h1>h2*numa', 'h1>h2'),
        ('1 1 2', 'h1>h2', 'h1>h2*numa', 'h1>h2*numa'),
        ('1 2 2', 'h1>h2+a', 'h1>h2+a', 'h1>h2+b'),
        ('1 2', 'h1>h2?', 'h1>h2'),
        ('1 2 3', 'h1>h2', 'h1>h2?', 'h1>h2'),
        ('1 2 3', 'h1>h2', 'h1>h2~same_host', 'h1>h2'),
        ('1 1', 'h1>h2', 'h1>h2~group'),
        # A new batch has no memory of the one before.
        ('1 2 2', 'h1>h2', 'h3>h1', 'h4>h1'),
    )
    def test_number(self, row):
        expected, *moves = row
        made = order(ending.number, *moves)
        self.assertEqual(expected, ' '.join(f'{one.batch}' for one in made))

    @ddt.data(
        ('- -', 'h1>h2', 'h3>h2'),
        # Room that is left, whether or not nova is told where it goes.
        ('- 1', 'h1>h2', 'h3>h1'),
        ('- - 1,2', 'h1>h2', 'h1>h4', 'h3>h1'),
        # Nobody comes to a host that it did not leave.
        ('- -', 'h1>h2', 'h2>h3'),
        ('- - 1', 'h1>h2+a', 'h1>h2+b', 'h1>h3+a'),
        # A host that has the name of a group is none.
        ('- 1', 'h1>h2+a', 'h9>h2+a'),
        ('- - 1,2 -', 'h1>h2', 'h1>h3', 'h1>h2~same_host', 'h1>h2'),
        ('- -', 'h1>h2', 'h1>h2~group'),
        ('- 1 2 2', 'h1>h2', 'h1>h2?', 'h1>h2', 'h1>h2'),
    )
    def test_link(self, row):
        expected, *moves = row
        needed = [one.needed for one in order(ending._link, *moves)]
        said = (','.join(map(str, one)) or '-' for one in needed)
        self.assertEqual(expected, ' '.join(said))
