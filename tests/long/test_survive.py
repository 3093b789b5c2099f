# SPDX-License-Identifier: Apache-2.0

"""How many servers may come; failures in cells, and of hosts with devices."""

import contextlib
import csv
import io
from unittest import mock

import ddt
import fixtures
from nova import context
from nova import objects
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional.api import client
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_ext_sched.cmd import drain
from nova_ext_sched.cmd import survive
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import server as explain_server
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import spare
from nova_ext_sched.dryrun.plan import stuck
from tests.functional import audits
from tests.functional import capacity
from tests.functional import explain
from tests.functional import explain_driver
from tests.functional import keystone
from tests.functional import plans
from tests.functional import test_survive


class OperationsTestCase(test_survive.SurviveTestCase):
    weigher_classes = ('nova.scheduler.weights.io_ops.IoOpsWeigher',)

    def test_operations_of_evacuations_do_not_count(self):
        """nova-compute reports builds until its periodic task, and no more."""
        for host in ('host1', 'host1', 'host1', 'host2'):
            self.boot(az=f'nova:{host}')
        self.computes['host2'].manager.update_available_resource(
            context.get_admin_context()
        )
        self.assertFailure('host1', '--host', 'host1', moves=['host2'] * 3)


@ddt.ddt
class UnitsTestCase(capacity.TruthMixin, test_survive.SurviveTestCase):
    """Servers that hold more than their host gives to one any more."""

    def setUp(self):
        super().setUp()
        self.large = self.boot(flavor=self.flavor(vcpu=3), az='nova:host1')
        self.small = self.boot(az='nova:host1')
        self.limit('host1', 'VCPU', max_unit=2)

    def explain(self, server, operation):
        """Return how explain ends, its order and what refuses the request."""
        said = explain.run(
            *('--server', server['id'], '--operation', operation),
            *('-f', 'json'),
        )
        end = said.rows[-1]
        return said.status, said.order[:1], (end['stage'], end['constraint'])

    def test_nova_evacuates_none(self):
        self.assertEqual(
            (3, [], ('placement', 'VCPU')),
            self.explain(self.large, 'evacuate'),
        )
        self.assertEqual(
            (0, ['host2']), self.explain(self.small, 'evacuate')[:2]
        )
        self.assertFailure(
            'host1', '--host', 'host1', moves=['host2'], stuck=[('VCPU', '')]
        )

    @ddt.data('live', 'cold')
    def test_nova_moves_none(self, kind):
        action = {
            'os-migrateLive': {'host': 'host2', 'block_migration': 'auto'}
        }
        if kind == 'cold':
            action = {'migrate': {'host': 'host2'}}
            for one in (self.large, self.small):
                self.api.post_server_action(one['id'], {'os-stop': None})
                self._wait_for_state_change(one, 'SHUTOFF')
        operation = {'live': 'live-migrate', 'cold': 'migrate'}[kind]
        self.assertEqual(
            (3, [], ('conductor', 'VCPU')),
            self.explain(self.large, operation),
        )
        self.assertEqual(
            (0, ['host2']), self.explain(self.small, operation)[:2]
        )
        plan = self.plan('host1', by=drain.Drain)
        self.assertEqual(
            [(self.small['id'], kind)],
            [(one['server'], one['method']) for one in plan['moves']],
        )
        [stuck] = plan['without_place']
        self.assertEqual(
            (self.large['id'], 'VCPU'), (stuck['server'], stuck['cause'])
        )
        self.assertIn('it holds 3 of VCPU', stuck['reason'])
        self.carry_out(plan)
        # Where conductor is called in place of cast, nova-api says so.
        with contextlib.suppress(client.OpenStackApiException):
            self.admin_api.post_server_action(self.large['id'], action)
        self._wait_for_server_parameter(
            self.large, {'OS-EXT-STS:task_state': None}
        )
        self.assertEqual('host1', self.host_of(self.large))


class StatesTestCase(test_survive.SurviveTestCase):
    weights = {'host1': 200, 'host2': 100}

    def test_whether_there_would_be_room_otherwise(self):
        """In the order that is said; nova agrees once the state is set."""
        self.boot(flavor=self.flavor(vcpu=4), az='nova:host1')
        paused = [
            self.boot(flavor=self.flavor(vcpu=number), az='nova:host1')
            for number in (2, 3)
        ]
        for one in paused:
            self.admin_api.post_server_action(one['id'], {'pause': None})
            self._wait_for_state_change(one, 'PAUSED')
        self.assertEqual(0, self.count_bad(self.survive()))
        self.boot(flavor=self.flavor(vcpu=2), az='nova:host2')
        document = self.survive()
        # host1 has no room for that one either.
        self.assertEqual(2, self.count_bad(document))
        failure = document['failures'][0]
        # The large one first; there is no room for the other.
        self.assertEqual(
            [
                (paused[1]['id'], 'state', ''),
                (paused[0]['id'], 'state', 'VCPU'),
            ],
            [
                (one['server'], one['cause'], one['cause_then'])
                for one in failure['without_place']
            ],
        )
        self.fail_hosts(failure)
        for one, host in zip(paused[::-1], ('host2', 'host1'), strict=True):
            self.reset_state(one, 'active')
            with contextlib.suppress(client.OpenStackApiException):
                self.evacuate(one['id'])
            self._wait_for_server_parameter(
                one, {'OS-EXT-STS:task_state': None}
            )
            self.assertEqual(host, self.host_of(one))

    def count_bad(self, document):
        self.assertIn(
            'nova would not evacuate 2 servers in their state.',
            document['answer']['sentence'],
        )
        return sum(
            any(
                one['cause'] != 'state' or one['cause_then']
                for one in failure['without_place']
            )
            for failure in document['failures']
        )


class ConductorTestCase(test_survive.SurviveTestCase):
    """nova-conductor refuses servers of a group that no filter obeys."""

    weights = {'host1': 200, 'host2': 100}

    def test_a_group_without_its_filter(self):
        hints = self.group()
        member, paused = (
            self.boot(hints=hints, az=f'nova:{host}') for host in self.weights
        )
        self.boot(az='nova:host1')
        self.admin_api.post_server_action(paused['id'], {'pause': None})
        self._wait_for_state_change(paused, 'PAUSED')
        # As nova finds it once in each process.
        for name, value in (
            ('AFFINITY', False),
            ('ANTI_AFFINITY', None),
            ('SOFT_AFFINITY', True),
            ('SOFT_ANTI_AFFINITY', True),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova.scheduler.utils._SUPPORTS_{name}', value
                )
            )
        option = 'filter_scheduler.enabled_filters=ComputeFilter'
        first, second = self.survive('--option', option)['failures']
        self.assertEqual(['host2'], [one['to'] for one in first['moves']])
        [stuck], [then] = (one['without_place'] for one in (first, second))
        self.assertEqual(
            (
                member['id'],
                'server group',
                'server group ends the request: ServerGroup policy is not '
                'supported: ServerGroupAntiAffinityFilter not configured',
            ),
            (stuck['server'], stuck['cause'], stuck['reason']),
        )
        self.assertEqual(
            (paused['id'], 'state', 'server group'),
            (then['server'], then['cause'], then['cause_then']),
        )


class FlavorTestCase(test_survive.SurviveTestCase):
    """How many more servers may come: as many come, and perhaps one more."""

    def assertSpare(self, spare, fit, failure, flavor, *argv, more=1):
        """Let servers come and a host fail, and nova evacuate it.

        :param flavor: the ID of the new servers' flavor
        :param more: how many come that are not to come
        """
        self.assertEqual(
            (spare, fit, failure), self.count_spare(flavor, *argv)
        )
        for _ in range(spare):
            self.boot(flavor=flavor)
        # No failure is worse than before.
        self.assertEqual(0, self.find_most_stuck(self.survive(*argv)))
        for _ in range(more):
            self.boot(flavor=flavor)
        document = self.survive(*argv)
        self.assertEqual(more, self.find_most_stuck(document))
        [failed] = [
            one for one in document['failures'] if one['failure'] == failure
        ]
        self.assertEqual(more, len(failed['without_place']))
        self.fail_hosts(failed)

    def find_most_stuck(self, document):
        return max(len(one['without_place']) for one in document['failures'])

    def test_no_more_than_may_come(self):
        for number, host in ((4, 'host1'), (3, 'host2'), (6, 'host3')):
            self.boot(flavor=self.flavor(vcpu=number), az=f'nova:{host}')
        # Two on host1, two on host2, one on host3; then host4 gets one.
        self.assertSpare(5, 8, 'host1', self.flavor(vcpu=3), more=0)

    def test_a_project(self):
        """As many as nova makes for it; for no project why there is none."""
        mine = self.api.project_id
        self.useFixture(keystone.Projects(mine))
        reservation = {'reservation:gpu': 'true'}
        self.aggregate(
            'gpu',
            ['host1', 'host2'],
            metadata={**reservation, 'filter_tenant_id': mine},
        )
        flavor = self.flavor(vcpu=4, specs=reservation)
        self.assertEqual(
            (2, 4, 'host1'), self.count_spare(flavor, project=mine)
        )
        [none] = self.survive('--flavor', flavor)['flavors']
        self.assertEqual(0, none['fit'])
        self.assertEqual('reservation', none['cause'])
        for part in (
            'reserved_aggregates of nova_ext_sched ends the request: ',
            'No project was given (--project), and the reservation depends '
            'on it: aggregate gpu has filter_tenant_id',
        ):
            self.assertIn(part, none['reason'])
        out, _, _ = explain.call(
            survive.Survive, 'survive', '--flavor', flavor, '-f', 'csv'
        )
        [row] = csv.DictReader(io.StringIO(out))
        self.assertEqual(
            ('0', '0', 'reservation'),
            tuple(map(row.get, ('Fit', 'Spare', 'Cause'))),
        )
        for _ in range(4):
            self.boot(flavor=flavor)
        self.assertEqual((0, 0, ''), self.count_spare(flavor, project=mine))

    def test_a_group_whose_rule_is_just_met(self):
        hints = self.group(limit=2)
        member = self.flavor(vcpu=3)
        for host in (*self.weights, 'host1'):
            self.boot(flavor=member, hints=hints, az=f'nova:{host}')
        for number, host in ((6, 'host2'), (4, 'host3')):
            self.boot(flavor=self.flavor(vcpu=number), az=f'nova:{host}')
        # Two on host1; the next takes the room on host3, and host4 may have
        # one of the group alone.
        self.assertSpare(2, 6, 'host1', self.flavor(vcpu=2))

    def test_a_rack(self):
        self.racks()
        self.boot(flavor=self.flavor(vcpu=3), az='nova:host1')
        self.boot(flavor=self.flavor(vcpu=8), az='nova:host4')
        # Two on host1; the next takes the room on host2.
        self.assertSpare(
            2, 8, 'rack1', self.flavor(vcpu=3), '--lose', 'domain'
        )


class CellsTestCase(test_survive.EvacuationMixin, plans.PlanTestCase):
    NUMBER_OF_CELLS = 2
    weights = {'host1': 200, 'host2': 100, 'host3': 20, 'host4': 10}
    cells = {'host3': 'cell2', 'host4': 'cell2'}

    def test_more_servers_stay_in_their_cell_too(self):
        # Two on host1; the next takes the room of one of them on host2.
        flavor = self.flavor(vcpu=5)
        self.assertEqual((2, 8, 'host1'), self.count_spare(flavor))
        for most, expected in (
            (2, (2, 2, True, '')),
            (3, (2, 3, True, 'host1')),
        ):
            with mock.patch.object(spare, '_MOST', most):
                [found] = self.survive('--flavor', flavor)['flavors']
            self.assertEqual(
                expected,
                tuple(map(found.get, ('spare', 'fit', 'or_more', 'failure'))),
            )


class NovaApiTestCase(test_survive.SurviveTestCase):
    """nova-api's answer for one server is not that for others like it."""

    weights = {'host1': 300, 'host2': 200, 'host3': 100}

    def find_refused(self, cause='never evacuated'):
        """Return the servers that nova-api would not evacuate, it is said."""
        return [
            one['server']
            for failure in self.survive()['failures']
            for one in failure['without_place']
            if one['cause'] == cause
        ]

    def test_a_share_and_a_device(self):
        """nova-api evacuates no server that has a share or a vTPM."""
        servers = [self.boot(host='host1')['id'] for _ in range(2)]
        for one in servers:
            self.set_image(one, hw_tpm_version='2.0', hw_tpm_model='tpm-crb')
            self.assertEqual([one], self.find_refused())
            self.set_image(one)
            self.share(one)
            self.assertEqual([one], self.find_refused())
            if one == servers[-1]:
                self.assertFailure(
                    'host1', stuck=[('never evacuated', '')], moves=['host2']
                )
            self.unshare(one)

    def share(self, server):
        """Let a server have a share, as if Manila had given it."""
        ctxt = context.get_admin_context()
        with context.target_cell(ctxt, self.cell_mappings['cell1']) as cctxt:
            objects.ShareMapping(
                cctxt,
                uuid=uuidutils.generate_uuid(),
                instance_uuid=server,
                share_id=uuidutils.generate_uuid(),
                status='inactive',
                tag='share',
                export_location='nfs:/share',
                share_proto='NFS',
            ).create()

    def unshare(self, server):
        ctxt = context.get_admin_context()
        with context.target_cell(ctxt, self.cell_mappings['cell1']) as cctxt:
            found = objects.share_mapping.ShareMappingList
            for one in found.get_by_instance_uuid(cctxt, server):
                one.delete()

    def test_a_service_without_a_record(self):
        """nova-api does not know whether the host is down."""
        hosts = ('host1', 'host2')
        servers = [self.boot(host=host)['id'] for host in hosts]
        for host in hosts:
            self.lose(host)
        for host, server in zip(hosts, servers, strict=True):
            self.mark_deleted(host, 'id')
            self.assertEqual([server], self.find_refused('state'))
            if host == hosts[0]:
                self.mark_deleted(host, '0')
        self.assertRaises(
            client.OpenStackApiException, self.evacuate, servers[1]
        )
        self.evacuate(servers[0])
        self._wait_for_server_parameter(
            {'id': servers[0]},
            {
                'OS-EXT-SRV-ATTR:host': 'host3',
                'OS-EXT-STS:task_state': None,
            },
        )

    def mark_deleted(self, host, value):
        with self.cell_engine().begin() as connection:
            connection.execute(
                sa.text(
                    f'UPDATE services SET deleted = {value} WHERE host = :host'
                ),
                {'host': host},
            )


class DeletedTestCase(test_survive.SurviveTestCase):
    """Servers that are deleted while hosts fail."""

    weights = {'host1': 300, 'host2': 200}

    def setUp(self):
        super().setUp()
        network = nova_fixtures.NeutronFixture.network_1['id']
        self.networks = [{'uuid': network}]

    def test_at_any_moment(self):
        """Servers that are like one that is gone are judged as before."""
        alike = [self.boot_alike() for _ in range(3)]
        for target, name, archives in (
            (admission, 'ask', True),
            (explain_server.Server, '__init__', False),
            (destinations.Destinations, 'make_shared', False),
            (planner, 'compare_groups', False),
        ):
            first, *others = sorted(alike, key=lambda one: one['id'])
            with self.deleting(first, target, name, archives):
                document = self.survive('--host', 'host1')
            self.assertDeleted([first], document)
            [failure] = document['failures']
            self.assertEqual([], failure['without_place'])
            self.assertEqual(
                [one['id'] for one in others],
                sorted(one['server'] for one in failure['moves']),
            )
            alike = [*others, self.boot_alike()]
        alike = self.has_no_place(*sorted(alike, key=lambda one: one['id']))
        self.is_being_deleted(*alike)
        self.more_that_may_come()

    def boot_alike(self):
        return self.boot(az='nova:host1', networks=self.networks)

    def has_no_place(self, deleted, *others):
        """Why is asked of a server that is there."""
        self.isolate('windows', ['host2'], 'CUSTOM_WINDOWS')
        with self.deleting(deleted, stuck.StuckExplainer, '_explain'):
            document = self.survive('--host', 'host1')
        self.set_metadata('windows', {'trait:CUSTOM_WINDOWS': None})
        self.assertDeleted([deleted], document)
        self.assertEqual(
            dict.fromkeys((one['id'] for one in others), 'isolation'),
            {
                one['server']: one['cause']
                for one in document['failures'][0]['without_place']
            },
        )
        return others

    def is_being_deleted(self, server, other):
        """It takes no place from others, where its host has others."""
        large = self.boot(az='nova:host1', flavor=self.flavor(vcpu=8))
        beside = self.boot(az='nova:host2', flavor=self.flavor(vcpu=2))
        for one, step, left in (
            # It has its room yet.
            (large, '_cleanup_volumes', {'host1': 2, 'host2': 0}),
            (server, '_complete_deletion', {'host1': 1, 'host2': 1}),
            (other, '_complete_deletion', {'host2': 1}),
        ):
            document = self.while_deleting(one, step, self.survive)
            self.assertDeleted([one], document)
            self.assertEqual(
                left,
                {
                    failure['failure']: len(failure['moves'])
                    for failure in document['failures']
                },
            )
        self._delete_server(beside)

    def more_that_may_come(self):
        """As many as with the server that is gone."""
        flavor = self.flavor(vcpu=2)
        hints = self.group(limit=9)
        for target, name in (
            (explain_server.Server, '__init__'),
            # Its request, which no other is like, is judged once more.
            (spare.Spare, 'check'),
        ):
            server = self.boot(
                az='nova:host1', networks=self.networks, hints=hints
            )
            [expected] = self.survive('--flavor', flavor)['flavors']
            with self.deleting(server, target, name):
                [found] = self.survive('--flavor', flavor)['flavors']
            for key in ('fit', 'spare'):
                self.assertEqual(expected[key], found[key])


class LikeDevicesTestCase(test_survive.SurviveTestCase):
    """nova numbers each request of a PCI device."""

    driver = explain_driver.Driver
    host_filters = (
        *test_survive.SurviveTestCase.host_filters,
        'PciPassthroughFilter',
    )
    weights = {'host3': 30, 'host4': 20, 'host5': 10}

    def setUp(self):
        explain_driver.name_devices(self)
        super().setUp()

    def test_servers_with_devices_are_judged_once(self):
        flavor = self.flavor(specs={'pci_passthrough:alias': 'nic:1'})
        for _ in range(2):
            self.boot(flavor=flavor)
        with test_survive.counting() as judged:
            [failure] = self.survive()['failures']
        self.assertEqual(1, len(judged))
        self.assertEqual(
            ['host4', 'host4'], [one['to'] for one in failure['moves']]
        )
        self.fail_hosts(failure)


class SituationsTestCase(test_survive.SurviveTestCase):
    def test_policies_and_states(self):
        """Servers boot while no policy is on."""
        self.flags(
            group='nova_ext_sched',
            enable_isolated_aggregate_filtering=False,
            placement_req_required_member_prefix=[],
            placement_req_default_forbidden_member_prefix=[],
        )
        licensed = {'trait:CUSTOM_WINDOWS': 'required'}
        leased = {'reservation:lease': 'true'}
        hints = self.group(limit=1)
        for host in ('host1', 'host3'):
            self.add_traits(host, 'CUSTOM_WINDOWS')
        large, small = (
            self.flavor(vcpu=2, specs=licensed),
            self.flavor(vcpu=1, specs=leased),
        )
        for flavor, host in (
            *((large, 'host1'), (large, 'host1')),
            *((small, 'host1'), (small, 'host1')),
            (self.flavor(vcpu=8, specs=leased), 'host2'),
            (self.flavor(vcpu=8, specs=licensed), 'host3'),
        ):
            self.boot(flavor=flavor, az=f'nova:{host}')
        for host in ('host1', 'host2', 'host4'):
            self.boot(hints=hints, az=f'nova:{host}')
        paused, failed = (self.boot(az='nova:host1') for _ in range(2))
        self.admin_api.post_server_action(paused['id'], {'pause': None})
        self._wait_for_state_change(paused, 'PAUSED')
        self.reset_state(failed, 'error')
        self.flags(group='nova_ext_sched', **audits.AuditTestCase.options)
        self.isolate('windows', ['host1', 'host3'], 'CUSTOM_WINDOWS')
        self.aggregate('lease', ['host1', 'host2'], metadata=leased)
        document = self.assertFailure(
            'host1',
            stuck=[
                # A member of the group, for which host4 is full.
                ('anti-affinity', ''),
                ('trait CUSTOM_WINDOWS', ''),
                # host2 is full; the others are not of its lease.
                ('reservation', ''),
                ('state', ''),
            ],
        )
        [failure] = [
            one for one in document['failures'] if one['failure'] == 'host1'
        ]
        self.assertEqual(
            ['host2', 'host3', 'host4'],
            sorted(one['to'] for one in failure['moves']),
        )

    def test_what_is_left_for_the_last(self):
        """Counted when those before it have gone."""
        for vcpu, host in (
            *((1, 'host1'), (4, 'host2'), (1, 'host2')),
            *((9, 'host3'), (4, 'host4'), (6, 'host4')),
        ):
            self.boot(flavor=self.flavor(vcpu=vcpu), az=f'nova:{host}')
        found = {
            one['failure']: one['room_for_last']
            for one in self.survive()['failures']
        }
        self.assertEqual(
            {
                'host1': 2,
                # The server of 4 CPUs has gone to host1, which has room still.
                'host2': 2,
                'host3': 1,
                # That of 6 has taken the room on host1.
                'host4': 1,
            },
            found,
        )
