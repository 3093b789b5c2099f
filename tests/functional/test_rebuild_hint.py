# SPDX-License-Identifier: Apache-2.0

"""Requests that have the hint of a rebuild and are none.

nova then runs no request filter, asks placement nothing and skips the host
filters that do not run on rebuild. The scheduler prefers the wrong host of
each policy to the hosts a and b, so that a host says by its name which one
did not hold.
"""

import fixtures
from nova import context as nova_context
from nova import objects
from nova.compute import api
from nova.scheduler import utils
import sqlalchemy as sa

from nova_ext_sched.filters import base as filters_base
from nova_ext_sched.queries import sources
from tests import documentation
from tests import log_once
from tests.functional import base
from tests.functional import explain

HINT = {'_nova_check_type': 'rebuild'}
WINDOWS = 'CUSTOM_LICENSED_WINDOWS'
LICENSED = {f'trait:{WINDOWS}': 'required'}
FORCE = {'force_metadata_check': 'true'}


class UnmendedApi(fixtures.Fixture):
    """nova-api keeps hints that begin with ``_nova``.

    As 31.0.0 to 31.3.0, 32.0.0 to 32.2.0, 33.0.0 and 33.0.1 do.
    """

    def _setUp(self):
        create = api.API.create
        build = utils.build_filter_properties
        written = {}

        def keep(self, *args, **kwargs):
            written.clear()
            written.update(kwargs['scheduler_hints'])
            return create(self, *args, **kwargs)

        for name, replacement in (
            ('nova.compute.api.API.create', keep),
            (
                'nova.scheduler.utils.build_filter_properties',
                lambda hints, *args, **kwargs: build(
                    {**(hints or {}), **written}, *args, **kwargs
                ),
            ),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, replacement))


class RebuildHintTestCase(base.CloudTestCase):
    """A wrong host for each policy of one host, then two racks."""

    host_filters = (
        'IsolatedAggregatesFilter',
        'AggregateInstanceTypeFilter',
        'BlazarFilter',
        'FailureDomainFilter',
    )
    options = {'enable_isolated_aggregate_filtering': True}
    weights = {'windows': 500, 'freepool': 400, 'forced': 300, 'a': 9, 'b': 8}

    def setUp(self):
        self.useFixture(log_once.Forgotten(filters_base))
        super().setUp()
        # nova-compute's own check would hide what the scheduler decided.
        self.flags(group='workarounds', disable_group_policy_check_upcall=True)
        self.isolate('windows', ['windows'], WINDOWS)
        self.aggregate('freepool', ['freepool'])
        self.aggregate('forced', ['forced'], ssd='1', **FORCE)
        for rack in 'ab':
            self.aggregate(f'rack {rack}', [rack], failure_domain=rack)
        self.plain = self.image()
        self.licensed = self.image(props=LICENSED)

    def create_group(self):
        return self.api.post_server_groups(
            {'name': 'test', 'policy': 'anti-affinity'}
        )['id']


class BootTestCase(RebuildHintTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(UnmendedApi())

    def test_boots(self):
        self.assertBootsOn('a', hints=HINT)
        # Nobody has found out which image a server runs.
        self.assertBootsOn('a', hints=HINT, image=self.licensed)
        self.assertBootsOn(
            'windows', hints=HINT, flavor=self.flavor(specs=LICENSED)
        )
        self.assertBootsOn('forced', hints=HINT, flavor=self.flavor(ssd='1'))
        # Not even an administrator's choice, which nova takes for a rebuild.
        for wrong in ('windows', 'freepool', 'forced'):
            self.assertNoValidHost(hints=HINT, az=f'nova:{wrong}:{wrong}')
        self.assertNoValidHost(hints=HINT, host='windows')
        # nova asked nobody, and the log says it once.
        self.assertEqual([], self.queries)
        self.assertEqual(1, self.log.count('which only nova may write'))
        self.explain_says_what_a_boot_would_meet()
        self.server_groups()

    def explain_says_what_a_boot_would_meet(self):
        hint = '_nova_check_type=rebuild'
        # BlazarFilter does not judge a rebuild.
        for zone, status in (('freepool', 3), ('windows', 3), ('a', 0)):
            answer = explain.run(
                '--flavor', self.flavor(), '--hint', hint,
                '--availability-zone', f'nova:{zone}:{zone}', '-f', 'json',
            )  # fmt: skip
            self.assertEqual(status, answer.status, (zone, answer))
            self.assertIn('and is no rebuild', answer.sentence)

    def server_groups(self):
        hints = {**HINT, 'group': self.create_group()}
        self.assertNoValidHost(
            hints={**hints, 'different_failure_domain': 'true'}
        )
        self.assertIn(
            'failure_domains did not run, because the server has the '
            'scheduler hint',
            self.log,
        )
        self.assertBootsOn('a', hints=hints)
        self.assertBootsOn('b', hints=hints)
        self.assertNoValidHost(hints=hints)
        # Two servers of one request.
        hints['group'] = self.create_group()
        server = self._build_server(flavor_id=self.flavor(), networks='none')
        self.api.post_server(
            {'server': {**server, 'min_count': 2}, 'os:scheduler_hints': hints}
        )
        group = self.api.api_get(f'/os-server-groups/{hints["group"]}').body
        both = [
            self._wait_for_state_change({'id': one}, 'ACTIVE')
            for one in group['server_group']['members']
        ]
        self.assertEqual(['a', 'b'], sorted(map(self.host_of, both)))


class StoredTestCase(RebuildHintTestCase):
    """nova as it is; the hint was stored before it was updated."""

    def store(self, server):
        """Write the hint into the stored request of a server."""
        spec = objects.RequestSpec.get_by_instance_uuid(
            nova_context.get_admin_context(), server['id']
        )
        spec.scheduler_hints = {'_nova_check_type': ['rebuild']}
        spec.save()
        return server

    def assertGoesTo(self, expected, server):
        self.assertEqual(expected, self.host_of(server))
        # nova took the move for a rebuild.
        self.assertEqual([], self.queries)

    def assertCannotMigrate(self, server, host=None):
        self.api.post_server_action(
            server['id'], {'migrate': {'host': host} if host else None}
        )
        self._assert_resize_migrate_action_fail(
            server, 'migrate', 'NoValidHost'
        )

    def test_moves(self):
        # Its administrator's choice is stored too.
        server = self.store(self.boot(az='nova:a:a', flavor=self.flavor()))
        self.queries.clear()
        self.assertCannotMigrate(server, host='freepool')
        answer = explain.run(
            '--server', server['id'], '--operation', 'migrate', '-f', 'json'
        )
        self.assertEqual(['b'], answer.order)
        self.assertIn('and is no rebuild', ''.join(answer.document['remarks']))
        self._migrate_server(server)
        self.assertGoesTo('b', server)
        self._confirm_resize(server)
        self._resize_server(server, self.flavor())
        self.assertGoesTo('a', server)
        self._confirm_resize(server)
        self.api.post_server_action(
            server['id'],
            {'os-migrateLive': {'host': 'forced', 'block_migration': 'auto'}},
        )
        self._wait_for_migration_status(server, ['error'])
        self._wait_for_server_parameter(
            server, {'OS-EXT-STS:task_state': None}
        )
        self._live_migrate(server)
        self.assertGoesTo('b', server)
        self._shelve_server(server)
        self._unshelve_server(server)
        self.assertGoesTo('a', server)
        self.computes['a'].stop()
        self.api.put_service_force_down(
            self.computes['a'].service_ref.uuid, True
        )
        self._evacuate_server(server, expected_host='b')
        self.assertGoesTo('b', server)

    def test_rebuilds(self):
        server = self.store(self.assertBootsOn('a', image=self.plain))
        # nova leaves the image in the stored request.
        self.rebuild_server(server, self.licensed, expected_state='ERROR')
        self.rebuild_server(server, self.plain)
        self.queries.clear()
        self._migrate_server(server)
        self.assertGoesTo('b', server)
        self._confirm_resize(server)
        # Those are rebuilds: the server stays, whatever became of its host.
        self.admin_api.add_host_to_aggregate(
            self.aggregate_ids['freepool'], 'b'
        )
        self.set_metadata('rack b', {'ssd': '1', **FORCE})
        self.rebuild_server(server, self.image())
        self.rebuild_server(server, self.licensed, expected_state='ERROR')
        self.rebuild_server(server, self.plain)
        self.assertGoesTo('b', server)

    def test_statements_of_the_documentation(self):
        hints = {'group': self.create_group()}
        server = self.store(self.assertBootsOn('a', hints=hints))
        other = self.assertBootsOn('b', hints=hints)
        self.queries.clear()
        # b is full for the group, and all other hosts are closed.
        self.assertCannotMigrate(server)
        self.assertEqual([], self.queries)
        select, update, _ = next(
            block.text.split(';')
            for block in documentation.blocks('sql')
            if '_nova_check_type' in block.text
        )
        with sources.api_db.context_manager.writer.get_engine().begin() as (
            connection
        ):
            found = connection.execute(sa.text(select)).scalars().all()
            connection.execute(sa.text(update))
            rest = connection.execute(sa.text(select)).scalars().all()
        self.assertEqual(([server['id']], []), (found, rest))
        self._delete_server(other)
        self._migrate_server(server)
        self.assertEqual('b', self.host_of(server))
        self.assertNotEqual([], self.queries)
