# SPDX-License-Identifier: Apache-2.0

"""The pages stay short: who looks for something reads past the rest.

A word is what ``wc -w`` counts. What was said before is said shorter, or goes,
before a page grows.
"""

import ddt
import testtools

from tests import documentation

SOURCE = documentation.ROOT / 'doc' / 'source'
# Of all pages but the later ones, together; of each of those.
ALL, EACH = 27_000, 700
LATER = {
    'admin/coming-from',
    'admin/faq',
    'admin/preferences',
    'cli/card',
    'cli/limits',
    'cli/save',
    'contributor/moves',
    'contributor/server-groups',
}


def count_words(page):
    return len((SOURCE / f'{page}.rst').read_text().split())


@ddt.ddt
class LengthTestCase(testtools.TestCase):
    def test_pages_together(self):
        """A page that is not listed above counts here."""
        pages = {
            str(path.relative_to(SOURCE).with_suffix(''))
            for path in SOURCE.rglob('*.rst')
        }
        self.assertEqual(set(), LATER - pages)
        self.assertLessEqual(sum(map(count_words, pages - LATER)), ALL)

    @ddt.data(*sorted(LATER))
    def test_later_page(self, page):
        self.assertLessEqual(count_words(page), EACH)
