# SPDX-License-Identifier: Apache-2.0

"""Every list of commands is that of doc/source/cli/commands.yaml."""

import importlib.metadata
import re

import ddt
import testtools

from tests import documentation

COMMANDS = documentation.tables.read_commands()
PAGES = documentation.ROOT / 'doc' / 'source' / 'cli'
NAMESPACES = {
    'nova_ext_sched.commands': 'nova-ext-sched',
    'openstack.nova_ext_sched.v1': 'openstack',
}


@ddt.ddt
class CommandsTestCase(testtools.TestCase):
    def test_every_command_has_a_row(self):
        installed = {
            f'{program} {one.name.replace("_", " ")}'
            for namespace, program in NAMESPACES.items()
            for one in importlib.metadata.entry_points(group=namespace)
        }
        self.assertEqual(
            installed | {'nova-ext-sched-status upgrade check'},
            {one.command for one in COMMANDS},
        )

    def test_parts_are_those_of_the_help(self):
        """A command of the OpenStackClient has none there."""
        program = 'nova-ext-sched '
        self.assertEqual(
            {
                one.name: one.load().purpose.lower()
                for one in importlib.metadata.entry_points(
                    group='nova_ext_sched.commands'
                )
            },
            {
                one.command.removeprefix(program): one.part
                for one in COMMANDS
                if one.command.startswith(program)
            },
        )

    @ddt.data(*COMMANDS)
    def test_its_page_has_question_and_example(self, one):
        path = PAGES / f'{one.page}.rst'
        questions = [
            other.question for other in COMMANDS if other.page == one.page
        ]
        self.assertEqual(
            f'*{questions[0]}*',
            ' '.join(path.read_text().split('\n\n')[1].split()),
        )
        self.assertTrue(one.example.startswith(one.command))
        typed = [
            line
            for block in documentation.in_order(path)
            if block.language == 'console'
            for line in documentation.command_lines(block)
        ]
        self.assertIn(one.example, typed)

    def test_readme_has_the_same_questions(self):
        text = (documentation.ROOT / 'README.rst').read_text()
        rows = {
            name: ' '.join(question.split())
            for name, question in re.findall(
                r'(?m)^   \* - `([\w -]+)`_\n     - ((?:.+\n)+?)(?=   \*|\n)',
                text,
            )
        }
        self.assertEqual(
            [(one.command, one.question) for one in COMMANDS],
            [(one.command, rows.get(one.command)) for one in COMMANDS],
        )
