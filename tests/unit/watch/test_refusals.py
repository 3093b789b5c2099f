# SPDX-License-Identifier: Apache-2.0

import dataclasses
import datetime

import ddt
from nova import context
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils import uuidutils
import sqlalchemy as sa
from sqlalchemy import orm
import testtools

from nova_ext_sched.watch import refusals
from tests import databases

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
OLD = NOW - datetime.timedelta(minutes=5)
SECOND = datetime.timedelta(seconds=1)
NONE = {'fault': 0, 'event': 0}
NO_VALID_HOST = 'No valid host was found. There are not enough hosts.'

TABLES = [
    getattr(models, f'Instance{name}').__table__
    for name in ('', 'Fault', 'Action', 'ActionEvent')
]


@ddt.ddt
class RefusalsMixin:
    """The selects, on one kind of database."""

    backend = None

    def setUp(self):
        super().setUp()
        database = self.useFixture(databases.Database(self.backend))
        self.engine = database.replace(main_db.context_manager)
        models.BASE.metadata.create_all(self.engine, tables=TABLES)
        self.ctxt = context.get_admin_context()
        self.server = uuidutils.generate_uuid()
        self.add(models.Instance(uuid=self.server, display_name='web'))

    def add(self, row):
        with orm.Session(self.engine) as session, session.begin():
            session.add(row)
            session.flush()
            return row.id

    def fault(self, message, created_at=NOW):
        fields = {'message': message, 'created_at': created_at}
        return self.add(
            models.InstanceFault(instance_uuid=self.server, code=500, **fields)
        )

    def action(self, name, start_time=NOW, request_id='req-1'):
        of = {'instance_uuid': self.server, 'project_id': 'p', 'user_id': 'u'}
        return self.add(
            models.InstanceAction(
                action=name, request_id=request_id, start_time=start_time, **of
            )
        )

    def event(self, action, name='schedule_instances', **fields):
        fields.setdefault('created_at', NOW)
        return self.add(
            models.InstanceActionEvent(event=name, action_id=action, **fields)
        )

    def failure(self, action, details=NO_VALID_HOST, **fields):
        """Add an event that ended at NOW with an error."""
        return self.event(
            action, result='Error', finish_time=NOW, details=details, **fields
        )

    def read(self, after=NONE):
        """Return the rows, those of faults first, and the newest IDs."""
        rows, newest = refusals.read(self.ctxt, after)
        found = []
        for kind in ('fault', 'event'):
            self.assertLessEqual({row.kind for row in rows[kind]}, {kind})
            found += sorted(rows[kind], key=lambda row: row.id)
        return found, newest

    def test_faults(self):
        tries = 'Exceeded max scheduling attempts 3 for instance x.'
        tries = f'Exceeded maximum number of retries. {tries}'
        found = [self.fault(NO_VALID_HOST), self.fault(tries)]
        self.fault('Build of instance x aborted: no valid host was found')
        self.fault(None)
        rows, _ = self.read()
        self.assertEqual(
            [('fault', one, NOW, self.server, False) for one in found],
            [(r.kind, r.id, r.time, r.server, r.is_open) for r in rows],
        )
        self.assertEqual(NO_VALID_HOST, rows[0].message)

    def test_events(self):
        """Success, another event, other words, an error, one that goes on."""
        action = self.action('unshelve')
        self.event(action, result='Success', finish_time=NOW)
        self.failure(action, name='cold_migrate')
        self.failure(action, 'No reply from nova-scheduler')
        failed = self.failure(action)
        still = self.event(action, result=None)
        rows, _ = self.read()
        found = [(row.id, row.is_open) for row in rows]
        self.assertEqual([(failed, False), (still, True)], found)
        self.assertEqual(NO_VALID_HOST, rows[0].message)

    def test_the_time_of_an_event_is_that_of_its_end(self):
        action = self.action('unshelve')
        self.failure(action, created_at=OLD)
        self.event(action, result=None, created_at=OLD)
        rows, _ = self.read()
        self.assertEqual([NOW, OLD], [row.time for row in rows])

    def test_after(self):
        first, second = self.fault(NO_VALID_HOST), self.fault(NO_VALID_HOST)
        rows, newest = self.read({'fault': first, 'event': 0})
        self.assertEqual([second], [row.id for row in rows])
        self.assertEqual({'fault': second, 'event': 0}, newest)
        self.assertEqual(([], newest), self.read(None))

    def test_the_newest_is_of_every_sort(self):
        """Passed or not: others may follow it."""
        self.fault(NO_VALID_HOST)
        other = self.fault('another fault', OLD)
        for after in (0, other, other + 7):
            _, newest = self.read({'fault': after, 'event': 3})
            self.assertEqual({'fault': other, 'event': 0}, newest)

    def test_an_empty_cell(self):
        self.assertEqual(([], NONE), self.read())

    def test_the_action_that_failed(self):
        self.action('create', OLD, 'req-create')
        self.action('live-migration', NOW - SECOND, 'req-live')
        self.action('reboot', NOW - SECOND, 'req-reboot')
        self.fault(NO_VALID_HOST)
        self.action('migrate', NOW + 60 * SECOND, 'req-later')
        [row] = self.read()[0]
        more = 'live-migrate', 'req-live', 'p', 'u', 'web'
        expected = refusals.Refusal(*dataclasses.astuple(row), *more)
        self.assertEqual(expected, refusals.complete(self.ctxt, row))

    @ddt.data((30, ['req-1']), (31, [None]))
    @ddt.unpack
    def test_a_clock_of_nova_api_that_is_ahead(self, seconds, expected):
        """Conductor notes no event for some actions before a fault."""
        self.action('create', NOW + seconds * SECOND)
        self.fault(NO_VALID_HOST)
        self.assertEqual(expected, self.request_ids())

    def test_an_event_of_conductor_needs_no_clock_of_nova_api(self):
        action = self.action('resize', NOW + 3600 * SECOND)
        self.event(action, 'cold_migrate', start_time=NOW)
        self.action('migrate', NOW + 30 * SECOND, 'req-2')
        self.fault(NO_VALID_HOST)
        self.assertEqual(['req-1'], self.request_ids())

    def request_ids(self):
        """Return what is read for each fault; None where there is none."""
        return [
            refusals.complete(self.ctxt, row).request_id
            for row in self.read()[0]
            if row.kind == 'fault'
        ]

    def test_no_action(self):
        self.fault(NO_VALID_HOST)
        [row] = self.read()[0]
        found = refusals.complete(self.ctxt, row)
        self.assertEqual(refusals.Refusal(**dataclasses.asdict(row)), found)


class SqliteTestCase(RefusalsMixin, testtools.TestCase):
    backend = 'sqlite'

    def test_rows_that_were_passed_are_not_read(self):
        asked = []

        def listen(connection, cursor, statement, parameters, *rest):
            asked.append((statement, parameters))

        sa.event.listen(self.engine, 'before_cursor_execute', listen)
        self.read()
        [select] = [
            one
            for one in asked
            if one[0].startswith('SELECT ') and one[0] != 'SELECT 1'
        ]
        statement = f'EXPLAIN QUERY PLAN {select[0]}'
        with self.engine.connect() as connection:
            rows = connection.exec_driver_sql(statement, select[1])
            plan = [one.detail for one in rows if 'instance_' in one.detail]
        key = 'USING INTEGER PRIMARY KEY'
        self.assertEqual(
            [
                f'SEARCH instance_faults {key} (rowid>?)',
                # For the highest ID, which is the last of the key.
                'SEARCH instance_faults',
                f'SEARCH instance_actions_events {key} (rowid>?)',
                f'SEARCH instance_actions {key} (rowid=?)',
                'SEARCH instance_actions_events',
            ],
            plan,
        )


@ddt.ddt
class RowTestCase(testtools.TestCase):
    @ddt.data(
        (NO_VALID_HOST, True),
        ('Exceeded maximum number of retries. Exhausted all hosts.', False),
    )
    @ddt.unpack
    def test_by_the_scheduler(self, message, expected):
        row = refusals.Row('cell', 'fault', 7, NOW, 'server', message)
        self.assertIs(expected, row.is_by_scheduler)
        self.assertEqual('cell:fault:7', row.name)
