# SPDX-License-Identifier: Apache-2.0

import datetime

from oslo_utils import fixture as time_fixture
import testtools

from nova_ext_sched.cmd.watch import explainer
from nova_ext_sched.cmd.watch import record
from nova_ext_sched.cmd.watch import refusals

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, 678)
REQUEST = {
    'project': 'another',
    'flavor': {'id': '3', 'name': 'm1.huge', 'vcpus': 64},
    'image': {'id': 'an-image', 'name': None},
}


class MakeTestCase(testtools.TestCase):
    def make(self, answer):
        self.useFixture(time_fixture.TimeFixture(NOW))
        refusal = refusals.Refusal(
            'cell:fault:7',
            NOW - datetime.timedelta(seconds=9),
            'server',
            'boot',
            'req-1',
            'project',
            'user',
            'No valid host was found.',
        )
        return record.make(refusal, answer)

    def test_with_an_explanation(self):
        found = {
            'request': REQUEST,
            'answer': {'end': {'name': 'server group'}},
        }
        self.assertEqual(
            {
                'format': 1,
                'id': 'cell:fault:7',
                'refused': '2026-01-02T03:03:56Z',
                'recorded': '2026-01-02T03:04:05Z',
                'request_id': 'req-1',
                'server': 'server',
                'project': 'project',
                'user': 'user',
                'operation': 'boot',
                'flavor': {'id': '3', 'name': 'm1.huge'},
                'image': {'id': 'an-image', 'name': None},
                'fault': 'No valid host was found.',
                'constraint': 'server group',
                'unexplained': None,
                'detail': None,
                'explanation': found,
            },
            self.make(explainer.Answer(found)),
        )

    def test_without_an_explanation(self):
        """What was asked stands there all the same, where it is known."""
        for asked, flavor in ((REQUEST, 'm1.huge'), (None, None)):
            found = self.make(
                explainer.Answer(reason='limit', detail='More.', asked=asked)
            )
            self.assertEqual(
                ('limit', 'limit', 'More.', None, flavor),
                (
                    found['constraint'],
                    found['unexplained'],
                    found['detail'],
                    found['explanation'],
                    found['flavor'] and found['flavor']['name'],
                ),
            )
