# SPDX-License-Identifier: Apache-2.0

"""How many servers of a request hosts take, with filters of the test's own."""

import math
import types

import fixtures
import testtools

from nova_ext_sched.dryrun.capacity import room
from tests.unit.dryrun.cloud import clouds
from tests.unit.request_filters import base


class RoomsTestCase(testtools.TestCase):
    """Hosts a and b, of 8 and 4 CPUs, for servers of two."""

    capacities = {'a': 8, 'b': 4}  # noqa: RUF012

    def setUp(self):
        super().setUp()
        self.spec = base.request_spec(
            flavor=base.flavor(extra_specs={}),
            instance_group=None,
            numa_topology=None,
            pci_requests=None,
        )
        self.requests = [
            clouds.make_request(**{host: {'VCPU': 2}})
            for host in self.capacities
        ]
        self.summaries = {
            host: {
                **clouds.make_summary(VCPU=(capacity, 0)),
                'root_provider_uuid': host,
            }
            for host, capacity in self.capacities.items()
        }

    def measure(self, *host_filters):
        cloud = clouds.Cloud('', host_filters)
        for host in self.capacities:
            cloud.add_node(host)
        for uuid, summary in self.summaries.items():
            cloud.server.add(
                uuid,
                **{
                    name: one['capacity']
                    for name, one in summary['resources'].items()
                },
            )
        before = cloud.describe()
        rooms = room.Rooms(
            cloud,
            lambda _: 'x',
            self.spec,
            cloud.get_host_states_by_uuids(None, None, None),
            types.SimpleNamespace(
                requests=self.requests, summaries=self.summaries
            ),
        )
        found, self.tied = rooms.measure(), rooms.tied
        self.assertEqual(before, cloud.describe())
        return {
            host: (one.servers, one.end and one.end.cause)
            for host, one in found.items()
        }

    def test_a_forced_host_has_no_filters(self):
        self.spec.force_hosts = ['a']
        self.assertEqual(
            {'a': (4, 'VCPU'), 'b': (2, 'VCPU')},
            self.measure(clouds.AtMostFilter(0)),
        )

    def test_hosts_of_one_kind_are_asked_once(self):
        self.summaries['b']['resources']['VCPU']['capacity'] = 8
        for class_, hosts in (
            (clouds.KnownFilter, {'a'}),
            (clouds.AtMostFilter, {*'ab'}),
        ):
            one = class_(9)
            self.assertEqual(
                {'a': (4, 'VCPU'), 'b': (4, 'VCPU')}, self.measure(one)
            )
            self.assertEqual(hosts, set(one.asked))

    def test_what_hosts_share(self):
        for number, host in enumerate(self.capacities):
            self.requests[number] = clouds.make_request(
                **{host: {'VCPU': 2}, 'disks': {'DISK_GB': 10}}
            )
        self.summaries['disks'] = {
            **clouds.make_summary(DISK_GB=(35, 0)),
            'root_provider_uuid': 'disks',
        }
        found = self.measure()
        self.assertEqual(3, sum(servers for servers, _ in found.values()))
        self.assertEqual([{'a', 'b'}], self.tied)
        # Each is full before it.
        self.summaries['disks']['resources']['DISK_GB']['capacity'] = 70
        self.assertEqual({'a': (4, 'VCPU'), 'b': (2, 'VCPU')}, self.measure())
        self.assertEqual([], self.tied)

    def test_another_candidate_of_the_host(self):
        self.requests.append(
            clouds.make_request(a={'VCPU': 1}, nic={'NET': 1})
        )
        self.summaries['nic'] = {
            **clouds.make_summary(NET=(9, 0)),
            'root_provider_uuid': 'a',
        }
        self.summaries['a']['resources']['VCPU']['capacity'] = 9
        # Four by the first, and one by the second.
        self.assertEqual((5, 'VCPU'), self.measure()['a'])

    def test_without_an_end(self):
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.dryrun.capacity.room.MOST', 99
            )
        )
        self.requests = [
            clouds.make_request(**{host: {}}) for host in self.capacities
        ]
        self.assertEqual(
            {'a': (math.inf, None), 'b': (math.inf, None)}, self.measure()
        )
