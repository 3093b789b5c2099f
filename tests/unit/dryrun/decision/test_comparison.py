# SPDX-License-Identifier: Apache-2.0

import types

from nova import objects
import nova.conf
from nova.pci import stats
from nova.scheduler import filters
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched.dryrun.decision import comparison
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import refusals
from tests import releases
from tests.unit.filters import base as filters_unit
from tests.unit.request_filters import base

FILTERS = {cls.__name__: cls for cls in filters.all_filters()}
BY_X86 = ('x86_64', 'kvm', 'hvm')


def extra_specs(**specs):
    specs |= specs.pop('specs', {})
    return {'flavor': base.flavor(extra_specs=specs)}


def image(**properties):
    return {'image': base.image(**properties)}


def aggregates(*metadata):
    found = [
        filters_unit.aggregate(f'agg{number}', metadata=one)
        for number, one in enumerate(metadata)
    ]
    return {'aggregates': found}


def group(policy, ignore_hosts=(), **fields):
    values = {'name': 'db', 'uuid': 'g1', 'members': ['a', 'b'], '_rules': {}}
    values |= {'policy': policy, 'policies': [policy], **fields}
    found = objects.InstanceGroup(**values)
    request = {'instance_uuid': 'a', 'ignore_hosts': [*ignore_hosts]}
    return {**request, 'instance_group': found}


def hint(**hints):
    return {'scheduler_hints': hints}


def instances(*uuids):
    return {'instances': dict.fromkeys(uuids)}


def asked_cells(*cells, **topology):
    values = {'cpuset': set(), 'pcpuset': set(), 'memory': 64}
    found = [
        objects.InstanceNUMACell(id=number, **{**values, **cell})
        for number, cell in enumerate(cells)
    ]
    names = {'cpu_policy', 'cpu_thread_policy'}
    specs = {f'hw:{n}': cell[n] for cell in cells for n in names & {*cell}}
    return {
        'numa_topology': objects.InstanceNUMATopology(cells=found, **topology),
        'pci_requests': None,
        **extra_specs(specs=specs),
    }


def host_cells(**cell):
    values = {
        **{'memory': 1024, 'siblings': [], 'mempages': [], 'socket': 0},
        **dict.fromkeys(('cpu_usage', 'memory_usage'), 0),
        **dict.fromkeys(('cpuset', 'pcpuset', 'pinned_cpus'), set()),
    }
    found = objects.NUMACell(id=0, **{**values, **cell})
    return {
        'numa_topology': objects.NUMATopology(cells=[found]),
        'cpu_allocation_ratio': 1.0,
        'ram_allocation_ratio': 1.0,
    }


def pages(size_kb, total, used):
    return objects.NUMAPagesTopology(
        size_kb=size_kb, total=total, used=used, reserved=0
    )


def devices(*requests):
    found = []
    for count, alias, spec in requests:
        known = {'alias_name': alias, 'spec': spec, 'request_id': None}
        found.append(objects.InstancePCIRequest(count=count, **known))
    return {'pci_requests': objects.InstancePCIRequests(requests=found)}


def pools(*found):
    pci_stats = stats.PciDeviceStats(objects.NUMATopology(cells=[]))
    common = {'numa_node': None, 'dev_type': 'type-PCI'}
    pci_stats.pools = [common | one for one in found]
    return {'pci_stats': pci_stats}


def measured(*names):
    found = [objects.MonitorMetric(name=name) for name in names]
    return {'metrics': objects.MonitorMetricList(objects=found)}


GPU = {'vendor_id': '10de', 'product_id': '1db4'}
NIC = {'vendor_id': '8086', 'product_id': '1520'}

#: What is said of hosts, and the cause, where that is not the filter.
WORDS = {
    'ServerGroupAntiAffinityFilter':
        ('are full for the server group', 'anti-affinity'),
    'ServerGroupAffinityFilter':
        ('are not where the server group is', 'affinity'),
    'AggregateMultiTenancyIsolation':
        ('are for other projects', 'tenant isolation'),
}  # fmt: skip

# Filter, request, host, and what the filter compared.
REFUSED = (
    ('AggregateInstanceExtraSpecsFilter', extra_specs(fast='true', ssd='true'),
     aggregates({'fast': 'true', 'ssd': 'false, no'}),
     "flavor small wants 'ssd' to be 'true' and the aggregates offer "
     "'false', 'no'"),
    ('AggregateInstanceExtraSpecsFilter',
     extra_specs(specs={'aggregate_instance_extra_specs:n': '<in> a\nb'}),
     aggregates(),
     "flavor small wants 'n' to be '<in> a\\nb' and no aggregate of the "
     'host has the key'),
    # nova does not read the second, which would raise.
    ('AggregateInstanceExtraSpecsFilter',
     extra_specs(ssd='true', size='>= many'),
     aggregates({'ssd': 'no', 'size': '1'}),
     "flavor small wants 'ssd' to be 'true' and the aggregates offer " "'no'"),
    ('AggregateImagePropertiesIsolation',
     image(os_distro='ubuntu', os_type='linux'),
     aggregates({'os_type': 'linux'}, {'os_distro': 'a,b,c,d,e'}),
     "the image has 'os_distro' 'ubuntu' and the aggregates want 'a', "
     "'b', 'c' and 2 more"),
    ('AggregateTypeAffinityFilter', {},
     aggregates({'instance_type': 'large,huge'}),
     "the aggregates want 'instance_type' to be 'large,huge', got "
     'flavor small'),
    ('AggregateNumInstancesFilter', {},
     {'num_instances': 5, **aggregates({'max_instances_per_host': '4'})},
     'the host holds 5 servers and max_instances_per_host is 4'),
    ('NumInstancesFilter', {}, {'num_instances': 50},
     'the host holds 50 servers and max_instances_per_host is 50'),
    ('AggregateIoOpsFilter', {},
     {'num_io_ops': 1, **aggregates({'max_io_ops_per_host': '1'})},
     'the host has 1 task under way and max_io_ops_per_host is 1'),
    ('ComputeCapabilitiesFilter',
     extra_specs(specs={'capabilities:hypervisor_type': 'QEMU'}),
     {'hypervisor_type': 'ironic'},
     "flavor small wants 'capabilities:hypervisor_type' to be 'QEMU' "
     'and nova-compute does not report that'),
    # As it is said where our filter of the name is enabled.
    ('ServerGroupAntiAffinityFilter', group('anti-affinity'),
     instances('b', 'c'), 'the host holds 1 server of server group g1 and '
     'max_server_per_host is 1'),
    ('ServerGroupAffinityFilter', group('affinity', hosts=['host2', 'host1']),
     {}, 'server group db must stay together on host1, host2'),
    ('SameHostFilter', hint(same_host=['b', 'c' * 256]), instances('d'),
     f"it holds no server that same_host names: 'b', '{'c' * 255}'..."),
    ('DifferentHostFilter', hint(different_host=['b', 'c']),
     instances('c', 'd'), "it holds servers that different_host names: 'c'"),
    ('DifferentHostFilter', hint(different_host=['bcd']), instances('bcd'),
     "it holds servers that different_host names: 'bcd'"),
    ('AggregateMultiTenancyIsolation', {},
     aggregates({'filter_tenant_id': 'a,b', 'ssd': 'project'},
     {'filter_tenant_id_2': 'c'}),
     "the aggregates want 'filter_tenant_id', 'filter_tenant_id_2' to "
     "be 'a', 'b', 'c', got project 'project'"
     if releases.READS_TENANT_PREFIX else
     "the aggregates want 'filter_tenant_id' to be 'a', 'b', got project "
     "'project'"),
    ('IsolatedHostsFilter', {'image': objects.ImageMeta(id='other')},
     {'host': 'isolated'},
     'the host is one of isolated_hosts, which want an image of '
     'isolated_images, got image other'),
    ('IsolatedHostsFilter', {'image': None}, {'host': 'isolated'},
     'the host is one of isolated_hosts, which want an image of '
     'isolated_images, got no image'),
    ('IsolatedHostsFilter', {'image': objects.ImageMeta(id='licensed')}, {},
     'image licensed is one of isolated_images, which want a host of '
     'isolated_hosts'),
    ('SimpleCIDRAffinityFilter', hint(build_near_host_ip=['10.0.0.1']),
     {'host_ip': '10.0.1.1'},
     "the hints want build_near_host_ip '10.0.0.1' and the host has the "
     "address '10.0.1.1'"),
    ('SimpleCIDRAffinityFilter',
     hint(build_near_host_ip=['10.0.0.1'], cidr=['/8']),
     {'host_ip': '11.0.0.1'},
     "the hints want build_near_host_ip '10.0.0.1', cidr '/8' and the "
     "host has the address '11.0.0.1'"),
    ('MetricsFilter', {}, measured('cpu.percent', 'cpu.user.time'),
     "[metrics] weight_setting wants 'cpu.frequency' and nova-compute "
     "reports 'cpu.percent', 'cpu.user.time'"),
    ('MetricsFilter', {}, measured(),
     "[metrics] weight_setting wants 'cpu.frequency', 'cpu.percent' and "
     'nova-compute reports no metric'),
    ('JsonFilter', hint(query=['[">=", "$free_ram_mb", 1024]']),
     {'free_ram_mb': 512},
     'the hint query wants \'[">=", "$free_ram_mb", 1024]\' and the '
     "host has $free_ram_mb '512'"),
    # nova takes the list of "not" for true beside others.
    ('JsonFilter',
     hint(query=['["and", ["not", ["=", "$host", "host9"]], '
                 '["or", ["=", "$host", "a\\n"], ["=", "$stats.n", '
                 '"$limits"]]]']),
     {'stats': {}, 'limits': {'vcpu': 1}},
     'the hint query wants \'["or", ["=", "$host", "a\\n"], ["=", '
     '"$stats.n", "$limits"]]\' and the host has $host \'host9\', '
     '$limits dict, $stats.n nothing'),
    ('JsonFilter', hint(query=[f'["and", 0{", 1" * 20}]']), {},
     f'the hint query wants \'["and", 0{", 1" * 20}]\' and the host has no '
     'part in it'),
    ('ImagePropertiesFilter',
     image(hw_architecture='aarch64', img_hv_type='kvm'),
     {'supported_instances': [BY_X86], 'hypervisor_version': 8000000},
     "the image wants hw_architecture 'aarch64', img_hv_type 'kvm' and "
     "the host offers 'x86_64/kvm/hvm'"),
    ('ImagePropertiesFilter',
     image(img_hv_type='kvm', img_hv_requested_version='>=9.0'),
     {'supported_instances': [BY_X86], 'hypervisor_version': 8000001},
     "the image wants img_hv_type 'kvm', img_hv_requested_version "
     "'>=9.0' and the host offers 'x86_64/kvm/hvm', version 8.0.1"),
    ('ImagePropertiesFilter', image(hw_vm_mode='xen'),
     {'supported_instances': None, 'hypervisor_version': 1},
     "the image wants hw_vm_mode 'xen' and the host offers nothing"),
    ('NUMATopologyFilter', asked_cells({'cpuset': {0}}, {'cpuset': {1}}),
     {'numa_topology': None},
     'the request wants 2 NUMA nodes of 1 shared CPU, 64 MB and '
     'nova-compute reports no NUMA nodes'),
    ('NUMATopologyFilter', asked_cells({'cpuset': {0, 1}}),
     host_cells(cpuset={0}, cpu_usage=1, memory_usage=24),
     'the request wants 1 NUMA node of 2 shared CPUs, 64 MB and the '
     'host has free on node 0: 0 shared CPUs, 1000 MB'),
    ('NUMATopologyFilter', asked_cells({'pcpuset': {0, 1},
     'cpu_policy': 'dedicated', 'cpu_thread_policy': 'require'}),
     host_cells(pcpuset={0, 1, 2}, pinned_cpus={2}),
     'the request wants 1 NUMA node of 2 dedicated CPUs, 64 MB, with '
     'CPU threads, which the host has no and the host has free on node '
     '0: 2 dedicated CPUs, 1024 MB'),
    ('NUMATopologyFilter', asked_cells({'pcpuset': {0, 1},
     'cpu_policy': 'dedicated', 'cpu_thread_policy': 'isolate'}),
     host_cells(pcpuset={0, 1, 2, 3}, pinned_cpus={2},
                siblings=[{0, 1}, {2, 3}]),
     'the request wants 1 NUMA node of 2 dedicated CPUs, 64 MB, without CPU '
     'threads, which the host has and the host has free on node 0: 3 '
     'dedicated CPUs (1 whole core), 1024 MB'),
    ('NUMATopologyFilter', asked_cells({'pcpuset': {0, 1},
     'cpu_policy': 'dedicated'}, emulator_threads_policy='isolate'),
     host_cells(pcpuset={0, 1}),
     'the request wants 1 NUMA node of 2 dedicated CPUs, 64 MB, and 1 '
     'dedicated CPU more for emulator threads and the host has free on node '
     '0: 2 dedicated CPUs, 1024 MB'),
    ('NUMATopologyFilter', asked_cells({'cpuset': {0}, 'pagesize': 2048}),
     host_cells(cpuset={0}, mempages=[pages(2048, 40, 30)]),
     'the request wants 1 NUMA node of 1 shared CPU, 64 MB in pages of '
     '2048 KB and the host has free on node 0: 1 shared CPU, '
     '1024 MB, 10 pages of 2048 KB'),
    ('NUMATopologyFilter', asked_cells({'cpuset': {0, 1}, 'memory': 4096}),
     host_cells(cpuset={0, 1}, cpu_usage=3)
     | {'cpu_allocation_ratio': 2.5, 'ram_allocation_ratio': 2.0},
     'the request wants 1 NUMA node of 2 shared CPUs, 4096 MB and the host '
     'has free on node 0: 2 shared CPUs, 1024 MB'),
    ('NUMATopologyFilter',
     asked_cells({'cpuset': {0}}) | devices((1, 'gpu', [GPU])),
     host_cells(cpuset={0}) | pools({'count': 1, **GPU} | {'numa_node': 1}),
     'the request wants 1 NUMA node of 1 shared CPU, 64 MB, with 1 of PCI '
     'alias gpu (10de:1db4) and the host has free on node 0: 1 shared CPU, '
     '1024 MB, and 1 of 10de:1db4 on node 1'),
    ('PciPassthroughFilter', devices((1, None, [GPU | {'trusted': 'true'}])),
     pools({'count': 1, **GPU, 'trusted': 'false'}),
     'the request wants 1 of 10de:1db4 trusted=true and the host has free '
     '1 of 10de:1db4 trusted=false'),
    ('PciPassthroughFilter', devices((2, 'gpu', [GPU])),
     pools({'count': 1, **GPU}, {'count': 4, **NIC}),
     'the request wants 2 of PCI alias gpu (10de:1db4) and the host has '
     'free 1 of 10de:1db4, 4 of 8086:1520'),
    ('PciPassthroughFilter',
     devices((1, None, [{'physical_network': 'net\n'}])), {'pci_stats': None},
     "the request wants 1 of 'devices on net\\n' and the host has free "
     'no PCI device'),
)  # fmt: skip


class ComparisonTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        fixture = config_fixture.Config(nova.conf.CONF)
        self.config = self.useFixture(fixture).config
        lists = {'hosts': ['isolated'], 'images': ['licensed']}
        for name, one in lists.items():
            self.config(group='filter_scheduler', **{f'isolated_{name}': one})
        settings = ['cpu.percent=1', 'cpu.frequency=1']
        self.config(group='metrics', weight_setting=settings)

    def explain(self, name, request, host):
        """Return why a filter of nova's refuses a host, which it must."""
        state = filters_unit.host_state('host9')
        state.allocation_candidates = [{'mappings': {}}]
        vars(state).update(host)
        values = {'instance_uuid': 'a', 'instance_group': None, **request}
        spec = base.request_spec(**values)
        found = reasons.ask_filter(FILTERS[name](), spec, [state])
        return found[state.uuid]

    def test_refused(self):
        for name, request, host, detail in REFUSED:
            found = self.explain(name, request, host)
            words = WORDS.get(name, (f'are refused by {name}', name))
            expected = refusals.Refusal(*words, '', detail, acts=found.acts)
            if 'Tenancy' in name:
                expected = expected._replace(rank=refusals.CLOSED)
            self.assertEqual(expected, found)

    def test_every_filter_of_the_table_is_tried(self):
        tried = {name for name, *_ in REFUSED} | {'IoOpsFilter'}
        without = {'AllHostsFilter', 'ComputeFilter'}
        self.assertEqual({*FILTERS}, tried | without)
        ours = {'ServerGroupAntiAffinityFilter'}
        self.assertEqual({*comparison._KNOWN}, tried - ours)

    def test_a_group_that_nova_moves_none_of(self):
        for hosts, left_out, is_kept in (
            (['host1'], ['host1', 'host2'], True),
            (['host1'], ['host2'], False),
            (['host1', 'host2'], ['host1', 'host2'], False),
        ):
            request = group('affinity', hosts=hosts, ignore_hosts=left_out)
            found = self.explain('ServerGroupAffinityFilter', request, {})
            says = found.detail.endswith(': nova moves none of its servers')
            stays = found.phrase.endswith(' must stay')
            # Nobody takes a server out of its group.
            self.assertEqual([is_kept] * 3, [says, stays, not found.lifts])

    def test_the_default_architecture(self):
        name = 'image_properties_default_architecture'
        self.config(group='filter_scheduler', **{name: 'x86_64'})
        host = {'supported_instances': [('ppc64', 'kvm', 'hvm')]}
        found = self.explain('ImagePropertiesFilter', {}, host)
        wants = f"image and nova.conf want {name} 'x86_64'"
        offers = "the host offers 'ppc64/kvm/hvm'"
        self.assertEqual(f'{wants} and {offers}', found.detail)

    def test_what_cannot_be_read_has_no_words(self):
        """The filter did not raise: its answer stands."""
        broken = types.SimpleNamespace(
            support_requests=lambda *_, **__: False, pools=None
        )
        request = devices((1, 'gpu', [GPU]))
        name = 'PciPassthroughFilter'
        found = self.explain(name, request, {'pci_stats': broken})
        expected = refusals.Refusal(f'are refused by {name}', name)
        self.assertEqual(expected, found)
