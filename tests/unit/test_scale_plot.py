# SPDX-License-Identifier: Apache-2.0

"""The picture of the page on scale shows the table beside it."""

from xml.etree import ElementTree

import testtools

from tests.benchmarks import plot


class PlotTestCase(testtools.TestCase):
    def test_picture_is_drawn_from_the_table(self):
        """Run ``python -m tests.benchmarks.plot`` where it is not."""
        self.assertEqual(plot.draw(plot.read()), plot.PICTURE.read_text())

    def test_every_point_is_on_the_picture(self):
        root = ElementTree.fromstring(plot.PICTURE.read_text())
        _, _, width, height = map(float, root.get('viewBox').split())
        circles = root.findall('{*}circle')
        drawn = [row for row in plot.read() if row['part'] in plot.LINES]
        self.assertEqual(len(drawn), len(circles))
        for circle in circles:
            self.assertTrue(0 < float(circle.get('cx')) < width)
            self.assertTrue(0 < float(circle.get('cy')) < height)
