# SPDX-License-Identifier: Apache-2.0

"""Failover hosts hold what their page promises, whoever asks."""

from unittest import mock

from nova import objects
import sqlalchemy as sa

from nova_ext_sched.queries import servers
from tests.functional import plans
from tests.functional import test_failover
from tests.functional import test_rebuild_hint
from tests.functional import test_survive

HELD = test_failover.HELD


class RequestsTestCase(test_failover.FailoverTestCase):
    def test_several_servers_of_one_request(self):
        self.api.post_server(
            {
                'server': {
                    **self._build_server(
                        flavor_id=self.plain_flavor,
                        image_uuid=self.plain_image,
                        networks='none',
                    ),
                    'min_count': 2,
                }
            }
        )
        for server in self.api.get_servers():
            self._wait_for_state_change(server, 'ACTIVE')
            self.assertEqual('host2', self.host_of(server))

    def test_evacuations_that_name_their_host(self):
        server = self.assertBootsOn('host2')
        self.evacuate(server, HELD, host=HELD)
        other = self.assertBootsOn('host3')
        self.evacuate(other, 'host4', host='host4')

    def test_an_option_lets_live_migrations_in(self):
        server = self.assertBootsOn('host2')
        self.flags(failover_takes=['live-migrations'], group='nova_ext_sched')
        self._migrate_server(server)
        self.assertEqual('host3', self.host_of(server))
        self._confirm_resize(server)
        self._live_migrate(server)
        self.assertEqual(HELD, self.host_of(server))
        self.assertEqual([(server['id'], HELD, 'failover')], self.found())

    def test_last_by_a_negative_multiplier(self):
        server = self.assertBootsOn('host2')
        self.flags(
            failover_hosts_weight_multiplier=-10000.0, group='nova_ext_sched'
        )
        self.evacuate(server, 'host3')

    def test_a_mark_that_cannot_be_read(self):
        self.set_metadata('spare', {'failover': 'perhaps'})
        self.assertBootsOn('host2')
        self.assertBootsOn('host2')
        self.assertEqual(
            1,
            self.log.count(
                'aggregate spare: failover: expected true or false, got '
                "'perhaps'"
            ),
        )
        self.set_metadata('spare', {'failover': 'off'})
        self.assertBootsOn(HELD)


class HostileTestCase(test_failover.FailoverTestCase):
    """What a member writes, and what nova has left, opens no held host."""

    def test_names(self):
        self.useFixture(test_rebuild_hint.UnmendedApi())
        for hints in (
            test_rebuild_hint.HINT,
            {'ignore_hosts': ['host2']},
            {'_nova_check_type': 'evacuate'},
            {'supposed_move': 'evacuation'},
        ):
            # nova may refuse the hint, and then has no host for it.
            server = self.post(hints=hints, metadata={'failover': 'true'})
            self._wait_for_server_parameter(
                server, {'OS-EXT-STS:task_state': None}
            )
            self.assertNotEqual(HELD, self.host_of(server))
        server = self.boot(image=self.image(failover='true'))
        self.assertNotEqual(HELD, self.host_of(server))

    def test_an_old_record(self):
        server = self.assertBootsOn('host2')
        with self.cell() as cctxt:
            objects.Migration(
                cctxt,
                instance_uuid=server['id'],
                source_compute='host2',
                source_node='host2',
                migration_type='evacuation',
                status='accepted',
                uuid=self.uuid,
            ).create()
        self._live_migrate(server)
        self.assertEqual('host3', self.host_of(server))

    def test_a_cell_that_does_not_answer(self):
        server = self.assertBootsOn('host2')
        with mock.patch.object(
            servers, 'select_moves', side_effect=sa.exc.OperationalError
        ):
            self.evacuate(server, 'host3')
        self.assertIn(
            "because nova's databases do not say whether it is an evacuation",
            self.log,
        )

    def test_a_restarted_source(self):
        server = self.assertBootsOn('host2')
        self.evacuate(server, HELD)
        self.assertEqual([], self.found())
        self.computes['host2'] = self.restart_compute_service(
            self.computes['host2']
        )
        self._wait_for_migration_status(server, ['completed'])
        self.assertEqual([(server['id'], HELD, 'failover')], self.found())


class PlansTestCase(plans.PlanTestCase):
    host_filters = (
        *plans.PlanTestCase.host_filters,
        'FailoverHostsFilter',
    )
    weigher_classes = ('nova_ext_sched.weighers.all_weighers',)
    options = {'enable_failover_hosts': True}
    weights = {HELD: 400, 'host2': 300, 'host3': 200, 'host4': 100}

    def test_mend_frees_marked_hosts(self):
        server = self.boot(az=f'nova:{HELD}')
        self.aggregate('spare', [HELD, 'host2'], failover='true')
        plan = self.mend()
        self.assertEqual(
            [(server['id'], 'host3', ['failover'])],
            [(m['server'], m['to'], m['policies']) for m in plan['moves']],
        )


class SurviveTestCase(test_survive.SurviveTestCase):
    host_filters = PlansTestCase.host_filters
    weigher_classes = PlansTestCase.weigher_classes
    options = {**test_survive.SurviveTestCase.options, **PlansTestCase.options}

    def test_survive_uses_held_hosts(self):
        flavor = self.flavor(vcpu=6)
        for host in ('host2', 'host3', 'host4'):
            self.boot(flavor=flavor, az=f'nova:{host}')
        self.aggregate('spare', [HELD], failover='true')
        document = self.survive()
        failures = {one['failure']: one for one in document['failures']}
        self.assertEqual(
            [HELD], [one['to'] or one['expected'] for one in
                     failures['host3']['moves']]
        )  # fmt: skip
        self.fail_hosts(failures['host3'])
