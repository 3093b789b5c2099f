# SPDX-License-Identifier: Apache-2.0

import json
import logging
from unittest import mock

import fixtures
import requests

from nova_ext_sched import faults
from nova_ext_sched.request_filters import known_traits
from tests.unit.request_filters import base as test_base

A, B = 'CUSTOM_A', 'CUSTOM_B'


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
        self.existing = [A]
        self.asked = 0
        self.status = 200
        self.client = mock.Mock()
        self.client.get = self.get
        self.useFixture(
            fixtures.MockPatchObject(
                known_traits.report,
                'report_client_singleton',
                lambda: self.client,
            )
        )
        self.useFixture(
            fixtures.MockPatchObject(
                known_traits, '_faults', faults.FaultLog(known_traits.LOG)
            )
        )
        self.known = known_traits.KnownTraits()

    def get(self, url, version, global_request_id):
        self.assertEqual('/traits', url)
        self.assertEqual(self.ctxt.global_id, global_request_id)
        self.asked += 1
        response = requests.Response()
        response.status_code = self.status
        response._content = json.dumps({'traits': self.existing}).encode()
        return response

    def test_what_changes_is_seen_soon(self):
        self.assertEqual({A}, self.known.get(self.ctxt))
        self.existing = [B]
        self.now += known_traits.SECONDS - 1
        self.assertEqual({A}, self.known.get(self.ctxt))
        self.assertEqual(1, self.asked)
        self.now += 1
        self.assertEqual({B}, self.known.get(self.ctxt))

    def test_error_of_placement_knows_nothing_and_is_asked_again(self):
        self.status = 503
        self.existing = ['forged\nWARNING nova ' + 'x' * 60_000]
        self.assertEqual(set(), self.known.get(self.ctxt))
        self.assertIn(
            'traits cannot be read from placement', self.output.output
        )
        self.assertIn('status 503', self.output.output)
        self.assertEqual(set(), self.known.get(self.ctxt))
        self.assertEqual(1, self.output.output.count('status 503'))
        self.assertEqual(1, self.output.output.count('\n'))
        self.assertLess(len(self.output.output), 1000)
        self.status, self.existing = 200, [A]
        self.assertEqual({A}, self.known.get(self.ctxt))

    def test_what_was_known_is_not_believed_in_an_outage(self):
        self.known.get(self.ctxt)
        self.now += known_traits.SECONDS
        self.status = 500
        self.assertEqual(set(), self.known.get(self.ctxt))

    def test_exception_knows_nothing(self):
        self.client.get = mock.Mock(side_effect=OSError('refused'))
        self.assertEqual(set(), self.known.get(self.ctxt))
        self.assertIn('OSError: refused', self.output.output)
