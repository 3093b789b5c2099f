# SPDX-License-Identifier: Apache-2.0

"""Isolated aggregates, through nova's API to the host.

host1 is the wrong host nearly everywhere, and the one that the scheduler
prefers.
"""

import ddt
import fixtures
from nova.db.api import models
from nova.tests.fixtures import cinder as cinder_fixture
from oslo_db import exception as db_exception
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_ext_sched.queries import aggregates
from tests.functional import base

X = 'HW_CPU_X86_VMX'
Y = 'HW_CPU_X86_SGX'
WINDOWS = 'CUSTOM_LICENSED_WINDOWS'


def required(*traits):
    return {f'trait:{trait}': 'required' for trait in traits}


class IsolationTestCase(base.CloudTestCase):
    host_filters = ('IsolatedAggregatesFilter',)
    options = {'enable_isolated_aggregate_filtering': True}
    weights = {'host1': 100, 'host2': 1}


@ddt.ddt
class DecisionTestCase(IsolationTestCase):
    """Who may use which aggregate, by the placement query."""

    def test_licensed_windows(self):
        """The use case of the specification."""
        uuid = self.isolate('windows', ['host1'], WINDOWS)
        windows = self.image(props=required(WINDOWS))
        self.assertBootsOn('host2')
        self.assertEqual([f'!in:{uuid}'], self.queries[-1]['member_of'])
        self.assertBootsOn('host1', image=windows)
        self.assertNotIn('member_of', self.queries[-1])

    def test_the_log_says_what_placement_was_asked_for(self):
        self.isolate('windows', ['host1'], WINDOWS)
        self.isolate('sgx', ['host2'], Y)
        server = self.assertNoValidHost()
        self.assertEqual(1, self.log.count('no host of 2 aggregates'))
        self.assertRegex(
            self.log,
            'INFO .*nova got no host from placement for server '
            f'{server["id"]} .request req-',
        )

    def test_off_by_default(self):
        self.flags(
            enable_isolated_aggregate_filtering=False, group='nova_ext_sched'
        )
        self.isolate('windows', ['host1'], WINDOWS)
        self.assertBootsOn('host1')

    def test_several_traits_from_flavor_and_image(self):
        self.isolate('both', ['host1'], X, Y)
        self.add_traits('host2', X, Y)
        x, y = self.flavor(specs=required(X)), self.image(props=required(Y))
        self.assertBootsOn('host2', flavor=x)
        self.assertBootsOn('host2', image=y)
        self.assertBootsOn('host1', flavor=x, image=y)

    def test_a_host_in_two_isolated_aggregates(self):
        self.isolate('x', ['host1'], X)
        self.isolate('y', ['host1'], Y)
        self.add_traits('host2', X)
        self.assertBootsOn('host2', flavor=self.flavor(specs=required(X)))
        self.assertBootsOn('host1', flavor=self.flavor(specs=required(X, Y)))

    def test_granular_trait(self):
        self.isolate('x', ['host1'], X)
        self.add_traits('host2', X)
        # A granular group that the host's own provider satisfies.
        granular = self.flavor(
            specs={
                'resources:VCPU': '0',
                'resources1:VCPU': '1',
                f'trait1:{X}': 'required',
            }
        )
        self.assertBootsOn('host1', flavor=granular)
        self.assertBootsOn('host2')

    def test_trait_forbidden_by_the_flavor_is_not_required(self):
        self.isolate('x', ['host1'], X)
        flavor = self.flavor(specs={f'trait:{X}': 'forbidden'})
        # Without X on host1 only the isolation keeps it from there.
        self._set_provider_traits(self._get_provider_uuid_by_host('host1'), [])
        self.assertBootsOn('host2', flavor=flavor)

    def test_volume_backed(self):
        volume = cinder_fixture.CinderFixture.IMAGE_WITH_TRAITS_BACKED_VOL
        self.isolate('sgx', ['host1'], Y)

        def boot(volume_id):
            return self.host_of(self.boot_from_volume(volume_id))

        self.assertEqual('host1', boot(volume))
        self.assertEqual(
            'host2', boot(cinder_fixture.CinderFixture.IMAGE_BACKED_VOL)
        )

    def test_requested_host(self):
        self.isolate('windows', ['host1'], WINDOWS)
        self.assertNoValidHost(host='host1')
        self.assertBootsOn(
            'host1', host='host1', image=self.image(props=required(WINDOWS))
        )
        self.assertBootsOn('host2', host='host2')

    def test_forced_host(self):
        self.isolate('windows', ['host1'], WINDOWS)
        self.assertNoValidHost(az='nova:host1')
        self.assertBootsOn('host2', az='nova:host2')

    @ddt.data(
        (f'trait:{X}', 'Required'),
        (f'trait:{X}', 'REQUIRED'),
        (f'trait:{X}', 'required '),
        (f'Trait:{X}', 'required'),
    )
    @ddt.unpack
    def test_slip_isolates_with_one_warning(self, key, value):
        self.aggregate('slip', ['host1'], metadata={key: value})
        self.add_traits('host1', X)
        self.assertBootsOn('host2')
        self.assertBootsOn('host2')
        self.assertBootsOn('host1', flavor=self.flavor(specs=required(X)))
        self.assertEqual(
            1,
            self.log.count(
                f'aggregate slip: metadata {key}: expected '
                f"'trait:{X}=required', got '{key}={value}'"
            ),
        )

    def test_value_that_isolates_nothing_is_warned_about_once(self):
        self.aggregate('odd', ['host1'], metadata={f'trait:{X}': 'forbidden'})
        self.assertBootsOn('host1')
        self.assertBootsOn('host1')
        self.assertEqual(
            1,
            self.log.count(
                f"aggregate odd: metadata trait:{X}: expected 'required', "
                "got 'forbidden'; the item isolates nothing"
            ),
        )

    def test_moves(self):
        self.isolate('windows', ['host1'], WINDOWS)
        self._start_compute('host3')
        plain = self.assertBootsOn('host2')
        self._migrate_server(plain)
        self.assertEqual('host3', self.host_of(plain))
        self._confirm_resize(plain)
        self._live_migrate(plain)
        self.assertEqual('host2', self.host_of(plain))
        self.flags(allow_resize_to_same_host=False)
        self._resize_server(plain, self.flavor())
        self.assertEqual('host3', self.host_of(plain))


class OtherRequestFiltersTestCase(IsolationTestCase):
    """Beside the aggregates that nova's own filters require: AND."""

    weights = {'host1': 100, 'host2': 50, 'host3': 1}

    def setUp(self):
        self.flags(
            limit_tenants_to_placement_aggregate=True, group='scheduler'
        )
        super().setUp()

    def test_zone_and_tenant(self):
        isolated = self.isolate('windows', ['host1'], WINDOWS)
        tenant = self.aggregate(
            'tenant',
            ['host1', 'host2', 'host3'],
            filter_tenant_id=self.api.project_id,
        )
        zone = self.aggregate('zone', ['host1', 'host3'], zone='az1')
        self.assertBootsOn('host3', az='az1')
        self.assertEqual(
            {tenant, zone, f'!in:{isolated}'},
            {
                value.removeprefix('in:')
                for value in self.queries[-1]['member_of']
            },
        )
        self.assertBootsOn('host2')
        self.assertBootsOn(
            'host1', az='az1', image=self.image(props=required(WINDOWS))
        )


class RebuildTestCase(IsolationTestCase):
    """nova runs no request filter on rebuild; the host filter closes it."""

    def setUp(self):
        super().setUp()
        self.isolate('windows', ['host1'], WINDOWS)
        self.server = self.assertBootsOn(
            'host1', image=self.image(props=required(WINDOWS))
        )

    def rebuild(self, image, expected_state):
        self.api.post_server_action(
            self.server['id'], {'rebuild': {'imageRef': image}}
        )
        return self._wait_for_state_change(self.server, expected_state)

    def test_plain_image_is_refused(self):
        licensed = self.server['image']['id']
        server = self.rebuild(self.image(), 'ERROR')
        self.assertIn('No valid host', server['fault']['message'])
        self.assertEqual(licensed, server['image']['id'])
        self.assertRegex(
            self.log,
            'IsolatedAggregatesFilter rejected 1 of 1 host: 1 because '
            'aggregate windows is isolated and the request does not require '
            f'{WINDOWS}',
        )

    def test_licensed_image_is_allowed(self):
        other = self.image(props=required(WINDOWS))
        server = self.rebuild(other, 'ACTIVE')
        self.assertEqual(other, server['image']['id'])
        self.assertEqual('host1', self.host_of(server))


class FlavorAloneTestCase(IsolationTestCase):
    """isolation_trait_sources = flavor: no image opens an aggregate."""

    weights = {'host1': 100, 'host2': 50, 'host3': 1}

    def setUp(self):
        super().setUp()
        self.uuid = self.isolate('windows', ['host1'], WINDOWS)
        # So that placement has a host for the image where it opens nothing.
        self.add_traits('host2', WINDOWS)
        self.windows = self.image(props=required(WINDOWS))
        self.licensed = self.flavor(specs=required(WINDOWS))

    def close(self):
        self.flags(isolation_trait_sources=['flavor'], group='nova_ext_sched')

    def test_boot(self):
        self.assertBootsOn('host1', image=self.windows)
        self.close()
        self.assertBootsOn('host2', image=self.windows)
        self.assertEqual([f'!in:{self.uuid}'], self.queries[-1]['member_of'])
        self.assertNoValidHost(image=self.windows, host='host1')
        self.assertNoValidHost(image=self.windows, az='nova:host1')
        self.assertBootsOn('host1', flavor=self.licensed)
        self.assertBootsOn('host1', flavor=self.licensed, image=self.windows)

    def test_volume_backed(self):
        self.isolate('sgx', ['host1'], Y)
        self._set_provider_traits(
            self._get_provider_uuid_by_host('host1'), [Y, WINDOWS]
        )
        volume = cinder_fixture.CinderFixture.IMAGE_WITH_TRAITS_BACKED_VOL
        self.add_traits('host3', Y)
        self.close()
        self.assertEqual('host3', self.host_of(self.boot_from_volume(volume)))

    def test_declared_trait_that_the_image_requires(self):
        """Placement is not asked for a trait and against it."""
        self.flags(forbid_by_trait=['CUSTOM_*'], group='nova_ext_sched')
        self.close()
        self.assertBootsOn('host2', image=self.windows)
        self.assertEqual([f'!in:{self.uuid}'], self.queries[-1]['member_of'])

    def test_server_that_came_by_its_image_leaves(self):
        server = self.assertBootsOn('host1', image=self.windows)
        self.close()
        self._migrate_server(server)
        self.assertEqual('host2', self.host_of(server))

    def test_rebuild(self):
        by_image = self.assertBootsOn('host1', image=self.windows)
        by_flavor = self.assertBootsOn('host1', flavor=self.licensed)
        self.close()
        for server, image, state in (
            (by_flavor, self.image(), 'ACTIVE'),
            (by_image, self.image(props=required(WINDOWS)), 'ERROR'),
        ):
            self.api.post_server_action(
                server['id'], {'rebuild': {'imageRef': image}}
            )
            self._wait_for_state_change(server, state)


class SnapshotTestCase(IsolationTestCase):
    """What nova's non_inheritable_image_properties does, and does not."""

    weights = {'host1': 100, 'host2': 1}

    def boot_from_snapshot(self, image=None, **metadata):
        """Boot a server from the snapshot of a new one; return its host."""
        snapshot = self.api.post_server_action(
            self.boot(image=image)['id'],
            {'createImage': {'name': 'snapshot', 'metadata': metadata}},
        )['image_id']
        return self.host_of(self.boot(image=snapshot))

    def test_the_owner_writes_the_trait_all_the_same(self):
        self.isolate('windows', ['host1'], WINDOWS)
        windows = self.image(props=required(WINDOWS))
        self.assertEqual('host1', self.boot_from_snapshot(windows))
        self.flags(non_inheritable_image_properties=[f'trait:{WINDOWS}'])
        # The snapshot of a licensed server is plain, ...
        self.assertEqual('host2', self.boot_from_snapshot(windows))
        # ... and whoever names the trait has it.
        self.assertEqual('host1', self.boot_from_snapshot(**required(WINDOWS)))


class NoHostFilterTestCase(IsolationTestCase):
    """Without IsolatedAggregatesFilter every UUID goes into the query."""

    host_filters = ()
    options = {
        **IsolationTestCase.options,
        'max_forbidden_aggregates': 1,
        'forbid_by_trait': ['CUSTOM_*'],
    }

    def test_all_aggregates_are_named(self):
        uuids = {
            self.isolate(f'agg{i}', ['host1'], f'CUSTOM_T{i}')
            for i in range(3)
        }
        self.assertBootsOn('host2')
        (member_of,) = self.queries[-1]['member_of']
        self.assertEqual(uuids, set(member_of.removeprefix('!in:').split(',')))
        self.assertNotIn('!CUSTOM_', str(self.queries[-1]))
        self.assertBootsOn('host2')
        self.assertEqual(
            1, self.log.count('query names 3 forbidden aggregates')
        )
        self.assertRegex(
            self.log, 'WARNING .*IsolatedAggregatesFilter is not in'
        )


class BoundTestCase(IsolationTestCase):
    """max_forbidden_aggregates with the host filter to judge the rest."""

    options = {**IsolationTestCase.options, 'max_forbidden_aggregates': 1}
    weights = {'host1': 100, 'host2': 90, 'host3': 80, 'host4': 1}

    def setUp(self):
        super().setUp()
        self.small = self.isolate('small', ['host1'], X)
        self.large = self.isolate('large', ['host2', 'host3'], Y)

    def member_of(self):
        (member_of,) = self.queries[-1]['member_of']
        return set(member_of.removeprefix('!in:').split(','))

    def test_largest_goes_in_and_the_host_filter_judges_the_rest(self):
        self.assertBootsOn('host4')
        self.assertEqual({self.large}, self.member_of())
        self.assertBootsOn('host4')
        message = (
            'A request must stay out of 2 aggregates. Its placement query '
            'names 1 of them, those with the most hosts (see '
            'max_forbidden_aggregates). IsolatedAggregatesFilter checks the '
            'hosts of the other 1: small.'
        )
        self.assertEqual(1, self.log.count(message))

    def test_change_of_what_is_left_is_logged_again(self):
        self.assertBootsOn('host4')
        self.isolate('other', [], X)
        self.assertBootsOn('host4')
        self.assertIn('the hosts of the other 2: ', self.log)

    def test_forced_host_is_not_judged_so_its_aggregates_go_in(self):
        self.assertNoValidHost(az='nova:host1')
        self.assertEqual({self.small}, self.member_of())
        self.assertNoValidHost(az='nova:host2')
        self.assertEqual({self.large}, self.member_of())

    def test_forced_node_takes_all(self):
        self.assertNoValidHost(az='nova::host1')
        self.assertEqual({self.small, self.large}, self.member_of())

    def test_aggregates_of_other_filters_take_room(self):
        # nova's own filter has put both in; ours adds none.
        self.flags(enable_isolated_aggregate_filtering=True, group='scheduler')
        self.assertBootsOn('host4')
        self.assertEqual({self.small, self.large}, self.member_of())


class ForbidByTraitTestCase(IsolationTestCase):
    options = {
        **IsolationTestCase.options,
        'forbid_by_trait': [WINDOWS, 'CUSTOM_GONE'],
    }

    def forbidden_traits(self):
        (root_required,) = self.queries[-1]['root_required']
        return {
            trait.removeprefix('!')
            for trait in root_required.split(',')
            if trait.startswith('!CUSTOM_')
        }

    def test_trait_stands_for_a_thousand_aggregates(self):
        # Past nova, which would take most of the test's time.
        numbers = range(1, 1001)
        engine = aggregates.api_db.context_manager.writer.get_engine()
        with engine.begin() as connection:
            connection.execute(
                sa.insert(models.Aggregate),
                [
                    {
                        'id': number,
                        'name': f'windows{number}',
                        'uuid': uuidutils.generate_uuid(),
                    }
                    for number in numbers
                ],
            )
            connection.execute(
                sa.insert(models.AggregateMetadata),
                [
                    {
                        'aggregate_id': number,
                        'key': f'trait:{WINDOWS}',
                        'value': 'required',
                    }
                    for number in numbers
                ],
            )
        self.isolate('windows', ['host1'], WINDOWS)
        self.assertBootsOn('host2')
        self.assertEqual({WINDOWS}, self.forbidden_traits())
        self.assertNotIn('member_of', self.queries[-1])
        self.assertBootsOn('host1', image=self.image(props=required(WINDOWS)))

    def test_host_that_lacks_the_trait_is_refused_by_the_host_filter(self):
        self._create_trait(WINDOWS)
        self.aggregate('windows', ['host1'], metadata=required(WINDOWS))
        self.assertBootsOn('host2')
        self.assertEqual({WINDOWS}, self.forbidden_traits())
        self.assertNotIn('member_of', self.queries[-1])

    def test_other_aggregates_are_named(self):
        self.isolate('windows', ['host1'], WINDOWS)
        x = self.isolate('x', [], X)
        self.assertBootsOn('host2')
        self.assertEqual({WINDOWS}, self.forbidden_traits())
        self.assertEqual([f'!in:{x}'], self.queries[-1]['member_of'])

    def test_trait_that_placement_does_not_know(self):
        """Placement would answer 400 and no server could be booted."""
        uuid = self.aggregate(
            'gone', ['host1'], metadata=required('CUSTOM_GONE')
        )
        self.assertBootsOn('host2')
        self.assertEqual(set(), self.forbidden_traits())
        self.assertEqual([f'!in:{uuid}'], self.queries[-1]['member_of'])
        self.assertRegex(
            self.log, 'WARNING .*Placement does not know the trait CUSTOM_GO'
        )

    def test_forced_host_is_not_judged_so_aggregates_are_named(self):
        self._create_trait(WINDOWS)
        self.aggregate('windows', ['host1'], metadata=required(WINDOWS))
        self.assertNoValidHost(az='nova:host1')


@ddt.ddt
class DatabaseDownTestCase(IsolationTestCase):
    """The aggregates cannot be read: no host, and the reason in the log."""

    def test_database_error_during_the_look_up(self):
        self.isolate('windows', ['host1'], WINDOWS)
        with self.metadata_away():
            server = self.assertNoValidHost()
            self.assertNoValidHost()
        self.assertEqual([], self.queries)
        # One line for both, without a traceback.
        lines = self.log.splitlines()
        [refusal] = [
            line
            for line in lines
            if '[nova_ext_sched.' in line and 'cannot decide' in line
        ]
        self.assertRegex(
            refusal,
            'ERROR .*Request req-.* is refused, .*: isolate_aggregates '
            'cannot decide: .*no such table: aggregate_metadata',
        )
        self.assertNotIn('Traceback', lines[lines.index(refusal) + 1])
        # What the owner of the server reads.
        self.assertEqual(
            'No valid host was found. Scheduling failed: isolate_aggregates '
            'cannot decide',
            server['fault']['message'],
        )
        self.assertEqual('ERROR', server['status'])
        self.assertBootsOn('host2')

    @ddt.data(
        db_exception.DBConnectionError('server has gone away'),
        RuntimeError('anything else'),
    )
    def test_no_connection(self, error):
        def fail(*args, **kwargs):
            raise error

        self.isolate('windows', ['host1'], WINDOWS)
        with fixtures.MonkeyPatch(
            'nova_ext_sched.queries.aggregates.get_metadata', fail
        ):
            self.assertNoValidHost()
        self.assertEqual([], self.queries)
        self.assertIn(str(error), self.log)
        self.assertBootsOn('host2')
