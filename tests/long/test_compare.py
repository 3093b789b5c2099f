# SPDX-License-Identifier: Apache-2.0

"""One saved cloud is asked in two ways, and what differs is said.

NOVA_EXT_SCHED_TEST_PYTHON is the Python of another environment, of another
nova, that is asked too: ``.tox/nova33/bin/python``.
"""

import contextlib
import importlib.metadata
import io
import json
import os
import pathlib
import subprocess
import sys

import fixtures
import testtools

from nova_ext_sched.cli import main
from tests import releases
from tests.functional import base
from tests.functional import explain
from tests.functional import saved

#: Files that later novas read.
FILES = [
    pathlib.Path(__file__).with_name(f'saved_under_{nova}.json.gz')
    for nova in (29, 31)
    if nova <= releases.NOVA
]
RELEASE = "import importlib.metadata as m; print(m.version('nova'))"
PYTHON = os.environ.get('NOVA_EXT_SCHED_TEST_PYTHON')
NOVA_CONF = """
[DEFAULT]
transport_url = fake://
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
enabled_filters = ComputeFilter
weight_classes = nova.scheduler.weights.ram.RAMWeigher
ram_weight_multiplier = {}
"""


def compare(path, *argv):
    out, err = io.StringIO(), io.StringIO()
    argv = [str(path), '--without=HostNameWeigher', *argv, '-f', 'json']
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main.main(['compare', *argv])
    return explain.Output(out.getvalue(), err.getvalue(), status)


class EnvironmentsTestCase(testtools.TestCase):
    def test_the_nova_of_each_answers(self):
        if not PYTHON:
            self.skipTest('NOVA_EXT_SCHED_TEST_PYTHON names none')
        asked = [PYTHON, '-c', RELEASE]
        other = subprocess.run(asked, capture_output=True, text=True)
        mine = importlib.metadata.version('nova')
        self.assertNotEqual(mine, other.stdout.strip())
        for path in FILES:
            found = compare(path, f'--python={PYTHON}')
            self.assertEqual((0, '[]'), (found.status, found.out.strip()))
            self.assertIn('All 15 answers are the same.', found.err)
            self.assertIn(
                f'First: nova {mine}. Second: nova {other.stdout.strip()} '
                f'({PYTHON}).',
                ' '.join(found.err.split()),
            )


class CompareTestCase(base.CloudTestCase):
    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    options = explain.OPTIONS

    def compare(self, *argv):
        return compare(self.file.path, *argv)

    def write(self, multiplier):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        path = folder / 'nova.conf'
        path.write_text(NOVA_CONF.format(multiplier))
        return str(path)

    def test_environments_and_options(self):
        first = self.boot()
        self.boot()
        other = self.boot(flavor=self.flavor(memory_mb=512))
        self.file = self.useFixture(saved.Saved())
        # Two environments that are the same one.
        same = self.compare(*[f'--python={sys.executable}'] * 2)
        self.assertEqual((0, []), (same.status, json.loads(same.out)), same)
        self.assertIn('are the same.', same.err)
        # Two nova.conf: the fullest host first, or the emptiest.
        spread, pack = (f'--config-file={self.write(n)}' for n in (1, -1))
        differ = self.compare(spread, pack)
        self.assertEqual(3, differ.status, differ)
        rows = {
            one['Question']: (one['First'], one['Second'])
            for one in json.loads(differ.out)
        }
        # The second server asks for what the first one does. All are on host1.
        self.assertEqual(
            {f'a new server like {one["id"]}' for one in (first, other)},
            {*rows},
        )
        for spread, packed in rows.values():
            self.assertRegex(spread, r'^0: host[23] host[23] host1$')
            self.assertRegex(packed, r'^0: host1 host[23] host[23]$')

    def test_what_cannot_be_asked(self):
        self.file = self.useFixture(saved.Saved())
        for argv, status, said in (
            ([], 2, 'Name one or two'),
            (['--python=/nonexistent'], 2, 'No such file'),
            (['--config-file=/nonexistent'], 2, '/nonexistent'),
        ):
            found = self.compare(*argv)
            self.assertEqual(status, found.status, found)
            self.assertIn(said, found.err)
