# SPDX-License-Identifier: Apache-2.0

import json
from unittest import mock

import ddt
from nova import exception as nova_exception
from nova import objects
import requests

from nova_ext_sched.queries import isolation as asked
from nova_ext_sched.request_filters import (
    isolation as isolation_request_filter,
)
from tests import cached
from tests import releases
from tests.unit.request_filters import base as test_base

FILTER = 'IsolatedAggregatesFilter'
A, B = 'CUSTOM_A', 'CUSTOM_B'
TPM = {'COMPUTE_SECURITY_TPM_2_0'}
if releases.ASKS_TPM_MODEL:
    TPM.add('COMPUTE_SECURITY_TPM_CRB')


class FilterTestCase(test_base.RequestFilterTestCase):
    """From metadata items to the request spec.

    The select and placement's answer are replaced; tests/functional has both.
    """

    def setUp(self):
        super().setUp()
        self.set(enable_isolated_aggregate_filtering=True)
        self.enable(FILTER)
        self.items = []
        self.known = set()
        self.asked = 0
        self.replace('queries.aggregates.get_metadata', lambda *_: self.items)
        self.replace('queries.aggregates.get_hosts', lambda _: {})
        self.replace('request_filters.isolation._read_traits', self.ask)
        self.spec = test_base.request_spec()

    def ask(self, ctxt):
        self.asked += 1
        return frozenset(self.known)

    def isolate(self, uuid, *traits):
        self.items += [
            (uuid, f'name {uuid}', f'trait:{trait}', 'required')
            for trait in traits
        ]

    def filter(self):
        """Run the filter; return what it changed in the request spec."""
        self.assertTrue(
            isolation_request_filter.isolate_aggregates(self.ctxt, self.spec)
        )
        _, forbidden = test_base.destination_of(self.spec) or (None, None)
        return set(forbidden or ()), self.spec.root_forbidden


@ddt.ddt
class IsolateAggregatesTestCase(FilterTestCase):
    def test_off(self):
        self.set(enable_isolated_aggregate_filtering=False)
        self.isolate('a', 'X')
        self.assertFalse(
            isolation_request_filter.isolate_aggregates(self.ctxt, self.spec)
        )
        self.assertIsNone(self.spec.requested_destination)

    def test_what_the_request_lacks_is_forbidden(self):
        self.isolate('a', 'X')
        self.isolate('b', 'X', 'Y')
        self.spec.flavor.extra_specs = {'trait:X': 'required'}
        self.assertEqual(({'b'}, set()), self.filter())

    def test_what_nova_cannot_read_is_the_requests_own_fault(self):
        self.isolate('a', 'X')
        fault = nova_exception.InvalidMachineType(
            mtype='it could land on any host',
            **dict.fromkeys(('image_id', 'image_name', 'reason'), 'x'),
        )
        read = 'nova.scheduler.utils.ResourceRequest.from_request_spec'
        with mock.patch(read, side_effect=fault):
            error = self.assertFails(self.filter)
        self.assertIn('nova cannot read what flavor and image require', error)
        self.assertNotIn('is refused, because', self.output.output)

    @ddt.data(('Trait:X', 'required', {'a'}), ('trait:X', 'forbidden', set()))
    @ddt.unpack
    def test_slip_is_warned_about_once(self, key, value, forbidden):
        self.items = [('a', 'windows', key, value)]
        for _ in range(2):
            self.assertEqual((forbidden, set()), self.filter())
        self.assertEqual(1, self.output.output.count('aggregate windows: '))


@ddt.ddt
class TraitSourcesTestCase(FilterTestCase):
    """isolation_trait_sources, in both stages."""

    def sources(self, *sources):
        self.set(isolation_trait_sources=list(sources))

    def required(self):
        return asked.required_traits(self.spec)

    @ddt.data(
        (['flavor', 'image'], {'X', 'Y', 'PORT', *TPM}),
        (['flavor'], {'X', 'PORT'}),
    )
    @ddt.unpack
    def test_sources(self, sources, expected):
        self.sources(*sources)
        self.spec.flavor.extra_specs = {'trait:X': 'required'}
        self.spec.image = test_base.image(
            traits_required=['Y'], hw_tpm_version='2.0', hw_tpm_model='tpm-crb'
        )
        port = objects.RequestGroup(
            requester_id='port', required_traits={'PORT'}
        )
        port.resources = {'NET_BW_EGR_KILOBIT_PER_SEC': 1}
        port.use_same_provider = True
        self.spec.requested_resources = [port]
        self.assertEqual(expected, self.required())
        # What placement is asked for stays as it is.
        self.assertEqual(['Y'], self.spec.image.properties.traits_required)

    def test_what_nova_derives_from_the_flavor_counts(self):
        self.sources('flavor')
        tpm = {'hw:tpm_version': '2.0', 'hw:tpm_model': 'tpm-crb'}
        self.spec.flavor.extra_specs = tpm
        self.assertEqual(TPM, self.required())

    @ddt.data((['flavor', 'image'], 1), (['flavor'], 0))
    @ddt.unpack
    def test_image_of_a_refused_rebuild_is_looked_up_only_if_it_counts(
        self, sources, expected
    ):
        restored = []
        self.replace(
            'queries.running_image.restore',
            lambda ctxt, spec, asker: restored.append(spec),
        )
        self.sources(*sources)
        self.isolate('a', 'X')
        self.filter()
        self.assertEqual(expected, len(restored))


class ForbidByTraitTestCase(FilterTestCase):
    def setUp(self):
        super().setUp()
        self.set(forbid_by_trait=['CUSTOM_*'])
        self.known = {'CUSTOM_A', 'CUSTOM_B', 'CUSTOM_C'}

    def test_declared_and_known(self):
        self.isolate('a', 'CUSTOM_A')
        self.isolate('x', 'X')
        self.isolate('ax', 'CUSTOM_A', 'X')
        self.assertEqual(({'x'}, {'CUSTOM_A'}), self.filter())

    def test_trait_that_is_required_of_the_root(self):
        """Placement answers 400 where one is required and forbidden."""
        self.isolate('a', 'CUSTOM_A')
        self.isolate('b', 'CUSTOM_B')
        self.spec.root_required.add('CUSTOM_A')
        self.assertEqual(({'a'}, {'CUSTOM_B'}), self.filter())

    def test_trait_that_only_the_image_requires(self):
        """It opens nothing, and is in the query all the same."""
        self.set(isolation_trait_sources=['flavor'])
        self.isolate('a', 'CUSTOM_A')
        self.isolate('b', 'CUSTOM_B')
        self.spec.image.properties.traits_required = ['CUSTOM_A']
        self.assertEqual(({'a'}, {'CUSTOM_B'}), self.filter())

    def test_unknown_trait_is_warned_about_once(self):
        self.known = {'CUSTOM_B'}
        self.isolate('a', 'CUSTOM_A')
        for _ in range(2):
            self.assertEqual(({'a'}, set()), self.filter())
        self.assertEqual(
            1, self.output.output.count('not know the trait CUSTOM_A,')
        )

    def test_placement_that_cannot_be_asked_accuses_no_trait(self):
        self.known = set()
        self.isolate('a', 'CUSTOM_A')
        self.assertEqual(({'a'}, set()), self.filter())
        self.assertEqual('', self.output.output)

    def test_placement_is_asked_only_where_it_helps(self):
        self.isolate('x', 'X')
        self.filter()
        self.assertEqual(0, self.asked)
        self.isolate('a', 'CUSTOM_A')
        self.enable('Other')
        self.assertEqual(({'a', 'x'}, set()), self.filter())
        self.enable(FILTER)
        self.spec = test_base.request_spec(force_hosts=['h'])
        self.assertEqual(({'a', 'x'}, set()), self.filter())
        self.assertEqual(0, self.asked)


class KnownTraitsTestCase(test_base.RequestFilterTestCase):
    """Against an answer of placement's form; the functional tests ask it."""

    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.replace('request_filters.base.timeutils.now', lambda: self.now)
        self.replace('request_filters.isolation.OUTAGE._logged', {})
        self.existing = [A]
        self.asked = 0
        self.status = 200
        self.client = mock.Mock(get=self.get)
        self.replace('queries.placement._client._client', self.client)
        read_traits = isolation_request_filter._read_traits
        self.useFixture(cached.Forgotten(read_traits))

    def known(self):
        return isolation_request_filter._get_known_traits(self.ctxt)

    def get(self, url, version, global_request_id):
        self.assertEqual('/traits', url)
        self.assertEqual(self.ctxt.global_id, global_request_id)
        self.asked += 1
        response = requests.Response()
        response.status_code = self.status
        response._content = json.dumps({'traits': self.existing}).encode()
        return response

    def test_what_changes_is_seen_soon(self):
        self.assertEqual({A}, self.known())
        self.existing = [B]
        self.now += isolation_request_filter.TRAITS_SECONDS - 1
        self.assertEqual({A}, self.known())
        self.assertEqual(1, self.asked)
        self.now += 1
        self.assertEqual({B}, self.known())

    def test_error_of_placement_knows_nothing_and_is_asked_again(self):
        self.status = 503
        self.existing = ['forged\nWARNING nova ' + 'x' * 60_000]
        for _ in range(2):
            self.assertEqual(set(), self.known())
        [logged] = self.output.output.splitlines()
        self.assertIn('traits cannot be read from placement', logged)
        self.assertIn('status 503', logged)
        self.assertLess(len(logged), 1000)
        self.status, self.existing = 200, [A]
        self.assertEqual({A}, self.known())

    def test_exception_knows_nothing(self):
        self.client.get = mock.Mock(side_effect=OSError('refused'))
        self.assertEqual(set(), self.known())
        self.assertIn('OSError: refused', self.output.output)
        self.client.get = self.get
        self.now += 60
        self.assertNotEqual(set(), self.known())
