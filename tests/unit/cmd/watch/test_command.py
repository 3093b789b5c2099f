# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import signal

import ddt
import fixtures
import nova.conf
import testtools

from nova_ext_sched import exception
from nova_ext_sched.cli import base
from nova_ext_sched.cmd.watch import capacity
from nova_ext_sched.cmd.watch import command
from nova_ext_sched.cmd.watch import explainer
from nova_ext_sched.cmd.watch import interrupt
from nova_ext_sched.cmd.watch import metrics
from nova_ext_sched.cmd.watch import position
from nova_ext_sched.cmd.watch import watcher

CONF = nova.conf.CONF
IMAGE = '8d5b8d9a-6d4f-4a7e-9f6f-7d9b6e1f1c11'


class Ended(Exception):
    """Stands for the end of the process; ``args`` is its exit status."""


class Watch(command.Watch):
    def configure(self, parsed_args):
        CONF([], default_config_files=[])


@ddt.ddt
class CommandTestCase(testtools.TestCase):
    """What the parts of the process get of the arguments."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.calls = []
        self.addCleanup(os.umask, os.umask(0o022))
        self.note(interrupt.Interrupt, 'install')
        self.note(metrics.Metrics, 'serve', self.serve)
        self.note(watcher.Watcher, 'turn')
        self.note(explainer.Explainer, '__init__')
        self.note(capacity.Capacity, '__init__')
        self.note(position.File, '__init__', position.File.__init__)
        self.patch('nova_ext_sched.cmd.watch.loop.every', self.every)
        self.patch('os._exit', self.end)
        self.patch(
            'nova_ext_sched.cmd.watch.loop.run', lambda *args: self.loop(*args)
        )

    def serve(self, figures, *args):
        self.registry = figures.registry

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

    def every(self, interval, work):
        self.calls.append(('loop', 'every', interval))
        return lambda: self.calls.append(('every', interval))

    def loop(self, signals, turn, interval):
        self.calls.append(('loop', 'run', interval))
        turn()

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
                ('Explainer', '__init__', 30),
                ('File', '__init__', None),
                ('Interrupt', 'install'),
                ('loop', 'every', None),
                ('Capacity', '__init__', []),
                ('loop', 'every', None),
                ('loop', 'run', 5.0),
                ('Watcher', 'turn'),
                ('every', None),
                ('every', None),
            ],
            self.run_command(),
        )

    def test_every_option(self):
        self.assertEqual(
            [
                ('Explainer', '__init__', 7),
                ('File', '__init__', self.folder / 'state'),
                ('Metrics', 'serve', 9653, '::1'),
                ('Interrupt', 'install'),
                ('loop', 'every', 31536000.0),
                ('Capacity', '__init__', [('a b', ''), ('c', IMAGE)]),
                ('loop', 'every', 900.0),
                ('loop', 'run', 0.5),
                ('Watcher', 'turn'),
                ('every', 31536000.0),
                ('every', 900.0),
            ],
            self.run_command(
                '--interval=0.5',
                f'--records={self.folder}/records',
                f'--state={self.folder}/state',
                '--explanations-per-minute=7',
                '--metrics-port=9653',
                '--metrics-address=::1',
                '--audit-interval=31536000',
                '--capacity-interval=900',
                '--capacity=a b',
                f'--capacity=c,{IMAGE}',
            ),
        )
        for name, labels, expected in (
            ('audit', {}, 31536000),
            ('capacity', {'flavor': 'a b', 'image': ''}, 900),
            ('capacity', {'flavor': 'c', 'image': IMAGE}, 900),
        ):
            value = self.registry.get_sample_value(
                f'nova_ext_sched_{name}_interval_seconds', labels
            )
            self.assertEqual(expected, value)

    def test_a_signal_ends_audits_and_counts(self):
        """Also one that has arrived before."""
        begun = []

        def arrive():
            begun.append(True)
            self.signals._handle(signal.SIGTERM, None)

        self.patch('nova_ext_sched.cmd.watch.loop.every', lambda *_: arrive)
        self.loop = self.take_two_turns
        self.run_command()
        self.assertEqual(1, len(begun))

    def take_two_turns(self, signals, turn, interval):
        self.signals = signals
        for _ in range(2):
            self.assertRaises(interrupt.Stop, turn)

    def test_metrics_are_for_this_machine(self):
        self.assertIn(
            ('Metrics', 'serve', 9653, '127.0.0.1'),
            self.run_command('--metrics-port=9653'),
        )

    def test_the_state_stands_beside_the_records(self):
        self.assertIn(
            ('File', '__init__', self.folder / 'records.json.state'),
            self.run_command(f'--records={self.folder}/records.json'),
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

    def test_a_state_without_records(self):
        self.assertIn(
            ('File', '__init__', self.folder / 'state'),
            self.run_command(f'--state={self.folder}/state'),
        )

    def test_what_cannot_be_read(self):
        watch, parsed = self.parse(f'--records={self.folder}')
        error = self.assertRaises(
            exception.InvalidValue, watch.take_action, parsed
        )
        self.assertIn('Is a directory', str(error))
        self.assertIn('files that can be written', str(error))

    def test_a_port_that_is_taken(self):
        def fail(*args):
            raise OSError('Address already in use')

        self.note(metrics.Metrics, 'serve', fail)
        watch, parsed = self.parse('--metrics-port=9653')
        error = self.assertRaises(
            exception.InvalidValue, watch.take_action, parsed
        )
        self.assertIn('Address already in use', str(error))
        self.assertIn('a free port', str(error))

    @ddt.data('', ',', f',{IMAGE}', 'a,', 'a,b', f'a,b,{IMAGE}')
    def test_other_flavors_and_images(self, text):
        stderr = self.useFixture(fixtures.StringStream('stderr')).stream
        self.patch('sys.stderr', stderr)
        self.assertRaises(SystemExit, self.parse, f'--capacity={text}')
        stderr.seek(0)
        self.assertIn('expected FLAVOR or FLAVOR,IMAGE', stderr.read())

    @ddt.data('--capacity=a', '--capacity-interval=60')
    def test_capacity_goes_with_its_interval(self, argument):
        watch, parsed = self.parse(argument)
        self.assertRaises(base.UsageError, watch.take_action, parsed)
        self.assertEqual([], self.calls)

    @ddt.data('0', '-1', 'x', '', 'nan', 'inf', '31536001')
    def test_other_seconds(self, text):
        stderr = self.useFixture(fixtures.StringStream('stderr')).stream
        self.patch('sys.stderr', stderr)
        for name in ('interval', 'audit-interval', 'capacity-interval'):
            self.assertRaises(SystemExit, self.parse, f'--{name}={text}')
        stderr.seek(0)
        self.assertIn(
            'expected a number of seconds above 0, up to a year, got '
            f'{text!r}',
            stderr.read(),
        )
