# SPDX-License-Identifier: Apache-2.0

import datetime
import json
import pathlib

import ddt
import fixtures
import testtools

from nova_ext_sched.cli import base
from nova_ext_sched.cmd import explain_recorded as recorded
from nova_ext_sched.cmd import explain_report as report
from tests import explanations

NOW = datetime.datetime(2026, 1, 9, 3, 4, 5)


def record(server, request_id, age=0, **fields):
    """Return a record, as far as explain reads it."""
    time = (NOW - datetime.timedelta(seconds=age)).isoformat() + 'Z'
    explanation = explanations.document(time=time)
    explanation['answer']['sentence'] = f'0 of 2 hosts for {server}.'
    explanation['remarks'] = []
    return {
        'format': 1,
        'id': f'cell:fault:{server}',
        'refused': '2026-01-02T03:04:05Z',
        'request_id': request_id,
        'server': server,
        'server_name': 'web',
        'image': None,
        'fault': 'No valid host was found.',
        'constraint': 'VCPU',
        'detail': None,
        'asked_after': 9,
        'explained_by': None,
        'explanation': explanation,
    } | fields


@ddt.ddt
class ReadTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = folder / 'records'

    def write(self, *found):
        self.path.write_text(
            'not JSON\n' + ''.join(json.dumps(one) + '\n' for one in found)
        )

    def test_when(self):
        self.write(record('server1', 'req-1', 7200))
        found = recorded.read(self.path, 'req-1')
        [remark] = found['remarks']
        self.assertEqual(
            'Nova refused it at 2026-01-02T03:04:05Z (request req-1): No '
            'valid host was found. It was explained at 2026-01-09T01:04:05Z',
            remark,
        )
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

    def test_no_such_record(self):
        """Nor the file at first."""
        for expected in ('--records', str(self.path)):
            error = self.assertRaises(
                base.UsageError, recorded.read, self.path, 'req-9'
            )
            self.assertIn(expected, str(error))
            self.write(record('server1', 'req-1'))

    @ddt.data(
        ({'asked_after': 60}, None),
        ({'asked_after': 61},
         'This is the cloud of {time}, 1 minute after the refusal'),
        ({'asked_after': 9, 'constraint': 'no candidates'},
         'When nova refused it, placement did not answer or offered no host'),
        ({'asked_after': 150, 'constraint': 'cannot decide'},
         'When nova refused it, a request filter could not decide. This is '
         'the cloud of {time}, 2 minutes after the refusal'),
    )  # fmt: skip
    @ddt.unpack
    def test_what_comes_before_the_answer(self, fields, expected):
        """The first line of what people read."""
        one = record('server1', 'req-1', **fields)
        self.write(one)
        found = recorded.read(self.path, 'req-1')
        time = one['explanation']['time']
        expected = expected and expected.format(time=time)
        self.assertEqual(expected, found['answer'].get('late'))
        if expected:
            made = report.make(found)
            self.assertEqual(f'{expected}.', made.sections[0].title)
            self.assertTrue(
                found['answer']['sentence'].startswith(f'{expected}. 0 of 2')
            )

    def test_explained_with_an_equal_request(self):
        own = {'server_name': 'other', 'image': {'id': '9', 'name': 'mine'}}
        equal = {'explanation': None, 'explained_by': 'cell:fault:server1'}
        first = record('server1', 'req-1')
        second = record('server2', 'req-2', **own, **equal)
        self.write(first, second)
        found = recorded.read(self.path, 'server2')
        self.assertIn('for server1. Nova', found['answer']['sentence'])
        self.assertIn('(request req-2)', found['answer']['sentence'])
        self.assertEqual(
            {'server': 'server2', **own},
            {key: found['request'][key] for key in ('server', *own)},
        )
        # In a file that was compressed.
        self.write(second)
        error = self.assertRaises(
            recorded.NotExplained, recorded.read, self.path, 'server2'
        )
        self.assertIn('record cell:fault:server1 has the', str(error))
