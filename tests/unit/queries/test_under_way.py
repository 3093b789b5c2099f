# SPDX-License-Identifier: Apache-2.0

from nova.db.main import models
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa
from sqlalchemy import orm
import testtools

from nova_ext_sched.queries import servers
from nova_ext_sched.queries import under_way
from tests import databases
from tests.unit.queries import test_servers


class UnderWayMixin:
    """The selects, on one kind of database."""

    backend = None

    def setUp(self):
        super().setUp()
        database = self.useFixture(databases.Database(self.backend))
        tables = [models.Instance.__table__, models.Migration.__table__]
        database.create(models.BASE.metadata, tables)
        self.engine = database.engine
        self.session = self.enterContext(orm.Session(self.engine))

    def add(self, *rows):
        self.session.add_all(rows)
        self.session.flush()

    def test_every_status(self):
        """One that nova adds later is under way, wherever it is sorted."""
        new = ['', 'a', 'canceled', 'dones', 'erro', 'new', 'reverts', 'zz']
        wanted = {*test_servers.UNDER_WAY, *new}
        self.add(*map(test_servers.server, (uuids.moving, uuids.other)))
        self.add(
            *map(test_servers.move, [*wanted, *test_servers.OVER, None]),
            test_servers.move('running', deleted=1),
            test_servers.move('running', uuid=uuids.other),
        )
        found = under_way.select(self.session, {uuids.moving})
        self.assertEqual(sorted(wanted), sorted(one.status for one in found))
        self.assertEqual(
            {(uuids.moving, 'h1', 'h2')},
            {(one.server, one.source, one.dest) for one in found},
        )
        self.assertEqual([], under_way.select(self.session, ()))

    def test_all_living_servers_in_chunks(self):
        self.patch(under_way, '_AT_ONCE', 2)
        names = [getattr(uuids, f'server{number}') for number in range(5)]
        self.add(
            *map(test_servers.server, names),
            test_servers.server(uuids.gone, deleted=7),
        )
        self.add(
            *(test_servers.move('running', uuid=one) for one in names),
            test_servers.move('running', uuid=uuids.gone),
        )
        found = under_way.select_all(self.session)
        self.assertEqual(sorted(names), sorted(one.server for one in found))

    def test_all_that_ended_is_known(self):
        """The gaps are between these, in the order of every collation."""
        over = {*servers.ENDED, servers.REVERTED}
        self.assertEqual(over, {*test_servers.OVER})
        self.add(test_servers.server(uuids.moving))
        self.add(*map(test_servers.move, over))
        status = models.Migration.status
        rows = self.session.scalars(sa.select(status).order_by(status))
        self.assertEqual(sorted(over), rows.all())


class UnderWayTestCase(UnderWayMixin, testtools.TestCase):
    backend = 'sqlite'
