# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import json
import pathlib

import ddt
import fixtures
import testtools

from nova_ext_sched.cmd import records


@ddt.ddt
class RecordsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = folder / 'records'
        self.records = records.Records(self.path)

    def read(self, path=None):
        lines = (path or self.path).read_text().splitlines()
        return [json.loads(line)['id'] for line in lines]

    def test_one_line_each(self):
        self.records.write({'id': 'a', 'text': 'two\nlines'})
        self.records.write({'id': 'b'})
        self.assertEqual(['a', 'b'], self.read())
        self.assertEqual({'a', 'b'}, self.records.known_ids())

    def test_logrotate_moves_the_file(self):
        self.records.write({'id': 'a'})
        moved = self.path.with_name('records.1')
        self.path.rename(moved)
        self.records.write({'id': 'b'})
        self.assertEqual((['a'], ['b']), (self.read(moved), self.read()))

    def test_standard_output(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            records.Records(None).write({'id': 'a'})
        self.assertEqual('{"id":"a"}\n', out.getvalue())
        self.assertEqual(set(), records.Records(None).known_ids())

    def test_a_disk_that_gets_full_leaves_whole_lines(self):
        self.records.write({'id': 'a'})
        with fixtures.MonkeyPatch('os.fsync', self._full):
            self.assertRaises(OSError, self.records.write, {'id': 'b'})
        self.assertEqual(['a'], self.read())
        self.records.write({'id': 'c'})
        self.assertEqual(['a', 'c'], self.read())

    @staticmethod
    def _full(descriptor):
        raise OSError('No space left on device')

    @ddt.data('', 'x' * 10000, '{"id"')
    def test_a_piece_of_a_line_that_a_crash_left(self, piece):
        self.records.write({'id': 'a', 'text': 'y' * 5000})
        with self.path.open('a') as file:
            file.write(piece)
        self.records.write({'id': 'b'})
        self.assertEqual(['a', 'b'], self.read())

    def test_nothing_but_a_piece(self):
        self.path.write_text('{"id"')
        self.records.write({'id': 'a'})
        self.assertEqual(['a'], self.read())

    def test_only_the_end_of_a_large_file_is_looked_through(self):
        self.useFixture(
            fixtures.MonkeyPatch('nova_ext_sched.cmd.records._TAIL', 25)
        )
        for name in 'abc':
            self.records.write({'id': name, 'x': '1234'})
        # The last whole line, and the end of the one before.
        self.assertEqual({'c'}, self.records.known_ids())
