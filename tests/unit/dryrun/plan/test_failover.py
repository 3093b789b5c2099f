# SPDX-License-Identifier: Apache-2.0

"""Which hosts may still fail while others are empty; nova's claims decide."""

import ddt

from tests.unit.dryrun.plan import small


@ddt.ddt
class FailoverTestCase(small.TestCase):
    """Rounds of as many hosts as can be, and what keeps others from them."""

    @ddt.data(
        # While both others are empty, a has nowhere to go.
        ('a=4 x=3; b=4; c=4', None, 'bc a', 'ba c', ''),
        ('a=4 x=3; b=4 y=3; c=4', 1, 'c a b', '', 'a:b b:a c:a'),
        # One that may not fail today keeps nobody.
        ('a=5 x=5; b=4; c=4', None, 'bc', 'bc', 'a:'),
        # Servers count where they are: x on b, beside y.
        ('a=4 x=3; b=4 y=1; c=4 z=1', 1, 'a c b', '', 'a:b b:a c:a'),
        # They may go back to where they came from: y to b, while e is empty.
        (
            'b=5/1 y=3/1+g; c=5/1 z=1/1; e=5/1 v=1/1',
            *(1, 'b e c', 'b e c', ''),
        ),
    )
    @ddt.unpack
    def test_rounds(self, cloud, at_once, any_, safe, lost):
        for rounds, keeps in ((any_, False), (safe, True)):
            found = self.small.maintain(cloud, at_once, keeps_failover=keeps)
            self.assertEqual(rounds, small.say_rounds(found))
        said = ' '.join(f'{one.on}:{one.lost}' for one in found.kept)
        self.assertEqual(lost, said)
