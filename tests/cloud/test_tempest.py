# SPDX-License-Identifier: Apache-2.0

"""Tempest's tests of nova-api: the same on plain nova and with ours on."""

import collections

import testtools

from tests.cloud import base
from tests.cloud import cloud as clouds
from tests.cloud import forms
from tests.cloud import nova
from tests.cloud import tempest

# In one cell: Tempest unshelves a server on any other host, which nova does
# not do across cells.
FORM = (*forms.ONE_CELL, tempest.Tempest)


class TempestTestCase(testtools.TestCase):
    def test_the_results_are_equal(self):
        plain = self.run_on_a_clean_cloud('plain nova', {})
        ours = self.run_on_a_clean_cloud('ours', nova.EVERYTHING)
        self.assertLess(400, list(plain.values()).count('success'))
        self.assertEqual(set(plain), set(ours))
        differing = {
            name: (plain[name], ours[name])
            for name in plain
            if plain[name] != ours[name]
        }
        self.assertEqual({}, differing)

    def run_on_a_clean_cloud(self, name, options):
        base.take_down()
        with clouds.Cloud(FORM) as cloud:
            cloud.nova.start_schedulers(options)
            cloud.nova.wait_for_schedulers()
            cloud.tempest.prepare()
            results = cloud.tempest.run()
        counts = collections.Counter(results.values())
        print(f'{name}: {dict(sorted(counts.items()))}', flush=True)
        print(cloud.tempest.describe(results), flush=True)
        return results
