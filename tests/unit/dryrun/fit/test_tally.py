# SPDX-License-Identifier: Apache-2.0

"""From the room of hosts to the document."""

import types

import testtools

from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.fit import answer
from nova_ext_sched.dryrun.fit import count
from nova_ext_sched.dryrun.fit import tally

FLAVOR = types.SimpleNamespace(
    flavorid='1', name='m1', vcpus=1, memory_mb=64, root_gb=1, ephemeral_gb=0
)


def rooms(**servers):
    """Return a room of each host, which ends for want of CPUs."""
    end = refusals.full(['VCPU'])
    return {
        uuid: count.HostCount(None, [uuid], number, end)
        for uuid, number in servers.items()
    }


class DescribeTestCase(testtools.TestCase):
    def test_a_host_that_takes_none_is_refused(self):
        counted = tally.Counted(FLAVOR, rooms=rooms(a=3, b=0, c=4))
        found = tally.make_document(counted)
        self.assertEqual((7, 2), (found.servers, found.hosts))
        self.assertEqual([answer.RoomEnd('VCPU', 2)], found.ends)
        self.assertEqual([1], [one.hosts for one in found.refused])

    def test_hosts_of_several_groups(self):
        groups = {'x': {'a', 'b'}, 'y': {'b', 'c'}}
        counted = tally.Counted(FLAVOR, rooms=rooms(a=1, b=2, c=4))
        found = tally.make_document(counted, groups=groups)
        numbers = [(one.name, one.servers) for one in found.groups]
        self.assertEqual([('y', 6), ('x', 3)], numbers)
        self.assertEqual(2, found.in_several.servers)

    def test_hosts_of_which_the_sum_is_known(self):
        groups = {'x': {'a', 'b'}, 'y': {'b', 'c'}, 'z': {'c'}}
        known = {'rooms': rooms(a=1, b=2, c=4), 'tied': [{'a', 'b'}]}
        counted = tally.Counted(FLAVOR, **known)
        hosts = {uuid: types.SimpleNamespace(name=uuid) for uuid in ('a', 'c')}
        found = tally.make_document(counted, hosts, groups)
        self.assertEqual((7, None), (found.servers, found.hosts))
        numbers = [(one.host, one.servers) for one in found.rooms]
        self.assertEqual([('c', 4), ('a', None)], numbers)
        numbers = [(one.name, one.servers, one.hosts) for one in found.groups]
        expected = [('z', 4, 1), ('x', 3, None), ('y', None, None)]
        self.assertEqual(expected, numbers)
        self.assertIsNone(found.in_several.servers)

    def test_the_flavor_with_the_least_room_is_first(self):
        """One that could not be counted is last."""
        counted = {
            'b': {'rooms': rooms(a=3)},
            'uncounted': {'fault': 'no'},
            'any': {'rooms': {'a': count.HostCount(None, ['a'], count.MOST)}},
            'a': {'rooms': rooms(a=3)},
            'full': {'rooms': rooms(a=0)},
        }
        flavors = []
        for name, known in counted.items():
            fields = {**vars(FLAVOR), 'name': name}
            flavor = types.SimpleNamespace(**fields)
            known = tally.Counted(flavor, **known)
            flavors.append(tally.make_document(known))
        made = tally.build(request.Question(None), None, flavors, 1, [])
        self.assertEqual(
            ['full', 'a', 'b', 'any', 'uncounted'],
            [one.name for one in made.flavors],
        )
        [any_] = [one for one in made.flavors if one.name == 'any']
        self.assertEqual((None, True), (any_.servers, any_.unlimited))
