# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import stat
from unittest import mock

import fixtures
import testtools

from nova_ext_sched import files


class WriteTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = self.folder / 'plan.json'

    def test_whole(self):
        files.write(self.path, 'a \ud800')
        self.assertEqual('a \\ud800', self.path.read_text())
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(0o666 & ~mask, stat.S_IMODE(self.path.stat().st_mode))
        self.path.chmod(0o600)
        files.write(self.path, 'b')
        self.assertEqual('b', self.path.read_text())
        self.assertEqual(0o600, stat.S_IMODE(self.path.stat().st_mode))

    def test_not_at_all(self):
        self.path.write_text('before')
        with mock.patch.object(os, 'fsync', side_effect=OSError('full')):
            self.assertRaises(OSError, files.write, self.path, 'after')
        self.assertEqual('before', self.path.read_text())
        self.assertEqual([self.path], [*self.folder.iterdir()])
        self.assertRaises(
            OSError, files.write, self.folder / 'no' / 'plan.json', ''
        )

    def test_what_is_no_file(self):
        """A link stays one; a device is written to."""
        link = self.folder / 'link'
        link.symlink_to(self.path)
        files.write(link, 'a')
        self.assertTrue(link.is_symlink())
        self.assertEqual('a', self.path.read_text())
        files.write(pathlib.Path(os.devnull), 'a')
        self.assertFalse(pathlib.Path(os.devnull).is_file())
