# SPDX-License-Identifier: Apache-2.0

"""The picture of the page on scale shows the table beside it."""

import testtools

from tests.benchmarks import plot


class PlotTestCase(testtools.TestCase):
    def test_picture_is_drawn_from_the_table(self):
        """Run ``python -m tests.benchmarks.plot`` where it is not."""
        self.assertEqual(plot.draw(plot.read()), plot.PICTURE.read_text())
