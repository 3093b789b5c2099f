# SPDX-License-Identifier: Apache-2.0

import io

import ddt
import testtools

from nova_ext_sched.cli import bars
from nova_ext_sched.cli import report


class Ascii(io.StringIO):
    encoding = 'ascii'


def write(rows, width=62, stream=io.StringIO, columns=('Name', '')):
    out = stream()
    report.write(out, [report.Section(rows=rows, columns=columns)], width)
    return out.getvalue().splitlines()[1:]


@ddt.ddt
class BarTestCase(testtools.TestCase):
    @ddt.data(
        ([8], '████████'),
        ([4], '████'),
        ([4, 2], '████░░'),
        ([0, 8], '░░░░░░░░'),
        # More than none has a sign.
        ([0.1], '█'),
        ([0], ''),
        ([0.1, 7.9], '█░░░░░░░'),
        ([6.96, 0.04], '███████'),
    )
    @ddt.unpack
    def test_parts(self, parts, expected):
        """The name leaves 40 columns, five for each of eight."""
        [line] = write([('x' * 20, bars.Bar(parts, 8))])
        shown = line.removeprefix('x' * 20).strip()
        self.assertIn(len(shown), (5 * len(expected), 1, 34, 35, 40))
        self.assertEqual(set(expected), set(shown))
        if len(parts) == 1 and parts[0] >= 1:
            self.assertEqual(5 * len(expected), len(shown))

    def test_an_encoding_without_blocks(self):
        [line] = write([('x' * 20, bars.Bar((4, 2), 8))], stream=Ascii)
        self.assertEqual(f'{"x" * 20}  {"#" * 20}{"." * 10}', line)

    @ddt.data((59, 0), (60, 38), (100, 40))
    @ddt.unpack
    def test_width(self, width, expected):
        """What words leave, 40 columns at most; none in a narrow table."""
        [line] = write([('x' * 20, bars.Bar((1,), 1))], width)
        self.assertEqual(expected, line.count('█'))

    def test_words_give_way_but_no_name(self):
        row = ('x' * 36, bars.Bar((1,), 1), 'a text that wraps')
        lines = write([row], 60, columns=('Name', '', 'Text'))
        self.assertIn(f'{"x" * 36}  {"█" * 12}  ', lines[0])
        text = ' '.join(lines).replace('█', ' ').replace('x' * 36, '')
        self.assertEqual(['a', 'text', 'that', 'wraps'], text.split())


@ddt.ddt
class CompareTestCase(testtools.TestCase):
    @ddt.data(
        ([3, 6, 0], [0.5, 1, 0]),
        ([3, '-', 'unlimited', 1], [1, '', '', 1 / 3]),
        ([0, 0], ['', '']),
        ([3], ['']),
        ([], []),
    )
    @ddt.unpack
    def test_numbers(self, numbers, expected):
        found = bars.compare(numbers)
        shares = [one and one.parts[0] / one.whole for one in found]
        self.assertEqual(expected, shares)
