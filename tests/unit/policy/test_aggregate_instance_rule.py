# SPDX-License-Identifier: Apache-2.0
import ddt
import testtools

from nova_ext_sched.policy import aggregate_instance_rule
from nova_ext_sched.policy import expression
from nova_ext_sched.policy import force_metadata_check

FORCED = {'force_metadata_check': 'true'}


def rule(spec, value):
    return aggregate_instance_rule.Rule('tiny', 'k', spec, value, 1)


@ddt.ddt
class RuleTestCase(testtools.TestCase):
    """The sentences themselves: test_aggregate_instance_type."""

    force = force_metadata_check.ForceMetadataCheck(['k'])

    def test_a_silent_flavor_wants_absence(self):
        self.assertEqual(expression.ABSENCE, rule(None, '').wants)

    def test_a_malformed_flavor_wants_a_sentence(self):
        malformed = rule('s:k', '<or>')
        self.assertIn("flavor tiny: extra spec 's:k'", malformed.wants)
        self.assertEqual(
            [malformed.wants], malformed.faults(self.force, 'a', {'k': '1'})
        )

    def test_an_ignored_key_is_read_as_it_stands(self):
        # Under force it would be malformed.
        metadata = {'k': '<or>', **FORCED}
        wants = rule('k', '1')
        self.assertEqual([], wants.faults(self.force, 'a', metadata))
        self.assertEqual(
            "flavor tiny wants '1' of 'k' and its aggregates offer '<or>' (a)",
            wants.reason(self.force, [('a', metadata), ('b', {})]),
        )

    @ddt.data({}, {'l': '<or>', **FORCED})
    def test_an_aggregate_without_the_key_has_no_fault(self, metadata):
        self.assertEqual(
            [], rule('k', '>= 4').faults(self.force, 'a', metadata)
        )
