# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
from keystoneauth1 import exceptions as ks_exc
from openstack import exceptions as sdk_exc
import testtools

from nova_ext_sched import waiting
from nova_ext_sched.dryrun.cloud import placement
from tests import clock

NO_VERSION = (
    'The compute service for c:r exists but does not have any supported '
    'versions.'
)


def http(status):
    return sdk_exc.HttpException(http_status=status)


def failed(is_away):
    exc = placement.PlacementFailed(query='/x', cause='503 down')
    exc.is_away = is_away
    return exc


@ddt.ddt
class AwayTestCase(testtools.TestCase):
    @ddt.data(
        (True, ks_exc.ConnectFailure('refused')),
        (True, ks_exc.ConnectTimeout('late')),
        (True, ks_exc.DiscoveryFailure('none')),
        (True, ks_exc.ServiceUnavailable()),
        (False, ks_exc.Unauthorized()),
        (False, ks_exc.EndpointNotFound()),
        (True, http(500)),
        (True, http(503)),
        (True, http(429)),
        (False, http(409)),
        (False, http(403)),
        (True, sdk_exc.NotSupported(NO_VERSION)),
        (False, sdk_exc.SDKException('what')),
        (False, ValueError('version')),
        (True, failed(True)),
        (False, failed(False)),
    )
    @ddt.unpack
    def test_table(self, expected, exc):
        self.assertEqual(expected, waiting.is_away(exc))


class WaitingTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock, self.said = self.useFixture(clock.Clock()), []
        self.waiting = waiting.Waiting('nova', self.said.append)

    def ask(self, *answers):
        return self.waiting.ask(mock.Mock(side_effect=answers))

    def test_it_answers_again(self):
        self.assertEqual('x', self.ask('x'))
        self.assertEqual([], self.said)
        refused = ks_exc.ConnectFailure('refused')
        self.assertEqual('x', self.ask(refused, http(503), refused, 'x'))
        self.assertEqual(
            [
                'nova does not answer (503). Retrying for 10 minutes.',
                'nova answers again, after 6 seconds.',
            ],
            self.said,
        )
        self.assertEqual(6, self.waiting.lost)
        # A second time is another; one that is over at once is not said.
        self.ask(http(503), 'x')
        self.ask(http(503), http(500), 'x')
        self.assertIn('nova does not answer (500)', self.said[2])
        self.assertEqual(4, len(self.said))

    def test_it_does_not(self):
        self.assertRaises(sdk_exc.HttpException, self.ask, *[http(503)] * 1000)
        self.assertEqual(1, len(self.said))
        self.assertIn(self.clock.now, range(600, 603))

    def test_what_is_an_answer(self):
        self.assertRaises(sdk_exc.HttpException, self.ask, http(403))
        self.assertEqual([], self.said)
