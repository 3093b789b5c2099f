# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import time
from unittest import mock

import ddt
import fixtures
import testtools

from nova_ext_sched.cli import cache


@ddt.ddt
class CacheTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.home = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.set('XDG_CACHE_HOME', str(self.home / 'a'))
        self.file = self.home / 'a' / 'nova-ext-sched' / 'x'

    def set(self, name, value):
        self.useFixture(fixtures.EnvironmentVariable(name, value))

    def test_modes(self):
        previous = os.umask(0)
        self.addCleanup(os.umask, previous)
        cache.write('x', 'é\n')
        self.assertEqual('é\n', cache.read('x'))
        self.assertEqual(0o600, self.file.stat().st_mode & 0o777)
        self.assertEqual(0o700, self.file.parent.stat().st_mode & 0o777)

    def test_a_file_that_others_could_read(self):
        cache.write('x', 'old')
        self.file.chmod(0o644)
        cache.write('x', 'new')
        self.assertEqual(0o600, self.file.stat().st_mode & 0o777)

    @ddt.data((86_000, 'text'), (86_401, None), (-60, None))
    @ddt.unpack
    def test_age(self, seconds, expected):
        cache.write('x', 'text')
        then = time.time() - seconds
        os.utime(self.file, (then, then))
        self.assertEqual(expected, cache.read('x'))

    def test_by_default_in_the_home(self):
        self.set('XDG_CACHE_HOME', 'relative')
        self.set('HOME', str(self.home))
        cache.write('x', 'text')
        self.assertTrue((self.home / '.cache/nova-ext-sched/x').exists())

    def test_of_another_user(self):
        cache.write('x', 'old')
        with mock.patch('os.geteuid', return_value=os.geteuid() + 1):
            cache.write('x', 'new')
            self.assertIsNone(cache.read('x'))
        self.assertEqual('old', self.file.read_text())

    def test_what_cannot_be_kept(self):
        self.assertIsNone(cache.read('x'))
        self.file.parents[1].write_text('in the way')
        cache.write('x', 'text')
        self.assertIsNone(cache.read('x'))
