# SPDX-License-Identifier: Apache-2.0

"""The package in nova-scheduler processes, with MariaDB and RabbitMQ."""

import testtools

from tests.deployment import base

TRAIT = 'CUSTOM_LICENSED_WINDOWS'
ON = {('nova_ext_sched', 'enable_isolated_aggregate_filtering'): 'True'}
NOVAS = {('scheduler', 'enable_isolated_aggregate_filtering'): 'True'}
LICENSED = {f'trait:{TRAIT}': 'required'}
REFUSED = 'ERROR: No valid host was found'


class DeploymentTestCase(testtools.TestCase):
    """One deployment for the whole story: it takes half a minute to start."""

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(base.Deployment())

    def boot(self, count, flavor='plain'):
        """Create servers; return the hosts, or the beginning of a fault."""
        (places,) = self.cloud.client(['boot', flavor, count])
        return {place[: len(REFUSED)] for place in places}

    def test_isolation(self):
        cloud = self.cloud
        cloud.client(
            ['traits', ['host1', 'host2'], [TRAIT]],
            ['aggregate', 'windows', ['host1', 'host2'], LICENSED],
            ['flavor', 'plain', 1, {}, 1],
            ['flavor', 'licensed', 1, LICENSED, 1],
        )

        # A plugin that is named and missing: the scheduler does not start.
        cloud.start_scheduler(
            {('nova_ext_sched', 'request_filters'): 'absent'}
        )
        self.assertRaisesRegex(
            RuntimeError,
            'scheduler1 ended with status [^0]',
            cloud.nova.wait_for_schedulers,
        )
        self.assertIn("PluginError: plugin 'absent'", cloud.log())

        with cloud.scheduler(ON):
            # Two workers; what one of them alone does would show.
            self.assertEqual({'host3'}, self.boot(12))
            self.assertLessEqual(self.boot(6, 'licensed'), {'host1', 'host2'})
            self.assertIn('nova-ext-sched is loaded', cloud.log())

            with cloud.without_table('aggregate_metadata'):
                self.assertEqual({REFUSED}, self.boot(4))
            self.assertIn('isolate_aggregates cannot decide', cloud.log())
            self.assertEqual({'host3'}, self.boot(4))

        # Past the limit of gunicorn's request line: nova's filter puts every
        # UUID into the query, ours at most 100, or the trait.
        cloud.client(['aggregates', 'many', 300, TRAIT])
        with cloud.scheduler(
            {
                **NOVAS,
                ('filter_scheduler', 'enabled_filters'): 'ComputeFilter',
            },
            filters=False,
        ):
            self.assertEqual({REFUSED}, self.boot(2))
        with cloud.scheduler(ON):
            self.assertEqual({'host3'}, self.boot(2))
            self.assertIn('must stay out of 301 aggregates', cloud.log())
        by_trait = {('nova_ext_sched', 'forbid_by_trait'): 'CUSTOM_LICENSED_*'}
        with cloud.scheduler({**ON, **by_trait}):
            self.assertEqual({'host3'}, self.boot(2))
            self.assertIn(
                f'The placement query forbids by trait: {TRAIT}',
                cloud.log(),
            )
        self.more_reserved_aggregates_than_the_query_names()

    def more_reserved_aggregates_than_the_query_names(self):
        """They change while nova-scheduler hears of nothing."""
        cloud = self.cloud
        one, all_hosts = {'reservation:a': 'true'}, {'reservation:b': 'true'}
        cloud.client(
            *(['aggregate', f'a-{host}', [host], one] for host in base.HOSTS),
            ['aggregate', 'b', [*base.HOSTS], all_hosts],
            ['flavor', 'part', 1, one, 1],
            # b takes the room: nothing of a is in the query.
            ['flavor', 'whole', 1, {**one, **all_hosts}, 1],
        )
        options = {
            ('nova_ext_sched', f'placement_req_{kind}_member_prefix'): (
                'reservation:'
            )
            for kind in ('required', 'default_forbidden')
        }
        options['nova_ext_sched', 'max_forbidden_aggregates'] = '1'
        # Any host of the cloud, if the query does not say which.
        few = {('scheduler', 'max_placement_results'): '1'}
        with cloud.scheduler(options):
            self.assertLessEqual(self.boot(6, 'whole'), {*base.HOSTS})
            aggregate = 'SELECT id FROM nova_api.aggregates WHERE name = '
            cloud.mariadb.execute(
                'INSERT INTO nova_api.aggregate_metadata '
                '(aggregate_id, `key`, value) '
                f"SELECT ({aggregate}'a-host1'), 'filter_tenant_id', 'other'",
                'DELETE FROM nova_api.aggregate_hosts '
                f"WHERE aggregate_id = ({aggregate}'a-host2')",
            )
            self.assertEqual({'host3'}, self.boot(12, 'whole'))
            self.assertIn('must land in one of 2 aggregates', cloud.log())
        with cloud.scheduler({**options, **few}):
            self.assertEqual({'host3'}, self.boot(6, 'part'))
