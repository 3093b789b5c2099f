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
from nova_ext_sched.placement import values
from tests.functional.placement import base

A = 'aaaaaaaa-0000-4000-8000-000000000001'
B = 'bbbbbbbb-0000-4000-8000-000000000002'
NOBODY = 'ffffffff-0000-4000-8000-00000000000f'


class ReadTest(base.PlacementTestCase):
    def setUp(self):
        super().setUp()
        self.host = self.create_provider(
            'host',
            inventory={'VCPU': 4, 'MEMORY_MB': 1024},
            aggregates=[A],
            traits=['CUSTOM_SSD', 'HW_CPU_X86_AVX2'],
        )
        self.child = self.create_provider(
            'child', parent=self.host, inventory={'VGPU': 2}
        )
        self.other = self.create_provider('other', inventory={'VCPU': 8})

    def names(self, **asked):
        found = self.client.resource_providers(objects.RequestGroup(**asked))
        return sorted(provider.name for provider in found)

    def test_microversions(self):
        found = self.client.microversions()
        self.assertEqual(((1, 0), (1, 39)), (found.minimum, found.maximum))

    def test_resource_provider(self):
        provider = self.client.resource_provider(self.child)
        self.assertEqual(
            values.ResourceProvider(
                uuid=self.child,
                name='child',
                generation=1,
                parent_uuid=self.host,
                root_uuid=self.host,
            ),
            provider,
        )
        self.assertEqual(
            [provider], self.client.resource_providers(name='child')
        )

    def test_filters(self):
        self.assertEqual(['child', 'host', 'other'], self.names())
        self.assertEqual(['host', 'other'], self.names(resources={'VCPU': 4}))
        self.assertEqual(['other'], self.names(resources={'VCPU': 5}))
        self.assertEqual(['host'], self.names(required_traits={'CUSTOM_SSD'}))
        self.assertEqual(
            ['child', 'other'], self.names(forbidden_traits={'CUSTOM_SSD'})
        )
        self.assertEqual(['host'], self.names(required_aggregates=[[A, B]]))
        self.assertEqual(
            ['child', 'other'], self.names(forbidden_aggregates={A})
        )
        self.assertEqual(['child', 'host'], self.names(in_tree=self.child))

    def test_a_group_with_a_suffix_is_no_filter(self):
        self.assertRaisesRegex(
            exception.InvalidValue,
            'filters.suffix: expected a request group without a suffix, got '
            "'1'",
            self.names,
            suffix='1',
            resources={'VCPU': 1},
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
        self.assertEqual(
            {'CUSTOM_SSD', 'COMPUTE_NODE'},
            self.client.traits(['CUSTOM_SSD', 'COMPUTE_NODE', 'NO_SUCH']),
        )
        self.assertEqual(
            {'COMPUTE_NODE'},
            self.client.traits(
                ['CUSTOM_SSD', 'COMPUTE_NODE'], associated=False
            ),
        )
        self.assertEqual(frozenset(), self.client.traits([]))

    def test_many_trait_names(self):
        names = {f'CUSTOM_{n:0200d}' for n in range(40)}
        self.assertEqual(
            {'CUSTOM_SSD'}, self.client.traits(names | {'CUSTOM_SSD'})
        )

    def test_what_a_provider_has(self):
        self.assertEqual(
            values.ProviderTraits(
                frozenset({'CUSTOM_SSD', 'HW_CPU_X86_AVX2'}), 3
            ),
            self.client.provider_traits(self.host),
        )
        self.assertEqual(
            values.ProviderAggregates(frozenset({A}), 3),
            self.client.provider_aggregates(self.host),
        )
        inventories = self.client.provider_inventories(self.host)
        self.assertEqual({'VCPU', 'MEMORY_MB'}, inventories.inventories.keys())
        self.assertEqual(4, inventories.inventories['VCPU'].capacity)
        self.assertEqual(
            values.ProviderUsages({'VCPU': 0, 'MEMORY_MB': 0}, 3),
            self.client.provider_usages(self.host),
        )

    def test_allocation_candidates(self):
        found = self.client.allocation_candidates(
            objects.AllocationCandidatesRequest(
                groups=[
                    objects.RequestGroup(resources={'VCPU': 1}),
                    objects.RequestGroup(suffix='_GPU', resources={'VGPU': 2}),
                ]
            )
        )
        self.assertEqual(
            (
                values.AllocationRequest(
                    allocations={
                        self.host: {'VCPU': 1},
                        self.child: {'VGPU': 2},
                    },
                    mappings={'': (self.host,), '_GPU': (self.child,)},
                ),
            ),
            found.requests,
        )
        self.assertEqual({self.host, self.child}, found.providers())
        host = found.summaries[self.host]
        self.assertEqual({'CUSTOM_SSD', 'HW_CPU_X86_AVX2'}, host.traits)
        self.assertEqual(
            values.ResourceSummary(capacity=4, used=0), host.resources['VCPU']
        )
        self.assertEqual(self.host, found.summaries[self.child].root_uuid)

    def test_list_providers(self):
        expected = {
            'host': ({'CUSTOM_SSD', 'HW_CPU_X86_AVX2'}, {A}),
            'child': (set(), set()),
            'other': (set(), set()),
        }
        for aggregates in (None, [A], [A, B], [A, B, NOBODY, self.host]):
            self.assertEqual(
                expected, self.listed(aggregates=aggregates), aggregates
            )
        self.client.ensure_traits(f'CUSTOM_{n}' for n in range(5))
        self.client.change_traits(
            self.other, add=[f'CUSTOM_{n}' for n in range(5)]
        )
        # More traits than providers: each provider is asked.
        expected['other'] = ({f'CUSTOM_{n}' for n in range(5)}, set())
        self.assertEqual(expected, self.listed())
        self.assertEqual(
            {
                'host': ({'CUSTOM_SSD'}, set()),
                'child': (set(), set()),
                'other': ({'CUSTOM_4'}, set()),
            },
            self.listed(
                traits=['CUSTOM_SSD', 'CUSTOM_4', 'NO_SUCH'], aggregates=[B]
            ),
        )

    def listed(self, **kwargs):
        # placement's database in memory has one connection; several at once
        # are tested over HTTP.
        kwargs['workers'] = 1
        return {
            listed.provider.name: (listed.traits, listed.aggregates)
            for listed in self.client.list_providers(**kwargs)
        }

    def test_a_provider_that_is_deleted_meanwhile(self):
        list_all = self.client.resource_providers

        def delete_one():
            found = list_all()
            self.raw.delete(f'/resource_providers/{self.other}')
            return found

        # Aggregates that are not named: each provider is asked.
        with unittest.mock.patch.object(
            self.client, 'resource_providers', side_effect=delete_one
        ):
            self.assertEqual((set(), set()), self.listed(traits=[])['other'])
        self.assertNotIn('other', self.listed())

    def test_not_found(self):
        error = self.assertRaises(
            errors.NotFound, self.client.provider_traits, NOBODY
        )
        self.assertEqual(404, error.status)
        self.assertEqual('GET', error.method)
        self.assertIn(f'/resource_providers/{NOBODY}/traits', error.url)
        self.assertRegex(error.request_id, '^req-')
        self.assertIn(NOBODY, str(error))
        self.assertIn(error.request_id, str(error))

    def test_bad_request(self):
        # The names are of the right form; placement does not know them.
        error = self.assertRaises(
            errors.BadRequest,
            self.names,
            required_traits={'CUSTOM_NO_SUCH'},
        )
        self.assertIn('CUSTOM_NO_SUCH', str(error))

    def test_a_uuid_that_is_none(self):
        self.assertRaisesRegex(
            exception.InvalidValue,
            'resource provider: expected a UUID',
            self.client.provider_traits,
            '../traits',
        )


class ChangeTest(base.PlacementTestCase):
    def setUp(self):
        super().setUp()
        self.host = self.create_provider('host', inventory={'VCPU': 4})
        self.patch(client, '_WAIT', 0)

    def patch(self, target, name, value):
        patch = unittest.mock.patch.object(target, name, value)
        patch.start()
        self.addCleanup(patch.stop)

    def interfere(self):
        """Have another change the provider after our first read of it."""
        read = self.client.provider_traits

        def read_and_be_late(uuid):
            found = read(uuid)
            self.client.provider_traits = read
            self.client.set_traits(uuid, ['CUSTOM_OTHERS'], found.generation)
            return found

        self.client.provider_traits = read_and_be_late

    def test_ensure_traits(self):
        names = ['CUSTOM_A', 'CUSTOM_B', 'COMPUTE_NODE']
        self.assertEqual(
            {'CUSTOM_A', 'CUSTOM_B'}, self.client.ensure_traits(names)
        )
        self.assertEqual(frozenset(), self.client.ensure_traits(names))
        self.assertEqual(set(names), self.client.traits(names))

    def test_ensure_traits_creates_all_or_none(self):
        self.assertRaisesRegex(
            exception.InvalidValue,
            "expected a trait name of CUSTOM_ .* got 'HW_NO_SUCH'",
            self.client.ensure_traits,
            ['CUSTOM_A', 'HW_NO_SUCH'],
        )
        self.assertEqual(frozenset(), self.client.traits(['CUSTOM_A']))

    def test_set_traits_with_the_generation(self):
        self.client.ensure_traits(['CUSTOM_A'])
        before = self.client.provider_traits(self.host)
        after = self.client.set_traits(
            self.host, ['CUSTOM_A'], before.generation
        )
        self.assertEqual(
            values.ProviderTraits(
                frozenset({'CUSTOM_A'}), before.generation + 1
            ),
            after,
        )
        self.assertEqual(after, self.client.provider_traits(self.host))

    def test_set_aggregates_with_the_generation(self):
        before = self.client.provider_aggregates(self.host)
        after = self.client.set_aggregates(
            self.host, [A, B], before.generation
        )
        self.assertEqual({A, B}, after.aggregates)
        self.assertEqual(after, self.client.provider_aggregates(self.host))

    def test_a_generation_that_is_past(self):
        generation = self.client.provider_traits(self.host).generation
        self.client.change_aggregates(self.host, add=[A])
        for change, wanted in (
            (self.client.set_traits, ['COMPUTE_NODE']),
            (self.client.set_aggregates, [B]),
        ):
            error = self.assertRaises(
                errors.GenerationConflict,
                change,
                self.host,
                wanted,
                generation,
            )
            self.assertEqual(409, error.status)
            self.assertEqual(generation, error.sent)
            self.assertEqual(generation + 1, error.current)
            self.assertIn(
                f'provider {self.host} was changed by another: expected '
                f'generation {generation}, got {generation + 1}, at attempt '
                '1 (PUT ',
                str(error),
            )
        self.assertEqual(
            frozenset(), self.client.provider_traits(self.host).traits
        )
        self.assertEqual(
            {A}, self.client.provider_aggregates(self.host).aggregates
        )

    def test_change_keeps_the_rest(self):
        self.client.ensure_traits(['CUSTOM_A', 'CUSTOM_B'])
        self.client.change_traits(self.host, add=['CUSTOM_A', 'COMPUTE_NODE'])
        changed = self.client.change_traits(
            self.host, add=['CUSTOM_B'], remove=['CUSTOM_A']
        )
        self.assertEqual({'CUSTOM_B', 'COMPUTE_NODE'}, changed.traits)
        self.client.change_aggregates(self.host, add=[A, B])
        self.assertEqual(
            {B},
            self.client.change_aggregates(self.host, remove=[A]).aggregates,
        )

    def test_nothing_is_sent_where_nothing_changes(self):
        self.client.change_aggregates(self.host, add=[A])
        before = self.client.provider_aggregates(self.host)
        self.assertEqual(
            before,
            self.client.change_aggregates(self.host, add=[A], remove=[B]),
        )
        self.assertEqual(before, self.client.provider_aggregates(self.host))

    def test_a_conflict_is_tried_again_from_a_fresh_read(self):
        self.client.ensure_traits(['CUSTOM_OTHERS', 'CUSTOM_A'])
        self.interfere()
        changed = self.client.change_traits(self.host, add=['CUSTOM_A'])
        self.assertEqual({'CUSTOM_OTHERS', 'CUSTOM_A'}, changed.traits)

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
        changed = self.client.change_traits(self.host, add=['COMPUTE_NODE'])
        self.assertEqual({'COMPUTE_NODE'}, changed.traits)
        self.assertIs(
            increment, resource_provider.ResourceProvider.increment_generation
        )

    def test_a_server_that_fails_each_time(self):
        with unittest.mock.patch.object(
            resource_provider.ResourceProvider,
            'set_traits',
            side_effect=RuntimeError('broken'),
        ) as set_traits:
            error = self.assertRaises(
                errors.ServerError,
                self.client.change_traits,
                self.host,
                add=['COMPUTE_NODE'],
            )
        self.assertIn('broken', str(error))
        self.assertEqual(client._ATTEMPTS, set_traits.call_count)

    def test_conflicts_without_end(self):
        self.client.ensure_traits(['CUSTOM_A'])
        read = self.client.provider_traits

        def stale(uuid):
            return values.ProviderTraits(read(uuid).traits, 999)

        self.patch(self.client, 'provider_traits', stale)
        error = self.assertRaises(
            errors.GenerationConflict,
            self.client.change_traits,
            self.host,
            add=['CUSTOM_A'],
        )
        self.assertEqual(client._ATTEMPTS, error.attempts)
        self.assertEqual(999, error.sent)

    def test_what_is_in_both(self):
        self.assertRaisesRegex(
            exception.InvalidValue,
            "add and remove: expected nothing in both, got \\['A'\\]",
            self.client.change_traits,
            self.host,
            add=['A', 'B'],
            remove=['A'],
        )

    def test_names_of_another_form(self):
        generation = self.client.provider_traits(self.host).generation
        self.assertRaises(
            exception.InvalidValue,
            self.client.set_traits,
            self.host,
            ['custom_a'],
            generation,
        )
        self.assertRaises(
            exception.InvalidValue,
            self.client.change_aggregates,
            self.host,
            add=['windows'],
        )


class OldServerTest(base.PlacementTestCase):
    """Aggregates without a generation could lose another's update."""

    maximum = '1.18'

    def test_aggregates_need_the_generation(self):
        host = self.create_provider('host')
        for call in (
            lambda: self.client.provider_aggregates(host),
            lambda: self.client.change_aggregates(host, add=[A]),
        ):
            error = self.assertRaises(errors.MicroversionUnsupported, call)
            self.assertEqual('1.19', error.needed)
            self.assertEqual('1.18', error.maximum)

    def test_candidates(self):
        host = self.create_provider('host', inventory={'VCPU': 2})
        request = objects.AllocationCandidatesRequest(
            groups=[objects.RequestGroup(resources={'VCPU': 1})], limit=1
        )
        found = self.client.allocation_candidates(request)
        self.assertEqual({host}, found.providers())
        self.assertIsNone(found.requests[0].mappings)
        self.assertIsNone(found.summaries[host].root_uuid)
        self.assertEqual(frozenset(), found.summaries[host].traits)
