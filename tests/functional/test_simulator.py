# SPDX-License-Identifier: Apache-2.0

"""The command, as an operator runs it."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

import yaml

ROOT = pathlib.Path(__file__).parents[2]

SMALL = """
    nova_conf:
      nova_ext_sched:
        enable_isolated_aggregate_filtering: true
    host_filters: [IsolatedAggregatesFilter]
    hosts: [isolated, general]
    prefer: [isolated]
    aggregates:
      fenced:
        hosts: isolated
        metadata: {'trait:CUSTOM_FENCED': required}
    flavors:
      tiny: {}
      fenced: {extra_specs: {'trait:CUSTOM_FENCED': required}}
    steps:
      - {boot: one, flavor: tiny, expect: general}
"""


class SimulatorTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(
            self.enterContext(tempfile.TemporaryDirectory())
        )
        self.file = self.folder / 'scenario.yaml'

    def run_command(self, scenario, *arguments, **environment):
        self.file.write_text(textwrap.dedent(scenario))
        return subprocess.run(
            [
                sys.executable,
                # As a console script has it: the folder is not searched.
                '-P',
                '-m',
                'nova_ext_sched.cmd.simulate',
                'scenario.yaml',
                *arguments,
            ],
            cwd=self.folder,
            env={**os.environ, 'PYTHONPATH': str(ROOT), **environment},
            capture_output=True,
            text=True,
        )

    def test_held(self):
        # A stray module beside the scenario, and the environment of an
        # operator's shell, are none of nova's business.
        (self.folder / 'nova.py').write_text('raise RuntimeError')
        done = self.run_command(
            SMALL, '-f', 'json', OS_DEBUG='1', OS_STDOUT_CAPTURE='1'
        )

        self.assertEqual(0, done.returncode, done.stderr)
        (row,) = json.loads(done.stdout)
        self.assertEqual(
            {
                'Step': 1,
                'Action': 'boot one (flavor tiny)',
                'Expected': 'general',
                'Actual': {'one': 'general'},
                'Result': 'ok',
                'Reason': [],
            },
            row,
        )
        self.assertIn('1 of 1 steps as expected', done.stderr)
        # Nothing of nova's log.
        self.assertNotIn('INFO', done.stderr)
        self.assertNotIn('Eventlet', done.stderr)

    def test_differs(self):
        done = self.run_command(
            SMALL.replace('expect: general', 'expect: isolated')
            + '      - {boot: two, flavor: fenced, host: general, '
            'expect: no valid host, expect_plain: general}\n',
            '--compare',
            '-f',
            'yaml',
        )

        self.assertEqual(1, done.returncode, done.stderr)
        wrong, refused = yaml.safe_load(done.stdout)
        self.assertEqual('DIFFERS', wrong['Result'])
        self.assertEqual({'one': 'general'}, wrong['Actual'])
        self.assertIn('must stay out of', wrong['Reason'][0])
        self.assertEqual({'one': 'isolated'}, wrong['Plain Nova'])
        self.assertEqual('ok', wrong['Plain Result'])
        # Plain nova does not put it there either: its provider lacks the
        # trait.
        self.assertEqual('ok', refused['Result'])
        self.assertEqual('UNFORESEEN', refused['Plain Result'])

    def test_log_file(self):
        log = self.folder / 'nova.log'
        done = self.run_command(
            SMALL, '-f', 'csv', '--log-file', str(log), '--debug'
        )

        self.assertEqual(0, done.returncode, done.stderr)
        text = log.read_text()
        self.assertIn(' nova-ext-sched INFO nova_ext_sched.filters: ', text)
        self.assertIn(' DEBUG nova.scheduler', text)
        self.assertEqual(
            '"Step","Action","Expected","Actual","Result","Reason"',
            done.stdout.splitlines()[0],
        )

    def test_debug(self):
        done = self.run_command(SMALL, '-f', 'value', '--debug')

        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn(' DEBUG nova.scheduler', done.stderr)
        self.assertEqual(1, len(done.stdout.splitlines()), done.stdout)

    def test_scheduler_does_not_start(self):
        done = self.run_command(
            SMALL.replace(
                'nova_ext_sched:\n',
                'nova_ext_sched:\n        request_filters: [nowhere]\n',
            )
        )

        self.assertEqual(2, done.returncode, done.stderr)
        *_, fault = done.stderr.splitlines()
        self.assertRegex(
            fault,
            r'^scenario\.yaml:3: nova_conf: expected options that '
            r"nova-ext-sched starts with, got PluginNotFound: .*'nowhere'",
        )
        self.assertEqual('', done.stdout)

    def test_nova_refuses_a_part(self):
        done = self.run_command(
            SMALL.replace(
                "{'trait:CUSTOM_FENCED': required}}",
                '{hw:cpu_policy: sometimes}}',
            )
        )

        self.assertEqual(2, done.returncode, done.stderr)
        *_, fault = done.stderr.splitlines()
        self.assertRegex(
            fault,
            r'^scenario\.yaml:14: flavors\.fenced\.extra_specs: expected '
            r'what nova and placement take, got 400: .*sometimes',
        )

    def test_faults(self):
        done = self.run_command(
            SMALL.replace('flavor: tiny', 'flavor: huge, count: 2.0')
            .replace('hosts: isolated', 'hosts: [isolated, nowhere]')
            .replace('prefer:', 'preferred:')
        )

        self.assertEqual(2, done.returncode)
        self.assertEqual('', done.stdout)
        lines = done.stderr.splitlines()
        self.assertEqual(4, len(lines), done.stderr)
        self.assertIn('scenario.yaml:7: preferred: expected', lines[0])
        self.assertEqual(
            'scenario.yaml:10: aggregates.fenced.hosts: expected a declared '
            "host (general, isolated), got 'nowhere'",
            lines[1],
        )
        self.assertEqual(
            [
                'scenario.yaml:16: steps[0].count: expected an integer, 1 to '
                '1000, got 2.0',
                'scenario.yaml:16: steps[0].flavor: expected a declared '
                "flavor (fenced, tiny), got 'huge'",
            ],
            lines[2:],
        )
