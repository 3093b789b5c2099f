# SPDX-License-Identifier: Apache-2.0

"""What tools/release.py refuses, and an sdist that is always the same."""

import configparser
import importlib.util
import io
import os
import pathlib
import tarfile
from unittest import mock

import ddt
import fixtures
import testtools

ROOT = pathlib.Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location(
    'release', ROOT / 'tools' / 'release.py'
)
release = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(release)

ADDRESSES = {'source': 'https://x', 'contact': 'a@b'}


@ddt.ddt
class MissingTestCase(testtools.TestCase):
    @ddt.data(
        ({}, ['1.0.0'], True, []),
        ({'contact': ''}, ['1.0.0'], True, ['contact is empty']),
        ({}, ['0.9'], True, ['no tag 1.0.0']),
        ({}, ['1.0.0'], False, ['Files differ']),
    )
    @ddt.unpack
    def test_what_is_no_release(self, changed, tags, is_clean, expected):
        config = configparser.ConfigParser()
        config['metadata'] = {'version': '1.0.0'}
        config['addresses'] = ADDRESSES | changed
        found = release.find_missing(config, tags, is_clean)
        self.assertEqual(len(expected), len(found), found)
        for text, said in zip(expected, found, strict=True):
            self.assertIn(text, said)

    def test_addresses(self):
        """Pages refer to each; nobody who is no maintainer fills them in."""
        pages = [ROOT / 'SECURITY.rst', ROOT / 'CONTRIBUTING.rst']
        text = ' '.join(one.read_text() for one in pages)
        names = release.read_config()['addresses']
        self.assertEqual(
            {'source', 'issues', 'documentation', 'contact'}, {*names}
        )
        for name in ('issues', 'contact'):
            self.assertIn(f'``{name}``', text)


@ddt.ddt
class AuditTestCase(testtools.TestCase):
    @ddt.data(
        ('{"dependencies": [{"name": "a", "skip_reason": "x"}]}',
         'Not audited: the index knows none of 1 releases.'),
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": []},'
         ' {"name": "b", "skip_reason": "x"}]}',
         'Audited 1 of 2 releases; vulnerable: none known.'),
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": [{}]}]}',
         'Audited 1 of 1 releases; vulnerable: a 1.'),
        ('', 'Not audited: no network'),
    )  # fmt: skip
    @ddt.unpack
    def test_what_it_says(self, answer, expected):
        """Nobody reads an all-clear where nothing was looked at."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        done = mock.Mock(stdout=answer, stderr='no network\n')
        with mock.patch('subprocess.run', return_value=done):
            self.assertEqual(expected, release.audit({'a==1'}, folder))
        self.assertEqual(bool(answer), (folder / 'audit.json').exists())


class NormalizeTestCase(testtools.TestCase):
    def make(self, folder, order, **entry):
        path = pathlib.Path(folder, 'x.tar.gz')
        with tarfile.open(path, 'w:gz') as made:
            for name in order:
                found = tarfile.TarInfo(name)
                found.size, found.mode = len(name), 0o644
                for key, value in entry.items():
                    setattr(found, key, value)
                made.addfile(found, io.BytesIO(name.encode()))
        os.utime(path, (entry.get('mtime', 1), 1))
        release.normalize(path, 1_700_000_000)
        return path

    def test_the_same_bytes(self):
        one, other = (
            self.make(
                self.useFixture(fixtures.TempDir()).path,
                order,
                mtime=seconds,
                uid=uid,
                uname=name,
                mode=mode,
            )
            for order, seconds, uid, name, mode in (
                ('ab', 5, 0, 'root', 0o644),
                ('ba', 7, 1000, 'me', 0o600),
            )
        )
        self.assertEqual(one.read_bytes(), other.read_bytes())
        with tarfile.open(one) as made:
            self.assertEqual(
                [('a', 1_700_000_000, b'a'), ('b', 1_700_000_000, b'b')],
                [
                    (found.name, found.mtime, made.extractfile(found).read())
                    for found in made
                ],
            )
