# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
from nova import context as nova_context
from nova.db.main import api as main_db
from nova.db.main import models
import sqlalchemy as sa
import testtools

from nova_ext_sched.cmd.export import servers
from tests import databases


@ddt.ddt
class StandingTestCase(testtools.TestCase):
    """tests/functional reads what a server that stands is."""

    @ddt.data(
        ({'host': 'a'}, True),
        ({'host': None}, False),
        ({'host': 'a', 'deleted': 7}, False),
        ({'host': 'a', 'uuid': 'other'}, False),
    )
    @ddt.unpack
    def test_standing(self, row, stands):
        engine = self.useFixture(databases.Database('sqlite')).replace(
            main_db.context_manager
        )
        table = models.Instance.__table__
        table.create(engine)
        with engine.begin() as connection:
            connection.execute(
                sa.insert(table), [{'uuid': 's', 'deleted': 0, **row}]
            )
        self.assertEqual(
            ['s'] * stands,
            servers._standing(nova_context.get_admin_context(), ['s', 't']),
        )

    def test_many(self):
        """Databases limit the values of a statement; no server is twice."""
        asked = []

        def ask_cells(_, uuids):
            asked.append(len(uuids))
            return {
                'one': [mock.Mock(uuid=uuid) for uuid in uuids[::2]],
                'two': [mock.Mock(uuid=uuid) for uuid in uuids[1::2]],
            }

        uuids = [str(number) for number in range(1001)]
        found = servers.read(mock.Mock(ask_cells=ask_cells), {*uuids})
        self.assertEqual([500, 500, 1], asked)
        self.assertEqual({*uuids}, {*found})
        self.assertEqual('7', found['7'].uuid)
