# SPDX-License-Identifier: Apache-2.0

import types

import ddt
from nova import objects
import nova.conf
from nova.pci import stats
from nova.scheduler import filters
from nova.scheduler.filters import affinity_filter
from nova.scheduler.filters import aggregate_image_properties_isolation
from nova.scheduler.filters import aggregate_instance_extra_specs
from nova.scheduler.filters import aggregate_multitenancy_isolation
from nova.scheduler.filters import all_hosts_filter
from nova.scheduler.filters import compute_capabilities_filter
from nova.scheduler.filters import compute_filter
from nova.scheduler.filters import image_props_filter
from nova.scheduler.filters import io_ops_filter
from nova.scheduler.filters import isolated_hosts_filter
from nova.scheduler.filters import json_filter
from nova.scheduler.filters import metrics_filter
from nova.scheduler.filters import num_instances_filter
from nova.scheduler.filters import numa_topology_filter
from nova.scheduler.filters import pci_passthrough_filter
from nova.scheduler.filters import type_filter
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched.dryrun.decision import comparison
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import refusals
from tests.unit.filters import base as filters_unit
from tests.unit.request_filters import base

SPECS = aggregate_instance_extra_specs.AggregateInstanceExtraSpecsFilter
IMAGE = aggregate_image_properties_isolation.AggregateImagePropertiesIsolation
NUMA = numa_topology_filter.NUMATopologyFilter
PCI = pci_passthrough_filter.PciPassthroughFilter
APART = affinity_filter.ServerGroupAntiAffinityFilter
TOGETHER = affinity_filter.ServerGroupAffinityFilter
CAPABILITIES = compute_capabilities_filter.ComputeCapabilitiesFilter
TENANT = aggregate_multitenancy_isolation.AggregateMultiTenancyIsolation
ISOLATED = isolated_hosts_filter.IsolatedHostsFilter
NEAR = affinity_filter.SimpleCIDRAffinityFilter
JSON = json_filter.JsonFilter

BY_X86 = ('x86_64', 'kvm', 'hvm')


def extra_specs(**specs):
    specs |= specs.pop('specs', {})
    return {'flavor': base.flavor(extra_specs=specs)}


def image(**properties):
    found = objects.ImageMetaProps(**properties)
    return {'image': objects.ImageMeta(properties=found)}


def aggregates(*metadata):
    return {
        'aggregates': [
            filters_unit.aggregate(f'agg{number}', metadata=one)
            for number, one in enumerate(metadata)
        ]
    }


def group(policy, **fields):
    values = {'name': 'db', 'uuid': 'g1', 'members': ['a', 'b'], '_rules': {}}
    return {
        'instance_uuid': 'a',
        'instance_group': objects.InstanceGroup(
            policy=policy, policies=[policy], **{**values, **fields}
        ),
    }


def hint(**hints):
    return {'scheduler_hints': hints}


def instances(*uuids):
    return {'instances': dict.fromkeys(uuids)}


def asked_cells(*cells):
    return {
        'numa_topology': objects.InstanceNUMATopology(
            cells=[
                objects.InstanceNUMACell(
                    id=number,
                    **{
                        'cpuset': set(),
                        'pcpuset': set(),
                        'memory': 64,
                        **cell,
                    },
                )
                for number, cell in enumerate(cells)
            ]
        ),
        **extra_specs(
            specs={
                name: value
                for cell in cells
                for name, value in (
                    ('hw:cpu_policy', cell.get('cpu_policy')),
                    ('hw:cpu_thread_policy', cell.get('cpu_thread_policy')),
                )
                if value
            }
        ),
        'pci_requests': None,
    }


def host_cells(*cells):
    values = {
        'cpuset': set(),
        'pcpuset': set(),
        'memory': 1024,
        'cpu_usage': 0,
        'memory_usage': 0,
        'pinned_cpus': set(),
        'siblings': [],
        'mempages': [],
        'socket': 0,
    }
    return {
        'numa_topology': objects.NUMATopology(
            cells=[
                objects.NUMACell(id=number, **{**values, **cell})
                for number, cell in enumerate(cells)
            ]
        ),
        'cpu_allocation_ratio': 1.0,
        'ram_allocation_ratio': 1.0,
    }


def pages(size_kb, total, used):
    return objects.NUMAPagesTopology(
        size_kb=size_kb, total=total, used=used, reserved=0
    )


def devices(*requests):
    return {
        'pci_requests': objects.InstancePCIRequests(
            requests=[
                objects.InstancePCIRequest(
                    count=count, alias_name=alias, spec=spec, request_id=None
                )
                for count, alias, spec in requests
            ]
        )
    }


def pools(*found):
    pci_stats = stats.PciDeviceStats(objects.NUMATopology(cells=[]))
    pci_stats.pools = [
        {'numa_node': None, 'dev_type': 'type-PCI', **one} for one in found
    ]
    return {'pci_stats': pci_stats}


def measured(*names):
    return {
        'metrics': objects.MonitorMetricList(
            objects=[objects.MonitorMetric(name=name) for name in names]
        )
    }


GPU = {'vendor_id': '10de', 'product_id': '1db4'}
NIC = {'vendor_id': '8086', 'product_id': '1520'}

# Filter, request, host, kind and cause (or the filter's own), and detail.
REFUSED = [
    (
        SPECS,
        extra_specs(fast='true', ssd='true'),
        aggregates({'fast': 'true', 'ssd': 'false, no'}),
        None,
        "flavor small wants 'ssd' to be 'true' and the aggregates offer "
        "'false', 'no'",
    ),
    (
        SPECS,
        extra_specs(specs={'aggregate_instance_extra_specs:n': '<in> a\nb'}),
        aggregates(),
        None,
        "flavor small wants 'n' to be '<in> a\\nb' and no aggregate of the "
        'host has the key',
    ),
    # nova does not read the second, which would raise.
    (
        SPECS,
        extra_specs(ssd='true', size='>= many'),
        aggregates({'ssd': 'no', 'size': '1'}),
        None,
        "flavor small wants 'ssd' to be 'true' and the aggregates offer 'no'",
    ),
    (
        IMAGE,
        image(os_distro='ubuntu', os_type='linux'),
        aggregates({'os_type': 'linux'}, {'os_distro': 'a,b,c,d,e'}),
        None,
        "the image has 'os_distro' 'ubuntu' and the aggregates want 'a', "
        "'b', 'c' and 2 more",
    ),
    (
        type_filter.AggregateTypeAffinityFilter,
        {},
        aggregates({'instance_type': 'large,huge'}),
        None,
        "the aggregates want 'instance_type' to be 'large,huge', got flavor "
        'small',
    ),
    (
        num_instances_filter.AggregateNumInstancesFilter,
        {},
        {'num_instances': 5, **aggregates({'max_instances_per_host': '4'})},
        None,
        'the host holds 5 servers and max_instances_per_host is 4',
    ),
    (
        num_instances_filter.NumInstancesFilter,
        {},
        {'num_instances': 50},
        None,
        'the host holds 50 servers and max_instances_per_host is 50',
    ),
    (
        io_ops_filter.AggregateIoOpsFilter,
        {},
        {'num_io_ops': 1, **aggregates({'max_io_ops_per_host': '1'})},
        None,
        'the host has 1 task under way and max_io_ops_per_host is 1',
    ),
    (
        CAPABILITIES,
        extra_specs(specs={'capabilities:hypervisor_type': 'QEMU'}),
        {'hypervisor_type': 'ironic'},
        None,
        "flavor small wants 'capabilities:hypervisor_type' to be 'QEMU' and "
        'nova-compute does not report that',
    ),
    # As it is said where our filter of the name is enabled.
    (
        APART,
        group('anti-affinity'),
        instances('b', 'c'),
        ('are full for the server group', 'anti-affinity'),
        'the host holds 1 server of server group g1 and max_server_per_host '
        'is 1',
    ),
    (
        TOGETHER,
        group('affinity', hosts=['host2', 'host1']),
        {},
        ('are not where the server group is', 'affinity'),
        'server group db must stay together on host1, host2',
    ),
    (
        affinity_filter.SameHostFilter,
        hint(same_host=['b', 'c' * 256]),
        instances('d'),
        None,
        f"it holds no server that same_host names: 'b', '{'c' * 255}'...",
    ),
    (
        affinity_filter.DifferentHostFilter,
        hint(different_host=['b', 'c']),
        instances('c', 'd'),
        None,
        "it holds servers that different_host names: 'c'",
    ),
    (
        affinity_filter.DifferentHostFilter,
        hint(different_host=['bcd']),
        instances('bcd'),
        None,
        "it holds servers that different_host names: 'bcd'",
    ),
    (
        TENANT,
        {},
        aggregates(
            {'filter_tenant_id': 'a,b', 'ssd': 'project'},
            {'filter_tenant_id_2': 'c'},
        ),
        ('are for other projects', 'tenant isolation'),
        "the aggregates want 'filter_tenant_id', 'filter_tenant_id_2' to be "
        "'a', 'b', 'c', got project 'project'",
    ),
    (
        ISOLATED,
        {'image': objects.ImageMeta(id='other')},
        {'host': 'isolated'},
        None,
        'the host is one of isolated_hosts, which want an image of '
        'isolated_images, got image other',
    ),
    (
        ISOLATED,
        {'image': None},
        {'host': 'isolated'},
        None,
        'the host is one of isolated_hosts, which want an image of '
        'isolated_images, got no image',
    ),
    (
        ISOLATED,
        {'image': objects.ImageMeta(id='licensed')},
        {},
        None,
        'image licensed is one of isolated_images, which want a host of '
        'isolated_hosts',
    ),
    (
        NEAR,
        hint(build_near_host_ip=['10.0.0.1']),
        {'host_ip': '10.0.1.1'},
        None,
        "the hints want build_near_host_ip '10.0.0.1' and the host has the "
        "address '10.0.1.1'",
    ),
    (
        NEAR,
        hint(build_near_host_ip=['10.0.0.1'], cidr=['/8']),
        {'host_ip': '11.0.0.1'},
        None,
        "the hints want build_near_host_ip '10.0.0.1', cidr '/8' and the host "
        "has the address '11.0.0.1'",
    ),
    (
        metrics_filter.MetricsFilter,
        {},
        measured('cpu.percent', 'cpu.user.time'),
        None,
        "[metrics] weight_setting wants 'cpu.frequency' and nova-compute "
        "reports 'cpu.percent', 'cpu.user.time'",
    ),
    (
        metrics_filter.MetricsFilter,
        {},
        measured(),
        None,
        "[metrics] weight_setting wants 'cpu.frequency', 'cpu.percent' and "
        'nova-compute reports no metric',
    ),
    (
        JSON,
        hint(query=['[">=", "$free_ram_mb", 1024]']),
        {'free_ram_mb': 512},
        None,
        'the hint query wants \'[">=", "$free_ram_mb", 1024]\' and the host '
        "has $free_ram_mb '512'",
    ),
    # nova takes the list of "not" for true beside others.
    (
        JSON,
        hint(
            query=[
                '["and", ["not", ["=", "$host", "host9"]], '
                '["or", ["=", "$host", "a\\n"], ["=", "$stats.n", "$limits"]]]'
            ]
        ),
        {'stats': {}, 'limits': {'vcpu': 1}},
        None,
        'the hint query wants \'["or", ["=", "$host", "a\\n"], ["=", '
        '"$stats.n", "$limits"]]\' and the host has $host \'host9\', '
        '$limits dict, $stats.n nothing',
    ),
    (
        JSON,
        hint(query=[f'["and", 0{", 1" * 20}]']),
        {},
        None,
        f'the hint query wants \'["and", 0{", 1" * 20}]\' and the host has no '
        f'part in it',
    ),
    (
        image_props_filter.ImagePropertiesFilter,
        image(hw_architecture='aarch64', img_hv_type='kvm'),
        {'supported_instances': [BY_X86], 'hypervisor_version': 8000000},
        None,
        "the image wants hw_architecture 'aarch64', img_hv_type 'kvm' and "
        "the host offers 'x86_64/kvm/hvm'",
    ),
    (
        image_props_filter.ImagePropertiesFilter,
        image(img_hv_type='kvm', img_hv_requested_version='>=9.0'),
        {'supported_instances': [BY_X86], 'hypervisor_version': 8000001},
        None,
        "the image wants img_hv_type 'kvm', img_hv_requested_version '>=9.0' "
        "and the host offers 'x86_64/kvm/hvm', version 8.0.1",
    ),
    (
        image_props_filter.ImagePropertiesFilter,
        image(hw_vm_mode='xen'),
        {'supported_instances': None, 'hypervisor_version': 1},
        None,
        "the image wants hw_vm_mode 'xen' and the host offers nothing",
    ),
    (
        NUMA,
        asked_cells({'cpuset': {0}}, {'cpuset': {1}}),
        {'numa_topology': None},
        None,
        'the request wants 2 NUMA nodes of 1 shared CPU, 64 MB and '
        'nova-compute reports no NUMA nodes',
    ),
    (
        NUMA,
        asked_cells({'cpuset': {0, 1}}),
        host_cells({'cpuset': {0}, 'cpu_usage': 1, 'memory_usage': 24}),
        None,
        'the request wants 1 NUMA node of 2 shared CPUs, 64 MB and the host '
        'has free on node 0: 1 shared CPU (1 taken), 1000 MB',
    ),
    (
        NUMA,
        asked_cells(
            {
                'pcpuset': {0, 1},
                'cpu_policy': 'dedicated',
                'cpu_thread_policy': 'require',
            }
        ),
        host_cells({'pcpuset': {0, 1, 2}, 'pinned_cpus': {2}}),
        None,
        'the request wants 1 NUMA node of 2 dedicated CPUs, 64 MB, with CPU '
        'threads, which the host has no and the host has free on node 0: 2 '
        'dedicated CPUs, 1024 MB',
    ),
    (
        NUMA,
        asked_cells({'cpuset': {0}, 'pagesize': 2048}),
        host_cells({'cpuset': {0}, 'mempages': [pages(2048, 40, 30)]}),
        None,
        'the request wants 1 NUMA node of 1 shared CPU, 64 MB in pages of '
        '2048 KB and the host has free on node 0: 1 shared CPU (0 taken), '
        '1024 MB, 10 pages of 2048 KB',
    ),
    (
        PCI,
        devices((2, 'gpu', [GPU])),
        pools({'count': 1, **GPU}, {'count': 4, **NIC}),
        None,
        'the request wants 2 of PCI alias gpu (10de:1db4) and the host has '
        'free 1 of 10de:1db4, 4 of 8086:1520',
    ),
    (
        PCI,
        devices((1, None, [{'physical_network': 'net\n'}])),
        {'pci_stats': None},
        None,
        "the request wants 1 of 'devices on net\\n' and the host has free no "
        'PCI device',
    ),
]


@ddt.ddt
class ComparisonTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.config = self.useFixture(
            config_fixture.Config(nova.conf.CONF)
        ).config
        self.config(
            group='filter_scheduler',
            isolated_hosts=['isolated'],
            isolated_images=['licensed'],
        )
        settings = ['cpu.percent=1', 'cpu.frequency=1']
        self.config(group='metrics', weight_setting=settings)

    def explain(self, cls, request, host):
        """Return why a filter of nova's refuses a host, which it must."""
        state = filters_unit.host_state('host9')
        state.allocation_candidates = [{'mappings': {}}]
        vars(state).update(host)
        spec = base.request_spec(
            **{'instance_uuid': 'a', 'instance_group': None, **request}
        )
        found = reasons.ask_filter(cls(), spec, [state])
        return found[state.uuid]

    @ddt.data(*REFUSED)
    @ddt.unpack
    def test_refused(self, cls, request, host, words, detail):
        found = self.explain(cls, request, host)
        name = cls.__name__
        kind, cause = words or (f'are refused by {name}', name)
        rank = refusals.CLOSED if cls is TENANT else refusals.IN_THE_WAY
        self.assertEqual(
            refusals.Refusal(kind, cause, '', detail, rank=rank), found
        )

    def test_every_filter_of_the_table_is_tried(self):
        tried = {cls for cls, *_ in REFUSED}
        alike = {io_ops_filter.IoOpsFilter}
        without = {
            all_hosts_filter.AllHostsFilter,
            compute_filter.ComputeFilter,
        }
        self.assertEqual({*filters.all_filters()}, tried | alike | without)
        self.assertEqual(
            {*comparison._COMPARES},
            {one.__name__ for one in tried - {APART} | alike},
        )

    @ddt.data(
        # Where the group is, what is left out, whether nova moves none.
        (['host1'], ['host1', 'host2'], True),
        (['host1'], ['host2'], False),
        (['host1', 'host2'], ['host1', 'host2'], False),
    )
    @ddt.unpack
    def test_a_group_that_nova_moves_none_of(self, hosts, left_out, kept):
        request = group('affinity', hosts=hosts)
        found = self.explain(
            TOGETHER, {**request, 'ignore_hosts': left_out}, {}
        )
        more = ': nova moves none of its servers' * kept
        kind = 'must stay' if kept else 'is'
        self.assertEqual(
            refusals.Refusal(
                f'are not where the server group {kind}',
                'affinity',
                '',
                f'server group db must stay together on {", ".join(hosts)}'
                f'{more}',
                # Nobody takes a server out of its group.
                lifts=not kept,
            ),
            found,
        )

    def test_the_default_architecture(self):
        self.config(
            group='filter_scheduler',
            image_properties_default_architecture='x86_64',
        )
        found = self.explain(
            image_props_filter.ImagePropertiesFilter,
            {},
            {'supported_instances': [('ppc64', 'kvm', 'hvm')]},
        )
        self.assertEqual(
            'image and nova.conf want image_properties_default_architecture '
            "'x86_64' and the host offers 'ppc64/kvm/hvm'",
            found.detail,
        )

    def test_what_cannot_be_read_has_no_words(self):
        """The filter did not raise: its answer stands."""
        pci_stats = types.SimpleNamespace(
            support_requests=lambda *_, **__: False, pools=None
        )
        found = self.explain(
            PCI, devices((1, 'gpu', [GPU])), {'pci_stats': pci_stats}
        )
        self.assertEqual(
            refusals.Refusal(
                'are refused by PciPassthroughFilter', 'PciPassthroughFilter'
            ),
            found,
        )
