# SPDX-License-Identifier: Apache-2.0

import unittest

import ddt

from nova_ext_sched.policy import explanation
from nova_ext_sched.policy import placement_query
from nova_ext_sched.policy import scheduling

PROJECT = 'p1'
KNOWN = {
    'COMPUTE_IMAGE_TYPE_QCOW2',
    'COMPUTE_STORAGE_BUS_VIRTIO',
    'HW_ARCH_X86_64',
    'CUSTOM_WINDOWS',
}


def aggregate(name, **metadata):
    metadata |= metadata.pop('metadata', {})
    return explanation.Aggregate(f'uuid-{name}', name, metadata)


WINDOWS = aggregate('windows', metadata={'trait:CUSTOM_WINDOWS': 'required'})


def request(**changes):
    values = {
        'flavor': 'f',
        'vcpus': 1,
        'ram_mb': 64,
        'root_gb': 0,
        'project_id': PROJECT,
    }
    return scheduling.Request(**(values | changes))


def plan(aggregates=(), options=None, **changes):
    return placement_query.plan(
        request(**changes),
        scheduling.Options(**(options or {})),
        aggregates,
        KNOWN,
    )


def words(query):
    return [demand.words for demand in query.demands]


DISABLED = (
    'trait COMPUTE_STATUS_DISABLED forbidden (nova, for disabled nova-compute)'
)
PLAIN = ['VCPU: 1', 'MEMORY_MB: 64', DISABLED]
ISOLATION = {
    'enable_isolated_aggregate_filtering': True,
    'request_filters': ['isolate_aggregates'],
    'enabled_filters': ['IsolatedAggregatesFilter'],
}
RESERVATION = {
    'request_filters': ['reserved_aggregates'],
    'placement_req_required_member_prefix': ['reservation:'],
    'placement_req_default_forbidden_member_prefix': ['reservation:'],
}


@ddt.ddt
class ResourcesTest(unittest.TestCase):
    @ddt.data(
        ({}, ['VCPU: 1', 'MEMORY_MB: 64']),
        (
            {'root_gb': 10, 'ephemeral_gb': 5, 'swap_mb': 1025},
            ['VCPU: 1', 'MEMORY_MB: 64', 'DISK_GB: 17'],
        ),
        (
            {'root_gb': 10, 'ephemeral_gb': 5, 'boots_from_volume': True},
            ['VCPU: 1', 'MEMORY_MB: 64', 'DISK_GB: 5'],
        ),
        (
            {'extra_specs': {'resources:VCPU': '3', 'resources:VGPU': '1'}},
            ['VCPU: 3', 'MEMORY_MB: 64', 'VGPU: 1'],
        ),
        ({'extra_specs': {'resources:MEMORY_MB': '0'}}, ['VCPU: 1']),
        (
            {'extra_specs': {'hw:cpu_policy': 'dedicated'}},
            ['PCPU: 1 or VCPU: 1', 'MEMORY_MB: 64'],
        ),
        (
            {
                'extra_specs': {'hw:cpu_policy': 'dedicated'},
                'options': {'disable_fallback_pcpu_query': True},
            },
            ['PCPU: 1', 'MEMORY_MB: 64'],
        ),
        (
            {
                'extra_specs': {
                    'resources_X:VGPU': '1',
                    'trait_X:CUSTOM_GPU': 'forbidden',
                }
            },
            [
                'VCPU: 1',
                'MEMORY_MB: 64',
                'request group _X: VGPU: 1, trait CUSTOM_GPU forbidden',
            ],
        ),
    )
    @ddt.unpack
    def test_resources(self, changes, expected):
        query = plan(**changes)
        self.assertEqual([*expected, DISABLED], words(query))

    def test_traits_name_their_source(self):
        query = plan(
            extra_specs={
                'trait:A': 'required',
                'trait:B': 'forbidden',
                'os:secure_boot': 'required',
            },
            image_properties={'trait:C': 'required'},
        )
        self.assertEqual(
            [
                'trait A required (flavor)',
                'trait C required (image)',
                'trait COMPUTE_SECURITY_UEFI_SECURE_BOOT required '
                '(os:secure_boot=required)',
                'trait B forbidden (flavor)',
            ],
            words(query)[2:-1],
        )

    def test_thread_policy_is_no_demand_where_vcpu_will_do(self):
        specs = {
            'hw:cpu_policy': 'dedicated',
            'hw:cpu_thread_policy': 'require',
        }
        self.assertNotIn('HYPERTHREADING', str(words(plan(extra_specs=specs))))
        query = plan(
            extra_specs=specs, options={'disable_fallback_pcpu_query': True}
        )
        self.assertIn('HYPERTHREADING', str(words(query)))

    def test_unread_extra_specs_are_said(self):
        query = plan(extra_specs={'trait:X': 'Required', 'hw:pmem': 'x'})
        self.assertEqual(2, len(query.unknown))


@ddt.ddt
class LimitTest(unittest.TestCase):
    @ddt.data(
        ({}, True),
        ({'hints': {'query': 'x', 'reservation': '1'}}, True),
        ({'hints': {'group': 'g'}}, False),
        ({'hints': {'same_host': ['s']}}, False),
        ({'hints': {'different_host': ['s']}}, False),
        ({'group': scheduling.ServerGroup('g', 'g', 'affinity')}, False),
        ({'host': 'h'}, False),
        ({'node': 'n'}, False),
    )
    @ddt.unpack
    def test_limited(self, changes, expected):
        self.assertIs(expected, placement_query.is_limited(request(**changes)))


@ddt.ddt
class RequestFiltersTest(unittest.TestCase):
    @ddt.data(
        # zone, default zone, aggregates of it
        (None, None, []),
        ('az1', None, ['availability zone az1: aggregates a']),
        (None, 'az1', ['availability zone az1: aggregates a']),
        ('az2', 'az1', ['availability zone az2: aggregates b, c']),
        # The zone of hosts without one: nova asks for nothing.
        ('nova', None, []),
    )
    @ddt.unpack
    def test_zone(self, zone, default, expected):
        aggregates = [
            aggregate('a', availability_zone='az1'),
            aggregate('b', availability_zone='az2'),
            aggregate('c', availability_zone='az2'),
            aggregate('d'),
        ]
        query = plan(
            aggregates,
            {'default_schedule_zone': default},
            availability_zone=zone,
        )
        self.assertEqual([*PLAIN, *expected], words(query))

    @ddt.data(
        # limit, required, aggregates have it, expected
        (False, False, True, []),
        (True, False, True, ['filter_tenant_id=p1: aggregates a, b']),
        (True, True, True, ['filter_tenant_id=p1: aggregates a, b']),
        (True, False, False, []),
        (True, True, False, ['aggregates with filter_tenant_id=p1: none']),
        (False, True, False, []),
    )
    @ddt.unpack
    def test_project(self, limit, required, have, expected):
        project = PROJECT if have else 'p2'
        query = plan(
            [
                aggregate('a', filter_tenant_id=project),
                aggregate('b', filter_tenant_id2=project),
                aggregate('c', other=PROJECT),
            ],
            {
                'limit_tenants_to_placement_aggregate': limit,
                'placement_aggregate_required_for_tenants': required,
            },
        )
        self.assertEqual([*PLAIN, *expected], words(query))

    @ddt.data(
        ('qcow2', False, {'COMPUTE_IMAGE_TYPE_QCOW2'}),
        ('qcow2', True, set()),
        ('unknown', False, set()),
        (None, False, set()),
    )
    @ddt.unpack
    def test_image_type(self, disk_format, volume, expected):
        query = plan(
            (),
            {'query_placement_for_image_type_support': True},
            disk_format=disk_format,
            boots_from_volume=volume,
        )
        self.assertEqual(expected, set(query.root_required))

    @ddt.data((True, True, False), (True, False, True), (False, True, True))
    @ddt.unpack
    def test_type_of_an_image_that_is_gone(self, on, gone, known):
        query = plan(
            (),
            {'query_placement_for_image_type_support': on},
            image_is_gone=gone,
        )
        self.assertIs(known, 'disk format' not in str(query.unknown))

    def test_what_is_not_known_of_the_request(self):
        self.assertEqual(['its image'], plan(unknown=['its image']).unknown)

    @ddt.data(
        (
            {'hw_disk_bus': 'virtio', 'hw_architecture': 'x86_64'},
            {'COMPUTE_STORAGE_BUS_VIRTIO', 'HW_ARCH_X86_64'},
        ),
        ({'architecture': 'amd64'}, {'HW_ARCH_X86_64'}),
        # nova asks for none where it does not know one.
        ({'hw_disk_bus': 'virtio', 'hw_video_model': 'odd'}, set()),
    )
    @ddt.unpack
    def test_image_metadata(self, properties, expected):
        for on, traits in ((True, expected), (False, set())):
            query = plan(
                (),
                {'image_metadata_prefilter': on},
                image_properties=properties,
            )
            self.assertEqual(traits, set(query.root_required))
            self.assertEqual(
                on and not traits,
                'image hw_video_model=odd' in str(query.unknown),
            )

    def test_host(self):
        query = plan(host='h', node='n', forced=True)
        self.assertEqual('host h and node n forced', words(query)[-1])
        (demand,) = query.demands[-1:]
        judge = demand.constraint(()).judge
        for host, node, passes in (
            ('h', 'n', True),
            ('h', 'm', False),
            ('g', 'n', False),
        ):
            refusal = judge(explanation.Host(host, node, 'u'))
            self.assertEqual(passes, refusal is None)


@ddt.ddt
class IsolationTest(unittest.TestCase):
    @ddt.data(
        (ISOLATION, True),
        ({**ISOLATION, 'enable_isolated_aggregate_filtering': False}, False),
        ({**ISOLATION, 'request_filters': []}, False),
        ({'nova_isolation': True}, True),
        ({}, False),
    )
    @ddt.unpack
    def test_on(self, options, on):
        query = plan([WINDOWS], options)
        self.assertEqual(
            {WINDOWS.uuid} if on else set(), (query.forbidden_aggregates)
        )
        self.assertEqual(len(PLAIN) + on, len(query.demands))

    @ddt.data(
        {'extra_specs': {'trait:CUSTOM_WINDOWS': 'required'}},
        {'extra_specs': {'trait1:CUSTOM_WINDOWS': 'required'}},
        {'image_properties': {'trait:CUSTOM_WINDOWS': 'required'}},
    )
    def test_allowed(self, changes):
        query = plan([WINDOWS], ISOLATION, **changes)
        self.assertEqual(set(), query.forbidden_aggregates)

    @ddt.data(
        (['CUSTOM_*'], 'IsolatedAggregatesFilter', {}, 'trait'),
        # Without the host filter, where nova does not run it, and for traits
        # that placement does not know, aggregates are named.
        (['CUSTOM_*'], 'Other', {}, 'uuid'),
        (
            ['CUSTOM_*'],
            'IsolatedAggregatesFilter',
            {'host': 'host1', 'forced': True},
            'uuid',
        ),
        (['CUSTOM_OTHER'], 'IsolatedAggregatesFilter', {}, 'uuid'),
    )
    @ddt.unpack
    def test_forbid_by_trait(self, declared, host_filter, changes, expected):
        query = plan(
            [WINDOWS],
            {
                **ISOLATION,
                'forbid_by_trait': declared,
                'enabled_filters': [host_filter],
            },
            **changes,
        )
        by_trait = 'CUSTOM_WINDOWS' in query.root_forbidden
        self.assertEqual(expected == 'trait', by_trait)
        self.assertEqual(
            set() if by_trait else {WINDOWS.uuid}, query.forbidden_aggregates
        )


@ddt.ddt
class ReservationTest(unittest.TestCase):
    AGGREGATES = (
        aggregate('a', metadata={'reservation:1': ''}),
        aggregate(
            'b', metadata={'reservation:2': '', 'filter_tenant_id': 'p2'}
        ),
    )

    @ddt.data(
        (
            {},
            {},
            ['reserved aggregates that the request does not name: a, b'],
        ),
        (
            {'extra_specs': {'reservation:1': ''}},
            {},
            ['reservation reservation:1: aggregates a'],
        ),
        (
            {'extra_specs': {'reservation:2': ''}},
            {},
            ['reservation reservation:2: no usable aggregate'],
        ),
        (
            {'extra_specs': {'reservation:3': ''}},
            {},
            ['reservation reservation:3: no usable aggregate'],
        ),
        (
            {'hints': {'reservation': '1'}},
            {'member_sources': ['hint']},
            ['reservation reservation:1: aggregates a'],
        ),
        (
            {'hints': {'reservation': '1'}},
            {},
            ['reserved aggregates that the request does not name: a, b'],
        ),
        (
            {'image_is_gone': True},
            {'member_sources': ['image']},
            ['keys of the image: not in Glance any more'],
        ),
        (
            {'image_is_gone': True},
            {},
            ['reserved aggregates that the request does not name: a, b'],
        ),
        (
            {'image_properties': {'reservation:1': ''}},
            {'member_sources': ['image']},
            ['reservation reservation:1: aggregates a'],
        ),
        # nova reads the image of a volume that it makes from one.
        (
            {
                'image_properties': {'reservation:1': ''},
                'boots_from_volume': True,
            },
            {'member_sources': ['image']},
            ['reservation reservation:1: aggregates a'],
        ),
        ({}, {'request_filters': []}, []),
        (
            {},
            {
                'placement_req_required_member_prefix': [],
                'placement_req_default_forbidden_member_prefix': [],
            },
            [],
        ),
    )
    @ddt.unpack
    def test_demands(self, changes, options, expected):
        query = plan(self.AGGREGATES, {**RESERVATION, **options}, **changes)
        self.assertEqual([*PLAIN, *expected], words(query))

    @ddt.data(
        ({'server': 's', 'boots_from_volume': True}, ['image'], 1),
        ({'server': 's', 'boots_from_volume': True}, ['flavor'], 0),
        ({'server': 's'}, ['image'], 0),
        ({'boots_from_volume': True}, ['image'], 0),
    )
    @ddt.unpack
    def test_where_the_volume_of_a_server_comes_from(
        self, changes, sources, count
    ):
        options = {**RESERVATION, 'member_sources': sources}
        unknown = plan(self.AGGREGATES, options, **changes).unknown
        self.assertEqual(count, len(unknown))

    def test_reasons(self):
        (demand,) = plan(self.AGGREGATES, RESERVATION).demands[-1:]
        judge = demand.constraint({'u1', 'u2'}).judge
        known = explanation.Host(
            'h', 'h', 'u1', aggregates=self.AGGREGATES[:1]
        )
        refusal = judge(known)
        self.assertEqual('are reserved by aggregate a', refusal.phrase)
        self.assertIn(
            'aggregate a is reserved by reservation:1', (refusal.reason)
        )
        unknown = explanation.Host('g', 'g', 'u2')
        self.assertEqual(
            'are reserved in placement alone', judge(unknown).phrase
        )
        self.assertIsNone(judge(explanation.Host('f', 'f', 'u3')))
