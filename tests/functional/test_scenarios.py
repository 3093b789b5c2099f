# SPDX-License-Identifier: Apache-2.0

"""Every scenario in tests/scenarios does what it says.

Where it says what plain nova does, it runs there as well, and plain nova
fails it: a scenario that plain nova passes proves nothing about our filters.
"""

import pathlib
import unittest

import ddt

from nova_ext_sched.simulator import check
from nova_ext_sched.simulator import report
from nova_ext_sched.simulator import runner

SCENARIOS = pathlib.Path(__file__).parents[1] / 'scenarios'


@ddt.ddt
class ScenariosTest(unittest.TestCase):
    @ddt.data(*sorted(path.name for path in SCENARIOS.glob('*.yaml')))
    def test_scenario(self, name):
        doc, declared = check.load(str(SCENARIOS / name))
        compared = any(step.expect_plain for step in declared.steps)

        outcomes = runner.run(doc, (False, True) if compared else (False,))

        told = report.Report(declared, outcomes[False], outcomes.get(True))
        table = '\n'.join(
            ' | '.join(map(str, row)) for row in [told.columns, *told.rows]
        )
        self.assertTrue(told.held, f'\n{told.summary}\n{table}')
        # Where the point is that plain nova does otherwise, it must.
        if any(
            step.expect_plain not in (None, step.expect)
            for step in declared.steps
        ):
            self.assertIn(report.DIFFERS, told.plain_results, table)
