# SPDX-License-Identifier: Apache-2.0

"""Queries on MySQL or MariaDB, and on PostgreSQL.

The unit tests run the same on SQLite.
"""

import testtools

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
