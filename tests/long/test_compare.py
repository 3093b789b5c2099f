# SPDX-License-Identifier: Apache-2.0

"""One saved cloud is asked in two ways, and what differs is said."""

import contextlib
import io
import json
import pathlib
import sys

import fixtures

from nova_ext_sched.cli import main
from tests.functional import base
from tests.functional import explain
from tests.functional import saved

NOVA_CONF = """
[DEFAULT]
transport_url = fake://
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
enabled_filters = ComputeFilter
weight_classes = nova.scheduler.weights.ram.RAMWeigher
ram_weight_multiplier = {}
"""


class CompareTestCase(base.CloudTestCase):
    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    options = explain.OPTIONS

    def compare(self, *argv):
        path, without = str(self.file.path), '--without=HostNameWeigher'
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main.main(['compare', path, without, *argv, '-f', 'json'])
        return explain.Output(out.getvalue(), err.getvalue(), status)

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
