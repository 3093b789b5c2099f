# SPDX-License-Identifier: Apache-2.0

import argparse
import csv
import io
import json
import pathlib
from unittest import mock

import ddt
import fixtures
from rich import cells
import testtools
import yaml

from nova_ext_sched.cli import base
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import options
from nova_ext_sched.cli import report
from tests.unit.cli import commands

UUID = '8d1f52c6-6b3a-4d0c-9c39-0f4c1c9a7e55'
Line, Section = report.Line, report.Section


def write(*sections, width=40):
    out = io.StringIO()
    report.write(out, sections, width)
    return out.getvalue()


HOSTS = 'cmp-1.az1.prod.example', 'cmp-2.az2.prod.example'


class ReviseTestCase(testtools.TestCase):
    def revise(self, whole, domain=''):
        one, two = HOSTS
        below = Section(rows=[f'{one} b'] * 5, most=2, noun='row')
        line = Line(one, two, notes=[one], below=below)
        row = (one, [1, [two]], report.Indented(one))
        sections = [
            Section(f'{one}:', [f'{two}, a'] * 5, 2, noun='row'),
            Section(rows=[line], apart=False),
            Section(rows=[row], columns=('A', 'B', 'C'), apart=False),
        ]
        revised = (layout.revise(found, whole, domain) for found in sections)
        return write(*revised, width=90)

    def test_all(self):
        self.assertIn('and 3 more rows (--all lists all)', self.revise(False))
        text = self.revise(True)
        self.assertNotIn('more rows', text)
        self.assertEqual(5, text.count(', a\n'))
        self.assertEqual(5, text.count(' b\n'))

    def test_a_domain(self):
        text = self.revise(True, '.prod.example')
        self.assertNotIn('prod.example', text)
        self.assertIn('cmp-1.az1:\n', text)
        self.assertEqual(5, text.count('  cmp-2.az2, a\n'))
        self.assertIn('cmp-1.az1', text)

    def test_what_is_no_end_of_a_name(self):
        kept = 'a.prod.example.com b.prod.example-2 .prod.example x'
        section = Section(f'{kept}.prod.example')
        revised = layout.revise(section, False, '.prod.example')
        self.assertEqual(kept, revised.title)


@ddt.ddt
class WriteTestCase(testtools.TestCase):
    @ddt.data(
        ({'COLUMNS': '60'}, 0, 60),
        ({'COLUMNS': '60'}, 100, 100),
        ({'COLUMNS': ''}, 0, 80),
        ({'COLUMNS': '60'}, -1, 60),
    )
    @ddt.unpack
    def test_width(self, environment, max_width, width):
        with mock.patch.dict('os.environ', environment):
            text = write(Section('x ' * 200), width=max_width)
        self.assertIn(max(map(len, text.splitlines())), (width, width - 1))

    def test_paragraphs(self):
        first = 'The first words of a text that is long enough to wrap'
        apart = 'Others that stand apart from those and are set in'
        self.assertEqual(
            'The first words of a text that is long\n'
            '  enough to wrap\n'
            '  a row\n'
            'Words that follow at once\n'
            '\n'
            'Others that stand apart from those and\n'
            '    are set in\n'
            '    a row\n',
            write(
                Section(first, ['a row']),
                Section('Words that follow at once', apart=False),
                Section(apart, ['a row'], indent=4),
            ),
        )

    def test_no_password(self):
        text = write(Section('mysql://nova:secret@db'))
        self.assertEqual('mysql://nova:***@db\n', text)

    def test_lines(self):
        lines = [
            Line('of these, which are so many that they wrap', 99),
            Line('of those', 7, notes=['a note']),
            Line('and how', 'why  '),
        ]
        self.assertEqual(
            '  99  of these, which are so many that\n'
            '      they wrap\n'
            '   7  of those\n'
            '    a note\n'
            '  why    and how\n',
            write(Section(rows=lines)),
        )

    def test_labels_that_leave_no_room(self):
        """Each stands by itself, and no line is longer than the width."""
        lines = [
            Line('of those that fit', f'{name:<50}', notes=['a note'])
            for name in ('x' * 50, 'small')
        ]
        self.assertEqual(
            f'  {"x" * 38}\n'
            f'    {"x" * 12}\n'
            '    of those that fit\n'
            '    a note\n'
            '  small\n'
            '    of those that fit\n'
            '    a note\n',
            write(Section(rows=lines)),
        )

    def test_names_of_servers_are_cut(self):
        """One line for each, whatever users call it."""
        names = ['web', 'x' * 17, f'{"x" * 250}-12', 'a\nb' * 80, 'ab ' * 80]
        lines = [
            Line('a' * 15, 1, name, uuid=f'{UUID[:-1]}{n}')
            for n, name in enumerate(names)
        ]
        shown = [
            f'web{" " * 15}',
            f'{"x" * 17} ',
            f'{"x" * 10}...xx-12',
            "'a\\nba\\nba...a\\nb'",
            'ab ab ab a...b ab ',
        ]
        found = write(Section(rows=lines)).splitlines()
        self.assertEqual([f'  1  {name}  {"a" * 15}' for name in shown], found)

    @ddt.data(
        # A wide character takes two columns.
        ('課金サーバー-0042', '課金サーバー-0042  a'),
        ('検索インデックス-4750', '検索インデ...4750  a'),
        ('検索インデックスと検索サーバー-4750', '検索インデ...4750  a'),
        ('x検索インデックスと検索サーバー-4750', 'x検索イン...4750  a'),
    )
    @ddt.unpack
    def test_wide_names(self, name, expected):
        line = Line('a', name=name, uuid='b')
        text = write(Section(rows=[line]), width=22).rstrip()
        self.assertEqual(expected, text.strip())
        self.assertLessEqual(cells.cell_len(text), 22)

    def test_wide_names_stand_in_columns(self):
        names = {'a': '検索', 'b': 'web'}
        rows = [Line(one, name=names[one], uuid=UUID) for one in names]
        found = write(Section(rows=rows), width=60)
        self.assertEqual(f'  検索  a  {UUID}\n  web   b  {UUID}\n', found)

    def test_wide_words_wrap(self):
        word = '検索インデックス'
        found = write(Section(f'{word} ' * 5), width=40)
        self.assertEqual(f'{word} {word}\n  {word} {word}\n  {word}\n', found)

    def test_uuids_of_servers(self):
        """All have room, or none is seen but of those of one name."""
        names = ('web', 'database', 'web', '')
        uuids = [f'{UUID[:-1]}{n}' for n in range(4)]
        lines = [
            Line('a' * n, n, name, uuid=uuid)
            for n, name, uuid in zip((8, 9, 10, 10), names, uuids, strict=True)
        ]
        self.assertEqual(
            [
                f'   8  web       aaaaaaaa    {uuids[0]}',
                f'   9  database  aaaaaaaaa   {uuids[1]}',
                f'  10  web       aaaaaaaaaa  {uuids[2]}',
                f'  10            aaaaaaaaaa  {uuids[3]}',
            ],
            write(Section(rows=lines), width=64).splitlines(),
        )
        self.assertEqual(
            [
                '   8  web       aaaaaaaa',
                f'      {uuids[0]}',
                '   9  database  aaaaaaaaa',
                '  10  web       aaaaaaaaaa',
                f'      {uuids[2]}',
                f'  10  {uuids[3]}',
                '      aaaaaaaaaa',
            ],
            write(Section(rows=lines), width=50).splitlines(),
        )

    def test_a_word_is_broken_only_where_no_line_has_room_for_it(self):
        long = Section('x' * 50, apart=False)
        self.assertEqual(
            f'on the host\n  {UUID}\n{"x" * 40}\n  {"x" * 10}\n',
            write(Section(f'on the host {UUID}'), long),
        )

    @ddt.data(
        (3, '  a\n  b\n  c\n'),
        (4, '  a\n  b\n  and 2 more xs (--all lists all)\n'),
    )
    @ddt.unpack
    def test_fold(self, number, text):
        section = Section(rows='abcd'[:number], most=2, noun='x')
        self.assertEqual(text, write(section))

    def test_a_table(self):
        rows = [
            ('first', 300, ['resources', 'a note that is long enough']),
            ('second', 7, UUID),
            ('third', '-', ''),
            *[('fourth', 1, '')] * 9,
        ]
        columns = ('Name', 'Count', 'Text')
        self.assertEqual(
            'What there is\n'
            'Name    Count  Text\n'
            'first     300  resources\n'
            '                 a note that is long\n'
            '                 enough\n'
            'second      7  8d1f52c6-6b3a-4d0c-9c39-0\n'
            '               f4c1c9a7e55\n'
            'third       -\n'
            '  and 9 more things (--all lists all)\n',
            write(Section('What there is', rows, 3, 'thing', columns)),
        )


class MapTestCase(testtools.TestCase):
    def test_place(self):
        """Behind the answer and its remarks, in their order."""
        wanted = argparse.Namespace(map=True, map_by='a')
        answer = report.begin('1 of 2 fails', 'x', counts=[(1, 'y')])[1]
        for rest, end in (([Section('z')], '\nz\n'), ([], '')):
            made = report.Report('', iter([*answer, *rest]), [])
            found = write(*report.add_map(made, wanted, str).sections)
            self.assertEqual(f'1 of 2 fails:\n  1  y\nx\n\na\n{end}', found)

    def test_none_is_asked_for(self):
        made = report.Report('', [], [])
        unwanted = argparse.Namespace(map=False, map_by=None)
        self.assertIs(made, report.add_map(made, unwanted, self.fail))


class OriginTestCase(testtools.TestCase):
    def say(self, **document):
        parser = argparse.ArgumentParser()
        options.add_change(parser)
        parsed = parser.parse_args(['--no-aggregate-host', 'a', 'h'])
        sentence, sections = report.begin('1 of 2 fails', 'A remark.')
        made = report.Report(sentence, sections, [], lambda: document)
        return report.say_origin(made, parsed, 'nova-ext-sched audit')

    def test_what_was_supposed(self):
        """The first line, the sentence and the document say it."""
        supposed = [{'option': '--no-aggregate-host', 'value': 'a h'}]
        origin = {'command': 'nova-ext-sched audit', 'supposed': supposed}
        made = self.say(answer={'sentence': '1 of 2 fails.', 'servers': 2})
        said = 'If aggregate a did not have h: 1 of 2 fails.'
        self.assertEqual(f'{said} A remark.', made.sentence)
        titles = [one.title for one in made.sections]
        self.assertEqual([said, 'A remark.'], titles)
        expected = {'answer': {'sentence': said, 'servers': 2}} | origin
        # A document is made twice where a file is written, too.
        for _ in range(2):
            self.assertEqual(expected, made.document())
        # One that has no sentence.
        document = self.say(flavors=[]).document()
        self.assertEqual({'flavors': []} | origin, document)


class BeginTestCase(testtools.TestCase):
    def test_begin(self):
        """Of what is counted, and of nothing."""
        counts = [(12, 'isolation'), (1, 'blazar')]
        sentence, sections = report.begin('3 of 5 fail', 'x', counts=counts)
        self.assertEqual('3 of 5 fail: isolation 12, blazar 1. x', sentence)
        said = '3 of 5 fail:\n  12  isolation\n   1  blazar\nx\n'
        self.assertEqual(said, write(*sections))
        sentence, sections = report.begin('None of 5 fails')
        self.assertEqual('None of 5 fails.', sentence)
        self.assertEqual('None of 5 fails.\n', write(*sections))


class Document(commands.Lister):
    def document(self):
        return {'format': 1, 'rows': ['x']}


DOCUMENT = {'format': 1, 'rows': ['x'], 'supposed': []}
DOCUMENT['command'] = 'nova-ext-sched count'


@ddt.ddt
class ListerTestCase(commands.CommandTestCase):
    def test_people_read_a_text(self):
        text = self.run_command()
        self.assertEqual('A text of words that people read\n', text)
        self.assertEqual('', self.err)
        text = self.run_command('--max-width', '24')
        self.assertEqual('A text of words that\n  people read\n', text)

    @ddt.data(('json', json.loads), ('yaml', yaml.safe_load))
    @ddt.unpack
    def test_documents(self, formatter, load):
        rows = [
            {'Name': 'b', 'Values': ['x, y', 'z']},
            {'Name': 'a', 'Values': {'x': 1}},
        ]
        self.assertEqual(rows, load(self.run_command('-f', formatter)))
        self.assertEqual('Two rows.\n', self.err)
        text = self.run_command('-f', formatter, kind=Document)
        self.assertEqual(DOCUMENT, load(text))
        self.assertEqual('', self.err)
        # Whoever chooses columns wants those and nothing else.
        text = self.run_command('-f', formatter, '-c', 'Name', kind=Document)
        self.assertEqual([{'Name': 'b'}, {'Name': 'a'}], load(text))

    def test_json_on_one_line(self):
        text = self.run_command('-f', 'json', '--noindent', kind=Document)
        self.assertEqual(1, len(text.splitlines()))

    def test_several_values_of_a_row(self):
        found = [*csv.DictReader(io.StringIO(self.run_command('-f', 'csv')))]
        self.assertEqual(['b', 'a'], [row['Name'] for row in found])
        values = [json.loads(row['Values']) for row in found]
        self.assertEqual([['x, y', 'z'], {'x': 1}], values)
        self.assertEqual('Two rows.\n', self.err)
        text = self.run_command('-f', 'value')
        self.assertEqual('b ["x, y", "z"]\na {"x": 1}\n', text)

    @ddt.data(['-c', 'Values'], ['--sort-column', 'Name'])
    def test_a_table_of_columns(self, argv):
        text = self.run_command(*argv)
        self.assertIn('x, y, z |', text)
        self.assertIn('| one x ', text)
        self.assertEqual('Two rows.\n', self.err)

    def test_no_such_column(self):
        with mock.patch.object(commands.Lister, 'make_report') as make:
            text = self.run_command('-c', 'Host', status=base.USAGE)
        make.assert_not_called()
        self.assertEqual('', text)
        self.assertIn(
            'There is no column Host. The columns are Name, Values.', self.err
        )

    def test_a_file_of_the_document(self):
        """Besides what people read; of a command that failed none."""

        class Output(Document):
            has_output = True

        class Failing(Output):
            def make_report(self, parsed_args):
                raise RuntimeError('placement is away')

        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        path = folder / 'plan.json'
        text = self.run_command('--output', path, kind=Output)
        self.assertEqual('A text of words that people read\n', text)
        self.assertEqual(f'Written to {path}.\n', self.err)
        written = path.read_text()
        self.assertEqual(DOCUMENT, json.loads(written))
        self.run_command('--output', path, kind=Failing, status=base.FAULT)
        self.assertEqual(written, path.read_text())
        path = folder / 'no' / 'x'
        self.run_command('--output', path, kind=Output, status=base.FAULT)
        self.assertIn('--output: expected a file that can be', self.err)
