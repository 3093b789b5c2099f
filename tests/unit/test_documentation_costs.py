# SPDX-License-Identifier: Apache-2.0

"""What pages copy of measurements is what contributor/measurements has."""

import pathlib
import re

from oslo_config import cfg
import testtools

from nova_ext_sched import conf

PAGES = pathlib.Path(__file__).parents[2] / 'doc' / 'source'


def text(page: str) -> str:
    """Return a page with its lines joined."""
    return ' '.join((PAGES / f'{page}.rst').read_text().split())


def tables(page: str) -> dict[str, list[list[str]]]:
    """Return the rows of each list-table by the first word of its head."""
    found = {}
    for table in re.findall(
        r'(?m)^\.\. list-table::\n((?: +.*\n|\n)+)',
        (PAGES / f'{page}.rst').read_text(),
    ):
        head, *rows = (
            [' '.join(cell.split()) for cell in re.split(r'(?m)^ +- ', row)]
            for row in re.split(r'(?m)^ +\* - ', table)[1:]
        )
        found[head[0]] = rows
    return found


class CostsTestCase(testtools.TestCase):
    def test_each_policy_costs_what_its_parts_do(self):
        measured = tables('contributor/measurements')['Part']
        parts = {
            part.strip('`'): float(milliseconds)
            for part, milliseconds, _ in measured
        }
        left = {*parts}
        for policy, milliseconds, _ in tables('admin/choosing')['Policy']:
            # What stands in parentheses is counted elsewhere.
            named = re.findall('``(.+?)``', policy.partition('(')[0])
            self.assertEqual(
                f'{sum(map(parts.get, named)):.1f}', milliseconds, policy
            )
            left -= {*named}
        self.assertEqual(set(), left)

    def test_the_length_that_ends_a_large_cloud(self):
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        limit = config.nova_ext_sched.max_forbidden_aggregates
        self.assertIn(
            f'more than about {limit} isolated', text('admin/choosing')
        )
