# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
from keystoneauth1 import exceptions as ks_exc
import testtools

from nova_ext_sched.cmd import nova_scheduler

NOVA_GET = 'nova.scheduler.client.report.SchedulerReportClient.get'


def response(status, body, text=''):
    return mock.Mock(
        status_code=status, text=text, json=mock.Mock(side_effect=[body])
    )


@ddt.ddt
class ReportClientTestCase(testtools.TestCase):
    def get(self, answer):
        client = object.__new__(nova_scheduler.ReportClient)
        with mock.patch(NOVA_GET, side_effect=[answer]):
            return client, client.get('/traits')

    def test_an_answer(self):
        answer = response(200, {})
        self.assertIs(answer, self.get(answer)[1])

    @ddt.data(
        (response(400, {'errors': [{'detail': ' no\n'}]}), '400 no'),
        (response(400, {}, 'no JSON'), '400 no JSON'),
    )
    @ddt.unpack
    def test_a_query_that_is_refused(self, answer, refusal):
        client, found = self.get(answer)
        self.assertIs(answer, found)
        self.assertEqual(refusal, client.refusal)

    @ddt.data(
        (response(503, ValueError('no JSON'), 'busy'), '503 busy'),
        (ks_exc.ConnectFailure('no route'), 'ConnectFailure: no route'),
    )
    @ddt.unpack
    def test_a_fault(self, answer, cause):
        error = self.assertRaises(
            nova_scheduler.PlacementFailed, self.get, answer
        )
        self.assertEqual(
            f'[placement] in nova.conf: expected an answer to GET /traits, '
            f'got: {cause}',
            str(error),
        )
