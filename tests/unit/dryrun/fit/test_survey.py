# SPDX-License-Identifier: Apache-2.0

"""What a survey says beside its numbers; nova itself is in functional."""

import types

import nova.conf
from oslo_config import fixture as config_fixture

from nova_ext_sched.dryrun.decision import orphaned
from nova_ext_sched.dryrun.decision import question
from nova_ext_sched.dryrun.fit import survey
from tests.unit.dryrun.plan import small

CONF = nova.conf.CONF


class SurveyTestCase(small.TestCase):
    def count(self, cloud, *sizes):
        """Count flavors of these CPUs; return the survey."""
        made = survey.Survey(question.Question(), self.small.build(cloud))
        for cpus in sizes:
            known = {'vcpus': cpus, 'memory_mb': 64, 'root_gb': 0}
            flavor = types.SimpleNamespace(
                name=f'{cpus}', flavorid='1', ephemeral_gb=0, **known
            )
            self.found = made.count(flavor)
        return made

    def test_more_candidates_than_nova_takes(self):
        """As many as it takes are none too many."""
        config = self.useFixture(config_fixture.Config(CONF)).config
        for most, is_said in ((2, False), (1, True)):
            config(max_placement_results=most, group='scheduler')
            made = self.count('a=4; b=4', 1)
            self.assertEqual(8, self.found.servers)
            said = [one for one in made.remarks if 'max_placement' in one]
            self.assertEqual(is_said, bool(said))

    def test_a_full_host_is_as_for_the_first_flavor(self):
        seen = []
        self.patch(
            orphaned, 'find', lambda _, full: seen.append(full) or (None, [])
        )
        self.count('a=4 x=4; b=4', 1, 3).look_for_orphaned()
        self.assertEqual([{'a': {'VCPU': 1}}], seen)
