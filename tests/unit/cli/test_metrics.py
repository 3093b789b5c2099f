# SPDX-License-Identifier: Apache-2.0

import argparse
import os
import pathlib

import ddt
import fixtures
from prometheus_client import parser
import testtools

from nova_ext_sched import exception
from nova_ext_sched.cli import base
from nova_ext_sched.cli import metrics
from tests import promtool
from tests.unit.cli import commands


class Command(metrics.Command):
    """A run that ends as the test wants, at the time that it wants."""

    def __init__(self, *args, status, values, fault, **kwargs):
        super().__init__(*args, **kwargs)
        self.status, self.values, self.fault = status, dict(values), fault

    def take_action(self, parsed_args):
        if self.fault:
            raise self.fault

    def measure(self):
        yield metrics.Figure('things', 'Things there are.', 'kind',
                             self.values)  # fmt: skip


def read(path):
    """Return the values in a file by metric and by its label beside file."""
    found = {}
    with path.open() as file:
        for family in parser.text_fd_to_metric_families(file):
            for one in family.samples:
                labels = dict(one.labels)
                assert labels.pop('file') == path.name
                name = one.name.removeprefix('nova_ext_sched_')
                found[name, *labels.values()] = one.value
    return found


@ddt.ddt
class MetricsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = self.folder / 'a.prom'
        self.now = 1000.0
        self.useFixture(fixtures.MonkeyPatch('time.time', lambda: self.now))

    def run_command(self, status=base.FINE, values=(), fault=None):
        """Run a command; return its exit status and what it says."""
        how = {'status': status, 'values': values, 'fault': fault}
        found, _, said = commands.run(Command, '--metrics', self.path, **how)
        return found, said

    def expected(self, status, success, **values):
        found = {('things', kind): value for kind, value in values.items()}
        found['exit_status', 'count'] = status
        return found | {('success_timestamp_seconds', 'count'): success}

    @ddt.data(base.FINE, base.SOME_FOUND)
    def test_a_success(self, status):
        self.path.write_text('nova_ext_sched_things{kind="gone"} 7\n')
        values = {'x': 2, 'y': float('inf')}
        self.assertEqual((status, ''), self.run_command(status, values))
        expected = self.expected(status, 1000, **values)
        self.assertEqual(expected, read(self.path))
        self.assertEqual([self.path], list(self.folder.iterdir()))

    @ddt.data(
        (base.FAULT, RuntimeError('away')),
        (base.USAGE, exception.InvalidValue(where='x', expected='y', got='z')),
        (base.FAULT, None),
    )
    @ddt.unpack
    def test_a_failure_after_a_success(self, status, fault):
        """The figures and their time stay, through any number of failures."""
        self.run_command(values={'x': 2})
        for self.now in (2000.0, 3000.0):
            found, _ = self.run_command(status, {'x': 9}, fault)
            self.assertEqual(status, found)
            self.assertEqual(self.expected(status, 1000, x=2), read(self.path))
        self.run_command(values={'y': 3})
        self.assertEqual(self.expected(0, 3000, y=3), read(self.path))

    @ddt.data(None, '', '{', 'nova_ext_sched_things x\n', '\ud800')
    def test_a_failure_where_nothing_can_be_kept(self, text):
        if text is not None:
            self.path.write_text(text, errors='surrogatepass')
        self.run_command(base.FAULT)
        self.assertEqual(
            {('exit_status', 'count'): base.FAULT}, read(self.path)
        )

    def test_what_cannot_be_written(self):
        """The run fails, says why, and the file is as it was."""
        self.run_command(values={'x': 2})
        before = self.path.read_bytes()

        def fail(*args):
            raise OSError('No space left on device')

        with fixtures.MonkeyPatch('os.rename', fail):
            status, text = self.run_command(values={'x': 3})
        self.assertEqual(base.FAULT, status)
        self.assertEqual(
            'nova-ext-sched count: --metrics: expected a file that can be '
            f"written, got '{self.path} (No space left on device)'\n",
            text,
        )
        self.assertEqual(before, self.path.read_bytes())
        # The collector reads these alone; prometheus_client before 0.22 may
        # leave what it could not rename.
        self.assertEqual([self.path], list(self.folder.glob('*.prom')))
        self.path = self.folder / 'gone' / 'a.prom'
        status, text = self.run_command()
        self.assertEqual(base.FAULT, status)
        self.assertIn(f"'{self.path} (No such file or directory)'", text)

    def test_an_interrupted_run(self):
        self.run_command(values={'x': 2})
        before = self.path.read_bytes()
        fault = KeyboardInterrupt()
        self.assertRaises(KeyboardInterrupt, self.run_command, fault=fault)
        self.assertEqual(before, self.path.read_bytes())

    def test_the_node_exporter_may_read_it(self):
        self.addCleanup(os.umask, os.umask(0o022))
        self.run_command()
        self.assertEqual(0o644, self.path.stat().st_mode & 0o777)

    def test_prometheus_takes_it(self):
        """Written anew, and kept."""
        for status in (base.FINE, base.FAULT):
            self.run_command(status, {'x\n"': 2})
            text = self.path.read_bytes()
            found = promtool.run(self, 'check', 'metrics', input=text)
            self.assertEqual('', found)

    @ddt.data('a', 'a.prom.txt', '')
    def test_another_name(self, text):
        error = self.assertRaises(
            argparse.ArgumentTypeError, metrics._read_path, text
        )
        self.assertIn(f'ends in .prom, because the node exporter reads no '
                      f'other, got {text!r}', str(error))  # fmt: skip
