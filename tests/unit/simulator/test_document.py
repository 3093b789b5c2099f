# SPDX-License-Identifier: Apache-2.0

import pathlib
import tempfile
import time
import unittest

import ddt

from nova_ext_sched import exception
from nova_ext_sched.simulator import document


def multiply(least, item):
    """Return nine levels, each ten times the one before it."""
    levels = [f'k0: &k0 {least}']
    for level in range(1, 10):
        above = f'*k{level - 1},' * 10
        levels.append(f'k{level}: &k{level} {item % above}')
    return '\n'.join(levels)


HUGE = {
    'nested': 'a: ' + '[' * 3000 + ']' * 3000,
    'nested_without_end': '[' * 3000,
    'aliases': multiply('[x]', '[%s]'),
    'merges': multiply('{x: y}', '{<<: [%s]}'),
    'long': 'a: ' + 'x' * (1 << 20),
}


@ddt.ddt
class LoadTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.file = pathlib.Path(folder) / 's.yaml'

    def load(self, text):
        if isinstance(text, str):
            text = text.encode()
        self.file.write_bytes(text)
        return document.load(str(self.file))

    def faults(self, text):
        with self.assertRaises(exception.ScenarioInvalid) as raised:
            self.load(text)
        self.assertEqual(str(self.file), raised.exception.path)
        return [f's.yaml: {fault}' for fault in raised.exception.faults]

    def test_path(self):
        fault = document.Fault(('a', 'b', 1, 'c'), 'a string', '2')
        self.assertEqual('a.b[1].c: expected a string, got 2', str(fault))

    def test_what_somebody_wrote_is_one_short_line(self):
        shown = document.show(['many\n'] * 1000)
        self.assertLess(len(shown), 150)
        self.assertNotIn('\n', shown)
        fault = document.Fault(('a\nb' * 1000,), 'less', shown)
        self.assertLess(len(str(fault)), 500)
        self.assertNotIn('\n', str(fault))

    def test_anchors_and_merges(self):
        data = self.load(
            'a: &x {k: 1, l: 1}\nb: *x\nc:\n  <<: *x\n  l: 2\n'
            'd: {<<: [{k: 3}, *x]}\n'
        )
        self.assertEqual({'k': 1, 'l': 1}, data['b'])
        self.assertEqual({'k': 1, 'l': 2}, data['c'])
        self.assertEqual({'k': 3, 'l': 1}, data['d'])

    @ddt.unpack
    @ddt.data(
        ('a: [', 's.yaml: (top): expected YAML, got '),
        ('a: 1\nb: :\n  - c\n', 's.yaml: (top): expected YAML, got '),
        ('a: !!python/name:os.system x\n', 's.yaml: a: expected no tag'),
        ('a: !!binary aGk=\n', 's.yaml: a: expected no tag, got binary'),
        ('a: !!set {b}\n', 's.yaml: a: expected no tag, got "set'),
        ('a: 1\n---\nb: 2\n', 's.yaml: (top): expected YAML, got '),
        (b'a: \xff\xfe\n', 's.yaml: (top): expected YAML, got '),
        (
            'a: 1\nb: 2\na: 3\n',
            's.yaml: a: expected each key once, got it twice',
        ),
        (
            'a:\n  b: {c: 1, c: 2}\n',
            's.yaml: a.b.c: expected each key once, got it twice',
        ),
        (
            'a:\n  1: x\n',
            's.yaml: a.1: expected a string as key (quote it), got 1',
        ),
        ('? [a, b]\n: x\n', 's.yaml: '),
        ('a: {<<: 3}\n', 's.yaml: a: expected a mapping to merge, got 3'),
        ('a: &x [*x]\n', 's.yaml: (top): expected at most 20 levels'),
    )
    def test_fault(self, text, beginning):
        (fault,) = self.faults(text)
        self.assertEqual(beginning, fault[: len(beginning)])

    def test_line_of_what_is_no_yaml(self):
        (fault,) = self.faults('a: 1\nb: [\n')
        self.assertTrue(fault.endswith(' in line 3'), fault)

    @ddt.unpack
    @ddt.data(
        ('nested', 'at most 20 levels'),
        ('nested_without_end', 'at most 20 levels'),
        ('aliases', 'at most 50000 values'),
        ('merges', 'at most 50000 values'),
        ('long', 'a file of at most 1048576 bytes'),
    )
    def test_bounds(self, kind, expected):
        text = HUGE[kind]
        begin = time.monotonic()
        (fault,) = self.faults(text)
        self.assertEqual(
            f's.yaml: (top): expected {expected}, got more', fault
        )
        self.assertLess(time.monotonic() - begin, 10)

    def test_file_without_end(self):
        with self.assertRaises(exception.ScenarioInvalid) as raised:
            document.load('/dev/zero')
        (fault,) = raised.exception.faults
        self.assertIn('a file of at most 1048576 bytes', str(fault))

    @ddt.unpack
    @ddt.data(
        ('010', 8),
        ('0x10', 16),
        ('0b11', 3),
        ('1_000', 1000),
        ('12:30', 750),
        ('+5', 5),
        ('-0', 0),
        ('1.10', 1.1),
        ('.5', 0.5),
        ('1_0.5', 10.5),
        ('1:30.5', 90.5),
        ('1.0e+3', 1000.0),
        ('.inf', 'inf'),
        ('!!int "07"', 7),
        ('!!float 1', 1.0),
    )
    def test_number_other_than_written(self, text, value):
        written = text.split()[-1].strip('"')
        self.assertEqual(
            [
                's.yaml: a.b[1]: expected a number as YAML reads it '
                f'({value}) or a string (quote it), got {written}'
            ],
            self.faults(f'a:\n  b:\n  - x\n  - {text}\n'),
        )

    @ddt.data('2026-01-01', '2026-13-45', '2026-01-01 12:30:00')
    def test_date(self, text):
        self.assertEqual(
            [f's.yaml: b: expected a string (quote it), got {text}'],
            self.faults(f'a: 1\nb: {text}\n'),
        )

    @ddt.data('!!int ""', '!!int x', '!!float ""')
    def test_tagged_number_that_is_none(self, text):
        (fault,) = self.faults(f'a: {text}\n')
        self.assertTrue(
            fault.startswith('s.yaml: a: expected a number, got'), fault
        )

    @ddt.unpack
    @ddt.data(
        ('0', 0),
        ('-1', -1),
        ('131072', 131072),
        ('9' * 30, int('9' * 30)),
        ('16.0', 16.0),
        ('-0.25', -0.25),
        ('"010"', '010'),
        ("'12:30'", '12:30'),
        ('!!str 1.10', '1.10'),
        ('7e3', '7e3'),
        ('08', '08'),
        ('1.2.3', '1.2.3'),
    )
    def test_as_written(self, text, value):
        self.assertEqual({'a': value}, self.load(f'a: {text}\n'))

    def test_several_faults(self):
        self.assertEqual(2, len(self.faults('a: 1\na: 2\nb: {1: 2}\n')))

    def test_missing_file(self):
        with self.assertRaises(exception.ScenarioInvalid) as raised:
            document.load('/nonexistent/s.yaml')
        (fault,) = raised.exception.faults
        self.assertEqual(
            '(top): expected a file that can be read, '
            'got No such file or directory',
            str(fault),
        )
