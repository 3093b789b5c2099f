# SPDX-License-Identifier: Apache-2.0

"""What a survey says beside its numbers; nova itself is in functional."""

import types

from nova import objects
import nova.conf
from oslo_config import fixture as config_fixture

from nova_ext_sched.dryrun.decision import orphaned
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.fit import survey
from tests.unit.dryrun.plan import small

CONF = nova.conf.CONF


class SurveyTestCase(small.TestCase):
    def count(self, cloud, *sizes, **more):
        """Count flavors of these CPUs; return the survey."""
        cloud = self.small.build(cloud)
        made = survey.Survey(request.Question(), cloud, **more)
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

    def test_flavors_that_are_disabled_are_not_counted(self):
        known = [
            types.SimpleNamespace(name=name, disabled=name == 'old')
            for name in ('m10', 'm2', 'old')
        ]

        def get_all(_, filters):
            """Return flavors as nova does."""
            return [
                one
                for one in known
                if filters.get('disabled', one.disabled) == one.disabled
            ]

        self.patch(objects.FlavorList, 'get_all', get_all)
        found = self.count('a=4').get_flavors(())
        self.assertEqual(['m2', 'm10'], [one.name for one in found])

    def test_hosts_in_no_group_are_one(self):
        rack = types.SimpleNamespace(name='rack')
        self.small.change = lambda cloud: setattr(
            cloud, 'aggregates_of', lambda host: [rack] * (host == 'a')
        )
        self.count('a=4; b=2; c=1', 1, by='aggregate')
        groups = [(one.name, one.servers) for one in self.found.groups]
        self.assertEqual([('rack', 4), ('', 3)], groups)

    def test_what_did_not_answer_makes_a_count_partial(self):
        cell = types.SimpleNamespace(uuid='cell')
        for doubts, silent, is_whole in (
            ([], {}, True),
            ([], {'disabled': 'no answer'}, True),
            ([], {'cell': 'no answer'}, False),
            (['The zones are not known.'], {}, False),
        ):
            cloud = self.small.build('a=4')
            cloud.enabled_cells = [cell]
            cloud.doubts, cloud.silent_cells = doubts, silent
            *_, last = survey.count_all(cloud, request.Question())
            self.assertIs(is_whole, last[-1])
