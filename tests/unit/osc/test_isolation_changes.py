# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_ext_sched.osc import isolation_changes as changes
from nova_ext_sched.placement import errors
from nova_ext_sched.policy import isolation_plan as plan


def steps(*names, obstacle=''):
    return [
        plan.Step(
            plan.Change.CREATE_TRAIT, (name,), (name,), '', None, obstacle
        )
        for name in names
    ]


class Refusing:
    """A client that refuses some traits."""

    def __init__(self, **refusals):
        self._refusals = refusals
        self.created = []

    def ensure_traits(self, names):
        for name in names:
            if name in self._refusals:
                raise self._refusals[name](
                    method='PUT',
                    url=name,
                    detail='no',
                    credentials='of the test',
                )
            self.created.append(name)


class RunTestCase(testtools.TestCase):
    def test_nothing(self):
        run = changes.Run([])
        run.carry_out(Refusing())
        self.assertEqual('Nothing to change.', run.summary())

    def test_a_refusal_of_one_step(self):
        client = Refusing(B=errors.BadRequest)
        run = changes.Run(steps('A', 'B', 'C') + steps('D', obstacle='why'))
        advanced = []
        run.carry_out(client, lambda: advanced.append(None))
        self.assertEqual({'A', 'C'}, set(client.created))
        self.assertEqual(
            ['done', 'failed', 'done', 'not possible'],
            [outcome.status for outcome in run.outcomes],
        )
        self.assertEqual(
            'Done: create trait (2); failed: create trait (1); not possible: '
            'create trait (1).',
            run.summary(),
        )
        self.assertIsNone(run.ended_by)
        self.assertEqual(3, len(advanced))

    def test_a_refusal_of_all(self):
        client = Refusing(A=errors.Forbidden)
        run = changes.Run(steps('A', 'B', 'C'))
        run.carry_out(client)
        self.assertEqual([], client.created)
        self.assertIsInstance(run.ended_by, errors.Forbidden)
        self.assertEqual(
            'Failed: create trait (1); not tried: create trait (2).',
            run.summary(),
        )

    def test_a_fault_of_ours_is_not_hidden(self):
        class Broken:
            def ensure_traits(self, names):
                raise ZeroDivisionError

        run = changes.Run(steps('A'))
        self.assertRaises(ZeroDivisionError, run.carry_out, Broken())
