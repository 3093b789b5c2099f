# SPDX-License-Identifier: Apache-2.0

"""Every scenario that the package ships does what it says.

Where it says what plain nova does, it runs there as well. Where it says that
plain nova does otherwise, plain nova must do otherwise in some step.
"""

import io
import pathlib
import tempfile
import time
import unittest
from unittest import mock

import ddt
from nova.scheduler import manager

from nova_ext_sched import simulator
from nova_ext_sched.cli import report as cli_report
from nova_ext_sched.cmd import simulate_report as report
from nova_ext_sched.simulator import check
from nova_ext_sched.simulator import scenario
from nova_ext_sched.simulator import worker
from tests.functional import shared  # noqa: F401

SCENARIOS = pathlib.Path(simulator.__file__).parent / 'scenarios'


# The worst host first, for each server.
TRAITS = """
nova_conf:
  nova_ext_sched: {enable_isolated_aggregate_filtering: true}
host_filters: [IsolatedAggregatesFilter]
hosts:
  - misspelt
  - {name: gold, traits: [CUSTOM_GOLD, HW_CPU_X86_AVX2]}
  - general
prefer: [misspelt, gold, general]
aggregates:
  misspelt:
    hosts: misspelt
    metadata: {'trait:CUSTOM_no': required}
  gold:
    hosts: gold
    metadata: {'trait:CUSTOM_GOLD': required, 'trait:CUSTOM_NEW': required}
flavors:
  plain: {}
  gold:
    extra_specs:
      trait:CUSTOM_GOLD: required
      trait:CUSTOM_NEW: required
      trait:HW_CPU_X86_AVX2: required
steps:
  - {boot: one, flavor: gold, expect: gold}
  - {boot: two, flavor: plain, expect: general}
"""


@ddt.ddt
class ScenariosTest(unittest.TestCase):
    def run_cloud(self, data, plain):
        return worker.run(worker.Run(data, plain, None, 'INFO'))

    # windows_licensing is in test_documentation, as the README runs it.
    @ddt.data(
        *sorted(
            path.name
            for path in SCENARIOS.glob('*.yaml')
            if path.stem != 'windows_licensing'
        )
    )
    def test_scenario(self, name):
        data = check.load(str(SCENARIOS / name))
        declared = scenario.parse(data)
        compared = any(step.expect_plain for step in declared.steps)

        # In this process, which has nova imported already; the command has a
        # process for each cloud (test_simulate).
        runs = [
            self.run_cloud(data, plain)
            for plain in ((False, True) if compared else (False,))
        ]

        made = report.make(declared, *runs)
        out = io.StringIO()
        cli_report.write(out, made.sections, 100)
        self.assertEqual(0, made.status, out.getvalue())
        names = report.COMPARED_COLUMNS if compared else report.COLUMNS
        rows = [
            dict(zip(names, map(str, row), strict=True)) for row in made.rows
        ]
        for row in rows:
            if 'no valid host' in row['Actual']:
                self.assertTrue(row['Reasons'], out.getvalue())
                self.assertNotRegex(row['Reasons'], '[0-9a-f]{8}-[0-9a-f]{4}-')
        # Where the point is that plain nova does otherwise, it must.
        if any(
            step.expect_plain not in (None, step.expect)
            for step in declared.steps
        ):
            found = [row['Plain Result'] for row in rows]
            self.assertIn(report.WRONG, found, out.getvalue())

    def test_there_are_scenarios(self):
        """Else the test above is none."""
        self.assertLess(10, len([*SCENARIOS.glob('*.yaml')]))

    def test_a_late_cast_undoes_no_change_of_an_aggregate(self):
        data = check.load(
            str(SCENARIOS / 'aggregate_instance_type_use_case_3.yaml')
        )
        update = manager.SchedulerManager.update_aggregates

        def update_late(*args, **kwargs):
            time.sleep(0.2)
            return update(*args, **kwargs)

        with mock.patch.object(
            manager.SchedulerManager, 'update_aggregates', update_late
        ):
            run = self.run_cloud(data, False)
        made = report.make(scenario.parse(data), run)
        self.assertEqual(0, made.status, made.sentence)

    def test_traits_that_aggregates_imply(self):
        """Beside those of the host; one that placement refuses is left out."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        file = pathlib.Path(folder) / 'scenario.yaml'
        file.write_text(TRAITS)
        data = check.load(str(file))
        made = report.make(scenario.parse(data), self.run_cloud(data, False))
        out = io.StringIO()
        cli_report.write(out, made.sections, 100)
        self.assertEqual(0, made.status, out.getvalue())
