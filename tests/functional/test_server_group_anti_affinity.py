#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""Anti-affinity with rules, from nova's API to the host.

nova's own filter is made to raise, and the scheduler prefers the host that
holds the group already: a pass proves that ours acted.
"""

import threading
from unittest import mock

import ddt
import fixtures
from nova import context as nova_context
from nova import utils
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.scheduler.filters import affinity_filter
from nova.tests.functional.api import client
from oslo_config import fixture as config_fixture
from oslo_serialization import jsonutils

from nova_ext_sched import exception
from nova_ext_sched import objects
from nova_ext_sched.filters import server_group_anti_affinity
from nova_ext_sched.simulator import fixtures as sim_fixtures
from tests.functional import base
from tests.functional import openstackclient


class AntiAffinityTestCase(base.CloudTestCase):
    """Two hosts, of which host1 is always the first choice."""

    weights = {'host1': 300, 'host2': 200, 'host3': 100}

    def setUp(self):
        super().setUp()
        self.useFixture(
            fixtures.MockPatchObject(
                affinity_filter._GroupAntiAffinityFilter,
                'host_passes',
                side_effect=AssertionError("nova's filter was called"),
            )
        )
        self.computes = {
            host: self.start_service('compute', host=host)
            for host in ('host1', 'host2')
        }

    def create_group(self, rules=None, policy='anti-affinity'):
        group = {'name': 'test', 'policy': policy}
        if rules is not None:
            group['rules'] = rules
        return self.api.post_server_groups(group)

    def post(self, group, **extra):
        server = {**self._build_server(networks='none'), **extra}
        return self.api.post_server(
            {'server': server, 'os:scheduler_hints': {'group': group['id']}}
        )

    def boot(self, group, expected='ACTIVE'):
        server = self._wait_for_state_change(self.post(group), expected)
        if expected == 'ERROR':
            self.assertIn('No valid host', server['fault']['message'])
        return server

    def hosts(self, *servers):
        return [
            self.api.get_server(server['id'])['OS-EXT-SRV-ATTR:host']
            for server in servers
        ]

    def store_rules(self, group, text):
        """Write the rules into the row that nova's API checked once."""
        self._store_rules(
            nova_context.get_admin_context(), group['id'], text
        )

    @staticmethod
    @api_db.context_manager.writer
    def _store_rules(context, uuid, text):
        row = (
            context.session.query(api_models.InstanceGroup)
            .filter_by(uuid=uuid)
            .one()
        )
        context.session.query(api_models.InstanceGroupPolicy).filter_by(
            group_id=row.id
        ).update({'rules': text})


class LimitTest(AntiAffinityTestCase):
    def test_ours_is_loaded_in_place_of_novas(self):
        enabled = self.scheduler_service.manager.host_manager.enabled_filters
        ours = [
            type(filter_)
            for filter_ in enabled
            if type(filter_).__name__ == 'ServerGroupAntiAffinityFilter'
        ]
        self.assertEqual(
            [server_group_anti_affinity.ServerGroupAntiAffinityFilter], ours
        )

    def test_six_servers_on_two_hosts_and_no_seventh(self):
        group = self.create_group({'max_server_per_host': 3})
        servers = [self.boot(group) for _ in range(6)]
        self.assertEqual(
            ['host1'] * 3 + ['host2'] * 3, self.hosts(*servers)
        )
        self.boot(group, expected='ERROR')

    def test_the_default_is_one(self):
        group = self.create_group()
        servers = [self.boot(group) for _ in range(2)]
        self.assertEqual(['host1', 'host2'], self.hosts(*servers))
        self.boot(group, expected='ERROR')

    def test_six_servers_in_one_request(self):
        group = self.create_group({'max_server_per_host': 3})
        self.post(group, min_count=6, max_count=6)
        servers = [
            self._wait_for_state_change(server, 'ACTIVE')
            for server in self.api.get_servers()
        ]
        self.assertEqual(
            ['host1'] * 3 + ['host2'] * 3, sorted(self.hosts(*servers))
        )

    def test_seven_servers_in_one_request_are_refused_together(self):
        group = self.create_group({'max_server_per_host': 3})
        self.post(group, min_count=7, max_count=7)
        servers = [
            self._wait_for_state_change(server, 'ERROR')
            for server in self.api.get_servers()
        ]
        self.assertEqual(7, len(servers))

    def test_delete_frees_a_place(self):
        group = self.create_group({'max_server_per_host': 1})
        first, _ = self.boot(group), self.boot(group)
        self.boot(group, expected='ERROR')
        self._delete_server(first)
        self.assertEqual(['host1'], self.hosts(self.boot(group)))

    def test_other_groups_and_policies_are_not_limited(self):
        for group in (
            self.create_group({'max_server_per_host': 1}),
            self.create_group({'max_server_per_host': 1}),
            self.create_group(policy='affinity'),
        ):
            self.assertEqual(['host1'], self.hosts(self.boot(group)))


class MoveTest(AntiAffinityTestCase):
    """host1 and host2 hold their limit; the scheduler prefers host2 to host3.

    A move off host1 must end on host3, and must fail while there is none.
    """

    def setUp(self):
        super().setUp()
        group = self.create_group({'max_server_per_host': 2})
        servers = [self.boot(group) for _ in range(4)]
        self.assertEqual(
            ['host1', 'host1', 'host2', 'host2'], self.hosts(*servers)
        )
        self.server = servers[0]

    def start_host3(self):
        self.start_service('compute', host='host3')

    def assert_no_host(self, action, body):
        self.api.post_server_action(self.server['id'], {action: body})
        self._assert_resize_migrate_action_fail(
            self.server, action, 'NoValidHost'
        )

    def test_cold_migrate(self):
        self.assert_no_host('migrate', None)
        self.start_host3()
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.assertEqual(['host3'], self.hosts(self.server))

    def test_resize(self):
        flavor = self._create_flavor(vcpu=2, memory_mb=512, disk=1)
        self.flags(allow_resize_to_same_host=False)
        self.assert_no_host('resize', {'flavorRef': flavor})
        self.start_host3()
        self._resize_server(self.server, flavor)
        self._confirm_resize(self.server)
        self.assertEqual(['host3'], self.hosts(self.server))

    def test_resize_stays_on_a_host_that_holds_the_limit(self):
        flavor = self._create_flavor(vcpu=2, memory_mb=512, disk=1)
        self.flags(allow_resize_to_same_host=True)
        self._resize_server(self.server, flavor)
        self._confirm_resize(self.server)
        self.assertEqual(['host1'], self.hosts(self.server))

    def test_live_migrate(self):
        self._live_migrate(self.server, migration_expected_state='error')
        self.assertEqual(['host1'], self.hosts(self.server))
        self.start_host3()
        self._live_migrate(self.server)
        self.assertEqual(['host3'], self.hosts(self.server))

    def test_evacuate(self):
        self.start_host3()
        self.computes['host1'].stop()
        self.api.put_service_force_down(
            self.computes['host1'].service_ref.uuid, True
        )
        self._evacuate_server(self.server, expected_host='host3')

    def test_unshelve(self):
        self._shelve_server(self.server)
        # Its place on host1 is taken meanwhile.
        group = self.api.get_server_groups()[0]
        self.assertEqual(['host1'], self.hosts(self.boot(group)))
        self.start_host3()
        self._unshelve_server(self.server)
        self.assertEqual(['host3'], self.hosts(self.server))

    def test_rebuild_stays_on_a_host_that_holds_the_limit(self):
        # From 2.100 on the answer has the hint of the group, which nova 31
        # takes for invalid.
        with utils.temporary_mutation(self.api, microversion='2.99'):
            self._rebuild_server(
                self.server, '155d900f-4e14-4e4c-a73d-069cbf4541e6'
            )
        self.assertEqual(['host1'], self.hosts(self.server))


class LateCheckTest(AntiAffinityTestCase):
    def setUp(self):
        # The scheduler then learns of instances from the database alone, so
        # it does not know what it has placed a moment ago: as if another
        # scheduler had.
        self.useFixture(config_fixture.Config(sim_fixtures.CONF)).config(
            group='filter_scheduler', track_instance_changes=False
        )
        super().setUp()

    def test_two_schedulers_race_for_the_last_place(self):
        chosen = []
        second_is_chosen = threading.Event()
        first_is_built = threading.Event()
        build = self.computes['host1'].manager._do_build_and_run_instance

        def hold(context, instance, *args, **kwargs):
            chosen.append(instance.uuid)
            if len(chosen) == 1:
                second_is_chosen.wait(30)
            else:
                second_is_chosen.set()
                first_is_built.wait(30)
            return build(context, instance, *args, **kwargs)

        group = self.create_group({'max_server_per_host': 1})
        with mock.patch.object(
            self.computes['host1'].manager,
            '_do_build_and_run_instance',
            side_effect=hold,
        ):
            first = self.post(group)
            self._wait_for_assert(
                lambda: self.assertEqual([first['id']], chosen)
            )
            second = self.post(group)
            first = self._wait_for_state_change(first, 'ACTIVE')
            self.assertEqual([first['id'], second['id']], chosen)
            first_is_built.set()
            second = self._wait_for_state_change(second, 'ACTIVE')
        self.assertEqual(['host1', 'host2'], self.hosts(first, second))


@ddt.ddt
class RulesInTheApiTest(AntiAffinityTestCase):
    microversion = '2.64'

    @ddt.data(
        {'policy': 'anti-affinity', 'rules': {'max_server_per_host': 0}},
        {'policy': 'anti-affinity', 'rules': {'max_server_per_host': '0'}},
        {'policy': 'anti-affinity', 'rules': {'max_server_per_host': -1}},
        {'policy': 'anti-affinity', 'rules': {'max_server_per_host': 'x'}},
        {'policy': 'anti-affinity', 'rules': {'max_server_per_host': 1.5}},
        {'policy': 'anti-affinity', 'rules': {'max_server_per_host': True}},
        {'policy': 'anti-affinity', 'rules': {'max_server_per_host': None}},
        {'policy': 'anti-affinity', 'rules': {'max_server_per_rack': 2}},
        {'policy': 'anti-affinity', 'rules': [2]},
        {'policy': 'affinity', 'rules': {'max_server_per_host': 2}},
        {'policy': 'legacy'},
        {'rules': {'max_server_per_host': 2}},
    )
    def test_bad(self, policy):
        group = {'name': 'test', **policy}
        error = self.assertRaises(
            client.OpenStackApiException, self.api.post_server_groups, group
        )
        self.assertEqual(400, error.response.status_code)
        self.assertRaises(
            exception.InvalidValue,
            objects.InstanceGroupPolicy.from_nova_body,
            {'server_group': group},
        )

    @ddt.data(
        ({'policy': 'anti-affinity'}, {}),
        ({'policy': 'anti-affinity', 'rules': {}}, {}),
        (
            {'policy': 'anti-affinity', 'rules': {'max_server_per_host': 3}},
            {'max_server_per_host': 3},
        ),
        (
            {'policy': 'anti-affinity', 'rules': {'max_server_per_host': '3'}},
            {'max_server_per_host': 3},
        ),
        ({'policy': 'affinity', 'rules': {}}, {}),
    )
    @ddt.unpack
    def test_good(self, policy, rules):
        body = {'server_group': {'name': 'test', **policy}}
        created = self.api.post_server_groups(body['server_group'])
        shown = self.api.get_server_group(created['id'])
        (listed,) = self.api.get_server_groups()
        ours = objects.InstanceGroupPolicy.from_nova_body(body)
        for answer in (created, shown, listed):
            self.assertEqual(policy['policy'], answer['policy'])
            self.assertEqual(rules, answer['rules'])
            self.assertNotIn('metadata', answer)
            self.assertEqual(
                ours.to_nova_body('test')['server_group'],
                {key: answer[key] for key in ('name', 'policy', 'rules')},
            )

    def test_notifications_carry_policy_and_rules(self):
        group = self.create_group({'max_server_per_host': 3})
        self.boot(group)
        self.api.delete_server_group(group['id'])
        for event in ('create', 'add_member', 'delete'):
            (notification,) = self.notifier.wait_for_versioned_notifications(
                f'server_group.{event}'
            )
            data = notification['payload']['nova_object.data']
            self.assertEqual('anti-affinity', data['policy'])
            self.assertEqual({'max_server_per_host': '3'}, data['rules'])


class OpenStackClientTest(AntiAffinityTestCase):
    microversion = '2.64'

    def test_the_commands_of_the_documentation(self):
        osc = self.useFixture(
            openstackclient.OpenStackClient(self.api_fixture.base_url)
        )
        created = osc.json(
            *'server group create --policy anti-affinity'.split(),
            *'--rule max_server_per_host=3 web'.split(),
        )
        self.assertEqual('anti-affinity', created['policy'])
        self.assertEqual({'max_server_per_host': 3}, created['rules'])
        shown = osc.json('server', 'group', 'show', 'web')
        self.assertEqual({'max_server_per_host': 3}, shown['rules'])
        servers = [self.boot(created) for _ in range(4)]
        self.assertEqual(
            ['host1', 'host1', 'host1', 'host2'], self.hosts(*servers)
        )

    def test_a_bad_rule_is_refused(self):
        osc = self.useFixture(
            openstackclient.OpenStackClient(self.api_fixture.base_url)
        )
        status, output = osc.run(
            *'server group create --policy anti-affinity'.split(),
            *'--rule max_server_per_host=0 web'.split(),
        )
        self.assertEqual(1, status)
        self.assertIn('400', output)


class OldRowTest(AntiAffinityTestCase):
    """Rules that stand in the database in a form that the API refuses."""

    def test_a_limit_that_is_no_number(self):
        group = self.create_group({'max_server_per_host': 2})
        server = self.boot(group)
        # nova's versioned notifications raise on such a limit before any
        # filter is asked; unversioned is its default.
        self.flags(notification_format='unversioned', group='notifications')
        self.store_rules(group, jsonutils.dumps({'max_server_per_host': 'x'}))
        self.api.post_server_action(server['id'], {'migrate': None})
        self._assert_resize_migrate_action_fail(
            server, 'migrate', 'NoValidHost'
        )
        self.assert_warned_once(group)

    def test_a_rule_that_does_not_exist(self):
        group = self.create_group()
        self.store_rules(group, jsonutils.dumps({'max_server_per_rack': '2'}))
        self.boot(group, expected='ERROR')
        self.boot(group, expected='ERROR')
        self.assert_warned_once(group)

    def assert_warned_once(self, group):
        warning = (
            f'ServerGroupAntiAffinityFilter rejects every host for server '
            f'group {group["id"]}'
        )
        self.assertEqual(1, self.stdlog.logger.output.count(warning))
