# SPDX-License-Identifier: Apache-2.0

import io
import re
from unittest import mock

import ddt
import testtools

from nova_ext_sched.cli import progress
from nova_ext_sched.cli import report
from nova_ext_sched.cli import terminal

UUID = '8d1f52c6-6b3a-4d0c-9c39-0f4c1c9a7e55'
SECTIONS = [
    *report.begin('3 of 5 fail', 'x', counts=[(12, 'isolation')])[1],
    report.Section('A table', [('a', UUID)], columns=('Name', 'UUID')),
]
PLAIN = (
    f'3 of 5 fail:\n  12  isolation\nx\n\nA table\nName  UUID\na     {UUID}\n'
)
# What a user or a file of another says, none of it a matter of a terminal.
NAMES = (
    '[red]',
    '[/]',
    '[link=http://x.example]here[/link]',
    ':smile:',
    '[bold]x[/bold] 10.0.0.1 /etc "text" True',
)


class Terminal(io.StringIO):
    encoding = 'utf-8'

    def isatty(self):
        return True


def write(stream, *sections, environment=(), **kwargs):
    with mock.patch.dict('os.environ', environment, clear=True):
        report.write(stream, sections, 200, **kwargs)
    return stream.getvalue()


@ddt.ddt
class ColorTestCase(testtools.TestCase):
    @ddt.data(
        (Terminal, {}, 'auto', True),
        (Terminal, {'TERM': 'xterm'}, 'auto', True),
        (Terminal, {'TERM': 'dumb'}, 'auto', False),
        (Terminal, {'NO_COLOR': '1'}, 'auto', False),
        (Terminal, {'NO_COLOR': ''}, 'auto', True),
        (Terminal, {'NO_COLOR': '1', 'TERM': 'dumb'}, 'always', True),
        (Terminal, {}, 'never', False),
        (Terminal, {'FORCE_COLOR': '1'}, 'never', False),
        (io.StringIO, {}, 'auto', False),
        (io.StringIO, {'FORCE_COLOR': '1'}, 'auto', True),
        (io.StringIO, {'FORCE_COLOR': ''}, 'auto', False),
        (Terminal, {'FORCE_COLOR': '1', 'TERM': 'dumb'}, 'auto', True),
        (Terminal, {'FORCE_COLOR': '1', 'NO_COLOR': '1'}, 'auto', False),
        (io.StringIO, {'TTY_COMPATIBLE': '1'}, 'auto', False),
        (io.StringIO, {}, 'always', True),
    )
    @ddt.unpack
    def test_where(self, kind, environment, color, has_color):
        """Without colour there is no sequence at all, and the same text."""
        text = write(
            kind(), *SECTIONS, environment=environment, color=color, status=3
        )
        if has_color:
            self.assertIn('\x1b[1;31m3 of 5 fail:\x1b[0m\n', text)
            self.assertIn('  \x1b[31m12  \x1b[0misolation\n', text)
            self.assertIn(f'\x1b[2m{UUID}\x1b[0m\n', text)
            self.assertIn('\x1b[1mA table\x1b[0m\n', text)
        else:
            self.assertEqual(PLAIN, text)

    @ddt.data((None, '1'), (0, '1'), (1, '1;31'), (3, '1;31'))
    @ddt.unpack
    def test_an_answer(self, status, codes):
        text = write(Terminal(), *SECTIONS, status=status)
        self.assertTrue(text.startswith(f'\x1b[{codes}m3 of 5 fail:'), text)

    def test_a_dumb_terminal_has_its_width(self):
        section = report.Section('x ' * 100)
        with mock.patch.dict('os.environ', {'TERM': 'dumb'}):
            report.write(stream := Terminal(), [section], 160)
        self.assertGreater(len(stream.getvalue().splitlines()[0]), 150)

    @ddt.data(('always', True), ('never', False))
    @ddt.unpack
    def test_a_bar(self, color, has_color):
        with progress.bar(stream := Terminal(), 'x', 2, color) as advance:
            advance()
        text = stream.getvalue()
        self.assertEqual(has_color, bool(re.search(r'\x1b\[[\d;]+m', text)))
        self.assertIn('1/2', text)

    @ddt.data(io.StringIO(), mock.Mock(spec=['write', 'flush']))
    def test_what_is_no_terminal(self, stream):
        """The OpenStackClient may write on anything."""
        with mock.patch.dict('os.environ', {'FORCE_COLOR': '1'}):
            self.assertFalse(terminal.make(stream).is_terminal)


@ddt.ddt
class NamesTestCase(testtools.TestCase):
    """What members and operators wrote is text, in every place of it."""

    @staticmethod
    def write(name):
        line = report.Line(name, f'{name}  ', name, [name], uuid='u')
        row = (name, [name, name])
        lines = report.Section(name, [line])
        table = report.Section('', [row], columns=(name, 'b'))
        return write(Terminal(), lines, table, color='never')

    @ddt.data(*NAMES)
    def test_words(self, name):
        text = self.write(name)
        self.assertEqual(9, text.count(name), text)
        coloured = write(Terminal(), report.Section(name))
        self.assertEqual(f'{name}\n', coloured)
        # What rich makes of a string is no text of ours.
        terminal.make(stream := Terminal(), 'always').print(name)
        self.assertEqual(f'{name}\n', stream.getvalue())

    @ddt.data('\x1b[31m', '\x1b]8;;http://x\x1b\\', '\a', '\x9b', '\u202e')
    def test_control_characters(self, name):
        """None gets through, not even one that nobody cleaned."""
        text = self.write(f'a{name}b')
        self.assertNotIn(name, text)
        self.assertTrue(text.replace('\n', '').isprintable(), text)
        self.assertIn(f'a{ascii(name)[1:-1]}b'.replace('\\\\', '\\'), text)
