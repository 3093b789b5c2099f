# SPDX-License-Identifier: Apache-2.0

import datetime
import io
import json
import pathlib

import ddt
import fixtures
from oslo_utils import fixture
import testtools

from nova_ext_sched import exception
from nova_ext_sched.cli import base
from nova_ext_sched.cli import layout
from nova_ext_sched.cmd.explain import answer
from nova_ext_sched.cmd.explain import recorded
from tests import explanations

NOW = datetime.datetime(2026, 1, 9, 3, 4, 5)


def record(server, request_id, age=0, **fields):
    time = (NOW - datetime.timedelta(seconds=age)).isoformat() + 'Z'
    explanation = explanations.document(time=time)
    explanation['answer']['sentence'] = f'0 of 2 hosts for {server}.'
    explanation['remarks'] = []
    return {
        'format': 1,
        'id': f'cell:fault:{server}',
        'refused': '2026-01-02T03:04:05Z',
        'recorded': time,
        'request_id': request_id,
        'server': server,
        'server_name': 'web',
        'project': 'p',
        'user': 'u',
        'operation': 'boot',
        'flavor': None,
        'image': None,
        'fault': 'No valid host was found.',
        'constraint': 'VCPU',
        'unexplained': None,
        'detail': None,
        'explanation': explanation,
    } | fields


@ddt.ddt
class ReadTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = folder / 'records'
        self.useFixture(fixture.TimeFixture(NOW))

    def write(self, *found):
        self.path.write_text(
            'not JSON\n' + ''.join(json.dumps(one) + '\n' for one in found)
        )

    @ddt.data('req-1', 'server1')
    def test_by_request_or_server(self, wanted):
        self.write(record('server1', 'req-1'), record('server2', 'req-2'))
        found = recorded.read(self.path, wanted)['answer']
        self.assertIn('0 of 2 hosts for server1. Nova', found['sentence'])

    def test_the_latest(self):
        self.write(record('server1', 'req-1'), record('server1', 'req-2'))
        found = recorded.read(self.path, 'server1')
        self.assertIn('req-2', found['answer']['sentence'])

    @ddt.data(
        (-5, '0 seconds'),
        (0, '0 seconds'),
        (1, '1 second'),
        (59, '59 seconds'),
        (60, '1 minute'),
        (7199, '1 hour'),
        (7200, '2 hours'),
        (86400 * 3, '3 days'),
    )
    @ddt.unpack
    def test_age(self, seconds, expected):
        self.write(record('server1', 'req-1', seconds))
        found = recorded.read(self.path, 'req-1')
        [remark] = found['remarks']
        self.assertIn('at 2026-01-02T03:04:05Z (request req-1)', remark)
        self.assertTrue(remark.endswith(f'explained {expected} ago'), remark)
        self.assertTrue(found['answer']['sentence'].endswith(f'{remark}.'))

    def test_without_an_explanation(self):
        self.write(
            record(
                'server1', 'req-1', explanation=None, detail='it was deleted'
            )
        )
        error = self.assertRaises(
            recorded.NotExplained, recorded.read, self.path, 'req-1'
        )
        self.assertEqual(
            'nova refused it at 2026-01-02T03:04:05Z (request req-1): No '
            'valid host was found. It was not explained: it was deleted',
            str(error),
        )

    @ddt.data('req-9', 'No valid host was found.')
    def test_no_such_record(self, wanted):
        self.write(record('server1', 'req-1'))
        error = self.assertRaises(
            base.UsageError, recorded.read, self.path, wanted
        )
        self.assertIn(str(self.path), str(error))

    def test_no_file(self):
        error = self.assertRaises(
            base.UsageError, recorded.read, self.path, 'req-1'
        )
        self.assertIn('--records', str(error))

    @ddt.data(
        ({'project': 7}, '$.project: 7 is not of type'),
        ({'explanation': {}}, "$: 'format' is a required property"),
        ({'explanation': [1]}, '$.explanation: [1] is not of type'),
        ({'fault': None}, '$.fault: None is not of type'),
    )
    @ddt.unpack
    def test_one_that_somebody_edited(self, fields, expected):
        self.write(record('server1', 'req-1', **fields))
        error = self.assertRaises(
            exception.InvalidValue, recorded.read, self.path, 'server1'
        )
        self.assertIn(str(self.path), str(error))
        self.assertIn(expected, str(error))

    def test_one_that_came_late(self):
        """The first line of what people read."""
        one = record('server1', 'req-1')
        one['explanation']['answer']['late'] = 'This is the cloud of 01:12'
        self.write(one)
        out = io.StringIO()
        found = recorded.read(self.path, 'req-1')
        answer.write(layout.Layout(out, 80), found, [])
        self.assertEqual(
            'This is the cloud of 01:12.', out.getvalue().splitlines()[0]
        )
