# SPDX-License-Identifier: Apache-2.0

import itertools
import json
import logging
from unittest import mock

import fixtures
import requests

from nova_ext_sched import faults
from nova_ext_sched.request_filters import known_traits
from tests.unit.request_filters import base as test_base

A, B, C = 'CUSTOM_A', 'CUSTOM_B', 'CUSTOM_C'


class KnownTraitsTestCase(test_base.RequestFilterTestCase):
    """Against an answer of placement's form; the functional tests ask it."""

    def setUp(self):
        super().setUp()
        self.output = self.useFixture(
            fixtures.FakeLogger(level=logging.WARNING)
        )
        self.now = 1000.0
        self.useFixture(
            fixtures.MockPatchObject(
                known_traits.timeutils, 'now', lambda: self.now
            )
        )
        self.existing = {A}
        self.asked = []
        self.status = 200
        client = mock.Mock()
        client.get = self.get
        self.useFixture(
            fixtures.MockPatchObject(
                known_traits.report, 'report_client_singleton', lambda: client
            )
        )
        self.useFixture(
            fixtures.MockPatchObject(
                known_traits, '_faults', faults.FaultLog(known_traits.LOG)
            )
        )
        self.known = known_traits.KnownTraits()

    def get(self, url, version, global_request_id):
        asked = url.removeprefix('/traits?name=in:').split(',')
        self.asked.append(asked)
        response = requests.Response()
        response.status_code = self.status
        response._content = json.dumps(
            {'traits': [trait for trait in asked if trait in self.existing]}
        ).encode()
        return response

    def among(self, *traits):
        return self.known.among(self.ctxt, traits)

    def test_nothing_to_ask(self):
        self.assertEqual(set(), self.among())
        self.assertEqual([], self.asked)

    def test_asks_once_and_warns_about_the_missing(self):
        self.assertEqual({A}, self.among(A, B))
        self.assertEqual({A}, self.among(B, A))
        self.assertEqual([[A, B]], self.asked)
        self.assertIn('does not know the trait CUSTOM_B', self.output.output)

    def test_asks_only_for_what_it_does_not_know(self):
        self.among(A)
        self.among(A, B)
        self.assertEqual([[A], [B]], self.asked)

    def test_what_changes_is_seen_soon(self):
        self.among(A, B)
        self.existing = {B}
        self.now += known_traits.SECONDS - 1
        self.assertEqual({A}, self.among(A, B))
        self.now += 2
        self.assertEqual({B}, self.among(A, B))

    def test_a_missing_trait_is_warned_about_once(self):
        for _ in range(5):
            self.among(A, B)
            self.now += known_traits.SECONDS + 1
        self.assertEqual(5, len(self.asked))
        self.assertEqual(1, self.output.output.count('CUSTOM_B'))

    def test_memory_is_bounded_by_the_traits_in_use(self):
        self.among(A, B)
        self.now += known_traits.SECONDS + 1
        self.among(C)
        self.assertEqual([C], list(self.known._until))

    def test_many_traits_fit_request_lines(self):
        traits = [f'CUSTOM_{"X" * (i % 200)}{i:03}' for i in range(120)]
        self.existing = set(traits)
        self.assertEqual(set(traits), self.among(*traits))
        self.assertEqual(sorted(traits), list(itertools.chain(*self.asked)))
        self.assertLess(
            max(len(','.join(asked)) for asked in self.asked), 1100
        )

    def test_what_is_no_name_spoils_no_question(self):
        odd = ('CUSTOM_R&D', 'CUSTOM_A#1', 'custom', '', 'CUSTOM_\u00c4')
        self.assertEqual({A}, self.among(A, *odd))
        self.assertEqual([[A]], self.asked)
        for name in odd:
            self.assertIn(f'know the trait {name},', self.output.output)

    def test_error_of_placement_knows_nothing_and_is_asked_again(self):
        self.status = 503
        self.assertEqual(set(), self.among(A))
        self.assertIn('cannot be asked which traits', self.output.output)
        self.assertIn('status 503', self.output.output)
        self.assertEqual(set(), self.among(A))
        self.assertEqual(1, self.output.output.count('status 503'))
        self.status = 200
        self.assertEqual({A}, self.among(A))

    def test_exception_knows_nothing(self):
        with mock.patch.object(self, 'get', side_effect=OSError('refused')):
            known_traits.report.report_client_singleton().get = self.get
            self.assertEqual(set(), self.among(A))
        self.assertIn('OSError: refused', self.output.output)
