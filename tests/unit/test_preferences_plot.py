# SPDX-License-Identifier: Apache-2.0

"""The picture of the page on preferences shows the table beside it."""

import testtools

from tests.benchmarks import preferences


class PlotTestCase(testtools.TestCase):
    def test_picture_is_drawn_from_the_table(self):
        """Run ``python -m tests.benchmarks.preferences`` where it is not."""
        self.assertEqual(
            preferences.draw(preferences.read()),
            preferences.PICTURE.read_text(),
        )
