# SPDX-License-Identifier: Apache-2.0

import argparse
import io
import re

import ddt
import testtools

from nova_ext_sched.cli import base
from nova_ext_sched.cli import report
from nova_ext_sched.cli import terminal
from nova_ext_sched.cli import topology
from tests.unit.cli import test_bars


class Stream(io.StringIO):
    encoding = 'utf-8'


def host(number, domains=(), **fields):
    found = {'host': f'host{number}', 'cell': 'cell1', 'zone': 'nova'}
    found |= {'aggregates': [], 'domains': [*domains]}
    return found | {'state': 'up', 'closed': ''} | fields


LEGEND = {
    topology.COUNTED: 'servers found',
    topology.LEVELLED: 'room',
    topology.NOTHING.shown: 'nothing',
}


def draw(hosts, found=(), levels=(), width=80, stream=Stream, **kwargs):
    """Return the lines of a map of numbers by host."""
    found, levels = dict(found), dict(levels)
    signs = {name: topology.level(n, 8) for name, n in levels.items()}
    signs |= topology.count_all(found)
    made = topology.Map(hosts, signs, found, 'Found', LEGEND, **kwargs)
    report.write(out := stream(), [report.Section(body=made)], width)
    lines = out.getvalue().splitlines()
    for line in lines:
        assert len(line) <= width, line
    return lines


@ddt.ddt
class MapTestCase(testtools.TestCase):
    hosts = (
        host(1, ['rack2']),
        host(2, ['rack2'], state='down'),
        host(3, ['rack2', 'rack10'], state='disabled', closed='isolated'),
        host(4, ['rack10'], closed='isolated'),
        host(5, ['rack10'], closed='reserved'),
        host(6, ['rack10']),
        host(7, zone='far', aggregates=['a']),
    )

    @ddt.data(
        ({'host6': 9, 'host7': 2}, '92', 'servers'),
        ({'host6': 10, 'host7': 2}, '+2', 'servers (+: 10 or more)'),
        ({'host6': 60, 'host7': 31}, '++', 'servers (+: 10 or more)'),
    )
    @ddt.unpack
    def test_counts(self, found, shown, said):
        lines = draw(self.hosts, found)
        self.assertEqual(f'rack10          -ir{shown[0]} ', lines[2][:21])
        self.assertEqual(f'(none)          {shown[1]} ', lines[3][:18])
        self.assertEqual(said, topology.say_counted(found, 'servers'))

    def test_signs(self):
        """As people count; a host of two stands in both, one of none last."""
        self.assertEqual(
            [
                'Failure domain  Hosts  Found',
                'rack2           ·x-        0',
                'rack10          -ir▃       0',
                f'(none)          4          4  {"█" * 40}',
                '1-9 servers found   ▁-█ room   · nothing   x down   '
                '- disabled   i isolated',
                'r reserved',
            ],
            draw(self.hosts, {'host7': 4}, {'host6': 2}),
        )

    def test_what_was_found_stands_before_the_state(self):
        lines = draw(self.hosts, {'host2': 9, 'host4': 10}, by='zone')
        self.assertEqual(['far', '·', '0'], lines[1].split())
        self.assertTrue(lines[2].startswith('nova  ·9-+r·     19  █'), lines)

    def test_by_aggregate(self):
        lines = draw(self.hosts, by='aggregate')
        heads = [line.split()[0] for line in lines[:3]]
        self.assertEqual(['Aggregate', 'a', '(none)'], heads)

    def test_zones_where_there_are_no_domains(self):
        [first, *_] = draw([host(1)])
        self.assertTrue(first.startswith('Zone '), first)

    def test_an_encoding_without_blocks(self):
        lines = draw(
            self.hosts, {'host7': 4}, {'host6': 2}, stream=test_bars.Ascii
        )
        self.assertIn('rack10          -irC ', lines[2])
        self.assertIn('4  ####', lines[3])
        self.assertIn('A-H room   . nothing', lines[4])
        self.assertTrue(all(map(str.isascii, lines)))

    def test_colours_say_nothing_alone(self):
        """Each kind of sign is another character."""
        kinds = [topology.NOTHING, topology.level(1, 1)]
        kinds += topology.count_all({'a': 1, 'b': 10}).values()
        kinds += [sign for sign, _ in topology._STATES.values()]
        for shown in ('shown', 'plain'):
            signs = [getattr(one, shown) or one.shown for one in kinds]
            self.assertEqual(len(signs), len({*signs}))
        made = topology.Map(self.hosts, {}, {}, 'x', LEGEND)
        section = report.Section(body=made)
        report.write(out := Stream(), [section], 80, terminal.ALWAYS)
        plain = re.sub(r'\x1b\[[\d;]*m', '', out.getvalue())
        report.write(without := Stream(), [section], 80)
        self.assertEqual(without.getvalue(), re.sub(r' +\n', '\n', plain))

    @ddt.data(80, 160)
    def test_a_large_cloud(self, width):
        """3,000 hosts in 100 racks and 3 zones are one screen each."""
        hosts = [
            host(n, [f'rack{n % 100}'], zone=f'az{n % 3}') for n in range(3000)
        ]
        for one in hosts[98::299]:
            one['state'] = 'down'
        found = {f'host{number}': 1 for number in range(0, 3000, 100)}
        found['host199'] = 2
        lines = draw(hosts, found, width=width)
        self.assertLessEqual(len(lines), 32)
        self.assertTrue(lines[1].startswith('rack0 '), lines[1])
        self.assertEqual(30, lines[1].count('1'))
        self.assertIn('rack99', ' '.join(lines))
        folded = [line for line in lines if 'and 76 more' in line]
        self.assertEqual(1, len(folded), lines)
        text = ' '.join(lines[lines.index(folded[0]) :])
        self.assertRegex(text, r'2280 hosts ')
        lines = draw(hosts, found, width=width, by='zone')
        self.assertLessEqual(len(lines), 12)
        # Three have no room for signs: the worst have names.
        text = re.sub(r'\s+', ' ', ' '.join(lines))
        self.assertIn('az0 1000 hosts, most on host0, host300, host600', text)
        self.assertIn('az1 1000 hosts, most on host199, host100,', text)

    @ddt.data(80, 160)
    def test_one_zone(self, width):
        """The commonest cloud: each host has a sign."""
        hosts = [host(number) for number in range(300)]
        lines = draw(hosts, {'host7': 2}, width=width)
        self.assertLessEqual(len(lines), 12)
        self.assertEqual(299, ''.join(lines[1:-1]).count('·'))

    def test_names_are_text(self):
        lines = draw([host(1, ['[red]']), host(2, ['a\x1b[31m'])])
        text = '\n'.join(lines)
        self.assertIn('[red] ', text)
        self.assertNotIn('\x1b', text)

    @ddt.data(([], False), (['--map'], True), (['--map-by', 'zone'], True))
    @ddt.unpack
    def test_options(self, argv, expected):
        parser = argparse.ArgumentParser()
        base.add(parser, topology.OPTIONS)
        parsed = parser.parse_args(argv)
        self.assertEqual(expected, topology.is_wanted(parsed))
