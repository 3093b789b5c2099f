# SPDX-License-Identifier: Apache-2.0

"""Each block that shows output is compared with what the commands print.

Such a block is a sample: a file that exactly one test declares with
``@samples.compares``. The decorator fails a test that leaves one out.
"""

import ast
import functools
import itertools
import re
from xml.etree import ElementTree as elements

import ddt
import testtools

from tests import documentation
from tests import pictures
from tests import samples
from tests.unit import test_documentation_messages as messages

# A block without a language: what users or operators read in a log.
LOGGED = re.compile(r'^(?! *\.\. ).*::\n\n((?:(?: +\S.*)?\n)+)', re.MULTILINE)
# Fewer words are in any text.
WORDS = 5

MODULES = sorted((documentation.ROOT / 'tests').rglob('test_*.py'))


def declared(tree):
    """Yield the samples that the tests of a module declare by their names."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(decorator_list=decorators):
                for decorator in decorators:
                    match decorator:
                        case ast.Call(
                            func=ast.Attribute(
                                value=ast.Name(id='samples'), attr='compares'
                            ),
                            args=args,
                        ):
                            for arg in args:
                                if isinstance(arg, ast.Constant):
                                    yield arg.value


@functools.cache
def patterns():
    """Return what a text has that shows a message of the source.

    The pieces of a whole message, with whatever is filled in between, or a
    long piece of one.
    """
    templates = (
        messages.template(node)
        for path in messages.PACKAGE.rglob('*.py')
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.expr)
    )
    found = set()
    for template in filter(None, templates):
        pieces = [piece.strip(' .:,;') for piece in template.split('...')]
        if sum(len(piece.split()) for piece in pieces) >= WORDS:
            found.add(tuple(pieces))
        found |= {(piece,) for piece in pieces if len(piece.split()) >= WORDS}
    return found


def has_pieces(text, pieces):
    """Return whether a text has all pieces, in their order."""
    place = 0
    for piece in pieces:
        if (found := text.find(piece, place)) < 0:
            return False
        place = found + len(piece)
    return True


def is_part(text, sample):
    """Return whether a text is a sample, or its beginning and its end.

    A line with three dots stands for what is left out.
    """
    pieces = map(re.escape, re.split(r'^\.\.\.\n', text, flags=re.M))
    return (
        bool(re.fullmatch('(?s:.*)'.join(pieces), sample)) and text[0] != '.'
    )


@ddt.ddt
class SamplesTestCase(testtools.TestCase):
    def test_each_sample_is_compared_once_and_shown(self):
        trees = [ast.parse(path.read_text()) for path in MODULES]
        found = [*itertools.chain.from_iterable(map(declared, trees))]
        files = {
            str(path.relative_to(samples.PAGES))
            for path in samples.PAGES.rglob('*.txt')
        }
        self.assertEqual(sorted(files), sorted(found))
        shown = {
            sample.file.removeprefix('doc/source/')
            for path in documentation.pages()
            for sample in documentation.samples(path)
        }
        self.assertEqual(files, shown)

    def test_each_picture_is_of_a_sample_and_needs_no_other_file(self):
        names = samples.in_colour()
        files = {
            str(path.relative_to(samples.PAGES).with_suffix('.txt')): path
            for folder in ('cli', 'admin', 'install')
            for path in (samples.PAGES / folder).rglob('*.svg')
        }
        self.assertEqual(names, {*files})
        self.assertGreaterEqual(len(names), 8)
        for name, path in files.items():
            drawn = path.read_text()
            self.assertEqual(1, drawn.count('://'), path)
            self.assertNotRegex(drawn, r'href|url\(|@import|<script', path)
            told = ''.join(elements.fromstring(drawn).itertext())
            text = (samples.PAGES / name).read_text()
            self.assertEqual(
                *(
                    ''.join(one.partition('$')[2].split())
                    for one in (text, told)
                )
            )
        readme = (documentation.ROOT / 'README.rst').read_text()
        for image in re.findall(r'image:: (\S+)', readme):
            self.assertIn(documentation.ROOT / image, files.values())

    @ddt.data(*documentation.blocks('console'))
    def test_output_of_a_block_is_a_sample(self, block):
        if any(map(str.strip, documentation.output(block))):
            texts = [one.read_text() for one in samples.PAGES.rglob('*.txt')]
            self.assertTrue(
                any(is_part(block.text, text) for text in texts),
                f'{block}: move it to a file that a test compares',
            )

    @ddt.data(
        ('a\nb\n', True),
        ('a\n...\nc\nd\n', True),
        ('a\nb\nc\n', False),
        ('a\n...\nd\n...\nc\nd\n', False),
        ('b\n', False),
        ('...\n', False),
    )
    @ddt.unpack
    def test_part(self, text, expected):
        sample = 'a\nb\n' if text == 'a\nb\n' else 'a\nb\nc\nd\n'
        self.assertEqual(expected, is_part(text, sample))

    def test_lines_of_a_log_have_the_words_of_messages(self):
        found = [
            (path.name, ' '.join(match[1].split()))
            for path in documentation.pages()
            for match in LOGGED.finditer(path.read_text() + '\n')
        ]
        self.assertGreaterEqual(len(found), 10)
        for name, text in found:
            # nova-api's own words, with ours behind them.
            if not text.startswith('Validation failed; extra spec'):
                is_ours = any(has_pieces(text, one) for one in patterns())
                self.assertTrue(is_ours, (name, text))

    def test_output_is_found(self):
        text = '$ a \\\n    b |\n  c\nprinted\n$ d\n'
        block = documentation.Block('page', 1, 'console', text)
        self.assertEqual(['printed'], documentation.output(block))


class ComparesTestCase(testtools.TestCase):
    """What the decorator and the comparison do with a test."""

    sample = 'cli/isolation/document.txt'

    def run_test(self, *checked):
        """Run a test that declares one sample and compares these."""
        case = testtools.TestCase('run')

        @samples.compares(self.sample)
        def test(case):
            for name, text in checked:
                samples.check(case, name, text)

        test(case)

    def test_colour(self):
        """The text has none; the picture has that of the text."""
        name = 'cli/map.txt'
        text = (samples.PAGES / name).read_text()
        picture = (samples.PAGES / name).with_suffix('.svg').read_text()
        for color in ('', '\x1b[31m'):
            case = testtools.TestCase('run')
            case.samples_left = {name}
            error = self.assertRaises(
                AssertionError, samples.check, case, name, color + text
            )
            self.assertIn('<svg', str(error))
        self.assertRaises(KeyError, pictures.draw, '\x1b[34mblue', 80)
        self.assertIn('class="bold"', picture)

    def test_rule(self):
        text, another = (
            (samples.PAGES / name).read_text()
            for name in (self.sample, 'cli/explain/all.txt')
        )
        mine = (self.sample, text)
        self.run_test(mine)
        for faulty in (
            (),
            (mine, mine),
            (mine, ('cli/explain/all.txt', another)),
            ((self.sample, text.replace('"', "'", 1)),),
            ((self.sample, text + 'x' * (samples.WIDTH + 1)),),
        ):
            self.assertRaises(AssertionError, self.run_test, *faulty)
