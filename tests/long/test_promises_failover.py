# SPDX-License-Identifier: Apache-2.0

"""Failover hosts hold what their page promises, whoever asks."""

import contextlib
import gzip
from unittest import mock

import ddt
from nova import objects
from nova import utils
from nova.tests.functional.api import client
import sqlalchemy as sa

from nova_ext_sched.cmd import drain
from nova_ext_sched.cmd import survive
from nova_ext_sched.queries import servers
from tests.functional import audits
from tests.functional import capacity
from tests.functional import explain
from tests.functional import plans
from tests.functional import test_failover
from tests.functional import test_rebuild_hint
from tests.functional import test_saved
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

    def test_what_explain_and_capacity_say(self):
        """Held hosts are there for evacuations alone."""
        server = self.assertBootsOn('host2')
        found = capacity.read('--flavor', self.plain_flavor, '--hosts')
        self.assertEqual({'host2', 'host3', 'host4'}, {*found.rooms})
        self.assertEqual({'are kept for failures': 1}, found.refused)
        for operation, hosts in (
            ('evacuate', [HELD, 'host3', 'host4']),
            ('live-migrate', ['host3', 'host4']),
        ):
            found = explain.of_server(server, operation)
            self.assertEqual(hosts, found.order, operation)
        self.assertIn('kept for failures', found.out)

    def test_force_of_old_microversions(self):
        """nova asks no scheduler; audit says what does not belong there."""
        evacuated = self.assertBootsOn('host2')
        moved = self.boot(az='nova:host3')
        asked = len(self.queries)
        with utils.temporary_mutation(self.admin_api, microversion='2.67'):
            self.act(
                *(moved, 'os-migrateLive'),
                host=HELD,
                block_migration='auto',
                force=True,
            )
            self._wait_for_migration_status(moved, ['completed'])
            self.evacuate(evacuated, HELD, host=HELD, force=True)
        self.assertEqual(asked, len(self.queries))
        self.assertEqual([(moved['id'], HELD, 'failover')], self.found())

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

    def test_a_cold_migration_home(self):
        server = self.assertBootsOn('host2')
        self.evacuate(server, HELD)
        self.computes['host2'] = self.restart_compute_service(
            self.computes['host2']
        )
        self._wait_for_migration_status(server, ['completed'])
        self.set_service('host2', forced_down=False)
        self.act(server, 'migrate', 'VERIFY_RESIZE', host='host2')
        self.act(server, 'confirmResize', 'SHUTOFF')
        self.assertEqual('host2', self.host_of(server))
        self.assertEqual([], self.found())


class OthersTestCase(test_failover.FailoverTestCase):
    """Other policies hold on marked hosts as anywhere."""

    host_filters = (
        *audits.AuditTestCase.host_filters,
        *test_failover.FailoverTestCase.host_filters,
    )
    options = {
        **audits.AuditTestCase.options,
        **test_failover.FailoverTestCase.options,
    }

    def test_isolation(self):
        server = self.assertBootsOn('host2')
        self.isolate('licensed', [HELD], 'CUSTOM_LICENSED')
        self.evacuate(server, 'host3')

    def test_reservation(self):
        server = self.assertBootsOn('host2')
        self.aggregate('pool', [HELD], metadata={'reservation:x': 'true'})
        self.evacuate(server, 'host3')

    def test_a_server_group(self):
        """Marked hosts are no slots for boots, and keep the group's rule."""
        hints = {'group': self.create_group()}
        servers = [self.boot(hints=hints) for _ in range(3)]
        on = {self.host_of(server): server for server in servers}
        self.assertEqual({'host2', 'host3', 'host4'}, {*on})
        self.assertNoValidHost(hints=hints)
        self.evacuate(on['host2'], HELD)
        self.lose('host3')
        # All that is left has a server of the group. Where conductor is
        # called in place of cast, it is nova-api that finds no host.
        with contextlib.suppress(client.OpenStackApiException):
            self.act(on['host3'], 'evacuate')
        self._wait_for_migration_status(on['host3'], ['error'])
        self.assertEqual('host3', self.host_of(on['host3']))

    def test_failure_domains(self):
        for rack, hosts in (('a', [HELD, 'host4']), ('b', ['host2']),
                            ('c', ['host3'])):  # fmt: skip
            self.aggregate(f'rack {rack}', hosts, failure_domain=rack)
        hints = {
            'group': self.create_group(),
            'different_failure_domain': 'true',
        }
        self.boot(hints=hints, az='nova:host4')
        server = self.boot(hints=hints, az='nova:host2')
        # The rack of the marked host has a member already.
        self.evacuate(server, 'host3')


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
        for written in (
            {'image': self.image(failover='true')},
            {'name': 'evacuation'},
            # Of an operator, and what it says is not of a host.
            {'flavor': self.flavor(specs={'x:failover': 'true'})},
        ):
            server = self.boot(**written)
            self.assertEqual('host2', self.host_of(server))
        # Nor does what a member wrote before.
        self._live_migrate(server)
        self._resize_server(server, self.flavor())
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
        self.assertEqual((3, []), self.audit())
        self.computes['host2'] = self.restart_compute_service(
            self.computes['host2']
        )
        self._wait_for_migration_status(server, ['completed'])
        self.assertLeaves(server, HELD, 'its host host2 is back')

    def test_a_source_that_is_gone(self):
        server = self.assertBootsOn('host2')
        self.evacuate(server, HELD)
        with self.cell() as cctxt:
            objects.Service.get_by_compute_host(cctxt, 'host2').destroy()
        self.assertLeaves(server, HELD, 'its host host2 is gone')

    def test_a_server_that_was_there_before(self):
        server = self.assertBootsOn('host2')
        self.aggregate('more', ['host2'], failover='no')
        self.assertEqual([], self.found())
        self.set_metadata('more', {'failover': 'yes'})
        self.assertLeaves(server, 'host2', 'it was there before')
        # Who comes after the mark is no leftover.
        self.flags(group='nova_ext_sched', failover_takes=['live-migrations'])
        self._live_migrate(server)
        self.assertEqual(HELD, self.host_of(server))
        self.assertEqual([(server['id'], HELD, 'failover')], self.found())

    def assertLeaves(self, server, host, why):
        status, [found] = self.audit()
        self.assertEqual(
            (3, server['id'], host, 'failover-to-leave'),
            (status, found['server'], found['host'], found['policy']),
        )
        self.assertIn(f': to leave, {why}', found['reason'])


@ddt.ddt
class PlansTestCase(plans.PlanTestCase):
    host_filters = (
        *plans.PlanTestCase.host_filters,
        'FailoverHostsFilter',
    )
    weigher_classes = ('nova_ext_sched.weighers.all_weighers',)
    options = {'enable_failover_hosts': True}
    weights = {HELD: 400, 'host2': 300, 'host3': 200, 'host4': 100}

    @ddt.data([], ['live-migrations'])
    def test_mend_frees_marked_hosts(self, takes):
        """Not to another one of them, though it may be an allowed move."""
        self.flags(group='nova_ext_sched', failover_takes=takes)
        server = self.boot(az=f'nova:{HELD}')
        self.aggregate('spare', [HELD, 'host2'], failover='true')
        plan = self.mend()
        self.assertEqual(
            [(server['id'], 'host3', ['failover-to-leave'])],
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


class ChosenTestCase(
    test_survive.EvacuationMixin, test_saved.EqualMixin, plans.PlanTestCase
):
    """What operators say of servers, as nova stores it."""

    host_filters = PlansTestCase.host_filters
    weights = {'host1': 400, 'host2': 300, 'host3': 200, 'host4': 100}

    def write(self, server, **metadata):
        self.api.api_put(
            f'/servers/{server["id"]}/metadata', {'metadata': metadata}
        )

    def test_a_saved_cloud(self):
        """It has the times of marks, and metadata for the keys that count."""
        self.write(self.boot(az='nova:host1'), stay='true', other='secret')
        self.write(self.boot(az='nova:host1'), first='900')
        self.aggregate('spare', ['host1'], failover='true')
        self.flags(
            group='nova_ext_sched',
            enable_failover_hosts=True,
            restart_priority_key='first',
            restart_priority_sources=['server'],
            left_out_property='stay',
        )
        file = self.assertSame(
            *(['audit'], ['drain', 'host1'], ['survive', '--host', 'host1']),
            *(['survive', '--hold'], ['survive', '--hold=now']),
        )
        [found, drained] = file.ask(
            ['audit', '-f', 'json'], ['drain', 'host1', '-f', 'json']
        )
        self.assertIn('failover-to-leave', found.out)
        self.assertIn('stay (left_out_property) of the server', drained.out)
        text = gzip.decompress(file.path.read_bytes())
        self.assertNotIn(b'secret', text)

    def test_who_comes_first_has_the_last_place(self):
        """By flavor alone, until an option lets a server's metadata count."""
        for host, vcpu in (('host2', 10), ('host3', 7), ('host4', 10)):
            self.boot(flavor=self.flavor(vcpu=vcpu), az=f'nova:{host}')
        key = 'instanceha:restart_priority'
        small, large = (
            self.boot(
                flavor=self.flavor(vcpu=vcpu, specs={key: first}),
                az='nova:host1',
            )
            for vcpu, first in ((2, '900'), (3, '100'))
        )
        self.write(small, **{key: '1'})
        self.write(large, **{key: '2'})
        for sources, first, last in (
            (['flavor'], small, large),
            (['server', 'flavor'], large, small),
        ):
            self.flags(
                group='nova_ext_sched', restart_priority_sources=sources
            )
            [failure] = self.survive('--host', 'host1')['failures']
            self.assertEqual(
                ([first['id']], [last['id']]),
                tuple(
                    [one['server'] for one in failure[part]]
                    for part in ('moves', 'without_place')
                ),
            )
        self.fail_hosts(failure)

    def test_spares(self):
        """The fewest that are named are enough, and are needed."""
        for host, vcpu in (('host1', 4), ('host2', 10)):
            self.boot(flavor=self.flavor(vcpu=vcpu), az=f'nova:{host}')
        for host in ('host3', 'host4'):
            self.set_service(host, status='disabled')
        self.aggregate('spares', ['host2', 'host3', 'host4'])
        [failure] = self.survive('--host', 'host1')['failures']
        self.assertEqual(
            (1, []), (len(failure['without_place']), failure['enabled'])
        )
        argv = '--host', 'host1', '--spare', 'spares'
        [failure] = self.survive(*argv)['failures']
        self.assertEqual(['host3'], failure['enabled'])
        out, _, status = explain.call(survive.Survive, 'survive', *argv)
        self.assertEqual(0, status)
        self.assertRegex(
            ' '.join(out.split()),
            r'Enable these hosts .* --enable HOST nova-compute\): '
            'host1 host3',
        )
        self.set_service('host4', forced_down=True)
        document = self.survive(*argv)
        self.assertEqual(
            ['host4 is down and cannot serve as a spare.'], document['remarks']
        )
        self.set_service('host3', status='enabled')
        self.fail_hosts(failure)

    def test_who_is_left_out(self):
        amphora = self.flavor(name='amphora', vcpu=1)
        left = self.boot(flavor=amphora, az='nova:host1')
        other = self.boot(az='nova:host1')
        self.flags(group='nova_ext_sched', left_out_flavors=['amphora'])
        for command, ask in (
            ('drain', drain.Drain),
            ('survive', survive.Survive),
        ):
            argv = ['host1'] if command == 'drain' else ['--host', 'host1']
            out, _, status = explain.call(ask, command, *argv)
            self.assertEqual(3, status)
            out = ' '.join(out.split())
            self.assertIn(
                {
                    'drain': 'host1 will keep 1 server that you left out. 1 '
                    'of 1 other server can be moved.',
                    'survive': '1 server is lost with the host by your '
                    'choice.',
                }[command],
                out,
            )
            self.assertIn('left_out_flavors has its flavor amphora', out)
        plan = explain.ask(drain.Drain, 'drain', 'host1').plan
        self.assertEqual(['host1'], plan['not_empty_after'])
        self.assertEqual(
            [other['id']], [one['server'] for one in plan['moves']]
        )
        self.carry_out(plan)
        self.assertEqual('host1', self.host_of(left))
