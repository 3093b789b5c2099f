# SPDX-License-Identifier: Apache-2.0

import argparse
import contextlib
import io
import logging
import subprocess
import sys
from unittest import mock

import ddt
import fixtures
import testtools

from nova_ext_sched.cli import base
from nova_ext_sched.cmd import explain
from nova_ext_sched.cmd import scheduler
from nova_ext_sched.cmd import survive
from nova_ext_sched.cmd import watch

# Options of every command, and then one of them, in a process of its own.
WITHOUT_NOVA = """
import importlib.metadata
import sys
sys.modules['nova'] = None
from nova_ext_sched.cli import main
for found in importlib.metadata.entry_points(group=main.NAMESPACE):
    found.load()(None, None).get_parser(found.name)
sys.exit(main.main(['explain', '--flavor', 'x']))
"""


class WithoutNovaTestCase(testtools.TestCase):
    def test_without_nova(self):
        """Options need none, and what a command does says where to run it."""
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', WITHOUT_NOVA],
            capture_output=True,
            text=True,
        )
        self.assertEqual((2, ''), (done.returncode, done.stdout))
        self.assertNotIn('Traceback', done.stderr)
        self.assertIn("nova-scheduler's environment", done.stderr)
        # No sentence names the command twice.
        self.assertEqual(1, done.stderr.count('nova-ext-sched'))


class AskTestCase(testtools.TestCase):
    def test_nova_is_ready_before_it_is_asked(self):
        done = []

        class Command(scheduler.Lister):
            label = 'Asking'
            color = 'never'

            def configure(self, parsed_args):
                done.append(parsed_args)

        def work(parsed_args, advance):
            advance(total=1)
            done.append('asked')
            return 'answer'

        command = Command(mock.Mock(), None)
        self.assertEqual('answer', command.ask(work, 'arguments'))
        self.assertEqual(['arguments', 'asked'], done)


class ConfigurationTestCase(testtools.TestCase):
    def test_a_saved_cloud_has_the_options(self):
        command = survive.Survive(mock.Mock(), None)
        parsed = command.get_parser('survive').parse_args(
            ['--from', 'a', '--config-file', 'b']
        )
        error = self.assertRaises(
            base.UsageError, command.read_configuration, parsed
        )
        self.assertEqual(
            "The file of --from has nova-scheduler's options already: leave "
            '--config-file and --config-dir out. --option changes one.',
            str(error),
        )


@ddt.ddt
class StartWarningsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        home = self.useFixture(fixtures.TempDir()).path
        self.useFixture(fixtures.EnvironmentVariable('XDG_CACHE_HOME', home))
        self.useFixture(fixtures.EnvironmentVariable('COLUMNS', '80'))

    def run_command(self, *levels, kind=None, verbose=0):
        """Run a command in which nova-scheduler's start logs at levels."""
        said = io.StringIO()
        handler = logging.StreamHandler(said)
        root = logging.getLogger()
        root.addHandler(handler)
        self.addCleanup(root.removeHandler, handler)
        logger = logging.getLogger('nova_ext_sched.filters')

        class Command(kind or scheduler.Command):
            def take_action(self, parsed_args):
                for level in levels:
                    logger.log(level, 'long')
                print('answer', file=sys.stderr)

        app = mock.Mock(words=['c'])
        parsed = argparse.Namespace(debug=False, verbose_level=verbose)
        command = Command(app, parsed)
        with contextlib.redirect_stderr(said):
            self.assertEqual(0, command.run(argparse.Namespace()))
        # The next command's log has all.
        self.assertEqual([], logger.filters)
        return said.getvalue().splitlines()

    def test_behind_the_answer_once_a_day(self):
        twice = logging.WARNING, logging.WARNING
        first, *others = self.run_command(*twice)
        self.assertEqual('answer', first)
        self.assertEqual(
            'nova-scheduler logs 2 warnings at start with this nova.conf. See '
            "'nova-ext-sched-status upgrade check'.",
            ' '.join(map(str.strip, others)),
        )
        self.assertGreaterEqual(80, max(map(len, others)))
        self.assertEqual(['answer'], self.run_command(*twice))
        # Others than those that were counted.
        self.assertIn('logs 1 warning', self.run_command(logging.WARNING)[1])

    @ddt.data(
        ((), {}, ['answer']),
        ((logging.ERROR,), {}, ['long', 'answer']),
        ((logging.WARNING,), {'verbose': 1}, ['long', 'answer']),
        ((logging.WARNING,), {'kind': watch.Watch}, ['long', 'answer']),
    )
    @ddt.unpack
    def test_no_such_line(self, levels, how, expected):
        self.assertEqual(expected, self.run_command(*levels, **how))


@ddt.ddt
class ConfigureTestCase(testtools.TestCase):
    def configure(self, patch=lambda: None, debug=True):
        """Configure a command where this patches nova's threads."""
        command = explain.Explain(mock.Mock(), None)
        command.app_args = argparse.Namespace(debug=debug)
        parsed_args = argparse.Namespace(
            config_file=[],
            config_dir=[],
            saved=None,
            without=[],
            option=[],
            add_host=[],
            without_host=[],
        )
        with (
            mock.patch('nova.monkey_patch.patch', patch, create=True),
            mock.patch(
                'nova_ext_sched.dryrun.cloud.process.configure'
            ) as call,
        ):
            command.configure(parsed_args)
        call.assert_called_once_with([], [])

    def test_of_each_release(self):
        """Up to nova 32 there is no choice."""
        calls = []
        self.configure(lambda backend='eventlet': calls.append(backend))
        self.configure(lambda: calls.append(None))
        self.assertEqual(['threading', None], calls)

    def test_eventlet_s_complaint_is_not_shown(self):
        """Of locks older than its patch; by a logger without a parent."""

        def patch():
            logging.Logger('eventlet').error('1 RLock(s) were not greened')

        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            self.configure(patch)
            self.assertEqual('', err.getvalue())
            patch()
            self.assertIn('greened', err.getvalue())

    @ddt.data((False, False), (True, True))
    @ddt.unpack
    def test_a_cell_that_does_not_answer(self, debug, is_logged):
        """nova has a traceback for each."""
        for name in ('nova', 'nova.context', 'neutronclient'):
            logger = logging.getLogger(name)
            self.addCleanup(logger.setLevel, logger.level)
            logger.setLevel(logging.NOTSET)
        self.configure(debug=debug)
        logger = logging.getLogger('nova.context')
        self.assertEqual(is_logged, logger.isEnabledFor(logging.ERROR))
