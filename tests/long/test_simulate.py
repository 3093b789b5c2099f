# SPDX-License-Identifier: Apache-2.0

"""The command, as an operator runs it."""

import json
import os
import pathlib
import re
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

    def run_command(self, scenario, *arguments, before=(), **environment):
        self.file.write_text(textwrap.dedent(scenario))
        done = subprocess.run(
            [
                sys.executable,
                # As a console script has it: the folder is not searched.
                '-P',
                '-W',
                'ignore',
                '-m',
                'nova_ext_sched.cli.main',
                *before,
                'simulate',
                'scenario.yaml',
                *arguments,
            ],
            cwd=self.folder,
            env={**os.environ, 'PYTHONPATH': str(ROOT), **environment},
            capture_output=True,
            text=True,
        )
        if '--nova-log' not in arguments:
            self.assertNotIn('Traceback', done.stderr)
        return done

    def test_held(self):
        # A stray module beside the scenario, and the environment of an
        # operator's shell, are none of nova's business.
        (self.folder / 'nova.py').write_text('raise RuntimeError')
        log = self.folder / 'nova.log'
        done = self.run_command(
            SMALL,
            *('-f', 'json', '--nova-log', str(log)),
            before=['-v'],
            OS_DEBUG='1',
            OS_STDOUT_CAPTURE='1',
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
                'Reasons': [],
                'Warnings': [],
            },
            row,
        )
        # Nothing of nova's log.
        self.assertEqual('1 of 1 step as expected.\n', done.stderr)
        text = log.read_text()
        self.assertIn(' nova-ext-sched INFO nova_ext_sched.filters: ', text)
        self.assertIn(' DEBUG nova.scheduler', text)
        # Of loggers that tell reasons too.
        self.assertIn(' DEBUG nova.filters: ', text)

    def test_differs(self):
        done = self.run_command(
            SMALL.replace('expect: general', 'expect: isolated')
            .replace('steps:', '  ssd: {extra_specs: {ssd: true}}\n    steps:')
            .replace(
                '[IsolatedAggregatesFilter]',
                '[IsolatedAggregatesFilter, AggregateInstanceTypeFilter]',
            )
            + '      - {boot: two, flavor: fenced, host: general, '
            'expect: no valid host, expect_plain: isolated}\n'
            '      - {boot: three, flavor: ssd, expect: general}\n',
            *('--compare', '--nova-log', '-', '-f', 'yaml'),
        )

        self.assertEqual(3, done.returncode, done.stderr)
        self.assertIn(' INFO nova.scheduler', done.stderr)
        wrong, refused, unused = yaml.safe_load(done.stdout)
        self.assertEqual('DIFFERS', wrong['Result'])
        self.assertEqual({'one': 'general'}, wrong['Actual'])
        self.assertEqual(
            [
                'isolated not used: isolate_aggregates of nova_ext_sched, '
                'IsolatedAggregatesFilter: it is isolated (the request is not '
                'allowed in fenced: it does not require CUSTOM_FENCED)'
            ],
            wrong['Reasons'],
        )
        # It isolates with its own request filter.
        self.assertEqual({'one': 'general'}, wrong['Plain Nova'])
        self.assertEqual('WRONG', wrong['Plain Result'])
        # Plain nova does not put it there either: its provider lacks the
        # trait.
        self.assertEqual('ok', refused['Result'])
        self.assertEqual(
            [
                '0 of 2 hosts can take it. '
                '1 lacks the trait CUSTOM_FENCED, 1 is not the '
                'requested host'
            ],
            refused['Reasons'],
        )
        self.assertEqual('UNEXPECTED', refused['Plain Result'])
        self.assertEqual(
            [
                'general not used: AggregateInstanceTypeFilter: it has '
                'aggregates that do not match the flavor (flavor ssd wants '
                "'ssd' to be 'true' and no aggregate of the host has the key)"
            ],
            unused['Reasons'],
        )

    def test_warnings_and_the_weigher_that_decided(self):
        done = self.run_command(
            SMALL.replace(
                "FENCED': required}\n    flavors",
                "FENCED': require}\n    flavors",
            )
            .replace(
                'nova_conf:\n',
                'nova_conf:\n'
                '      filter_scheduler: {weight_classes: '
                'nova.scheduler.weights.all_weighers}\n',
            )
            .replace(
                '[isolated, general]',
                '[isolated, {name: general, memory_mb: 1024}]',
            )
            .replace('prefer: [isolated]', '')
            + '      - {boot: two, flavor: tiny}\n'
        )

        self.assertEqual(3, done.returncode, done.stderr)
        text = ' '.join(done.stdout.split())
        start, first, second = re.split(' ?[12] boot ', text)
        # At start, above the first step.
        self.assertIn('all_weighers to weight_classes.', start)
        self.assertEqual(1, text.count('all_weighers to weight_classes.'))
        # The slip that opens the host, once.
        slip = "trait:CUSTOM_FENCED: expected 'required', got 'require'"
        self.assertIn('warning', first)
        self.assertEqual((1, 0), (first.count(slip), second.count(slip)), text)
        self.assertIn(
            'general not used: it passes every constraint, and isolated '
            'weighs more: RAMWeigher gives it 1, and 0.00392 here',
            first,
        )

    def test_scheduler_does_not_start(self):
        done = self.run_command(
            SMALL.replace(
                'filtering: true',
                'filtering: true\n      filter_scheduler: '
                '{weight_classes: nowhere.all_weighers}',
            )
        )

        self.assertEqual((1, ''), (done.returncode, done.stdout), done.stderr)
        self.assertRegex(
            done.stderr,
            r'^nova-ext-sched simulate: the cloud of nova-ext-sched: '
            r'expected the steps to run, got: '
            r'ModuleNotFoundError: .*nowhere.*\n\Z',
        )

    def test_extra_specs_that_new_microversions_refuse(self):
        """nova-api accepts any below 2.86, and so flavors have them."""
        done = self.run_command(
            SMALL.replace(
                "FENCED': required}}",
                "FENCED': required, 'capabilities:profile': gold, "
                "'hw:emulator_threads_policy': often}}",
            )
        )

        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        text = ' '.join(done.stdout.split())
        self.assertEqual(2, text.count("Flavor 'fenced': nova-api accepts"))
        self.assertIn("'capabilities:profile' does not appear", text)
