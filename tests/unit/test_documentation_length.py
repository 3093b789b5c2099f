# SPDX-License-Identifier: Apache-2.0

"""The pages stay short: who looks for something reads past the rest.

A word is what ``wc -w`` counts. What was said before is said shorter, or goes,
before a page grows.
"""

import ddt
import testtools

from tests import documentation

SOURCE = documentation.ROOT / 'doc' / 'source'
# The first pages have a bound together, each later one its own.
TOGETHER, EACH = 27_000, 700
FIRST = set(
    """
    admin/aggregate-instance-type admin/anti-affinity admin/blazar
    admin/choosing admin/day admin/failure-domains admin/isolation
    admin/monitoring admin/operating admin/reserved-aggregates
    admin/runbook admin/security cli/audit cli/capacity cli/drain
    cli/explain cli/index cli/isolation cli/maintain cli/make-room cli/mend
    cli/moves cli/simulate cli/status cli/survive cli/watch
    configuration/index contributor/architecture
    contributor/placement-client contributor/plugins
    contributor/private-parts contributor/security contributor/testing
    contributor/upstream index install/compatibility install/containers
    install/index install/look-first install/quickstart reference/glossary
    reference/messages reference/scale
""".split()
)
PAGES = {
    str(path.relative_to(SOURCE).with_suffix(''))
    for path in SOURCE.rglob('*.rst')
}


def count_words(page):
    return len((SOURCE / f'{page}.rst').read_text().split())


@ddt.ddt
class LengthTestCase(testtools.TestCase):
    def test_first_pages(self):
        self.assertEqual(set(), FIRST - PAGES)
        self.assertLessEqual(sum(map(count_words, FIRST)), TOGETHER)

    @ddt.data(*sorted(PAGES - FIRST))
    def test_later_page(self, page):
        self.assertLessEqual(count_words(page), EACH)
