# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import cachetools
import ddt
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched.policy import round_robin as policy
from nova_ext_sched.weighers import circles
from tests.unit.filters import base

MEMBERS = [f'member {number}' for number in range(9)]
KEY = 'failure_domain'


def flavor(**amounts):
    amounts = {
        'vcpus': 1,
        'memory_mb': 1024,
        'root_gb': 0,
        'ephemeral_gb': 0,
        'swap': 0,
        **amounts,
    }
    return objects.Flavor(**amounts)


def request(group=uuids.group, hosts=(), is_bfv=False, **amounts):
    return objects.RequestSpec(
        flavor=flavor(**amounts),
        is_bfv=is_bfv,
        instance_group=objects.InstanceGroup(
            uuid=group, members=list(MEMBERS), hosts=list(hosts)
        ),
    )


def state(name, *aggregates, held=0, **amounts):
    """Return a host with 8 vCPUs, 8 GiB of memory and 80 GiB of disk."""
    made = base.host_state(name, *aggregates)
    amounts = {
        'vcpus_total': 8,
        'vcpus_used': 0,
        'cpu_allocation_ratio': 1.0,
        'total_usable_ram_mb': 8192,
        'free_ram_mb': 8192,
        'ram_allocation_ratio': 1.0,
        'total_usable_disk_gb': 80,
        'disk_mb_used': 0,
        'disk_allocation_ratio': 1.0,
        **amounts,
    }
    for name, amount in amounts.items():
        setattr(made, name, amount)
    made.instances = dict.fromkeys([*MEMBERS[:held], 'another'])
    return made


@ddt.ddt
class RoomTestCase(testtools.TestCase):
    """How many members a host takes."""

    @ddt.data(
        # What the host has, what a server asks for, its room.
        ({}, {}, 8),
        ({'vcpus_used': 5}, {}, 3),
        ({'vcpus_used': 5}, {'vcpus': 2}, 1),
        ({'vcpus_used': 5, 'cpu_allocation_ratio': 1.5}, {}, 7),
        ({'free_ram_mb': 4095}, {}, 3),
        ({'free_ram_mb': 4096}, {}, 4),
        # Used above the total, as an allocation ratio allows.
        ({'free_ram_mb': -1024, 'ram_allocation_ratio': 1.5}, {}, 3),
        ({}, {'memory_mb': 2048}, 4),
        ({}, {'root_gb': 20}, 4),
        ({'disk_mb_used': 1}, {'root_gb': 20}, 3),
        ({'vcpus_used': 7}, {'root_gb': 20}, 1),
        ({'disk_allocation_ratio': 1.5}, {'root_gb': 20}, 6),
        ({}, {'root_gb': 10, 'ephemeral_gb': 10}, 4),
        ({}, {'root_gb': 20, 'swap': 1}, 3),
        ({}, {'root_gb': 20, 'is_bfv': True}, 8),
        # Placement says that one fits, whatever nova's record says.
        ({'vcpus_used': 9}, {}, 1),
        # Members stay where there is no room for more.
        ({'vcpus_used': 8, 'held': 2}, {}, 3),
        ({'vcpus_used': 6, 'held': 2}, {}, 4),
        # The rule.
        ({'vcpus_total': 99, 'free_ram_mb': 99999}, {}, 9),
        ({'vcpus_used': 1, 'held': 5}, {}, 9),
        # Nobody reported it, or nobody asks for it.
        ({'vcpus_total': 0, 'vcpus_used': 9}, {}, 8),
        ({'total_usable_ram_mb': 0, 'free_ram_mb': 0}, {}, 8),
        ({'total_usable_disk_gb': 0}, {'root_gb': 99}, 8),
        ({'cpu_allocation_ratio': None}, {}, 8),
        ({'ram_allocation_ratio': None}, {}, 8),
        ({'disk_allocation_ratio': None}, {'root_gb': 20}, 4),
        ({}, {'vcpus': 0, 'memory_mb': 0}, 9),
    )
    @ddt.unpack
    def test_table(self, amounts, asked, room):
        circle = circles.Circles().find(
            request(**asked), [state('a', **amounts)], 9
        )
        self.assertEqual({'a': policy.Host(frozenset(), room)}, circle)

    def test_a_request_without_a_flavor(self):
        spec = request()
        del spec.flavor
        self.assertEqual(
            9, circles.Circles().find(spec, [state('a')], 9)['a'].room
        )

    def test_domains(self):
        rack = base.aggregate('rack', failure_domain='r')
        states = [state('a', rack, vcpus_used=6), state('b', rack), state('c')]
        found = circles.Circles().find(request(), states, 3, KEY)
        self.assertEqual(
            {
                'a': policy.Host(frozenset('r'), 2),
                'b': policy.Host(frozenset('r'), 3),
                'c': policy.Host(frozenset(), 3),
            },
            found,
        )
        found = circles.Circles().find(request(), states, 3)
        self.assertEqual(frozenset(), found['a'].domains)


class MemoryTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.circles = circles.Circles()

    def find(self, *states, **spec):
        found = self.circles.find(request(**spec), states, 3)
        return {name: host.room for name, host in found.items()}

    def test_a_host_that_filled_up_keeps_its_turns(self):
        small, large = state('small', vcpus_used=6), state('large')
        self.find(small, large)
        self.assertEqual({'small': 2, 'large': 3}, self.find(large))
        self.assertEqual({'large': 3}, self.find(large, group=uuids.other))

    def test_exactly_the_rule(self):
        self.find(state('a', vcpus_used=5), state('b', vcpus_used=4))
        self.assertEqual({'a': 3}, self.find())

    def test_a_claim_that_is_reported_before_its_member(self):
        self.find(state('a', vcpus_used=6))
        self.assertEqual({'a': 2}, self.find(state('a', vcpus_used=7)))
        self.assertEqual({'a': 2}, self.find())

    def test_a_host_that_has_more_room_than_before(self):
        self.find(state('a', vcpus_used=7))
        self.assertEqual({'a': 2}, self.find(state('a', vcpus_used=6)))
        self.assertEqual({'a': 3}, self.find(state('a')))

    def test_hosts_of_members(self):
        self.assertEqual(
            {'a': 3, 'b': 1}, self.find(state('a'), hosts=['a', 'b'])
        )

    def test_for_ten_minutes_after_the_latest_request(self):
        now = 0.0
        with mock.patch.object(
            self.circles,
            '_remembered',
            cachetools.TTLCache(9, circles._SECONDS, lambda: now, len),
        ):
            self.find(state('a', vcpus_used=7))
            now = 599.0
            self.assertEqual({'a': 1}, self.find())
            now += 599
            self.assertEqual({'a': 1}, self.find())
            now += 601
            self.assertEqual({}, self.find())
        self.assertEqual(600, circles._SECONDS)

    def test_more_hosts_than_can_be_remembered(self):
        with mock.patch.object(circles, '_HOSTS', 2):
            self.circles = circles.Circles()
        small = [state(name, vcpus_used=7) for name in 'abc']
        self.assertEqual({'a': 1, 'b': 1, 'c': 1}, self.find(*small))
        self.assertEqual({}, self.find())
        self.find(*small[:2])
        self.find(*small[2:], group=uuids.other)
        # The group that was asked about longest ago.
        self.assertEqual({}, self.find())
        self.assertEqual({'c': 1}, self.find(group=uuids.other))
