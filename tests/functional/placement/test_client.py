# SPDX-License-Identifier: Apache-2.0

"""PlacementClient against a real placement."""

import unittest.mock
import uuid

from placement import exception as placement_exc
from placement.objects import resource_provider

from nova_ext_sched import exception
from nova_ext_sched import objects
from nova_ext_sched.placement import client
from nova_ext_sched.placement import errors
from tests.functional.placement import base

A = 'aaaaaaaa-0000-4000-8000-000000000001'
B = 'bbbbbbbb-0000-4000-8000-000000000002'
NOBODY = 'ffffffff-0000-4000-8000-00000000000f'


def adding(*names):
    return lambda current: current | {*names}


class ReadTest(base.ReadTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.host = cls.server.create_provider(
            'host',
            inventory={'VCPU': 4, 'MEMORY_MB': 1024},
            aggregates=[A],
            traits=['CUSTOM_SSD', 'HW_CPU_X86_AVX2'],
        )
        cls.child = cls.server.create_provider(
            'child', parent=cls.host, inventory={'VGPU': 2}
        )
        cls.other = cls.server.create_provider('other', inventory={'VCPU': 8})

    def names(self, **asked):
        found = self.client.resource_providers(objects.RequestGroup(**asked))
        return sorted(provider['name'] for provider in found)

    def test_filters(self):
        for asked, expected in (
            ({}, ['child', 'host', 'other']),
            ({'resources': {'VCPU': 4}}, ['host', 'other']),
            ({'resources': {'VCPU': 5}}, ['other']),
            ({'required_traits': {'CUSTOM_SSD'}}, ['host']),
            ({'forbidden_traits': {'CUSTOM_SSD'}}, ['child', 'other']),
            ({'required_aggregates': [[A, B]]}, ['host']),
            ({'forbidden_aggregates': {A}}, ['child', 'other']),
            # As it stands placement would find nothing, and forbid nothing.
            ({'required_aggregates': [[A.upper()]]}, ['host']),
            ({'forbidden_aggregates': {A.upper()}}, ['child', 'other']),
            ({'in_tree': self.child}, ['child', 'host']),
        ):
            self.assertEqual(expected, self.names(**asked), asked)
        self.assertEqual(
            {A}, self.client.update_aggregates(self.host.upper(), frozenset)
        )
        [child] = [
            one
            for one in self.client.resource_providers()
            if one['name'] == 'child'
        ]
        self.assertEqual(
            (self.child, self.host, 1),
            tuple(
                child[key]
                for key in ('uuid', 'parent_provider_uuid', 'generation')
            ),
        )

    def test_long_filters_are_asked_in_short_queries(self):
        strangers = {str(uuid.uuid4()) for _ in range(300)}
        with unittest.mock.patch.object(
            self.raw, 'request', wraps=self.raw.request
        ) as send:
            self.assertEqual(
                ['other'],
                self.names(
                    resources={'VCPU': 1},
                    forbidden_aggregates=strangers | {A},
                    forbidden_traits={'HW_CPU_X86_AVX2'},
                ),
            )
            self.assertEqual(
                ['host'],
                self.names(
                    required_aggregates=[[*strangers, A], [A]],
                    required_traits={'CUSTOM_SSD'},
                ),
            )
        urls = [call.args[0] for call in send.call_args_list]
        self.assertLess(20, len(urls))
        self.assertGreater(1100, max(map(len, urls)))

    def test_traits(self):
        every = self.client.traits()
        self.assertIn('CUSTOM_SSD', every)
        self.assertIn('HW_CPU_X86_AVX512F', every)
        self.assertEqual(
            {'CUSTOM_SSD', 'HW_CPU_X86_AVX2'},
            self.client.traits(associated=True),
        )

    def test_allocation_candidates(self):
        found = self.client.allocation_candidates(
            [
                objects.RequestGroup(resources={'VCPU': 1}),
                objects.RequestGroup(suffix='_GPU', resources={'VGPU': 2}),
            ]
        )
        [request] = found['allocation_requests']
        self.assertEqual(
            {
                self.host: {'resources': {'VCPU': 1}},
                self.child: {'resources': {'VGPU': 2}},
            },
            request['allocations'],
        )
        self.assertEqual(
            {'': [self.host], '_GPU': [self.child]}, request['mappings']
        )
        self.assertEqual(
            {self.host, self.child}, found['provider_summaries'].keys()
        )

    def test_group_policy_and_limit(self):
        one, two = (
            objects.RequestGroup(suffix=s, resources={'VCPU': 1})
            for s in ('1', '2')
        )
        error = self.assertRaises(
            errors.Refused, self.client.allocation_candidates, [one, two]
        )
        self.assertEqual(400, error.status)
        self.assertIn('group_policy', str(error))
        self.assertEqual(
            set(),
            self.server.find_candidates(one, two, group_policy='isolate'),
        )
        self.assertEqual(
            {self.host, self.other},
            self.server.find_candidates(one, two, group_policy='none'),
        )
        self.assertEqual(1, len(self.server.find_candidates(one, limit=1)))

    def test_arguments_that_are_refused(self):
        group = objects.RequestGroup(resources={'VCPU': 1})
        candidates = self.client.allocation_candidates
        for expected, call, *args in (
            ('groups: expected one group or more', candidates, []),
            ('groups: expected', candidates, [group, group]),
            ('limit: expected', candidates, [group], None, 0),
            ('filters.suffix: expected a request group without a suffix, '
             "got '1'", self.client.resource_providers,
             objects.RequestGroup(suffix='1', resources={'VCPU': 1})),
            ('resource provider: expected a UUID', self.client.update_traits,
             '../traits', frozenset),
            ('traits: expected a trait name', self.client.update_traits,
             self.host, adding('custom_a')),
            ('aggregates: expected a UUID', self.client.update_aggregates,
             self.host, adding('windows')),
            ("expected a trait name of CUSTOM_ .* got 'HW_NO_SUCH'",
             self.client.ensure_traits, ['CUSTOM_A', 'HW_NO_SUCH']),
        ):  # fmt: skip
            self.assertRaisesRegex(
                exception.InvalidValue, expected, call, *args
            )
        # All of the traits are created, or none.
        self.assertNotIn('CUSTOM_A', self.client.traits())

    def test_what_placement_refuses(self):
        error = self.assertRaises(
            errors.Refused, self.client.update_traits, NOBODY, frozenset
        )
        self.assertEqual((404, 'GET'), (error.status, error.method))
        self.assertIn(f'/resource_providers/{NOBODY}/traits', error.url)
        self.assertRegex(error.request_id, '^req-')
        self.assertIn(NOBODY, str(error))
        self.assertIn(error.request_id, str(error))
        # The name is of the right form; placement does not know it.
        error = self.assertRaises(
            errors.Refused, self.names, required_traits={'CUSTOM_NO_SUCH'}
        )
        self.assertIn('CUSTOM_NO_SUCH', str(error))


class ChangeTest(base.PlacementTestCase):
    def setUp(self):
        super().setUp()
        self.host = self.server.create_provider('host', inventory={'VCPU': 4})
        self.patch(client, '_WAIT', 0)

    def test_ensure_traits(self):
        names = ['CUSTOM_A', 'CUSTOM_B', 'COMPUTE_NODE']
        self.assertEqual(
            {'CUSTOM_A', 'CUSTOM_B'}, self.client.ensure_traits(names)
        )
        self.assertEqual(frozenset(), self.client.ensure_traits(names))
        self.assertLessEqual(set(names), self.client.traits())

    def test_an_update_keeps_the_rest(self):
        self.client.ensure_traits(['CUSTOM_A', 'CUSTOM_B'])
        self.client.update_traits(
            self.host, adding('CUSTOM_A', 'COMPUTE_NODE')
        )
        self.assertEqual(
            {'CUSTOM_B', 'COMPUTE_NODE'},
            self.client.update_traits(
                self.host,
                lambda current: current - {'CUSTOM_A'} | {'CUSTOM_B'},
            ),
        )
        self.client.update_aggregates(self.host, adding(A, B.upper()))
        self.assertEqual(
            {B},
            self.client.update_aggregates(
                self.host, lambda current: current - {A}
            ),
        )
        self.assertEqual(
            {'CUSTOM_B', 'COMPUTE_NODE'},
            self.client.update_traits(self.host, frozenset),
        )

    def test_a_conflict_that_placement_meets_in_its_database(self):
        # It answers 500 to that where traits are set.
        increment = resource_provider.ResourceProvider.increment_generation

        def late_once(provider):
            patch.stop()
            raise placement_exc.ResourceProviderConcurrentUpdateDetected()

        patch = unittest.mock.patch.object(
            resource_provider.ResourceProvider,
            'increment_generation',
            late_once,
        )
        patch.start()
        self.assertEqual(
            {'COMPUTE_NODE'},
            self.client.update_traits(self.host, adding('COMPUTE_NODE')),
        )
        self.assertIs(
            increment, resource_provider.ResourceProvider.increment_generation
        )


class OldServerTest(base.PlacementTestCase):
    """Aggregates without a generation could lose another's update."""

    maximum = '1.18'

    def test_aggregates_need_the_generation(self):
        host = self.server.create_provider('host')
        for call in (
            lambda: self.client.update_aggregates(host, frozenset),
            lambda: self.client.update_aggregates(host, adding(A)),
        ):
            error = self.assertRaises(errors.MicroversionUnsupported, call)
            self.assertEqual('1.19', error.needed)
            self.assertEqual('1.18', error.maximum)

    def test_candidates(self):
        host = self.server.create_provider('host', inventory={'VCPU': 2})
        group = objects.RequestGroup(resources={'VCPU': 1})
        self.assertEqual({host}, self.server.find_candidates(group, limit=1))
