# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import json
import pathlib
import shutil
from unittest import mock

import ddt
import fixtures
import testtools

from nova_ext_sched import exception
from nova_ext_sched.watch import records


def record(name, **fields):
    found = {'format': 1, 'id': f'{name}:fault:1'}
    found['refused'] = '2026-01-02T03:04:05Z'
    ids = {'server': f'server of {name}', 'request_id': f'req-{name}'}
    return found | ids | fields


@ddt.ddt
class RecordsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = folder / 'records'

    def open(self):
        """Return the file as the next process has it."""
        if hasattr(self, 'records'):
            self.records._file.close()
        self.records = records.Records(self.path)
        self.addCleanup(self.records._file.close)
        return self.records

    def write(self, *names, **fields):
        self.open()
        for name in names:
            self.records.write(record(name, **fields))

    def read(self, path=None):
        lines = (path or self.path).read_text().splitlines()
        return [json.loads(line)['id'][0] for line in lines]

    def last(self):
        return ''.join(sorted(cell for cell, *_ in self.open().last_ids()))

    def test_one_line_each(self):
        self.write('a', 'b', text='two\nlines')
        self.assertEqual(['a', 'b'], self.read())
        self.assertEqual({('b', 'fault', 1)}, self.open().last_ids())

    def test_logrotate_moves_the_file(self):
        self.write('a')
        moved = self.path.with_name('records.1')
        self.path.rename(moved)
        self.records.write(record('b'))
        self.records.write(record('c'))
        self.assertEqual((['a'], ['b', 'c']), (self.read(moved), self.read()))

    def test_the_last_record_where_logrotate_moves_the_file(self):
        """Or copies it; what it compresses and the state say nothing."""
        self.write('a', 'b')
        self.path.rename(self.path.with_name('records.1'))
        self.write('c')
        shutil.copy(self.path, self.path.with_name('records-20260102'))
        self.path.write_text('')
        for name in ('records.2.gz', 'records.state'):
            self.path.with_name(name).write_bytes(b'\x1f\x8b\xff\n{"id": 1}')
        self.path.with_name('records.3').mkdir()
        self.assertEqual('bc', self.last())

    def test_standard_output(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            records.Records(None).write({'id': 'a'})
        self.assertEqual('{"id":"a"}\n', out.getvalue())
        self.assertEqual(set(), records.Records(None).last_ids())

    def assertRefused(self, got, method, *arguments):
        error = self.assertRaises(exception.InvalidValue, method, *arguments)
        self.assertIn(str(self.path), str(error))
        self.assertIn(got, str(error))

    def test_one_process_at_a_time(self):
        self.write('a')
        self.assertRefused('has locked', records.Records, self.path)
        # What logrotate moves is another's who comes first.
        self.path.rename(self.path.with_name('records.1'))
        other = records.Records(self.path)
        self.assertRefused('has locked', self.records.write, record('b'))
        other._file.close()
        self.records.write(record('b'))
        self.assertEqual(['b'], self.read())

    @ddt.data('x', 'a foreign file of many words', '\n', '{"id": "a"}\n', '[]')
    def test_a_file_of_another_kind(self, text):
        """It stays as it is, at the start and later."""
        self.path.write_text(text)
        self.assertRefused(repr(text)[1:11], records.Records, self.path)
        self.assertEqual(text, self.path.read_text())
        self.path.unlink()
        self.write('a')
        self.path.unlink()
        self.path.write_text(text)
        write = self.records.write
        self.assertRefused('nothing but records', write, record('b'))
        self.assertEqual(text, self.path.read_text())

    def test_a_disk_that_gets_full_leaves_whole_lines(self):
        self.write('a')
        full = mock.Mock(side_effect=OSError('No space left on device'))
        with fixtures.MonkeyPatch('os.fsync', full):
            self.assertRaises(OSError, self.records.write, record('b'))
        self.assertEqual(['a'], self.read())
        self.records.write(record('c'))
        self.assertEqual(['a', 'c'], self.read())

    @ddt.data('', 'x' * 10000, '{"id"')
    def test_a_piece_of_a_line_that_a_crash_left(self, piece):
        self.write('a', text='y' * 5000)
        with self.path.open('a') as file:
            file.write(piece)
        self.write('b')
        self.assertEqual(['a', 'b'], self.read())

    @ddt.data('{', '{"for', '{"format":1,"id"')
    def test_nothing_but_a_piece(self, piece):
        self.path.write_text(piece)
        self.write('a')
        self.assertEqual(['a'], self.read())

    @ddt.data('', 'x' * 65536, '{"id"')
    def test_the_last_record_before_a_piece_of_a_line(self, piece):
        self.write('a')
        self.write('b', text='y' * 65000)
        with self.path.open('a') as file:
            file.write(piece)
        self.assertEqual('b', self.last())

    @ddt.data(
        '{"id": [1]}',
        '{"format": 1, "id": [1], "refused": "x", "server": "server of a"}',
        '[' * 200_000,
        '\ud800',
        'null',
    )
    def test_a_line_that_somebody_edited(self, line):
        self.write('a')
        with self.path.open('a', errors='surrogatepass') as file:
            file.write(f'{line} req-b\n{line}\n')
        self.write('b')
        self.assertEqual('b', self.last())
        for name in 'ab':
            for wanted in (f'req-{name}', f'server of {name}'):
                self.assertEqual(record(name), records.find(self.path, wanted))

    def test_a_record_that_logrotate_moved(self):
        self.write('a', 'b')
        self.path.rename(self.path.with_name('records.1'))
        self.assertEqual(record('a'), records.find(self.path, 'req-a'))
        # What it compressed is not read; the state has no record.
        self.write('b', server='of a later one')
        for name in ('records.2.gz', 'records.state'):
            self.path.with_name(name).write_bytes(b'\x1f\x8b\xff\nreq-c "}')
        self.assertEqual(record('a'), records.find(self.path, 'req-a'))
        found = records.find(self.path, 'req-b')
        self.assertEqual('of a later one', found['server'])
        self.assertIsNone(records.find(self.path, 'req-c'))
        # As Python reads an argument that the locale does not know.
        self.assertIsNone(records.find(self.path, 'req-\udcc3\udca9'))

    def test_no_file_at_all(self):
        error = self.assertRaises(OSError, records.find, self.path, 'req-a')
        self.assertEqual(str(self.path), error.filename)

    def test_the_latest_of_a_request(self):
        self.write('a')
        self.write('b', request_id='req-a')
        self.assertEqual('b', records.find(self.path, 'req-a')['id'][0])
        self.assertIsNone(records.find(self.path, 'req-'))
