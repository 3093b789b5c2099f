# SPDX-License-Identifier: Apache-2.0

"""A change before it is made, as nova's own request filters see it."""

from nova.tests import fixtures as nova_fixtures

from tests.functional import capacity as capacity_run
from tests.functional import test_change


class RequestFiltersTestCase(test_change.ChangeTestCase):
    def test_each(self):
        with nova_fixtures.ConfPatcher(
            enable_isolated_aggregate_filtering=True, group='scheduler'
        ):
            self.isolate_aggregates()
        with nova_fixtures.ConfPatcher(
            limit_tenants_to_placement_aggregate=True,
            placement_aggregate_required_for_tenants=True,
            group='scheduler',
        ):
            self.require_tenant_aggregate()
        self.map_az_to_placement_aggregate()

    def isolate_aggregates(self):
        open_, closed = ['host1', 'host2', 'host3'], ['host2', 'host3']
        self.assertEqual(
            closed, self.order(*self.set(f'{test_change.ISOLATING}=required'))
        )
        self.assertStage1('isolate_aggregates', 'host1')
        self.assertEqual(open_, self.order())
        self.assertStage1('isolate_aggregates')
        self.set_metadata('special', {test_change.ISOLATING: 'required'})
        self.assertEqual(closed, self.order())
        self.assertEqual(open_, self.order(*self.unset(test_change.ISOLATING)))
        self.assertStage1('isolate_aggregates')

    def require_tenant_aggregate(self):
        self.set_metadata('special', {test_change.ISOLATING: None})
        mine, other = self.api.project_id, 'f00d' * 8
        self.assertEqual([], self.order())
        self.assertEqual(
            ['host1'], self.order(*self.set(f'filter_tenant_id={mine}'))
        )
        self.assertStage1('require_tenant_aggregate', 'host2', 'host3')
        self.set_metadata('special', {'filter_tenant_id': mine})
        self.assertEqual(['host1'], self.order())
        self.assertEqual([], self.order(project=other))
        change = self.set(f'filter_tenant_id={other}')
        self.assertEqual(['host1'], self.order(*change, project=other))
        self.assertEqual([], self.order(*change))
        self.assertEqual([], self.order(*self.unset('filter_tenant_id')))

    def map_az_to_placement_aggregate(self):
        self.set_metadata('special', {'filter_tenant_id': None})
        west = ('--availability-zone', 'west')
        change = self.set('availability_zone=west')
        self.assertEqual(['host1'], self.order(*west, *change))
        self.assertStage1('map_az_to_placement_aggregate', 'host2', 'host3')
        self.set_metadata('special', {'availability_zone': 'east'})
        east = ('--availability-zone', 'east')
        self.assertEqual(['host1'], self.order(*east))
        self.assertEqual(['host1'], self.order(*west, *change))
        self.aggregate('more', ['host3'], zone='west')
        self.assertEqual(['host1', 'host3'], self.order(*west, *change))
        self.assertEqual(['host3'], self.order(*west))


class OptionsTestCase(test_change.ChangeTestCase):
    options = {'request_filters': ['isolate_aggregates']}

    isolation = (
        '--option',
        'nova_ext_sched.enable_isolated_aggregate_filtering=true',
    )

    def test_of_a_policy_that_is_off(self):
        self.assertEqual(3, len(self.order()))
        self.assertEqual(
            ['host2', 'host3'],
            self.order(
                *self.isolation, *self.set(f'{test_change.ISOLATING}=required')
            ),
        )
        # Nothing of the option is left.
        self.assertEqual(3, len(self.order()))
        flavor = ('--flavor', self.flavor(vcpu=4), '--hosts', '-f', 'json')

        def count(*args):
            answer = capacity_run.run(*flavor, *args)
            # The filter is enabled, and has nothing to do by nova.conf.
            self.assertRegex(
                answer.err,
                '^(nova-scheduler logs . warnings? at start .+\n)?$',
            )
            return {*answer.rooms}

        hosts = {'host1', 'host2', 'host3'}
        change = self.set(f'{test_change.ISOLATING}=required')
        self.assertEqual(hosts, count(*change))
        self.assertEqual(hosts - {'host1'}, count(*self.isolation, *change))
        self.set_metadata('special', {test_change.ISOLATING: 'required'})
        self.assertEqual(hosts, count())
        self.assertEqual(hosts - {'host1'}, count(*self.isolation))
        change = self.unset(test_change.ISOLATING)
        self.assertEqual(hosts, count(*self.isolation, *change))
