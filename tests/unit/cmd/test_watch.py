# SPDX-License-Identifier: Apache-2.0

import os
import pathlib

import ddt
import fixtures
import nova.conf
import testtools

from nova_ext_sched import exception
from nova_ext_sched.cmd import watch as watch_command
from nova_ext_sched.watch import explainer
from nova_ext_sched.watch import interrupt
from nova_ext_sched.watch import metrics
from nova_ext_sched.watch import recorder
from nova_ext_sched.watch import sink

CONF = nova.conf.CONF


class Ended(Exception):
    """Stands for the end of the process; ``args`` is its exit status."""


class Watch(watch_command.Watch):
    def configure(self, parsed_args):
        CONF([], default_config_files=[])


@ddt.ddt
class CommandTestCase(testtools.TestCase):
    """What the parts of the process get of the arguments."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.calls = []
        self.addCleanup(CONF.clear)
        self.addCleanup(os.umask, os.umask(0o022))
        self.note(interrupt.Interrupt, 'install')
        self.note(metrics.Metrics, 'serve')
        self.note(recorder.Recorder, 'run', lambda one, _: one.sink.note({}))
        self.note(explainer.Explainer, '__init__')
        self.note(sink.Sink, '__init__', sink.Sink.__init__)
        self.patch('os._exit', self.end)

    def patch(self, name, replacement):
        self.useFixture(fixtures.MonkeyPatch(name, replacement))

    def note(self, class_, name, then=lambda *args: None):
        def call(itself, *args):
            plain = [
                one
                for one in args
                if one is None
                or isinstance(one, (int, float, str, list))
                or isinstance(one, pathlib.Path)
            ]
            self.calls.append((class_.__name__, name, *plain))
            return then(itself, *args)

        self.patch(f'{class_.__module__}.{class_.__name__}.{name}', call)

    def end(self, status):
        raise Ended(status)

    def parse(self, *arguments):
        watch = Watch(None, None)
        return watch, watch.get_parser('watch').parse_args(arguments)

    def run_command(self, *arguments):
        watch, parsed = self.parse(*arguments)
        end = self.assertRaises(Ended, watch.take_action, parsed)
        self.assertEqual((0,), end.args)
        return self.calls

    def test_by_default(self):
        self.assertEqual(
            [
                ('Sink', '__init__', None, None),
                ('Explainer', '__init__', 30),
                ('Interrupt', 'install'),
                ('Recorder', 'run', 5.0),
            ],
            self.run_command(),
        )

    def test_what_follows_from_one_option(self):
        records, state = self.folder / 'records.json', self.folder / 'state'
        beside = self.folder / 'records.json.state'
        for option, expected in (
            (f'--records={records}', ('Sink', '__init__', records, beside)),
            (f'--state={state}', ('Sink', '__init__', None, state)),
            ('--metrics-port=9', ('Metrics', 'serve', 9, '127.0.0.1')),
        ):
            self.assertIn(expected, self.run_command(option))

    def test_every_option(self):
        self.assertEqual(
            [
                (
                    'Sink',
                    '__init__',
                    self.folder / 'records',
                    self.folder / 'state',
                ),
                ('Explainer', '__init__', 7),
                ('Metrics', 'serve', 65535, '::1'),
                ('Interrupt', 'install'),
                ('Recorder', 'run', 0.5),
            ],
            self.run_command(
                '--interval=0.5',
                f'--records={self.folder}/records',
                f'--state={self.folder}/state',
                '--explanations-per-minute=7',
                '--metrics-port=65535',
                '--metrics-address=::1',
            ),
        )

    def test_owner_and_group_alone_read_them(self):
        """Each file that it makes; not one that logrotate made."""
        made = self.folder / 'made'
        made.touch()
        made.chmod(0o644)
        for mask, name, expected in (
            (0, 'first', 0o640),
            (0o077, 'second', 0o640),
            (0, 'made', 0o644),
        ):
            os.umask(mask)
            records = self.folder / name
            self.run_command(f'--records={records}')
            state = self.folder / f'{name}.state'
            self.assertEqual(expected, records.stat().st_mode & 0o777)
            self.assertEqual(0o640, state.stat().st_mode & 0o777)

    def assertUnusable(self, argument, cause):
        watch, parsed = self.parse(argument)
        error = self.assertRaises(
            exception.InvalidValue, watch.take_action, parsed
        )
        self.assertIn(cause, str(error))
        self.assertIn('files that can be written and a free port', str(error))

    def test_what_cannot_be_read(self):
        self.assertUnusable(f'--records={self.folder}', 'Is a directory')

    def test_a_port_that_is_taken(self):
        def fail(*args):
            raise OSError('Address already in use')

        self.note(metrics.Metrics, 'serve', fail)
        self.assertUnusable('--metrics-port=9653', 'Address already in use')

    def assertRefused(self, option, text, expected):
        stderr = self.useFixture(fixtures.StringStream('stderr')).stream
        self.patch('sys.stderr', stderr)
        end = self.assertRaises(SystemExit, self.parse, f'{option}={text}')
        self.assertEqual(2, end.code)
        stderr.seek(0)
        self.assertIn(f'expected {expected}, got {text!r}', stderr.read())

    @ddt.data('0', '-1', 'x', '', 'nan', 'inf', '31536001')
    def test_other_seconds(self, text):
        expected = 'a number of seconds above 0, up to a year'
        self.assertRefused('--interval', text, expected)

    @ddt.data('0', '-1', 'x', '', '65536', '70000')
    def test_other_ports(self, text):
        expected = 'a port from 1 to 65535'
        self.assertRefused('--metrics-port', text, expected)
