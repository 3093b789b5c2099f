# SPDX-License-Identifier: Apache-2.0

"""Isolated aggregates, through nova's API to the host.

Who may use which aggregate is told row by row in tests/unit/policy. Here
host1 is the wrong host nearly everywhere, and the one that the scheduler
prefers.
"""

from nova.db.api import models
from nova.tests.fixtures import cinder as cinder_fixture
import sqlalchemy as sa

from tests.functional import base

X = 'HW_CPU_X86_VMX'
Y = 'HW_CPU_X86_SGX'
WINDOWS = 'CUSTOM_LICENSED_WINDOWS'


def required(*traits):
    return {f'trait:{trait}': 'required' for trait in traits}


class IsolationTestCase(base.CloudTestCase):
    host_filters = ('IsolatedAggregatesFilter',)
    options = {'enable_isolated_aggregate_filtering': True}
    weights = {'host1': 100, 'host2': 50, 'host3': 1}


class StoryTestCase(IsolationTestCase):
    """Licensed hosts, the use case of the specification."""

    def setUp(self):
        super().setUp()
        self.uuid = self.isolate('windows', ['host1'], WINDOWS)
        self.windows = self.image(props=required(WINDOWS))

    def test_story(self):
        self.moves(self.the_database_is_away())
        self.queries.clear()
        self.assertBootsOn('host2')
        self.assertEqual([f'!in:{self.uuid}'], self.queries[-1]['member_of'])
        self.assertBootsOn('host1', image=self.windows)
        self.assertNotIn('member_of', self.queries[-1])
        for wrong in ({'host': 'host1'}, {'az': 'nova:host1'}):
            self.assertNoValidHost(**wrong)
        self.rebuilds(
            self.assertBootsOn('host1', host='host1', image=self.windows)
        )
        # The traits of a volume's image count too.
        self.isolate('sgx', ['host1'], Y)
        self._set_provider_traits(
            self._get_provider_uuid_by_host('host1'), [Y]
        )
        volumes = cinder_fixture.CinderFixture
        self.set_metadata('windows', {f'trait:{WINDOWS}': None})
        for volume, host in (
            (volumes.IMAGE_WITH_TRAITS_BACKED_VOL, 'host1'),
            (volumes.IMAGE_BACKED_VOL, 'host2'),
        ):
            server = self.boot_from_volume(volume)
            self.assertEqual(host, self.host_of(server))

    def moves(self, plain):
        self._migrate_server(plain)
        self.assertEqual('host3', self.host_of(plain))
        self._confirm_resize(plain)
        self._live_migrate(plain)
        self.assertEqual('host2', self.host_of(plain))
        self.flags(allow_resize_to_same_host=False)
        self._resize_server(plain, self.flavor())
        self.assertEqual('host3', self.host_of(plain))

    def rebuilds(self, server):
        """nova runs no request filter then; the host filter judges."""
        other = self.image(props=required(WINDOWS))
        server = self.rebuild_server(server, other, 'ACTIVE')
        self.assertEqual(other, server['image']['id'])
        server = self.rebuild_server(server, self.image(), 'ERROR')
        self.assertIn('No valid host', server['fault']['message'])
        self.assertEqual(other, server['image']['id'])
        self.assertRegex(
            self.log,
            'IsolatedAggregatesFilter rejected 1 of 1 host: 1 because '
            'the request is not allowed in windows: it does not require '
            f'{WINDOWS}',
        )

    def the_database_is_away(self):
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
        return self.assertBootsOn('host2')


class BehindTheSchedulerTestCase(IsolationTestCase):
    """An aggregate changes, and the scheduler does not hear of it.

    nova-api tells it by a message, which is lost where RabbitMQ is away.
    """

    options = {
        **IsolationTestCase.options,
        'max_forbidden_aggregates': 1,
        'placement_req_default_forbidden_member_prefix': ['reservation:'],
    }

    def setUp(self):
        super().setUp()
        # The one that the query names, because it has most hosts.
        self.large = self.aggregate(
            'large', metadata={**required(X), 'reservation:large': 'true'}
        )
        for host in ('gone1', 'gone2', 'gone3'):
            self.write(models.AggregateHost, 'large', host=host)

    def write(self, model, name, **values):
        with self.api_engine().begin() as connection:
            connection.execute(
                sa.insert(model),
                {'aggregate_id': self.aggregate_ids[name], **values},
            )

    def write_metadata(self, name, metadata):
        for key, value in metadata.items():
            self.write(models.AggregateMetadata, name, key=key, value=value)

    def test_what_the_query_leaves_out(self):
        self.aggregate('one', ['host1'])
        self.aggregate('two', metadata=required(Y))
        server = self.assertBootsOn('host1')
        self.write_metadata('one', required(WINDOWS))
        self.assertBootsOn('host2')
        self.assertEqual([f'!in:{self.large}'], self.queries[-1]['member_of'])
        self.write(models.AggregateHost, 'two', host='host2')
        self.assertBootsOn('host3')
        # By the traits, which no host has.
        self._create_trait(WINDOWS)
        self.flags(
            forbid_by_trait=[WINDOWS, X, Y],
            max_forbidden_aggregates=9,
            group='nova_ext_sched',
        )
        self.assertBootsOn('host3')
        # For its reservation.
        self.assertEqual([f'!in:{self.large}'], self.queries[-1]['member_of'])
        self.assertIn(f'!{WINDOWS}', self.queries[-1]['root_required'][0])
        self.the_memory_counts_too()
        self.a_rebuild_goes_by_the_memory(server)

    def the_memory_counts_too(self):
        """Whichever of the two forbids a host."""
        self.aggregate('three', ['host3'], metadata=required(X))
        with self.api_engine().begin() as connection:
            connection.execute(
                sa.delete(models.AggregateMetadata).where(
                    models.AggregateMetadata.key == f'trait:{X}'
                )
            )
        self.assertNoValidHost()
        self.assertIn(
            '1 because aggregate one is forbidden to the request by the API '
            'database',
            self.log,
        )
        self.set_metadata('three', {'any': 'thing'})
        self.assertBootsOn('host3')

    def a_rebuild_goes_by_the_memory(self, server):
        """nova runs no request filter, so nothing else is known."""
        self.rebuild_server(server, self.image())
        self.set_metadata('one', {'any': 'thing'})
        self.rebuild_server(server, self.image(), 'ERROR')

    def test_reserved_aggregates(self):
        self.aggregate('one', ['host1'])
        self.write_metadata('one', {'reservation:a': 'true'})
        self.assertBootsOn('host2')

    def reserve(self):
        """Reserve more aggregates by one key than the query names.

        The one of host2 has most hosts.

        :returns: its UUID, and a flavor with the key
        """
        key = {'reservation:a': 'true'}
        for name, hosts in (('one', ['host1']), ('three', ['host3'])):
            self.aggregate(name, hosts, metadata=key)
        most = self.aggregate('two', ['host2'], metadata=key)
        for host in ('gone4', 'gone5'):
            self.write(models.AggregateHost, 'two', host=host)
        self.flags(
            placement_req_required_member_prefix=['reservation:'],
            group='nova_ext_sched',
        )
        return most, self.flavor(specs=key)

    def test_a_part_of_a_required_set(self):
        """Placement may answer with any hosts of the cloud else."""
        self.flags(max_placement_results=1, group='scheduler')
        most, flavor = self.reserve()
        for _ in range(2):
            self.assertBootsOn('host2', flavor=flavor)
            self.assertEqual([f'in:{most}'], self.queries[-1]['member_of'])
        # It is full, and the rest is empty.
        self.set_service('host2', status='disabled')
        self.assertNoValidHost(flavor=flavor)
        self.assertRegex(
            self.log,
            'WARNING .*A request must land in one of 3 aggregates: one, '
            'three, two. Its placement query names 1 of them',
        )

    def test_a_required_set_without_room(self):
        """The zone takes the room; the memory knows nothing of the change."""
        self.aggregate('zone', ['host1', 'host2', 'host3'], zone='zone')
        _, flavor = self.reserve()
        wanted = {'flavor': flavor, 'az': 'zone'}
        self.assertBootsOn('host1', **wanted)
        [zone] = self.queries[-1]['member_of']
        self.assertEqual('in:', zone[:3])
        # Another project's.
        self.write_metadata('one', {'filter_tenant_id': 'other'})
        self.assertBootsOn('host2', **wanted)
        # Not in the aggregate any more.
        with self.api_engine().begin() as connection:
            connection.execute(
                sa.delete(models.AggregateHost).where(
                    models.AggregateHost.host == 'host2',
                    models.AggregateHost.aggregate_id
                    == self.aggregate_ids['two'],
                )
            )
        self.assertBootsOn('host3', **wanted)
        # Of another lease.
        with self.api_engine().begin() as connection:
            connection.execute(
                sa.update(models.AggregateMetadata)
                .where(
                    models.AggregateMetadata.aggregate_id
                    == self.aggregate_ids['three']
                )
                .values(key='reservation:b')
            )
        self.assertNoValidHost(**wanted)

    def test_a_node_that_an_administrator_forces(self):
        """By its name alone, as for bare metal: placement has no host."""
        one = self.aggregate('one', ['host1'], metadata=required(Y))
        self.aggregate('two', metadata=required(WINDOWS))
        self.assertNoValidHost(az='nova::host1')
        self.assertEqual([f'!in:{one}'], self.queries[-1]['member_of'])
        self.assertBootsOn('host2', az='nova::host2')
        # Of its reservation, which fits.
        self.assertEqual([f'!in:{self.large}'], self.queries[-1]['member_of'])
        queries = len(self.queries)
        self.assertNoValidHost(az='nova::no node')
        self.assertEqual(queries, len(self.queries))


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

    def test_trait_stands_for_aggregates(self):
        self.aggregate('others', metadata=required(WINDOWS))
        self.isolate('windows', ['host1'], WINDOWS)
        self.assertBootsOn('host2')
        self.assertEqual({WINDOWS}, self.forbidden_traits())
        self.assertNotIn('member_of', self.queries[-1])
        self.assertBootsOn('host1', image=self.image(props=required(WINDOWS)))

    def test_where_the_trait_does_not_do(self):
        # host1 lacks the trait: the host filter refuses it, and a forced
        # host is not judged.
        self._create_trait(WINDOWS)
        self.aggregate('windows', ['host1'], metadata=required(WINDOWS))
        self.assertBootsOn('host2')
        self.assertEqual({WINDOWS}, self.forbidden_traits())
        self.assertNotIn('member_of', self.queries[-1])
        self.assertNoValidHost(az='nova:host1')
        # Placement would answer 400 to a trait that it does not know.
        gone = self.aggregate('g', ['host2'], metadata=required('CUSTOM_GONE'))
        self.assertBootsOn('host3')
        self.assertEqual({WINDOWS}, self.forbidden_traits())
        self.assertEqual([f'!in:{gone}'], self.queries[-1]['member_of'])
        self.assertRegex(
            self.log, 'WARNING .*Placement does not know the trait CUSTOM_GO'
        )
