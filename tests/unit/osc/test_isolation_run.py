# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_ext_sched.osc import isolation_run
from nova_ext_sched.osc.isolation_step import Change
from nova_ext_sched.osc.isolation_step import Step
from nova_ext_sched.placement import errors


def make_steps(*names):
    return [Step(Change.CREATE_TRAIT, {name: name}) for name in names]


class Refusing:
    """A client that refuses some traits.

    :param refusals: statuses by trait; None where nobody answers
    """

    def __init__(self, **refusals):
        self._refusals = refusals
        self.created = []

    def ensure_traits(self, names):
        for name in names:
            if name in self._refusals:
                raise errors.Refused(
                    method='PUT',
                    url=name,
                    status=self._refusals[name],
                    problem='of the test',
                    detail='no',
                )
            self.created.append(name)


class RunTestCase(testtools.TestCase):
    def test_a_refusal_of_one_step(self):
        client = Refusing(B=400, C=404, D=409)
        steps = make_steps(*'ABCDE')
        steps.append(Step(Change.CREATE_TRAIT, {'F': 'F'}, reason='why'))
        advanced = []
        ended_by = isolation_run.carry_out(
            steps, client, advance=lambda: advanced.append(None)
        )
        self.assertIsNone(ended_by)
        self.assertEqual({'A', 'E'}, set(client.created))
        self.assertEqual(
            ['done', 'failed', 'failed', 'failed', 'done', 'not possible'],
            [step.status for step in steps],
        )
        self.assertIn('of the test: no (PUT B, status 400)', steps[1].reason)
        self.assertEqual(
            'Done: create trait (2); failed: create trait (3); not possible: '
            'create trait (1)',
            isolation_run.sum_up(steps),
        )
        self.assertEqual(5, len(advanced))

    def test_a_refusal_of_all(self):
        for status in (401, 403, 500, 503, None):
            client = Refusing(A=status)
            steps = make_steps('A', 'B', 'C')
            ended_by = isolation_run.carry_out(steps, client)
            self.assertEqual([], client.created)
            self.assertEqual(status, ended_by.status)
            self.assertEqual(
                'Failed: create trait (1); not tried: create trait (2)',
                isolation_run.sum_up(steps),
            )

    def test_a_fault_of_ours_is_not_hidden(self):
        class Broken:
            def ensure_traits(self, names):
                raise ZeroDivisionError

        args = isolation_run.carry_out, make_steps('A'), Broken()
        self.assertRaises(ZeroDivisionError, *args)
