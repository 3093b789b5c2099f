# SPDX-License-Identifier: Apache-2.0

"""The answers of two environments, here scripts that write such answers."""

import contextlib
import io
import json
import pathlib

import ddt
import fixtures
import testtools

from nova_ext_sched.cli import main


@ddt.ddt
class CompareTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def write(self, name, *lines, status=0):
        """Write the Python of an environment that says so."""
        text = self.folder / f'{name}.txt'
        text.write_text(''.join(f'{one}\n' for one in lines))
        path = self.folder / name
        path.write_text(
            # More errors than a pipe holds.
            f'#!/bin/sh\nhead -c 200000 /dev/zero | tr "\\0" x >&2\n'
            f'echo >&2; echo the end >&2\ncat {text}\nexit {status}\n'
        )
        path.chmod(0o700)
        return f'--python={path}'

    def write_answers(self, name, release, **answers):
        lines = [release, *([key, one] for key, one in answers.items())]
        return self.write(name, *map(json.dumps, lines))

    def compare(self, *argv):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main.main(['compare', 'cloud.json.gz', *argv])
        return status, out.getvalue(), err.getvalue()

    def test_what_differs_is_said(self):
        one = self.write_answers('one', '33.0.2', a='same', b='1', c='first')
        two = self.write_answers('two', '34.0.0', a='same', b='2', d='last')
        status, out, err = self.compare(one, two, '-f', 'json')
        self.assertEqual(3, status, err)
        self.assertEqual(
            [('b', '1', '2'), ('c', 'first', '-'), ('d', '-', 'last')],
            [tuple(row.values()) for row in json.loads(out)],
        )
        self.assertEqual(
            f'3 of 4 answers differ. First: nova 33.0.2 ({self.folder}/one). '
            f'Second: nova 34.0.0 ({self.folder}/two).',
            ' '.join(err.split()),
        )
        status, out, err = self.compare(one, two, '--max-width', '200')
        self.assertEqual((3, ''), (status, err))
        self.assertIn('\nb:\n', out)
        self.assertNotIn('same', out)

    def test_all_is_the_same(self):
        one = self.write_answers('one', '33.0.2', a='0: host1', b='2')
        status, out, err = self.compare(one, one)
        self.assertEqual((0, ''), (status, err))
        self.assertIn('All 2 answers are the same.', out)

    @ddt.data(
        # Others than this package.
        (0, 'usage: something'),
        (0, '1\n2'),
        (0, '"34.0.0"\n["a", "1"]\nTraceback'),
        # It ended before its time.
        (1, '"34.0.0"\n["a", "1"]'),
        (0, ''),
    )
    @ddt.unpack
    def test_an_environment_that_does_not_answer(self, ended, lines):
        fine = self.write_answers('fine', '34.0.0', a='1')
        fails = self.write('fails', lines, status=ended)
        status, out, err = self.compare(fine, fails)
        self.assertEqual((2, ''), (status, out))
        self.assertIn(f'{self.folder}/fails: expected answers, got', err)
        self.assertIn('the end', err)
        self.assertLess(len(err), 1000)
