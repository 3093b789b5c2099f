# SPDX-License-Identifier: Apache-2.0

"""What pages copy from what was measured is what the page on scale has."""

import pathlib
import re

import ddt
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


@ddt.ddt
class CostsTestCase(testtools.TestCase):
    def test_each_policy_costs_what_its_parts_do(self):
        parts = {
            part.strip('`'): float(milliseconds)
            for part, milliseconds, _ in tables('reference/scale')['Part']
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

    @ddt.data(
        '13 of 110 ms of processor time',
        'on a real nova and placement with 20 hosts, 200 closed aggregates, '
        '5 racks and a server group of 8',
    )
    def test_a_sentence_stands_on_both_pages(self, sentence):
        for page in ('admin/choosing', 'reference/scale'):
            self.assertIn(sentence, text(page))

    def test_the_length_that_ends_a_large_cloud(self):
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        limit = config.nova_ext_sched.max_forbidden_aggregates
        self.assertIn(
            f'more than about {limit} isolated', text('admin/choosing')
        )

    def test_queries_that_web_servers_take(self):
        [scale] = [
            rows
            for head, rows in tables('reference/scale').items()
            if head.startswith('Web server')
        ]
        numbers = {server.split(',')[0]: number for server, number, _ in scale}
        self.assertIn(
            f'past {numbers["uwsgi"].split()[0]} to {numbers["haproxy"]} '
            f"aggregates (by web server; {scale[-1][1]} with uwsgi's buffer "
            'raised)',
            text('reference/comparison'),
        )

    def test_servers_of_a_group_that_became_active(self):
        page = (PAGES / 'reference/scale.rst').read_text()
        ranges = []
        for options in ("nova's defaults", 'shuffled'):
            (runs,) = re.findall(
                rf"(?m)^nova's filter +{options} +(\d.*\d)$", page
            )
            active = sorted(map(int, re.split(r'\D+', runs)))
            ranges.append(
                ' to '.join(map(str, dict.fromkeys([active[0], active[-1]])))
            )
        self.assertIn(
            f"{ranges[0]} became ACTIVE with nova's defaults, and {ranges[1]} "
            'with the two options',
            text('reference/comparison'),
        )
