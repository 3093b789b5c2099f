# SPDX-License-Identifier: Apache-2.0

"""Files that are whole or not there, and files that nobody can trust."""

import gzip
import json
import os
import pathlib

import ddt
import fixtures
import testtools

from nova_ext_sched.saved import container


class ContainerTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = self.useFixture(fixtures.TempDir()).path
        self.path = pathlib.Path(folder, 'cloud.json.gz')

    def write(self, *records):
        with container.write(self.path) as writer:
            for record in records:
                writer.write(record)
            writer.write({'end': {'lines': writer.lines}})


class WriteTestCase(ContainerTestCase):
    def test_what_is_written_is_read(self):
        self.write({'format': 1}, [1, None, 'ä', 2.5])
        self.assertEqual(
            [{'format': 1}, [1, None, 'ä', 2.5], {'end': {'lines': 2}}],
            [*container.read(self.path)],
        )

    def test_only_its_owner_reads_it(self):
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        self.write({})
        self.assertEqual(0o600, self.path.stat().st_mode & 0o777)

    def test_whole_or_not_at_all(self):
        self.path.write_bytes(b'before')

        def fail():
            with container.write(self.path) as writer:
                writer.write({})
                raise KeyboardInterrupt

        self.assertRaises(KeyboardInterrupt, fail)
        self.assertEqual(b'before', self.path.read_bytes())
        self.assertEqual([self.path], [*self.path.parent.iterdir()])


def packed(*lines):
    return gzip.compress(b''.join(one + b'\n' for one in lines))


END = b'{"end":{"lines":1}}'


@ddt.ddt
class ReadTestCase(ContainerTestCase):
    @ddt.data(
        b'no gzip',
        b'',
        packed(b'{}', END)[:-9],
        # Damaged in the middle.
        packed(b'{}', END)[:12] + b'\x00\xff' + packed(b'{}', END)[14:],
        packed(b'{}'),
        packed(b'{}', END, b'{}'),
        packed(b'{}', b'{}', END),
        packed(b'{}', b'{"end":[]}'),
        packed(b'{', END),
        packed(b'\xff', END),
        packed(b'"text"', END),
        packed(b'[NaN]', END),
        packed(b'[' * 10**6, END),
        packed(b'{"a":' * 10**6, END),
        packed(b'[' + b'1' * 5000 + b']', END),
    )
    def test_what_is_no_cloud(self, data):
        self.path.write_bytes(data)
        exc = self.assertRaises(
            container.SavedInvalid, lambda: [*container.read(self.path)]
        )
        self.assertIn(str(self.path), str(exc))

    def test_a_line_that_is_too_long(self):
        self.path.write_bytes(packed(b'[' + b' ' * container._LONGEST, END))
        self.assertRaises(
            container.SavedInvalid, lambda: [*container.read(self.path)]
        )

    @ddt.data(('_ALWAYS', [0] * 10_000), ('_KEPT', {'a': [0] * 10_000}))
    @ddt.unpack
    def test_a_bomb(self, bound, record):
        """It is stopped long before its end."""
        self.useFixture(
            fixtures.MonkeyPatch(
                f'nova_ext_sched.saved.container.{bound}', 100_000
            )
        )
        line = json.dumps(record).encode()
        self.path.write_bytes(packed(*[line] * 1000))
        read = []
        self.assertRaises(
            container.SavedInvalid,
            lambda: read.extend(map(len, container.read(self.path))),
        )
        self.assertLess(len(read), 200)
