# SPDX-License-Identifier: Apache-2.0

"""watch through outages, what its queries are, and what members do."""

import collections
import contextlib
from unittest import mock

import fixtures
from keystoneauth1 import exceptions as ks_exc
from nova.db.api import models as api_models
from nova.scheduler.client import report
from nova.tests.unit import fake_requests
from oslo_db import exception as db_exception
import sqlalchemy as sa

from nova_ext_sched.dryrun.decision import advice
from nova_ext_sched.watch import explainer
from tests import samples
from tests.functional import base
from tests.functional import explain
from tests.functional import test_watch
from tests.long import pages


class ResilienceTest(test_watch.WatchTestCase):
    """What is away comes back, or is gone for good."""

    def deleted_in_the_meantime(self):
        server = self.refuse()
        self.api.delete_server(server['id'])
        self._wait_until_deleted(server)
        self.assertGone(server)
        # As nova-manage db archive_deleted_rows does.
        server = self.refuse()
        with self.api_engine().begin() as connection:
            connection.execute(sa.delete(api_models.RequestSpec))
        self.assertGone(server)

    def assertGone(self, server):
        [record] = self.recorded()
        self.assertEqual(
            ('boot', server['id'], 'gone', 'gone', None, None),
            (
                record['operation'],
                record['server'],
                record['unexplained'],
                record['constraint'],
                record['flavor'],
                record['image'],
            ),
        )

    def test_outages(self):
        self.deleted_in_the_meantime()
        self.placement_away()
        self.api_database_away()
        self.a_policy_cannot_decide()
        self.a_cell_away()
        self.hosts_of_a_cell_away()

    def placement_away(self):
        """It is tried in each turn, and these do not use up the minute."""
        self.refuse()
        for method in ('get', '_create_client'):
            with self.no_placement(method):
                for _ in range(self.most + 1):
                    self.assertEqual([], self.recorded())
                self.assertEqual(1, self.figure('refusals_waiting'))
        [record] = self.recorded()
        self.assertEqual('VCPU', record['constraint'])
        self.assertEqual(0, self.figure('refusals_waiting'))
        self.assertEqual(1, self.log.count('Refusals cannot be explained yet'))

    def api_database_away(self):
        self.refuse()
        with base.table_away(self.api_engine(), 'request_specs'):
            self.assertEqual([], self.recorded())
        [record] = self.recorded()
        self.assertEqual('VCPU', record['constraint'])

    def a_policy_cannot_decide(self):
        """nova did not refuse for it: the database was there then."""

        def fail(*args):
            raise db_exception.DBConnectionError()

        self.refuse()
        # The database is cut once the explanation has begun.
        with fixtures.MonkeyPatch(
            'nova_ext_sched.queries.aggregates.get_metadata', fail
        ):
            self.assertEqual([], self.recorded())
            self.assertEqual(1, self.figure('refusals_waiting'))
        [record] = self.recorded()
        self.assertEqual('VCPU', record['constraint'])

    def a_cell_away(self):
        """Neither its refusals nor what they were to be are lost."""
        for table in ('instance_faults', 'instance_actions'):
            self.refuse()
            with base.table_away(self.cell_engine('cell0'), table):
                self.assertEqual([], self.recorded())
            [record] = self.recorded()
            self.assertEqual('VCPU', record['constraint'])
            self.assertEqual('boot', record['operation'])
        self.assertEqual(0, self.figure('cells_unread'))

    def hosts_of_a_cell_away(self):
        """The scheduler has no other answer as long as it lasts."""
        with base.table_away(self.cell_engine('cell1'), 'compute_nodes'):
            self.boot(expected_state='ERROR')
            [record] = self.recorded()
        self.assertEqual('no hosts', record['constraint'])
        [remark] = record['explanation']['faults']
        self.assertIn('The hosts of cell cell1 are not counted', remark)

    def no_placement(self, method='get'):
        def fail(*args, **kwargs):
            raise ks_exc.ConnectFailure('no route to placement')

        client = 'nova.scheduler.client.report.SchedulerReportClient'
        return fixtures.MonkeyPatch(f'{client}.{method}', fail)


class StatementsTest(test_watch.WatchTestCase):
    """What the databases are asked, by the statements."""

    def test_statements(self):
        # They write to their cell when it suits them.
        for compute in self.computes.values():
            compute.stop()
        self.watcher.turn()
        self.assertEqual({'cell0': 1, 'cell1': 1}, self.count_statements())
        self.refuse()
        self.refuse()
        # The rows are not passed yet.
        self.assertEqual(2, len(self.recorded()))
        self.assertEqual({'cell0': 1, 'cell1': 1}, self.count_statements())

    def count_statements(self):
        """Return what a turn asks of each database, by its name."""
        statements = []
        with self.listening(statements):
            self.assertEqual([], self.recorded())
        names = {
            self.cell_engine('cell0'): 'cell0',
            self.cell_engine('cell1'): 'cell1',
            self.api_engine(): 'API',
        }
        return collections.Counter(names[engine] for engine, _ in statements)

    @contextlib.contextmanager
    def listening(self, statements):
        def listen(connection, cursor, statement, *rest):
            # Services report when it suits them.
            if statement != 'BEGIN' and ' services' not in statement:
                statements.append((connection.engine, statement))

        sa.event.listen(sa.engine.Engine, 'before_cursor_execute', listen)
        try:
            yield
        finally:
            sa.event.remove(sa.engine.Engine, 'before_cursor_execute', listen)


class MembersTest(test_watch.WatchTestCase):
    """What a member of a project can do to the records of others."""

    weights = {f'host{number}': number for number in range(1, 5)}

    def test_a_query_that_is_too_long(self):
        """As behind a web server; the refusals of others do not wait."""
        get = report.SchedulerReportClient.get

        def limit(client, url, *args, **kwargs):
            if len(url) > 4000:
                return fake_requests.FakeResponse(414, '<html>too long</html>')
            return get(client, url, *args, **kwargs)

        traits = {
            f'trait:CUSTOM_{number}_{"X" * 200}': 'required'
            for number in range(20)
        }
        with mock.patch.object(report.SchedulerReportClient, 'get', limit):
            self.assertNoValidHost(image=self.image(props=traits))
            self.refuse()
            records = self.recorded()
        self.assertEqual(
            ['query length', 'VCPU'], [one['constraint'] for one in records]
        )
        end = records[0]['explanation']['answer']['end']
        self.assertIn(' characters are too many for placement ', end['reason'])
        self.assertIn('414', end['detail'])

    def test_a_forced_host(self):
        """What it is refused for, not that others are not the host."""
        self.isolate('windows', ['host4'], test_watch.TRAIT)
        self.boot(az='nova:host4', expected_state='ERROR')
        [record] = self.recorded()
        self.assertEqual('isolation', record['constraint'])


class PageTest(pages.PagesMixin, test_watch.WatchTestCase):
    """What the page about watch shows."""

    weights = {f'host{number}': 10 - number for number in range(1, 5)}

    @samples.compares('cli/watch/recorded.txt')
    def test_the_page(self):
        # Each act is tried, however slow the machine is.
        self.useFixture(
            fixtures.MockPatchObject(explainer, '_TRIED', advice.Bounds(2, 60))
        )
        self.isolate('windows', ['host1', 'host2', 'host3'], test_watch.TRAIT)
        self.set_service('host4', status='disabled')
        server = self.assertNoValidHost(
            flavor=self.flavor(name='small'), name='web-7'
        )
        [record] = self.recorded()
        # The server is gone, and the host is back.
        self.api.delete_server(server['id'])
        command = f'explain --recorded {record["request_id"]}'
        answer = explain.run(
            *command.split()[1:],
            *('--records', str(self.records), '--color', 'always'),
        )
        self.assertEqual(3, answer.status, answer.err)
        samples.check(
            self,
            'cli/watch/recorded.txt',
            f'$ nova-ext-sched {command}\n{answer.out}',
            self.api.project_id,
        )
