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
    'in_itself': 'a: &x [*x]',
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
        return [f's.yaml: {fault}' for fault in raised.exception.findings]

    def test_anchors(self):
        data = self.load('a: &x {k: 1}\nb: *x\n')
        self.assertEqual({'k': '1'}, data['b'])

    @ddt.unpack
    @ddt.data(
        ('a: [', ''),
        ('a: 1\nb: :\n  - c\n', ''),
        ('a: !!python/name:os.system x\n', 'the tag tag:yaml.org,2002:python'),
        ('a: !!binary aGk=\n', 'the tag tag:yaml.org,2002:binary in line 1'),
        ('a: !!set {b}\n', 'the tag tag:yaml.org,2002:set in line 1'),
        ('a: !!int 7\n', 'the tag tag:yaml.org,2002:int in line 1'),
        ('a: 1\n---\nb: 2\n', ''),
        (b'a: \xff\xfe\n', ''),
        ('a: 1\nb: 2\na: 3\n', 'the key a twice in line 3'),
        ('a:\n  b: {c: 1, c: 2}\n', 'the key c twice in line 2'),
        ('!!int 7: x\n', 'a key that is no string in line 1'),
        ('? [a, b]\n: x\n', 'a key that is no string in line 1'),
    )
    def test_fault(self, text, got):
        (fault,) = self.faults(text)
        beginning = f's.yaml: (top): expected YAML, got {got}'
        self.assertEqual(beginning, fault[: len(beginning)])

    def test_line_of_what_is_no_yaml(self):
        (fault,) = self.faults('a: 1\nb: [\n')
        self.assertTrue(fault.endswith(' in line 3'), fault)

    @ddt.unpack
    @ddt.data(
        ('nested', 'a few levels'),
        ('nested_without_end', 'a few levels'),
        ('aliases', 'at most 50000 values'),
        ('in_itself', 'a few levels'),
        ('long', 'a file of at most 1048576 bytes'),
    )
    def test_bounds(self, kind, expected):
        text = HUGE[kind]
        begin = time.process_time()
        (fault,) = self.faults(text)
        self.assertEqual(
            f's.yaml: (top): expected {expected}, got more', fault
        )
        self.assertLess(time.process_time() - begin, 10)

    def test_file_without_end(self):
        with self.assertRaises(exception.ScenarioInvalid) as raised:
            document.load('/dev/zero')
        (fault,) = raised.exception.findings
        self.assertIn('a file of at most 1048576 bytes', str(fault))

    @ddt.data(
        *('010', '08', '0x10', '0b11', '1_000', '12:30', '+5', '-0', '7'),
        *('1.10', '16.0', '.5', '7e3', '.inf', '9' * 5000),
        *('yes', 'no', 'on', 'off', 'NO', '=', '<<', 'true', 'null', '~', ''),
        *('2026-01-01', '2026-13-45', '2026-01-01 12:30:00'),
    )
    def test_strings_are_as_they_were_written(self, text):
        self.assertEqual({'a': text}, self.load(f'a: {text}\n'))
        flavors = {'f': {'extra_specs': {'reservation:42': text}}}
        self.assertEqual(
            {'flavors': flavors},
            self.load(
                f'flavors: {{f: {{extra_specs:\n {{"reservation:42":'
                f' "{text}"}}}}}}\n'
            ),
        )

    @ddt.unpack
    @ddt.data(
        ('0', 0),
        ('-1', -1),
        ('131072', 131072),
        ('"7"', 7),
        *(
            (text, text)
            for text in ('010', '0x10', '1_000', '+5', '-0', '16.0', 'true')
        ),
        ('9' * 30, '9' * 30),
    )
    def test_integer(self, text, value):
        data = self.load(
            f"""
            hosts: [a, {{name: b, vcpus: {text}}}]
            flavors: {{f: {{vcpus: {text}}}}}
            server_groups: {{g: {{rules: {{max_server_per_host: {text}}}}}}}
            steps:
            - boot: x
              count: {text}
              expect: {{min_hosts: {text}, per_host: {{a: {text}}}}}
            """
        )
        step = data['steps'][0]
        found = [
            data['hosts'][1]['vcpus'],
            data['flavors']['f']['vcpus'],
            data['server_groups']['g']['rules']['max_server_per_host'],
            step['count'],
            step['expect']['min_hosts'],
            step['expect']['per_host']['a'],
        ]
        self.assertEqual([value] * 6, found)
        self.assertEqual({type(value)}, set(map(type, found)))

    @ddt.unpack
    @ddt.data(
        *(('true', True), ('True', True), ('false', False), ('False', False)),
        *((text, text) for text in ('yes', 'on', 'TRUE', '1', '')),
    )
    def test_boolean(self, text, value):
        data = self.load(
            f'imply_traits: {text}\nsteps: [{{boot: x, volume: {text}}}]\n'
        )
        found = [data['imply_traits'], data['steps'][0]['volume']]
        self.assertEqual([value] * 2, found)
        self.assertEqual({type(value)}, set(map(type, found)))

    @ddt.data('1', '010', 'no', 'true', 'null')
    def test_key_as_written(self, key):
        self.assertEqual({key: 'x'}, self.load(f'{key}: x\n'))
