# SPDX-License-Identifier: Apache-2.0

"""Random clouds: plans are carried out, and each step is checked.

What violates a policy is computed from what nova-api says, by the definitions
of test_audit_random. Hosts have room for few servers more, so that the order
counts.

NOVA_EXT_SCHED_TEST_PLANS is the number of clouds, 1 by default.
"""

import os
import random

import ddt

from tests.functional import plans
from tests.long import test_audit_random

CASES = int(os.environ.get('NOVA_EXT_SCHED_TEST_PLANS', '1'))


@ddt.ddt
class RandomPlanTestCase(test_audit_random.CloudMixin, plans.PlanTestCase):
    def sizes(self, rng):
        """Let the hosts of the first servers be nearly full."""
        for host in self.weights:
            provider = self._get_provider_uuid_by_host(host)
            used = self._get_provider_usages(provider)['VCPU']
            total = max(1, used + rng.randrange(0, 3))
            self.limit(host, 'VCPU', total=total, max_unit=10)

    def check(self, move, before):
        """Check one step; return what violates a policy after it."""
        after = self.violations()
        self.assertEqual(
            [], [one for one in after if one[0] == move['server']]
        )
        self.assertLessEqual(set(after), set(before))
        return after

    @ddt.data(*range(CASES))
    def test_each_step(self, seed):
        rng = random.Random(seed)
        self.make_cloud(rng)
        self.sizes(rng)
        plan = self.plan()
        found = self.violations()
        self.assertNotEqual([], found)
        misplaced = {server for server, _, _ in found}
        for move in plan['moves']:
            self.assertIn(move['server'], misplaced)
            self.carry_out({'moves': [move]})
            found = self.check(move, found)
        self.assertEqual(
            found,
            sorted(
                (one['server'], one['host'], policy)
                for one in plan['without_place']
                for policy in one['policies']
            ),
        )
        self.assertEqual(found, self.found())
        print('PLAN', seed, plan['answer']['sentence'])
