# SPDX-License-Identifier: Apache-2.0

import argparse
import base64
import hashlib
from html import parser
import pathlib
import re

import ddt
import fixtures
import testtools

from nova_ext_sched.cli import bars
from nova_ext_sched.cli import base
from nova_ext_sched.cli import page
from nova_ext_sched.cli import report
from nova_ext_sched.cli import topology
from tests.unit.cli import commands
from tests.unit.cli import test_topology

Line, Section = report.Line, report.Section

NAMES = [
    '<script>alert(1)</script>',
    '"><img onerror=alert(1) src=x>',
    "' onclick='alert(1)",
    '</table></main><!--here-->\n',
    '&lt;b&gt; &amp;',
]


class Reader(parser.HTMLParser):
    """What a browser would make of a page.

    :ivar tags: the tags that begin, with their attributes
    :ivar text: between them
    """

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], ''
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ('meta', 'rect'):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ('style', 'script'):
            self.text += data

    def count(self, tag, **attributes):
        wanted = attributes.items()
        return sum(
            tag == name and wanted <= found.items()
            for name, found in self.tags
        )


def draw(*sections, names=(), rows=(), status=base.FINE):
    return Reader(page.draw(sections, names, rows, status))


@ddt.ddt
class DrawTestCase(testtools.TestCase):
    @ddt.data(*NAMES)
    def test_a_name_is_text(self, name):
        """Wherever it stands, and nothing else comes of it."""

        def draw_all(name):
            host = test_topology.host(1, [name], host=name, aggregates=[name])
            map_ = topology.Map(
                [host], {}, {name: 1}, 'Servers', {'·': name}, 'aggregate'
            )
            below = Section(rows=[name])
            line = Line(name, name, name, [name], uuid=name, below=below)
            rows = [report.Indented([name, name])], [report.Cell([name])]
            return draw(
                Section(name),
                Section(name, [name, line]),
                Section(columns=(name, 'b'), rows=[(name, [name, name])]),
                Section(columns=['a'], rows=rows),
                Section(body=map_),
                names=(name, *'bcdef'),
                rows=[(name, *'bcdef')] * 9,
            )

        harmless = draw_all('x' * len(name.strip()))
        read = draw_all(name)
        expected, found = (
            [(tag, [*of]) for tag, of in one.tags] for one in (harmless, read)
        )
        self.assertEqual(expected, found)
        self.assertEqual(28, read.text.count(name.strip()), read.text)

    def test_what_turns_a_text_around(self):
        section = Section('a\u202eb\x1b[31m\0', ['\r'])
        read = draw(section, names='a', rows=['\x9b'])
        for part in ('a\\u202eb\\x1b[31m\\x00', '\\r', '\\x9b'):
            self.assertIn(part, read.text)

    def test_no_password(self):
        read = draw(Section('mysql://nova:secret@db'))
        self.assertIn('mysql://nova:***@db', read.text)

    @ddt.data((base.FINE, 'good'), (base.SOME_FOUND, 'bad'))
    @ddt.unpack
    def test_an_answer(self, status, kind):
        _, sections = report.begin('All is well', 'And warm.')
        read = draw(*sections, status=status)
        self.assertEqual(1, read.count('p', **{'class': f'answer {kind}'}))
        self.assertIn('All is well.', read.text)
        self.assertIn(f'exit status {status}', read.text)

    def test_nothing_is_folded(self):
        """But of what would make a browser slow."""
        rows = [(f'name {number};', number) for number in range(5003)]
        section = Section(rows=rows[:30], most=2, columns=('Name', 'Number'))
        lines = Section(rows=[name for name, _ in rows[:30]], most=2)
        for one in (section, lines):
            read = draw(one)
            self.assertEqual(1, read.count('div', **{'class': 'long'}))
            self.assertEqual(30, read.text.count('name'))
        read = draw(names=('Name', 'Number'), rows=rows)
        self.assertEqual(5000, read.text.count('name '))
        self.assertIn('and 3 more rows (-f json lists all)', read.text)

    @ddt.data((7, 0), (8, 1))
    @ddt.unpack
    def test_long_tables_sort(self, number, sortable):
        rows = [('a', 1, bars.Bar((1,), 2))] * number
        table = Section(rows=rows, columns=('Name', 'Number', ''))
        read = draw(table)
        found = read.count('table', **{'class': 'sortable'})
        self.assertEqual(sortable, found)
        self.assertEqual(2 * sortable, read.count('button', type='button'))
        # Under the title of a group they have an order.
        rows = [(report.Indented('a'), 1, ''), *rows]
        read = draw(Section(rows=rows, columns='abc'))
        self.assertEqual(0, read.count('button'))

    def test_wide_tables(self):
        """Where the page is narrow, each cell has its head before it."""
        for number, wide in ((4, 0), (5, 1)):
            table = Section(rows=['abcde'[:number]], columns='ABCDE'[:number])
            read = draw(table)
            self.assertEqual(wide, read.count('table', **{'class': 'wide'}))
            self.assertEqual(wide, read.count('td', **{'data-head': 'A'}))

    def test_labels(self):
        """Without the blanks that align them; a short one does not wrap."""
        lines = [Line('b', f'{"a" * 20:<22} ok'), Line('b', 'a' * 25), 'b']
        read = draw(Section(rows=lines))
        self.assertEqual(2, read.count('td', **{'class': 'short'}))
        self.assertIn(f'{"a" * 20} okb', read.text)
        self.assertEqual(1, draw(Section(rows=['b'])).count('td'))

    def test_bars(self):
        bar = bars.Bar((1, 29), 300)
        read = draw(Section(rows=[('a', bar)], columns=('A', '')))
        self.assertEqual(1, read.count('rect', x='0', width='1'))
        self.assertEqual(1, read.count('rect', x='1', width='9'))
        # A column without any is left out.
        read = draw(Section(rows=[('a', bars.NO_BAR)], columns=('A', '')))
        self.assertEqual(1, read.count('td'))

    def test_a_map(self):
        """Of more groups than a terminal shows; each host has its name."""
        hosts = [test_topology.host(n, [f'rack{n % 40}']) for n in range(200)]
        found = {'host7': 3, 'host80': 12}
        signs = topology.count_all(found)
        made = topology.Map(hosts, signs, found, 'Found', test_topology.LEGEND)
        read = draw(Section(body=made))
        self.assertEqual(200, read.count('i'))
        sign = {'title': 'host7: Found 3', 'class': 'bad_count'}
        self.assertEqual(1, read.count('i', **sign))
        self.assertEqual(41, read.count('tr'))
        self.assertIn('rack0··+··12', read.text.replace('\n', ''))
        self.assertIn('1-9 servers found', read.text)
        self.assertIn('· nothing', read.text)

    def test_a_map_does_not_scroll(self):
        """It has no more rows than in a terminal."""
        hosts = [test_topology.host(n, [f'rack{n}']) for n in range(24)]
        read = draw(Section(body=topology.Map(hosts, {}, {}, 'Found', {})))
        self.assertEqual(25, read.count('tr'))
        self.assertEqual(0, read.count('div', **{'class': 'long'}))

    def test_nothing_of_an_answer_needs_a_style_of_its_own(self):
        """The Content-Security-Policy would refuse it."""
        rows = [('a', bars.Bar((1, 2), 3))]
        read = draw(Section('a', rows, columns=('A', '')))
        for _, attributes in read.tags:
            self.assertNotIn('style', attributes)


class Failing(commands.Lister):
    def make_report(self, parsed_args):
        raise ValueError('no <answer>')


@ddt.ddt
class WriteTestCase(commands.CommandTestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = self.folder / 'page.html'

    def read(self):
        return Reader(self.path.read_text(encoding='utf-8'))

    @ddt.data([], ['-f', 'value'])
    def test_beside_what_is_written(self, argv):
        expected = self.run_command(*argv)
        found = self.run_command(*argv, '--html', self.path)
        self.assertEqual(expected, found)
        read = self.read()
        for part in ('nova-ext-sched count', 'A text of words', 'x, y, z'):
            self.assertIn(part, read.text)

    def test_nothing_from_elsewhere(self):
        """The policy lets in one script and one style, by their hashes."""
        self.run_command('--html', self.path)
        read, text = self.read(), self.path.read_text()
        [policy] = [
            of['content']
            for tag, of in read.tags
            if of.get('http-equiv') == 'Content-Security-Policy'
        ]
        expected = ["default-src 'none'"]
        for tag in ('style', 'script'):
            [inner] = re.findall(f'<{tag}>(.*?)</{tag}>', text, re.DOTALL)
            digest = hashlib.sha256(inner.encode()).digest()
            shown = base64.b64encode(digest).decode()
            expected.append(f"{tag}-src 'sha256-{shown}'")
        expected += ["base-uri 'none'", "form-action 'none'"]
        self.assertEqual('; '.join(expected), policy)
        # Before anything that it is to hold for.
        self.assertLess(text.index(policy), text.index('<style>'))
        for tag, attributes in read.tags:
            self.assertFalse({'src', 'srcset', 'style'} & {*attributes}, tag)
            self.assertTrue(attributes.get('href', '#').startswith('#'))
        self.assertNotIn('://', text)

    def test_answers_in_one_page(self):
        self.run_command('--html', self.path)
        for _ in range(2):
            self.run_command('--html-add', self.path)
        read = self.read()
        for number in (1, 2, 3):
            name = f'answer-{number}'
            self.assertEqual(1, read.count('a', href=f'#{name}'))
            self.assertEqual(1, read.count('article', id=name))
        self.assertEqual(3, read.text.count('A text of words'))
        self.assertEqual(1, read.count('script'))
        # A page of its own again; and none is needed to begin with.
        self.run_command('--html', self.path)
        alone = self.read()
        self.assertEqual(1, alone.text.count('A text of words'))
        self.path.unlink()
        self.run_command('--html-add', self.path)
        self.assertEqual(alone.tags, self.read().tags)

    @ddt.data('', 'a text', '<!--here-->', None)
    def test_a_page_of_others_stays(self, text):
        if text is None:
            # Of another release.
            self.run_command('--html', self.path)
            text = self.path.read_text().replace('<style>', '<style>b{}')
        self.path.write_text(text)
        argv = '--html-add', self.path
        self.assertEqual('', self.run_command(*argv, status=base.USAGE))
        self.assertEqual(text, self.path.read_text())
        self.assertIn('not a page that this release wrote', self.err)

    def test_a_command_that_fails_says_so_there(self):
        self.run_command('--html', self.path)
        argv = '--html-add', self.path
        self.run_command(*argv, kind=Failing, status=base.FAULT)
        read = self.read()
        self.assertIn('A text of words', read.text)
        self.assertIn('count: no <answer>', read.text)
        self.assertIn('exit status 1', read.text)

    def test_wrong_usage_leaves_it_alone(self):
        argv = '--html', self.path, '-c', 'Nothing'
        self.run_command(*argv, status=base.USAGE)
        self.assertFalse(self.path.exists())

    @ddt.data('--html', '--html-add')
    def test_it_cannot_be_written(self, option):
        path = self.folder / 'nowhere' / 'page.html'
        text = self.run_command(option, path, status=base.FAULT)
        self.assertIn('A text of words', text)
        self.assertIn(f'{path} (No such file or directory)', self.err)

    def test_any_text_is_written(self):
        parsed = argparse.Namespace(html=self.path, html_add=None)
        text = page.draw([Section('\ud800 é')], (), (), base.FINE)
        page.write(parsed, 'count', text)
        self.assertIn('\\ud800 é', self.path.read_text(encoding='utf-8'))
