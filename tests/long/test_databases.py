# SPDX-License-Identifier: Apache-2.0

"""Queries on MySQL or MariaDB, and on PostgreSQL.

The unit tests run the same on SQLite.
"""

import testtools
from testtools import matchers

from tests import databases
from tests.unit.queries import test_aggregates
from tests.unit.queries import test_servers
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
