# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.policy import aggregate_instance_rule as rule
from nova_ext_sched.policy import expression

PRESENT, OFFERED, REFUSED, MALFORMED = (
    rule.PRESENT,
    rule.OFFERED,
    rule.REFUSED,
    rule.MALFORMED,
)


def make(spec, value=''):
    return rule.Rule('tiny', 'k', spec, value)


@ddt.ddt
class RuleTestCase(testtools.TestCase):
    """The sentences themselves: test_aggregate_instance_type."""

    def test_a_silent_flavor_wants_absence(self):
        self.assertEqual(expression.ABSENCE, make(None).wants)

    # flavor's value, aggregate's value, bits unless forced, bits if forced
    @ddt.data(
        ('1', '1', PRESENT | OFFERED, PRESENT | OFFERED),
        ('1', '2', PRESENT, PRESENT | REFUSED),
        ('1', '*', PRESENT, PRESENT | OFFERED),
        ('1', '!', PRESENT, PRESENT | REFUSED),
        ('1', '<or>', PRESENT, MALFORMED),
        ('!', '1', PRESENT, PRESENT | REFUSED),
        ('!', '!', PRESENT, 0),
        ('!', '<or> 1 <or> ~', PRESENT, 0),
        ('<or> 1 <or> ~', '2,~', PRESENT, 0),
        ('<or> 1 <or> ~', '1,~', PRESENT | OFFERED, OFFERED),
        (None, '1', PRESENT, PRESENT | REFUSED),
        (None, '~', PRESENT, 0),
        ('>= 4', 'x', MALFORMED, MALFORMED),
        ('x', '>= 4', PRESENT, PRESENT | REFUSED),
        ('<or>', '1', MALFORMED, MALFORMED),
    )
    @ddt.unpack
    def test_bits(self, wants, value, plain, forced):
        made = make(None) if wants is None else make('k', wants)
        self.assertEqual(plain, made.examine('a', value, False)[0])
        self.assertEqual(forced, made.examine('a', value, True)[0])

    def test_malformed_in_the_flavor(self):
        made = make('s:k', '<or>')
        self.assertIn("flavor tiny: extra spec 's:k'", made.fault)
        self.assertEqual([made.fault], made.examine('a', '1', False)[1])
        self.assertEqual(made.fault, made.reason({}))

    def test_what_people_wrote_stays_on_its_line(self):
        made = rule.Rule('ti\nny', 'k\n', 'k\n', '1\u2028')
        self.assertEqual(
            "flavor 'ti\\nny' wants 'k\\n' to be '1\\u2028' and the "
            "aggregates offer '2\\r' ('a\\n')",
            made.reason({('2\r', False): ['a\n']}),
        )
