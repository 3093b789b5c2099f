# SPDX-License-Identifier: Apache-2.0

import contextlib
import importlib.metadata
import io
import shlex
from unittest import mock

import ddt
import testtools

from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import main

# The commands of nova-ext-sched, and ours of openstack.
COMMANDS = sorted(
    (found.name.replace('_', ' '), found)
    for group in (main.NAMESPACE, 'openstack.nova_ext_sched.v1')
    for found in importlib.metadata.entry_points(group=group)
)


def make_parser(name, found):
    command = found.load()(mock.Mock(), None)
    return command, command.get_parser(f'{command.program} {name}')


@ddt.ddt
class HelpTestCase(testtools.TestCase):
    def test_there_are_commands(self):
        self.assertLess(10, len(COMMANDS))

    @ddt.unpack
    @ddt.data(*COMMANDS)
    def test_examples(self, name, found):
        """Three, the last lines of the help, and the parser takes each."""
        command, parser = make_parser(name, found)
        lines = parser.format_help().splitlines()
        prefix = f'  {command.program} {name}'
        self.assertEqual(['', 'Examples:'], lines[-5:-3])
        for line in lines[-3:]:
            self.assertTrue(line.startswith(prefix), line)
            parser.parse_args(shlex.split(line.removeprefix(prefix)))
            self.assertGreaterEqual(80, len(line))

    @ddt.unpack
    @ddt.data(*COMMANDS)
    def test_own_options_come_first(self, name, found):
        """Then what many commands share, then cliff's."""
        command, parser = make_parser(name, found)
        text = parser.format_help()
        self.assertLess(text.index('options:'), 1000)
        titles = ('output:', 'nova.conf:', 'output formatters:')
        places = [text.index(f'\n{one}') for one in titles if one in text]
        self.assertEqual(sorted(places), places)
        for group in parser._action_groups:
            title = f'\n{group.title}:'
            if title in text and title.strip() not in titles:
                is_late = 'ormatter' in group.title
                self.assertEqual(
                    is_late, text.index(title) > places[-1], title
                )

    def test_order_of_the_documentation(self):
        parser = make_parser('drain', dict(COMMANDS)['drain'])[1]
        options = [
            action.option_strings[-1]
            for action in parser._get_optional_actions()
        ]
        wanted = '--aggregate --option --map --color --config-file --format'
        wanted = wanted.split()
        self.assertEqual(wanted, [one for one in options if one in wanted])

    def test_arguments_are_in_the_usage(self):
        parser = make_parser('drain', dict(COMMANDS)['drain'])[1]
        self.assertEqual(
            'usage: nova-ext-sched drain [options] [HOST ...]',
            parser.format_help().splitlines()[0],
        )


@ddt.ddt
class UsageTestCase(testtools.TestCase):
    @ddt.data(
        (('--round-size', '0'), 'argument --round-size: expected a number'),
        (('-q8',), 'unrecognized arguments: -q8'),
        (
            ('--rund=1',),
            'unrecognized arguments: --rund=1',
            'Did you mean --round?',
        ),
        (
            ('--dry-run',),
            'unrecognized arguments: --dry-run',
            'This command changes nothing. A plan is carried out by: ',
        ),
    )
    def test_reason_first(self, case):
        """A few lines, and none of them lists the options."""
        argv, reason, *hints = case
        parser = make_parser('maintain', dict(COMMANDS)['maintain'])[1]
        with contextlib.redirect_stderr(io.StringIO()) as said:
            error = self.assertRaises(SystemExit, parser.parse_args, argv)
        self.assertEqual(2, error.code)
        first, *hinted, last = said.getvalue().splitlines()
        self.assertIn(f'nova-ext-sched maintain: {reason}', first)
        self.assertEqual("See 'nova-ext-sched maintain --help'.", last)
        self.assertEqual(len(hints), len(hinted))
        for line, hint in zip(hinted, hints, strict=True):
            self.assertTrue(line.startswith(hint), line)


class PurposesTestCase(testtools.TestCase):
    def test_every_command_has_one(self):
        for found in importlib.metadata.entry_points(group=main.NAMESPACE):
            self.assertIn(found.load().purpose, cli_help.PURPOSES, found.name)
