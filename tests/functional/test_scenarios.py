#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

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
