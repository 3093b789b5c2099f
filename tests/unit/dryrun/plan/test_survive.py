# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import testtools

from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import survive


class FailTestCase(testtools.TestCase):
    def test_what_is_known_is_said_while_the_rest_is_asked(self):
        """The label has it as soon as one cannot fail, and how many."""
        survey = survive.Survival.__new__(survive.Survival)
        survey._counts = {}
        bad = mock.Mock(has_no_room=True)
        survey._fail = lambda name, *_: (
            plans.Failure(name, [name], [], [bad] * (name != 'fine')),
            None,
        )
        advance = mock.Mock()
        failures = {name: {name} for name in ('a', 'fine', 'b', 'c', 'd')}
        said = []
        for one, _ in survey.fail(failures, advance):
            label = advance.mock_calls[-1].kwargs.get('label', '')
            said.append((one.failure, label))
        self.assertEqual(
            [
                ('a', '1 cannot fail: a'),
                ('fine', '1 cannot fail: a'),
                ('b', '2 cannot fail: a, b'),
                ('c', '3 cannot fail: a, b, c'),
                ('d', '4 cannot fail: a, b, c, d'),
            ],
            said,
        )
        # None of these is a step.
        self.assertTrue(
            all(call.kwargs['steps'] == 0 for call in advance.mock_calls[1:])
        )
