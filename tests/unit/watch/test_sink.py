# SPDX-License-Identifier: Apache-2.0

import json
import pathlib

import ddt
import fixtures
import testtools

from nova_ext_sched import exception
from nova_ext_sched.watch import feed
from nova_ext_sched.watch import sink

POSITIONS = {
    ('cell', 'fault'): feed.Position(7, frozenset({9, 8})),
    ('other', 'event'): feed.Position(2),
}


def record(name):
    refused = '2026-01-02T03:04:05Z'
    return {'format': 1, 'id': name, 'refused': refused, 'server': 'a'}


@ddt.ddt
class SinkTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = self.folder / 'records'
        self.state = self.folder / 'records.state'

    def open(self):
        """Return the sink as the next process has it."""
        if hasattr(self, 'sink'):
            self.end()
        self.sink = sink.Sink(self.path, self.state)
        self.addCleanup(self.end)
        return self.sink

    def end(self):
        self.sink._lock.close()
        self.sink._records._file.close()

    def test_what_is_noted_is_read(self):
        self.open().note(POSITIONS)
        self.assertEqual(POSITIONS, self.open().read())
        moved = POSITIONS | {('cell', 'fault'): feed.Position(10)}
        self.sink.note(moved)
        self.assertEqual(moved, self.open().read())

    def test_nothing_is_kept(self):
        kept = sink.Sink(None, None)
        kept.note(POSITIONS)
        self.assertEqual({}, kept.read())

    def test_a_record_whose_position_was_not_noted(self):
        """Where logrotate moved it too; of a cell that the state has."""
        self.open().note(POSITIONS)
        self.sink.write(record('cell:fault:10'))
        self.path.rename(self.folder / 'records.1')
        self.sink.write(record('gone:fault:1'))
        ahead = feed.Position(7, frozenset({8, 9, 10}))
        expected = POSITIONS | {('cell', 'fault'): ahead}
        self.assertEqual(expected, self.open().read())

    def assertRefused(self, got, method):
        error = self.assertRaises(exception.InvalidValue, method)
        self.assertIn(str(self.state), str(error))
        self.assertIn('remove the file', str(error))
        self.assertIn(got, str(error))

    @ddt.data(
        b'',
        b'x',
        b'[]',
        b'{"positions": []}',
        b'{"format": 1}',
        b'{"format": 2, "positions": []}',
        b'{"format": 1, "positions": [["cell", "fault", 1]]}',
        b'{"format": 1, "positions": [["cell", "fault", 1, 2]]}',
        b'SQLite format 3\x00\xff',
    )
    def test_something_else(self, content):
        self.state.write_bytes(content)
        self.assertRefused('another file', self.open().read)
        self.assertEqual(content, self.state.read_bytes())

    def test_another_one_uses_it(self):
        self.open()
        for _ in range(2):
            self.assertRefused(
                'another process', lambda: sink.Sink(None, self.state)
            )
            # Not even after the file was replaced.
            self.sink.note(POSITIONS)
        self.open()

    def test_a_disk_that_is_full_leaves_what_was_there(self):
        self.open().note(POSITIONS)
        before = self.state.read_bytes()

        def full(descriptor):
            raise OSError('No space left on device')

        with fixtures.MonkeyPatch('os.fsync', full):
            self.assertRaises(OSError, self.sink.note, {})
        self.assertEqual(before, self.state.read_bytes())
        self.sink.note({})
        self.assertEqual([], json.loads(self.state.read_text())['positions'])
