# SPDX-License-Identifier: Apache-2.0

"""Hosts that nothing can tell apart."""

from unittest import mock

import ddt
from nova import objects
from nova.pci import stats
from nova.scheduler import host_manager
from nova.scheduler.filters import json_filter
from nova.scheduler.filters import num_instances_filter
import testtools

from nova_ext_sched.cmd.ask import kind
from nova_ext_sched.filters import base
from nova_ext_sched.filters import isolation
from nova_ext_sched.policy import verdict
from tests.unit.cmd.cloud import test_claims
from tests.unit.request_filters import base as request_base

NOVAS = (num_instances_filter.NumInstancesFilter(), json_filter.JsonFilter())


class OthersFilter(base.PolicyFilter):
    """Of another package, and it may look at anything."""

    __module__ = 'others'

    def decisions(self, spec_obj):
        yield mock.sentinel.policy, lambda host_state: verdict.PASS


class OthersAggregatesFilter(base.PolicyFilter):
    """Of another package: it looks at aggregates alone."""

    __module__ = 'others'

    def decisions(self, spec_obj):
        yield (
            mock.sentinel.policy,
            base.ByAggregates(lambda aggregates: verdict.PASS),
        )


class OthersBothFilter(OthersFilter):
    """By one policy it looks at aggregates alone, by the other not."""

    def decisions(self, spec_obj):
        yield from OthersAggregatesFilter.decisions(self, spec_obj)
        yield from super().decisions(spec_obj)


def state(**fields):
    found = host_manager.HostState('host', 'node', 'cell')
    found.pci_stats = stats.PciDeviceStats(None)
    vars(found).update(fields)
    return found


AGGREGATE = objects.Aggregate(id=1, name='a', metadata={})


@ddt.ddt
class DescriptionTestCase(testtools.TestCase):
    """What tells two hosts apart."""

    @ddt.data(
        {'host': 'other'},
        {'nodename': 'other'},
        {'uuid': 'other'},
        {'instances': {'uuid': None}},
        {'stats': {'num_proj_p': '1'}},
        {'service': {'disabled': False}},
        {'cell_uuid': 'other'},
    )
    def test_alike(self, fields):
        self.assertEqual(
            kind.describe(state()), kind.describe(state(**fields))
        )

    @ddt.data(
        {'free_ram_mb': 1},
        {'free_disk_mb': 1},
        {'vcpus_used': 1},
        {'num_instances': 1},
        {'cpu_allocation_ratio': 2.0},
        {'aggregates': [AGGREGATE]},
        {'numa_topology': objects.NUMATopology(cells=[])},
        # What a plugin adds, and nobody knows.
        {'others_field': 1},
        {'others_object': object()},
    )
    def test_apart(self, fields):
        self.assertNotEqual(
            kind.describe(state()), kind.describe(state(**fields))
        )

    def test_devices(self):
        one, other = state(), state()
        self.assertEqual(kind.describe(one), kind.describe(other))
        other.pci_stats.pools = [{'vendor_id': '8086', 'count': 1}]
        self.assertNotEqual(kind.describe(one), kind.describe(other))

    def test_objects_without_a_text_are_like_nothing_else(self):
        states = [state(others_object=object()) for _ in range(2)]
        self.assertNotEqual(*map(kind.describe, states))


@ddt.ddt
class KindsTestCase(testtools.TestCase):
    """Whether hosts a and b share an answer."""

    def alike(self, host_filters=NOVAS, hints=None, group=None, **rooms):
        spec = request_base.request_spec(
            scheduler_hints=hints or {}, instance_group=group
        )
        summaries = {
            host: {
                **test_claims.summary(VCPU=rooms.get(host, (8, 2))),
                'root_provider_uuid': host,
            }
            for host in 'ab'
        }
        summaries['shared'] = {
            **test_claims.summary(DISK_GB=(8, 2)),
            'root_provider_uuid': 'shared',
        }
        shared = rooms.get('shared', {})
        one, other = (
            kind.get(
                host,
                rooms.get('described'),
                [test_claims.request(**{host: {'VCPU': 2}}, **shared)],
                summaries,
            )
            for host in 'ab'
        )
        return kind.are_shared(host_filters, spec) and one == other

    def test_same_room(self):
        self.assertTrue(self.alike())

    @ddt.data((9, 2), (8, 3))
    def test_another_room(self, room):
        self.assertFalse(self.alike(b=room))

    def test_a_sharing_provider(self):
        self.assertFalse(self.alike(shared={'shared': {'DISK_GB': 1}}))

    def test_a_server_group(self):
        self.assertFalse(self.alike(group=objects.InstanceGroup()))

    def test_the_hint_of_the_json_filter(self):
        self.assertTrue(self.alike(hints={'other': ['x']}))
        self.assertFalse(self.alike(hints={'query': ['["=", "$host", "x"]']}))

    @ddt.data(
        (isolation.IsolatedAggregatesFilter(), True),
        (OthersAggregatesFilter(), True),
        (OthersFilter(), False),
        (OthersBothFilter(), False),
    )
    @ddt.unpack
    def test_filters(self, host_filter, alike):
        self.assertEqual(alike, self.alike([*NOVAS, host_filter]))
