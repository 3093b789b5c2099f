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

"""Reserved aggregates, through nova's API to the host.

The first host of ``weights`` is the one that the scheduler prefers, and the
wrong one nearly everywhere.
"""

from unittest import mock

import ddt
import fixtures
from nova import context
from nova import exception as nova_exception
from nova import objects
import nova.conf
from nova.tests.fixtures import cinder as cinder_fixture
from nova.tests.functional import integrated_helpers
from oslo_config import cfg
from oslo_config import fixture as config_fixture
import sqlalchemy as sa

from nova_ext_sched import aggregates
from tests.functional import base

CONF = nova.conf.CONF

OTHER_PROJECT = 'f00d' * 8
WINDOWS = 'CUSTOM_LICENSED_WINDOWS'


class ReservationTestCase(base.CloudTestCase):
    host_filters = ('IsolatedAggregatesFilter',)
    options = {
        'placement_req_required_member_prefix': ['reservation:'],
        'placement_req_default_forbidden_member_prefix': ['reservation:'],
    }
    weights = {'reserved': 100, 'other': 50, 'plain': 1}

    def reserve(self, name, hosts, *ids, **metadata):
        """Create an aggregate that is reserved by these IDs."""
        metadata.update({f'reservation:{i}': 'true' for i in ids or [name]})
        return self.aggregate(name, hosts, metadata=metadata)

    def consuming(self, *ids):
        """Create a flavor that demands these reservations."""
        return self.flavor(specs={f'reservation:{i}': 'true' for i in ids})

    def member_of(self, query=-1):
        """Return the membership of one query: a set of sets and a set."""
        required, forbidden = [], []
        for value in self.queries[query].get('member_of', []):
            if value.startswith('!in:'):
                forbidden.append(set(value.removeprefix('!in:').split(',')))
            else:
                required.append(set(value.removeprefix('in:').split(',')))
        self.assertLessEqual(len(forbidden), 1)
        return required, forbidden[0] if forbidden else set()

    def rebuild(self, server, image, expected_state):
        self.api.post_server_action(
            server['id'], {'rebuild': {'imageRef': image}}
        )
        return self._wait_for_state_change(server, expected_state)


class SpecificationTestCase(ReservationTestCase):
    """Steps 0 to 4 of the specification's "Developer impact"."""

    weights = {'host1': 100, 'host2': 50, 'host3': 1}

    def test_steps(self):
        # 0. The operator sets both prefixes: the options of this class.
        # 1. The reservation service makes its pool of free hosts.
        pool = self.reserve('freepool', ['host1', 'host2'])
        self.assertBootsOn('host3')
        self.assertEqual(([], {pool}), self.member_of())

        # 2. A reservation takes a host of the pool.
        self.admin_api.remove_host_from_aggregate(
            self.aggregate_ids['freepool'], 'host2'
        )
        reserved = self.reserve('mine', ['host2'])

        # 3. A server with the reservation.
        self.assertBootsOn('host2', flavor=self.consuming('mine'))
        self.assertEqual(([{reserved}], set()), self.member_of())

        # 4. A server without.
        self.assertBootsOn('host3')
        self.assertEqual(([], {pool, reserved}), self.member_of())


@ddt.ddt
class FlavorTestCase(ReservationTestCase):
    def test_only_its_own(self):
        self.reserve('a', ['reserved'])
        self.reserve('b', ['other'])
        self.assertBootsOn('other', flavor=self.consuming('b'))
        self.assertBootsOn('reserved', flavor=self.consuming('a'))
        self.assertBootsOn('plain')

    def test_off_by_default(self):
        for name in self.options:
            self.flags(group='nova_ext_sched', **{name: []})
        self.reserve('a', ['reserved'])
        self.assertBootsOn('reserved')

    def test_full_reservation_does_not_spill(self):
        self.reserve('a', [])
        self.assertNoValidHost(flavor=self.consuming('a'))

    def test_id_that_no_aggregate_has(self):
        self.reserve('gone-2', ['reserved'])
        server = self.assertNoValidHost(flavor=self.consuming('gone'))
        self.assertEqual([], self.queries)
        self.assertIn(
            f'no aggregate that project {self.api.project_id} may use has '
            'the metadata key reservation:gone',
            server['fault']['message'],
        )
        self.assertIn(
            'no aggregate has the metadata key reservation:gone, which the '
            f'request of project {self.api.project_id} requires',
            self.log,
        )

    def test_case_of_the_id_counts(self):
        self.reserve('MINE', ['reserved'])
        self.assertNoValidHost(flavor=self.consuming('mine'))

    def test_two_keys_are_anded(self):
        a = self.reserve('a', ['reserved', 'plain'])
        b = self.reserve('b', ['other', 'plain'])
        self.assertBootsOn('plain', flavor=self.consuming('a', 'b'))
        required, forbidden = self.member_of()
        self.assertCountEqual([{a}, {b}], required)
        self.assertEqual(set(), forbidden)

    def test_one_key_on_two_aggregates_is_ored(self):
        rack1 = self.reserve('rack1', ['other'], 'a')
        rack2 = self.reserve('rack2', ['plain'], 'a')
        self.reserve('b', ['reserved'])
        flavor = self.consuming('a')
        server = self.assertBootsOn('other', flavor=flavor)
        self.assertEqual(([{rack1, rack2}], set()), self.member_of())
        self._migrate_server(server)
        self.assertEqual('plain', self.host_of(server))

    @ddt.data(('az', 'nova:{}'), ('host', '{}'))
    @ddt.unpack
    def test_forced_and_requested_hosts(self, name, form):
        """An administrator's choice opens no reserved host."""
        self.reserve('a', ['reserved'])
        self.reserve('b', ['other'])
        for flavor, allowed in (
            (self.flavor(), 'plain'),
            (self.consuming('a'), 'reserved'),
        ):
            for host in self.weights:
                choice = {name: form.format(host)}
                if host == allowed:
                    self.assertBootsOn(host, flavor=flavor, **choice)
                else:
                    self.assertNoValidHost(flavor=flavor, **choice)


class ProjectTestCase(ReservationTestCase):
    options = {
        **ReservationTestCase.options,
        'member_project_keys': ['filter_tenant_id', 'blazar:owner'],
    }

    def test_another_project(self):
        self.reserve('a', ['reserved'], filter_tenant_id=OTHER_PROJECT)
        server = self.assertNoValidHost(flavor=self.consuming('a'))
        self.assertEqual([], self.queries)
        mine = self.api.project_id
        self.assertIn(
            f'project {mine} may not use reservation:a: aggregate a has '
            f'filter_tenant_id={OTHER_PROJECT}',
            self.log,
        )
        # What the user reads tells nothing of the other project.
        self.assertIn(
            f'no aggregate that project {mine} may use has the metadata key '
            'reservation:a',
            server['fault']['message'],
        )
        self.assertNotIn(OTHER_PROJECT, server['fault']['message'])

    def test_own_project(self):
        mine = self.api.project_id
        flavor = self.consuming('a')
        self.reserve('a', ['other'], filter_tenant_id=mine)
        for metadata in (
            {'filter_tenant_id': f'{OTHER_PROJECT}, {mine}'},
            {'filter_tenant_id': OTHER_PROJECT, 'filter_tenant_id2': mine},
            {'filter_tenant_id': None, 'filter_tenant_id2': None},
            {'blazar:owner': mine},
        ):
            self.set_metadata('a', metadata)
            self.assertBootsOn('other', flavor=flavor)
        self.set_metadata('a', {'blazar:owner': OTHER_PROJECT})
        self.assertNoValidHost(flavor=flavor)

    def test_aggregates_of_others_drop_out(self):
        self.reserve('x', ['reserved'], 'a', filter_tenant_id=OTHER_PROJECT)
        mine = self.reserve(
            'y', ['other'], 'a', filter_tenant_id=self.api.project_id
        )
        self.assertBootsOn('other', flavor=self.consuming('a'))
        self.assertEqual(([{mine}], set()), self.member_of())


class TogetherTestCase(ReservationTestCase):
    """With zone, tenant isolation and trait isolation, all at once."""

    options = {
        **ReservationTestCase.options,
        'enable_isolated_aggregate_filtering': True,
    }
    weights = {'h1': 100, 'h2': 90, 'h3': 80, 'h4': 70, 'h5': 1}

    def setUp(self):
        self.flags(
            limit_tenants_to_placement_aggregate=True, group='scheduler'
        )
        super().setUp()

    def test_each_constraint_once(self):
        windows = self.isolate('windows', ['h1'], WINDOWS)
        tenant = self.aggregate(
            'tenant',
            ['h1', 'h3', 'h4', 'h5'],
            filter_tenant_id=self.api.project_id,
        )
        zone = self.aggregate('zone', ['h1', 'h2', 'h4', 'h5'], zone='az1')
        a = self.reserve('a', ['h1', 'h2', 'h3', 'h5'])
        b = self.reserve('b', ['h4'])

        self.assertBootsOn('h5', flavor=self.consuming('a'), az='az1')
        required, forbidden = self.member_of()
        self.assertCountEqual([{tenant}, {zone}, {a}], required)
        self.assertEqual({windows}, forbidden)

        self.assertNoValidHost(az='az1')
        required, forbidden = self.member_of()
        self.assertCountEqual([{tenant}, {zone}], required)
        self.assertEqual({windows, a, b}, forbidden)

        self.add_traits('h5', WINDOWS)
        self.assertBootsOn(
            'h1',
            az='az1',
            flavor=self.consuming('a'),
            image=self.image(props={f'trait:{WINDOWS}': 'required'}),
        )

    def test_one_aggregate_is_zone_and_reservation(self):
        uuid = self.aggregate(
            'a', ['h5'], zone='az1', metadata={'reservation:a': '1'}
        )
        self.aggregate(
            'tenant',
            ['h4'],
            zone='az2',
            filter_tenant_id=OTHER_PROJECT,
        )
        self.assertBootsOn('h5', flavor=self.consuming('a'), az='az1')
        self.assertEqual(([{uuid}], set()), self.member_of())

    def test_on_both_sides(self):
        """Required by its key, forbidden by its trait: no host."""
        self.isolate('a', ['h1'], WINDOWS)
        self.set_metadata('a', {'reservation:a': '1'})
        server = self.assertNoValidHost(flavor=self.consuming('a'))
        uuid = self._aggregate_uuid('a')
        self.assertEqual(([{uuid}], {uuid}), self.member_of())
        self.assertEqual('ERROR', server['status'])

    def _aggregate_uuid(self, name):
        (uuid,) = [
            agg['uuid']
            for agg in self.admin_api.api_get('/os-aggregates').body[
                'aggregates'
            ]
            if agg['name'] == name
        ]
        return uuid

    def test_one_select(self):
        self.isolate('windows', ['h1'], WINDOWS)
        self.reserve('a', ['h2'])
        statements = []
        engine = aggregates.api_db.context_manager.writer.get_engine()

        @sa.event.listens_for(engine, 'before_cursor_execute')
        def record(conn, cursor, statement, parameters, context, many):
            # Ours take names and keys of the metadata and no hosts.
            if statement.startswith('SELECT aggregates.uuid, aggregates.name'):
                statements.append(parameters)

        self.assertBootsOn('h3')
        self.assertEqual([('trait:', 'reservation:')], statements)
        self.assertBootsOn('h2', flavor=self.consuming('a'))
        self.assertEqual(2, len(statements))
        sa.event.remove(engine, 'before_cursor_execute', record)


@ddt.ddt
class SourcesTestCase(ReservationTestCase):
    """Who may write keys."""

    HINTS = [
        {'reservation': 'a'},
        {'reservation': ['a']},
        {'reservation:a': 'anything'},
    ]

    def setUp(self):
        super().setUp()
        self.reserve('a', ['reserved'], filter_tenant_id=self.api.project_id)
        self.reserve('b', ['other'], filter_tenant_id=OTHER_PROJECT)
        self.reserve('free', [])

    def key_in_image(self, *ids):
        return self.image(props={f'reservation:{i}': 'true' for i in ids})

    def test_users_reach_nothing_by_default(self):
        self.assertBootsOn('plain', image=self.key_in_image('a'))
        for hints in self.HINTS:
            self.assertBootsOn('plain', hints=hints)
        # Nor do they spoil what a flavor demands.
        self.assertBootsOn(
            'reserved',
            flavor=self.consuming('a'),
            image=self.key_in_image('b'),
            hints={'reservation': 'gone'},
        )

    def test_hint(self):
        self.flags(member_sources=['hint'], group='nova_ext_sched')
        for hints in self.HINTS:
            self.assertBootsOn('reserved', hints=hints)
        self.assertNoValidHost(hints={'reservation': 'b'})
        self.assertNoValidHost(hints={'reservation': ['a', 'b']})
        self.assertNoValidHost(hints={'reservation': 'gone'})
        self.assertNoValidHost(hints={'reservation': ''})
        self.assertBootsOn('plain', hints={'reserved': 'a'})
        self.assertBootsOn('plain', flavor=self.consuming('a'))

    def test_image(self):
        self.flags(member_sources=['flavor', 'image'], group='nova_ext_sched')
        self.assertBootsOn('reserved', image=self.key_in_image('a'))
        self.assertNoValidHost(image=self.key_in_image('b'))
        self.assertNoValidHost(image=self.key_in_image('gone'))
        self.assertBootsOn('reserved', flavor=self.consuming('a'))
        self.assertBootsOn('plain')

    def test_sources_are_anded(self):
        self.flags(
            member_sources=['flavor', 'image', 'hint'], group='nova_ext_sched'
        )
        self.reserve('c', ['reserved', 'other'])
        self.assertBootsOn(
            'reserved',
            flavor=self.consuming('c'),
            image=self.key_in_image('a'),
        )
        self.assertNoValidHost(
            flavor=self.consuming('c'), hints={'reservation': 'free'}
        )

    @ddt.data(
        nova_exception.GlanceConnectionFailed(server='glance', reason='down'),
        nova_exception.ImageNotFound(image_id='x'),
        RuntimeError('anything else'),
    )
    def test_glance_fails(self, error):
        self.flags(member_sources=['image'], group='nova_ext_sched')
        image = self.key_in_image('a')
        down = mock.Mock()
        down.API.return_value.get.side_effect = error
        # The scheduler's client alone: nova-api reads the image before.
        with fixtures.MonkeyPatch(
            'nova_ext_sched.request_filters.reserved_aggregates.glance', down
        ):
            server = self.assertNoValidHost(image=image)
        self.assertEqual([], self.queries)
        self.assertIn(
            f'the properties of image {image} cannot be read: '
            f'{type(error).__name__}',
            server['fault']['message'],
        )
        self.assertBootsOn('reserved', image=image)

    def test_volume_backed_server_names_none(self):
        """nova knows no image of it, so none is read."""
        self.flags(member_sources=['image'], group='nova_ext_sched')
        server = self._build_server(
            image_uuid='', flavor_id=self.flavor(), networks='none'
        )
        server['block_device_mapping_v2'] = [
            {
                'source_type': 'volume',
                'destination_type': 'volume',
                'boot_index': 0,
                'uuid': cinder_fixture.CinderFixture.IMAGE_BACKED_VOL,
            }
        ]
        server = self.api.post_server({'server': server})
        server = self._wait_for_state_change(server, 'ACTIVE')
        self.assertEqual('plain', self.host_of(server))


class RebuildTestCase(ReservationTestCase):
    """nova runs no request filter on rebuild; the host filter judges."""

    def setUp(self):
        super().setUp()
        self.reserve('a', ['reserved'])

    def test_flavor_keeps_its_host(self):
        server = self.assertBootsOn('reserved', flavor=self.consuming('a'))
        self.rebuild(server, self.image(), 'ACTIVE')
        self.assertEqual('reserved', self.host_of(server))

    def test_hint_keeps_its_host(self):
        self.flags(member_sources=['hint'], group='nova_ext_sched')
        server = self.assertBootsOn('reserved', hints={'reservation': 'a'})
        self.rebuild(server, self.image(), 'ACTIVE')

    def test_host_that_was_reserved_since(self):
        server = self.assertBootsOn('other', host='other')
        self.reserve('b', ['other'])
        server = self.rebuild(server, self.image(), 'ERROR')
        self.assertIn('No valid host', server['fault']['message'])
        self.assertIn(
            'IsolatedAggregatesFilter rejected 1 of 1 hosts: 1 because '
            'aggregate b is reserved by reservation:b=true and the request '
            f'of project {self.api.project_id} names no key that begins so',
            self.log,
        )

    def test_host_that_left_the_reservation(self):
        server = self.assertBootsOn('reserved', flavor=self.consuming('a'))
        self.admin_api.remove_host_from_aggregate(
            self.aggregate_ids['a'], 'reserved'
        )
        self.rebuild(server, self.image(), 'ERROR')

    def test_reservation_that_passed_to_another_project(self):
        server = self.assertBootsOn('reserved', flavor=self.consuming('a'))
        self.set_metadata('a', {'filter_tenant_id': OTHER_PROJECT})
        self.rebuild(server, self.image(), 'ERROR')
        self.assertIn(
            f'may not use reservation:a: aggregate a has filter_tenant_id='
            f'{OTHER_PROJECT}',
            self.log,
        )

    def test_keys_of_the_new_image_do_not_count(self):
        """A host filter cannot ask Glance, so it opens nothing."""
        self.flags(member_sources=['flavor', 'image'], group='nova_ext_sched')
        image = self.image(props={'reservation:a': 'true'})
        again = self.image(props={'reservation:a': 'true'})
        server = self.assertBootsOn('reserved', image=image)
        # The same image is no matter of the scheduler.
        self.rebuild(server, image, 'ACTIVE')
        for other in (self.image(), again):
            server = self.rebuild(server, other, 'ERROR')
            self.assertEqual(image, server['image']['id'])
        # Where nothing is reserved there is nothing to guard.
        server = self.assertBootsOn('plain', host='plain')
        self.rebuild(server, again, 'ACTIVE')


class MoveTestCase(ReservationTestCase):
    """Each stays inside, or is refused."""

    weights = {'plain': 100, 'b1': 90, 'a1': 50, 'a2': 1}

    def setUp(self):
        super().setUp()
        self.flags(allow_resize_to_same_host=False)
        self.reserve('a', ['a1', 'a2'])
        self.reserve('b', ['b1'])
        self.server = self.assertBootsOn('a1', flavor=self.consuming('a'))

    def assertOn(self, host):
        self.assertEqual(host, self.host_of(self.server))

    def take_away(self, host):
        self.admin_api.remove_host_from_aggregate(
            self.aggregate_ids['a'], host
        )

    def lose(self, host):
        self.computes[host].stop()
        self.admin_api.put_service_force_down(
            self.computes[host].service_ref.uuid, True
        )

    def assertRefused(self, action):
        self._assert_resize_migrate_action_fail(
            self.server, action, 'NoValidHost'
        )
        self.assertOn('a1')

    def test_migrate(self):
        self._migrate_server(self.server)
        self.assertOn('a2')

    def test_migrate_is_refused(self):
        self.take_away('a2')
        self.api.post_server_action(self.server['id'], {'migrate': None})
        self.assertRefused('migrate')

    def test_migrate_to_a_named_host_is_refused(self):
        for host in ('plain', 'b1'):
            self.api.post_server_action(
                self.server['id'], {'migrate': {'host': host}}
            )
            self._wait_for_action_fail_completion(
                self.server, 'migrate', 'conductor_migrate_server'
            )
            self.assertOn('a1')

    def test_live_migrate(self):
        self._live_migrate(self.server)
        self.assertOn('a2')

    def test_live_migrate_is_refused(self):
        self.take_away('a2')
        self._live_migrate(self.server, 'error')
        self.assertOn('a1')

    def test_evacuate(self):
        self.lose('a1')
        self.server = self._evacuate_server(self.server, expected_host='a2')
        self.assertOn('a2')

    def test_evacuate_is_refused(self):
        self.take_away('a2')
        self.lose('a1')
        self._evacuate_server(
            self.server,
            expected_state='ERROR',
            expected_host='a1',
            expected_migration_status='error',
        )

    def test_unshelve(self):
        self.flags(shelved_offload_time=0)
        self._shelve_server(self.server)
        self.take_away('a1')
        self._unshelve_server(self.server)
        self.assertOn('a2')

    def test_unshelve_is_refused(self):
        self.flags(shelved_offload_time=0)
        self._shelve_server(self.server)
        self.take_away('a1')
        self.take_away('a2')
        self.api.post_server_action(self.server['id'], {'unshelve': None})
        self._wait_for_action_fail_completion(
            self.server, 'unshelve', 'schedule_instances'
        )
        self.assertOn(None)

    def test_resize_within_the_reservation(self):
        self._resize_server(self.server, self.consuming('a'))
        self.assertOn('a2')

    def test_resize_to_another_reservation(self):
        self._resize_server(self.server, self.consuming('b'))
        self.assertOn('b1')

    def test_resize_out_of_the_reservation(self):
        self._resize_server(self.server, self.flavor())
        self.assertOn('plain')

    def test_resize_to_a_reservation_that_is_not_there_is_refused(self):
        self.api.post_server_action(
            self.server['id'], {'resize': {'flavorRef': self.consuming('c')}}
        )
        self.assertRefused('resize')

    def test_plain_server_stays_out(self):
        plain = self.assertBootsOn('plain')
        self._start_compute('plain2')
        self._migrate_server(plain)
        self.assertEqual('plain2', self.host_of(plain))


class ImageMoveTestCase(ReservationTestCase):
    """A server that its image put there."""

    options = {**ReservationTestCase.options, 'member_sources': ['image']}
    weights = {'plain': 100, 'a1': 50, 'a2': 1}

    def test_moves(self):
        self.flags(shelved_offload_time=0)
        self.reserve('a', ['a1', 'a2'])
        image = self.image(props={'reservation:a': 'true'})
        server = self.assertBootsOn('a1', image=image)
        self._live_migrate(server)
        self.assertEqual('a2', self.host_of(server))
        # The snapshot has the properties of the image.
        self._shelve_server(server)
        self._unshelve_server(server)
        self.assertEqual('a1', self.host_of(server))


class PrefixesTestCase(ReservationTestCase):
    required = 'placement_req_required_member_prefix'
    forbidden = 'placement_req_default_forbidden_member_prefix'

    def set_prefixes(self, required, forbidden):
        self.flags(
            group='nova_ext_sched',
            **{self.required: required, self.forbidden: forbidden},
        )

    def keyed(self, *keys):
        return self.flavor(specs=dict.fromkeys(keys, 'true'))

    def test_several_prefixes(self):
        self.set_prefixes(['res:', 'own:'], ['res:', 'own:'])
        res = self.aggregate('r', ['reserved'], metadata={'res:1': '1'})
        own = self.aggregate('o', ['other'], metadata={'own:1': '1'})
        self.assertBootsOn('plain')
        self.assertEqual(([], {res, own}), self.member_of())
        # A key of one prefix does not open the aggregates of the other.
        self.assertBootsOn('reserved', flavor=self.keyed('res:1'))
        self.assertEqual(([{res}], {own}), self.member_of())
        self.assertBootsOn('other', flavor=self.keyed('own:1'))
        self.admin_api.add_host_to_aggregate(self.aggregate_ids['o'], 'plain')
        self.admin_api.add_host_to_aggregate(self.aggregate_ids['r'], 'plain')
        self.assertBootsOn('plain', flavor=self.keyed('own:1', 'res:1'))

    def test_required_only(self):
        self.set_prefixes(['reservation:'], [])
        self.reserve('a', ['reserved'])
        self.reserve('b', ['other'])
        self.assertBootsOn('other', flavor=self.keyed('reservation:b'))
        self.assertBootsOn('reserved')

    def test_forbidden_only(self):
        self.set_prefixes([], ['reservation:'])
        self.reserve('a', ['reserved'])
        self.reserve('b', ['other'])
        self.assertBootsOn('plain')
        # It demands nothing, and any reserved host will do.
        self.assertBootsOn('reserved', flavor=self.keyed('reservation:b'))
        self.assertNotIn('member_of', self.queries[-1])

    def test_underscore_means_itself(self):
        self.set_prefixes(['r_v:'], ['r_v:'])
        self.aggregate('plain', ['reserved'], metadata={'rxv:a': '1'})
        self.aggregate('case', ['reserved'], metadata={'R_V:a': '1'})
        self.assertBootsOn('reserved')
        self.aggregate('reserved', ['reserved'], metadata={'r_v:a': '1'})
        self.assertBootsOn('other')
        self.assertBootsOn('reserved', flavor=self.keyed('r_v:a', 'rxv:b'))

    def test_percent_means_itself(self):
        self.set_prefixes(['r%:'], ['r%:'])
        self.aggregate('plain', ['reserved'], metadata={'rxx:a': '1'})
        self.assertBootsOn('reserved')
        # nova-api takes no such key; a database may have one.
        (aggregate,) = objects.AggregateList.get_by_host(
            context.get_admin_context(), 'reserved'
        )
        aggregate.update_metadata({'r%:a': '1'})
        self.assertBootsOn('other')


class OneSidedTestCase(ReservationTestCase):
    options = {
        'placement_req_required_member_prefix': ['a:', 'b:'],
        'placement_req_default_forbidden_member_prefix': ['b:', 'c:'],
    }

    def test_warned_at_start(self):
        self.assertRegex(
            self.log,
            'WARNING .*required_member_prefix has a: .*nobody else is kept',
        )
        self.assertRegex(
            self.log,
            'WARNING .*forbidden_member_prefix has c: .*may land in every',
        )
        self.assertNotIn('prefix has b:', self.log)


@ddt.ddt
class StartTestCase(
    base.PluginMixin, integrated_helpers.ProviderUsageBaseTestCase
):
    compute_driver = 'fake.MediumFakeDriver'

    def start_service(self, name, *args, **kwargs):
        # The test starts the scheduler.
        if name == 'scheduler' and not kwargs:
            return None
        return super().start_service(name, *args, **kwargs)

    @ddt.data(
        ('placement_req_required_member_prefix', ''),
        ('placement_req_required_member_prefix', 'reservation:,,own:'),
        ('placement_req_default_forbidden_member_prefix', 'reservation:,'),
        ('placement_req_default_forbidden_member_prefix', '""'),
        ('member_project_keys', ','),
        ('member_sources', 'flavour'),
    )
    @ddt.unpack
    def test_bad_value_is_refused(self, option, value):
        # As a line of nova.conf gives it.
        self.useFixture(config_fixture.Config(CONF)).load_raw_values(
            group='nova_ext_sched', **{option: value}
        )
        exc = self.assertRaises(
            cfg.ConfigFileValueError,
            self.start_service,
            'scheduler',
            host='scheduler',
        )
        self.assertIn(option, str(exc))
        self.assertIn('expected' if value != 'flavour' else value, str(exc))


class BoundTestCase(ReservationTestCase):
    """max_forbidden_aggregates, shared with isolation."""

    options = {
        **ReservationTestCase.options,
        'enable_isolated_aggregate_filtering': True,
        'max_forbidden_aggregates': 2,
    }
    weights = {'reserved': 100, 'other': 50, 'third': 40, 'plain': 1}

    def test_host_filter_judges_the_rest(self):
        self.reserve('a', ['reserved'])
        b = self.reserve('b', ['other', 'third'])
        windows = self.isolate('windows', [], WINDOWS)
        self.assertBootsOn('plain')
        self.assertEqual(([], {windows, b}), self.member_of())
        self.assertIn('1 are left to IsolatedAggregatesFilter: a.', self.log)

    def test_declared_traits_take_room(self):
        self.flags(forbid_by_trait=[WINDOWS], group='nova_ext_sched')
        self.isolate('windows', ['third'], WINDOWS)
        self.reserve('a', ['reserved'])
        b = self.reserve('b', ['other', 'plain'])
        self._start_compute('last')
        self.assertBootsOn('last')
        self.assertEqual(([], {b}), self.member_of())
        self.assertIn(f'!{WINDOWS}', self.queries[-1]['root_required'][0])

    def test_no_room_at_all(self):
        self.isolate('w1', [], WINDOWS)
        self.isolate('w2', [], WINDOWS)
        self.reserve('a', ['reserved', 'other', 'third'])
        self.assertBootsOn('plain')
        self.assertBootsOn('reserved', flavor=self.consuming('a'))

    def test_forced_host_is_not_judged_so_its_aggregates_go_in(self):
        self.isolate('w1', [], WINDOWS)
        self.isolate('w2', [], WINDOWS)
        a = self.reserve('a', ['reserved'])
        self.reserve('b', ['other'])
        self.assertNoValidHost(az='nova:reserved')
        self.assertIn(a, self.member_of()[1])


class NoHostFilterTestCase(BoundTestCase):
    """Nobody judges what is left out, so all goes in."""

    host_filters = ()

    def test_host_filter_judges_the_rest(self):
        a = self.reserve('a', ['reserved'])
        b = self.reserve('b', ['other', 'third'])
        windows = self.isolate('windows', [], WINDOWS)
        self.assertBootsOn('plain')
        self.assertEqual(([], {windows, a, b}), self.member_of())

    test_declared_traits_take_room = None


class DatabaseDownTestCase(ReservationTestCase):
    def test_database_error_during_the_look_up(self):
        self.reserve('a', ['reserved'])
        engine = aggregates.api_db.context_manager.writer.get_engine()
        with engine.begin() as connection:
            connection.execute(
                sa.text('ALTER TABLE aggregate_metadata RENAME TO away')
            )
        try:
            self.assertNoValidHost()
            self.assertNoValidHost(flavor=self.consuming('a'))
        finally:
            with engine.begin() as connection:
                connection.execute(
                    sa.text('ALTER TABLE away RENAME TO aggregate_metadata')
                )
        self.assertEqual([], self.queries)
        self.assertIn('reserved_aggregates cannot decide', self.log)
        self.assertBootsOn('other')
