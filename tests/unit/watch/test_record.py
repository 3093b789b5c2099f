# SPDX-License-Identifier: Apache-2.0

import dataclasses
import datetime

from oslo_utils import fixture as time_fixture
import testtools

from nova_ext_sched.watch import explainer
from nova_ext_sched.watch import record
from nova_ext_sched.watch import refusals

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, 678)
REQUEST = {
    'project': 'another',
    'flavor': {'id': '3', 'name': 'm1.huge', 'vcpus': 64},
    'image': {'id': 'an-image', 'name': None},
}

DOCUMENT = {
    'time': '2026-01-02T03:04:05Z',
    'request': REQUEST,
    'answer': {
        'end': {},
        'hosts': 1,
        'left': 0,
        'cause': 'server group',
        'sentence': 'No.',
    },
}


class MakeTestCase(testtools.TestCase):
    def make(self, answer, age=9, **fields):
        self.useFixture(time_fixture.TimeFixture(NOW))
        refusal = refusals.Refusal(
            'cell',
            'fault',
            7,
            NOW - datetime.timedelta(seconds=age),
            'server',
            'No valid host was found.',
            False,
            'boot',
            'req-1',
            'project',
            'user',
            'web',
        )
        return record.make(dataclasses.replace(refusal, **fields), answer)

    def test_with_an_explanation(self):
        self.assertEqual(
            {
                'format': 1,
                'id': 'cell:fault:7',
                'refused': '2026-01-02T03:03:56Z',
                'recorded': '2026-01-02T03:04:05Z',
                'request_id': 'req-1',
                'server': 'server',
                'server_name': 'web',
                'project': 'project',
                'user': 'user',
                'operation': 'boot',
                'flavor': {'id': '3', 'name': 'm1.huge'},
                'image': {'id': 'an-image', 'name': None},
                'fault': 'No valid host was found.',
                'constraint': 'server group',
                'unexplained': None,
                'detail': None,
                'asked_after': 9,
                'explained_by': None,
                'explanation': DOCUMENT,
            },
            self.make(
                explainer.Explained(
                    DOCUMENT, asked=REQUEST, source='cell:fault:7'
                )
            ),
        )

    def test_without_an_explanation(self):
        """What was asked stands there all the same, where it is known."""
        for asked, flavor in ((REQUEST, 'm1.huge'), (None, None)):
            found = self.make(
                explainer.Explained(
                    reason='limit', detail='More.', asked=asked
                )
            )
            self.assertEqual(
                ('limit', 'limit', 'More.', None, None, None, flavor),
                (
                    found['constraint'],
                    found['unexplained'],
                    found['detail'],
                    found['asked_after'],
                    found['explained_by'],
                    found['explanation'],
                    found['flavor'] and found['flavor']['name'],
                ),
            )

    def test_explained_with_an_equal_request(self):
        """Its explanation stands in the record that it names."""
        answer = explainer.Explained(
            DOCUMENT, asked=REQUEST, source='cell:fault:5'
        )
        found = self.make(answer, age=-3)
        self.assertEqual(
            (None, 'cell:fault:5', -3, 'server group', 'm1.huge'),
            (
                found['explanation'],
                found['explained_by'],
                found['asked_after'],
                found['constraint'],
                found['flavor']['name'],
            ),
        )

    def test_no_secret(self):
        found = self.make(
            explainer.Explained(
                reason='unavailable', detail='http://nova:s3cret@host failed'
            ),
            message="No valid host was found. {'password': 's3cret'}",
        )
        self.assertEqual('http://nova:***@host failed', found['detail'])
        self.assertNotIn('s3cret', str(found))
