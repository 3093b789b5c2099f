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
    'answer': {'end': {}, 'hosts': 1, 'left': 0, 'cause': 'server group'},
}

SHARED = explainer.Explained(DOCUMENT, request=REQUEST, source='cell:fault:7')


class MakeTestCase(testtools.TestCase):
    def make(self, answer, age=9, **fields):
        self.useFixture(time_fixture.TimeFixture(NOW))
        refusal = refusals.Refusal(
            *('cell', 'fault', 7, NOW - datetime.timedelta(seconds=age)),
            *('server', 'No valid host was found.', False, 'boot', 'req-1'),
            *('project', 'user', 'web'),
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
            self.make(SHARED),
        )

    def test_without_an_explanation(self):
        """What was asked stands there all the same, where it is known."""
        answer = {'reason': 'limit', 'detail': 'More.'}
        for request, flavor in ((REQUEST, 'm1.huge'), (None, None)):
            found = self.make(explainer.Explained(**answer, request=request))
            self.assertHas(
                found,
                constraint='limit',
                unexplained='limit',
                detail='More.',
                asked_after=None,
                explained_by=None,
                explanation=None,
            )
            self.assertEqual(flavor, (found['flavor'] or {}).get('name'))

    def assertHas(self, found, **expected):
        self.assertEqual(expected, {one: found[one] for one in expected})

    def test_explained_with_an_equal_request(self):
        """Its explanation stands in the record that it names."""
        other = SHARED._replace(source='cell:fault:5')
        self.assertHas(
            self.make(other, age=-3),
            explanation=None,
            explained_by='cell:fault:5',
            asked_after=-3,
            constraint='server group',
            flavor={'id': '3', 'name': 'm1.huge'},
        )

    def test_no_secret(self):
        detail = 'http://nova:s3cret@host failed'
        found = self.make(
            explainer.Explained(reason='unavailable', detail=detail),
            message="No valid host was found. {'password': 's3cret'}",
        )
        self.assertEqual('http://nova:***@host failed', found['detail'])
        self.assertNotIn('s3cret', str(found))
