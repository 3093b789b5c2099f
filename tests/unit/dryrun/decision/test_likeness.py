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

from nova_ext_sched.dryrun.decision import kind
from nova_ext_sched.filters import base
from nova_ext_sched.filters import isolation
from nova_ext_sched.policy import verdict
from tests.unit.dryrun.cloud import test_claims
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
        ({'host': 'other'}, True),
        ({'nodename': 'other'}, True),
        ({'uuid': 'other'}, True),
        ({'instances': {'uuid': None}}, True),
        ({'stats': {'num_proj_p': '1'}}, True),
        ({'service': {'disabled': False}}, True),
        ({'cell_uuid': 'other'}, True),
        ({'free_ram_mb': 1}, False),
        ({'free_disk_mb': 1}, False),
        ({'vcpus_used': 1}, False),
        ({'num_instances': 1}, False),
        ({'cpu_allocation_ratio': 2.0}, False),
        ({'aggregates': [AGGREGATE]}, False),
        ({'numa_topology': objects.NUMATopology(cells=[])}, False),
        # What a plugin adds, and nobody knows.
        ({'others_field': 1}, False),
        ({'others_object': object()}, False),
    )
    @ddt.unpack
    def test_fields(self, fields, alike):
        one, other = kind.describe(state()), kind.describe(state(**fields))
        self.assertIs(alike, one == other)

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

    def are_alike(self, more=NOVAS[0], hints=None, group=None, **rooms):
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
                None,
                [test_claims.request(**{host: {'VCPU': 2}}, **shared)],
                summaries,
            )
            for host in 'ab'
        )
        return kind.are_shared([*NOVAS, more], spec) and one == other

    @ddt.data(
        ({}, True),
        ({'b': (9, 2)}, False),
        ({'b': (8, 3)}, False),
        # A sharing provider.
        ({'shared': {'shared': {'DISK_GB': 1}}}, False),
        ({'group': objects.InstanceGroup()}, False),
        # The hint of the JSON filter.
        ({'hints': {'other': ['x']}}, True),
        ({'hints': {'query': ['["=", "$host", "x"]']}}, False),
        ({'more': isolation.IsolatedAggregatesFilter()}, True),
        ({'more': OthersAggregatesFilter()}, True),
        ({'more': OthersFilter()}, False),
        ({'more': OthersBothFilter()}, False),
    )
    @ddt.unpack
    def test_alike(self, asked, expected):
        self.assertIs(expected, self.are_alike(**asked))
