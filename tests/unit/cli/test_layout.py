# SPDX-License-Identifier: Apache-2.0

import io
from unittest import mock

import ddt
import testtools

from nova_ext_sched.cli import layout

UUID = '8d1f52c6-6b3a-4d0c-9c39-0f4c1c9a7e55'


@ddt.ddt
class LayoutTestCase(testtools.TestCase):
    def make(self, max_width=0):
        self.stream = io.StringIO()
        return layout.Layout(self.stream, max_width)

    @property
    def text(self):
        return self.stream.getvalue()

    @ddt.data(
        ({'COLUMNS': '60'}, 0, 60),
        ({'COLUMNS': '60'}, 100, 100),
        ({'COLUMNS': ''}, 0, 80),
        ({'COLUMNS': '60'}, -1, 60),
    )
    @ddt.unpack
    def test_width(self, environment, max_width, width):
        with mock.patch.dict('os.environ', environment):
            self.assertEqual(width, self.make(max_width).width)

    def test_paragraphs(self):
        out = self.make(40)
        out.section('The first words of a text that is long enough to wrap')
        out.say()
        out.say('and words that are set in, with those that follow', 2, hang=4)
        out.say('words beside the label, those that follow too', 1, 'label  ')
        self.assertEqual(
            '\nThe first words of a text that is long\n'
            '  enough to wrap\n'
            '\n'
            '  and words that are set in, with those\n'
            '      that follow\n'
            ' label  words beside the label, those\n'
            '        that follow too\n',
            self.text,
        )

    def test_a_word_is_broken_only_where_no_line_has_room_for_it(self):
        out = self.make(40)
        out.say(f'on the host {UUID}')
        out.say('x' * 50)
        self.assertEqual(
            f'on the host\n  {UUID}\n{"x" * 40}\n  {"x" * 10}\n', self.text
        )

    def test_a_narrow_terminal(self):
        out = self.make(10)
        out.say('some words', 30)
        self.assertEqual(f'{" " * 30}some words\n', self.text)

    def test_counts(self):
        self.make(40).counts([(120, 'of these'), (7, 'of those')])
        self.assertEqual('  120  of these\n    7  of those\n', self.text)
        self.make().counts([])
        self.assertEqual('', self.text)
        self.make(20).counts([(9, 'a'), (1, 'b'), (1, 'c')], 1, 'one', 'how')
        self.assertEqual('  9  a\n  and 2 more ones (how)\n', self.text)

    @ddt.data((2, 'a\nb\n'), (3, 'a\nb\nc\n'), (4, 'a\nb\n  and 2 more xs\n'))
    @ddt.unpack
    def test_fold(self, number, text):
        out = self.make(40)
        out.fold('abcd'[:number], 2, out.say, 'x')
        self.assertEqual(text, self.text)

    def test_table(self):
        out = self.make(40)
        rows = [
            ('first', 300, ['resources', 'a note that is long enough']),
            ('second', 7, UUID),
            ('third', '-', ''),
        ]
        out.table(('Name', 'Count', 'Text'), rows)
        self.assertEqual(
            'Name    Count  Text\n'
            'first     300  resources\n'
            '                 a note that is long\n'
            '                 enough\n'
            'second      7  8d1f52c6-6b3a-4d0c-9c39-0\n'
            '               f4c1c9a7e55\n'
            'third       -\n',
            self.text,
        )

    def test_table_of_nothing(self):
        self.make(40).table(('Name', 'Count'), [])
        self.assertEqual('Name  Count\n', self.text)
