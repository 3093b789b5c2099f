# SPDX-License-Identifier: Apache-2.0

"""Queries on MySQL or MariaDB, and on PostgreSQL.

The unit tests run the same on SQLite.
"""

from nova.db.main import models
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa
import testtools

from tests.unit.queries import test_aggregates
from tests.unit.queries import test_group_members
from tests.unit.watch import test_refusals


class AggregatesMysqlTestCase(
    test_aggregates.AggregatesMixin, testtools.TestCase
):
    backend = 'mysql'


class AggregatesPostgresqlTestCase(
    test_aggregates.AggregatesMixin, testtools.TestCase
):
    backend = 'postgresql'


class RefusalsMysqlTestCase(test_refusals.RefusalsMixin, testtools.TestCase):
    backend = 'mysql'


class RefusalsPostgresqlTestCase(
    test_refusals.RefusalsMixin, testtools.TestCase
):
    backend = 'postgresql'


class GroupMembersMysqlTestCase(
    test_group_members.SelectsMixin, testtools.TestCase
):
    backend = 'mysql'


class GroupMembersPostgresqlTestCase(
    test_group_members.SelectsMixin, testtools.TestCase
):
    backend = 'postgresql'

    def test_a_move_that_ends_meanwhile(self):
        """nova writes the host, and then that the migration has ended.

        Only here does each select see what was written before it.
        """
        self.add(
            test_group_members.server(uuids.moving),
            test_group_members.move('running'),
        )
        done = []

        def end(*args):
            if not done:
                done.append(True)
                with self.engine.begin() as connection:
                    connection.execute(
                        sa.update(models.Instance).values(host='h2')
                    )
                    connection.execute(
                        sa.update(models.Migration).values(status='completed')
                    )

        sa.event.listen(self.engine, 'after_cursor_execute', end)
        self.assertIn('h2', self.places(uuids.moving)[uuids.moving])
