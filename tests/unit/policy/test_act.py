# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.policy import act

TAKE = act.Act(act.POLICY, 'take {hosts} out of {names}', act.LEAVES)
START = act.Act(act.REPAIR, 'start nova-compute on {hosts}', act.RUNS)


@ddt.ddt
class CombineTestCase(testtools.TestCase):
    @ddt.data(
        ((), ()),
        # Said by both stages.
        ((START, START), (START,)),
        ((TAKE.named('a'), TAKE.named('b')), (TAKE.named('a', 'b'),)),
        ((TAKE.named('a', 'b'), TAKE.named('b')), (TAKE.named('a', 'b'),)),
        # One that names nothing is no other act.
        ((TAKE, TAKE.named('a')), (TAKE.named('a'),)),
        ((TAKE.named('a'), TAKE), (TAKE.named('a'),)),
        # What cannot be supposed together stays apart.
        ((START, TAKE.named('a')), (START, TAKE.named('a'))),
        ((TAKE.named('a'), TAKE._replace(kind=act.REPAIR)),
         (TAKE.named('a'), TAKE._replace(kind=act.REPAIR))),
    )  # fmt: skip
    @ddt.unpack
    def test_combine(self, acts, expected):
        self.assertEqual([*expected], act.combine(acts))

    def test_named(self):
        self.assertEqual(('a',), TAKE.named('a').names)
        # Its own names stay.
        self.assertEqual(('a',), TAKE.named('a').named('b').names)
