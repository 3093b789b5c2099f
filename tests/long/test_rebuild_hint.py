# SPDX-License-Identifier: Apache-2.0

"""Servers that have nova's internal hint in their record."""

import sqlalchemy as sa

from tests import documentation
from tests.functional import explain
from tests.functional import test_rebuild_hint


class StoredTestCase(test_rebuild_hint.RebuildHintTestCase):
    """nova as it is; the hint was stored before it was updated."""

    def store(self, server):
        """Write the hint into the stored request of a server."""
        spec = self.stored_spec(server)
        spec.scheduler_hints = {'_nova_check_type': ['rebuild']}
        spec.save()
        return server

    def assertGoesTo(self, expected, server):
        self.assertEqual(expected, self.host_of(server))
        # nova took the move for a rebuild.
        self.assertEqual([], self.queries)

    def test_moves(self):
        # Its administrator's choice is stored too.
        server = self.store(self.boot(az='nova:a:a', flavor=self.flavor()))
        self.queries.clear()
        self.assertCannotMigrate(server, host='freepool')
        answer = explain.of_server(server, 'migrate')
        self.assertEqual(['b'], answer.order)
        self.assertIn('and is no rebuild', ''.join(answer.document['remarks']))
        self._migrate_server(server)
        self.assertGoesTo('b', server)
        self._confirm_resize(server)
        self._resize_server(server, self.flavor())
        self.assertGoesTo('a', server)
        self._confirm_resize(server)
        self.live_migrate(server, 'forced')
        self._wait_for_migration_status(server, ['error'])
        self.wait_until_idle(server)
        self._live_migrate(server)
        self.assertGoesTo('b', server)
        self._shelve_server(server)
        self._unshelve_server(server)
        self.assertGoesTo('a', server)
        self.lose('a')
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
        self.add_host('freepool', 'b')
        self.set_metadata('rack b', {'ssd': '1', **test_rebuild_hint.FORCE})
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
        with self.api_engine().begin() as connection:
            found = connection.execute(sa.text(select)).scalars().all()
            connection.execute(sa.text(update))
            rest = connection.execute(sa.text(select)).scalars().all()
        self.assertEqual(([server['id']], []), (found, rest))
        self._delete_server(other)
        self._migrate_server(server)
        self.assertEqual('b', self.host_of(server))
        self.assertNotEqual([], self.queries)
