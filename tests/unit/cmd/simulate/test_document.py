# SPDX-License-Identifier: Apache-2.0

import pathlib
import tempfile
import time
import unittest

import ddt

from nova_ext_sched import exception
from nova_ext_sched.cmd.simulate import document


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
        ('a: !!float 1\n', 's.yaml: a: expected no tag, got float'),
        ('a: !!float ""\n', 's.yaml: a: expected no tag, got float'),
        ('a: !!int x\n', 's.yaml: a: expected no tag, got int x'),
        ('a: !!int ""\n', 's.yaml: a: expected no tag, got int'),
        ('a: !!int 07\n', 's.yaml: a: expected no tag, got int 07'),
        ('a: !!bool yes\n', 's.yaml: a: expected no tag, got bool yes'),
        ('a: !!bool [x]\n', 's.yaml: a: expected no tag, got bool'),
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
        ('0', 0),
        ('-1', -1),
        ('131072', 131072),
        ('!!int "7"', 7),
        ('true', True),
        ('False', False),
        ('null', None),
        ('', None),
        *(
            (text, text)
            for text in (
                *('010', '08', '0x10', '0b11', '1_000', '12:30', '+5', '-0'),
                *('1.10', '16.0', '.5', '1_0.5', '1:30.5', '1.0e+3', '7e3'),
                *('.inf', '1.2.3', '9' * 30, '9' * 5000),
                *('yes', 'no', 'on', 'off', 'NO', '=', '<<'),
                *('2026-01-01', '2026-13-45', '2026-01-01 12:30:00'),
            )
        ),
        ('"010"', '010'),
        ("'12:30'", '12:30'),
        ("'true'", 'true'),
        ('!!str 1', '1'),
    )
    def test_as_written(self, text, value):
        (got,) = self.load(f'a: {text}\n').values()
        self.assertEqual(value, got)
        self.assertIs(type(value), type(got))

    @ddt.data('1', '010', 'no', 'true', 'null')
    def test_key_as_written(self, key):
        self.assertEqual({key: 'x'}, self.load(f'{key}: x\n'))

    def test_several_faults(self):
        self.assertEqual(2, len(self.faults('a: 1\na: 2\nb: {c: 1, c: 2}\n')))

    def test_missing_file(self):
        with self.assertRaises(exception.ScenarioInvalid) as raised:
            document.load('/nonexistent/s.yaml')
        (fault,) = raised.exception.faults
        self.assertEqual(
            '(top): expected a file that can be read, '
            'got No such file or directory',
            str(fault),
        )
