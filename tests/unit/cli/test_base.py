# SPDX-License-Identifier: Apache-2.0

from oslo_db import exception as db_exception
import testtools

from nova_ext_sched.cli import base


class DescribeTestCase(testtools.TestCase):
    def test_a_database_without_its_statement(self):
        error = db_exception.DBError(
            "(OperationalError) (2003, 'no route')\n[SQL: SELECT 1]"
        )
        self.assertEqual(
            '[api_database] connection in nova.conf: expected an answer of '
            "the database, got DBError: (OperationalError) (2003, 'no "
            "route')",
            base._describe(error),
        )

    def test_anything_else(self):
        self.assertEqual('KeyError', base._describe(KeyError()))
        self.assertEqual('no', base._describe(OSError('no')))
