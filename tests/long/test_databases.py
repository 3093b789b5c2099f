# SPDX-License-Identifier: Apache-2.0

"""Queries on MySQL or MariaDB, and on PostgreSQL.

The unit tests run the same on SQLite.
"""

from nova.db.main import models
import sqlalchemy as sa
from sqlalchemy import orm
import testtools
from testtools import matchers

from nova_ext_sched.queries import under_way
from tests import databases
from tests import examined
from tests.benchmarks import history
from tests.unit.queries import test_aggregates
from tests.unit.queries import test_servers
from tests.unit.queries import test_under_way
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


class ServersMysqlTestCase(test_servers.SelectsMixin, testtools.TestCase):
    backend = 'mysql'


class ServersPostgresqlTestCase(test_servers.SelectsMixin, testtools.TestCase):
    backend = 'postgresql'


class UnderWayOnServerMixin(test_under_way.UnderWayMixin):
    def test_what_has_ended_is_not_examined(self):
        """By the server's own counters."""
        names = [f'{number:036}' for number in range(300)]
        self.add(*map(test_servers.server, names))
        self.session.execute(
            sa.insert(models.Migration),
            [
                {'instance_uuid': name, 'status': status, 'deleted': 0}
                for name in names
                for status in test_servers.OVER * 5
            ],
        )
        self.add(test_servers.move('running', uuid=names[7]))
        self.session.commit()
        history.analyze(self.engine)
        with examined.count({'cell': self.engine}) as rows:
            with orm.Session(self.engine) as session:
                found = under_way.select(session, names)
        self.assertEqual([names[7]], [one.server for one in found])
        rows.pop(('cell', 'instances'), None)
        # 10,500 have ended.
        self.assertLess(rows.total(), 1000, rows)


class UnderWayMysqlTestCase(UnderWayOnServerMixin, testtools.TestCase):
    backend = 'mysql'


class UnderWayPostgresqlTestCase(UnderWayOnServerMixin, testtools.TestCase):
    backend = 'postgresql'


class AwayTestCase(testtools.TestCase):
    """A server that does not answer, in the place of MySQL."""

    def test_is_skipped(self):
        url = 'mysql+pymysql://root@127.0.0.1:1/'
        self.patch(databases, 'SERVERS', {'mysql': url})
        result = testtools.TestResult()
        ServersMysqlTestCase('test_cells').run(result)
        self.assertEqual([], result.errors + result.failures)
        (reason,) = result.skip_reasons
        self.assertThat(reason, matchers.StartsWith('no mysql server: '))
